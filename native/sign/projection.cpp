#include "sign/loops.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

void project(const float* vectors, std::size_t count, std::size_t dimensions, const double* matrix,
             std::size_t bytes, Work work, std::uint8_t* signatures) {
    const Loops& loop = loops();
    using Sums = std::vector<double>;
    per_document(count, work, Sums(8 * bytes), [&](Sums& sums, std::size_t index) {
        loop.project(vectors + index * dimensions, dimensions, matrix, 8 * bytes, sums.data());
        std::uint8_t* const row = signatures + index * bytes;
        std::fill(row, row + bytes, std::uint8_t{0});
        for (std::size_t bit = 0; bit < 8 * bytes; ++bit)
            row[bit / 8] |= static_cast<std::uint8_t>((sums[bit] >= 0 ? 1 : 0) << (bit % 8));
    });
}

}  // namespace lookalike::sign
