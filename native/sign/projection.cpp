#include <cmath>

#include "sign/loops.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

// A product of two floats is exact in a double, and the sum is made in the order of dimensions, so
// that every machine gets the same.
double exact_product(const float* vector, const float* matrix, std::size_t dimensions,
                     std::size_t bits, std::size_t bit) {
    double sum = 0;
    for (std::size_t dimension = 0; dimension < dimensions; ++dimension)
        sum += static_cast<double>(vector[dimension]) *
               static_cast<double>(matrix[dimension * bits + bit]);
    return sum;
}

double length(const float* vector, std::size_t count, std::size_t stride) {
    double squares = 0;
    for (std::size_t index = 0; index < count; ++index)
        squares += static_cast<double>(vector[index * stride]) *
                   static_cast<double>(vector[index * stride]);
    return std::sqrt(squares);
}

}  // namespace

void project(const float* vectors, std::size_t count, std::size_t dimensions, const float* matrix,
             std::size_t bytes, Work work, std::uint8_t* signatures) {
    const std::size_t bits = 8 * bytes;
    // A sum of d products in single precision is off by at most some d * 2^-24 times the sum of
    // their magnitudes, which is at most the product of both lengths (Cauchy and Schwarz); twice
    // that, and the least normal number, to be safe.
    double longest = 0;
    for (std::size_t bit = 0; bit < bits; ++bit)
        longest = std::max(longest, length(matrix + bit, dimensions, bits));
    const double share = static_cast<double>(dimensions + 2) * 0x1p-23 * longest;

    struct State {
        std::vector<float> vectors, sums;
    };
    const std::size_t groups = (count + kVectorGroup - 1) / kVectorGroup;
    const Loops& loop = loops();
    per_document(groups, work, State{}, [&](State& state, std::size_t group) {
        const std::size_t first = group * kVectorGroup;
        const std::size_t here = std::min(kVectorGroup, count - first);
        state.vectors.assign(kVectorGroup * dimensions, 0.0f);
        std::copy_n(vectors + first * dimensions, here * dimensions, state.vectors.begin());
        state.sums.resize(kVectorGroup * bits);
        loop.project(state.vectors.data(), dimensions, matrix, bits, state.sums.data());
        for (std::size_t index = 0; index < here; ++index) {
            const float* const vector = state.vectors.data() + index * dimensions;
            const double unsure = share * length(vector, dimensions, 1) + 0x1p-120;
            std::uint8_t* const row = signatures + (first + index) * bytes;
            std::fill(row, row + bytes, std::uint8_t{0});
            for (std::size_t bit = 0; bit < bits; ++bit) {
                double sum = static_cast<double>(state.sums[index * bits + bit]);
                if (!(std::abs(sum) > unsure) || !std::isfinite(sum)) [[unlikely]]
                    sum = exact_product(vector, matrix, dimensions, bits, bit);
                row[bit / 8] |= static_cast<std::uint8_t>((sum >= 0 ? 1 : 0) << (bit % 8));
            }
        }
    });
}

void project_with_sums(const float* vectors, std::size_t count, std::size_t dimensions,
                       const float* matrix, std::size_t bytes, Work work, std::uint8_t* signatures,
                       float* sums) {
    const std::size_t bits = 8 * bytes;
    per_document(count, work, std::vector<double>{}, [&](auto& products, std::size_t row) {
        const float* const vector = vectors + row * dimensions;
        products.assign(bits, 0);
        for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
            const auto value = static_cast<double>(vector[dimension]);
            const float* const column = matrix + dimension * bits;
            for (std::size_t bit = 0; bit < bits; ++bit)
                products[bit] += value * static_cast<double>(column[bit]);
        }
        const double norm = length(vector, dimensions, 1);
        std::uint8_t* const signature = signatures + row * bytes;
        std::fill(signature, signature + bytes, std::uint8_t{0});
        for (std::size_t bit = 0; bit < bits; ++bit) {
            signature[bit / 8] |=
                static_cast<std::uint8_t>((products[bit] >= 0 ? 1 : 0) << (bit % 8));
            sums[row * bits + bit] = norm == 0 ? 0.0f : static_cast<float>(products[bit] / norm);
        }
    });
}

}  // namespace lookalike::sign
