#include <bit>
#include <limits>

#include "bits/hash.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
constexpr std::uint32_t kEmpty = 0xffffffffu;

// The natural logarithm of a normal number above 0, to within some units in the last place. That of
// the C library differs from machine to machine; this has only operations that do not.
double logarithm(double value) {
    constexpr double kLn2 = 0.693147180559945309417232;
    std::uint64_t word = std::bit_cast<std::uint64_t>(value);
    auto exponent = static_cast<std::int64_t>(word >> 52) - 1023;
    word = (word & 0xfffffffffffffu) | 0x3ff0000000000000u;
    if (word > 0x3ff6a09e667f3bcdu) {  // the square root of 2: from here on, half of it
        word -= 0x10000000000000u;
        ++exponent;
    }
    const double part = std::bit_cast<double>(word);
    const double x = (part - 1) / (part + 1), square = x * x;  // ln((1 + x) / (1 - x))
    double sum = 0;
    for (int term = 21; term >= 1; term -= 2)
        sum = sum * square + 1.0 / term;
    return 2 * x * sum + static_cast<double>(exponent) * kLn2;
}

// Above 0 and below 1.
double uniform(std::uint32_t word) {
    return (word + 0.5) * 0x1p-32;
}

// Minus the logarithm of a product of two uniform numbers: Gamma(2, 1).
double gamma2(std::uint64_t word) {
    return -logarithm(uniform(static_cast<std::uint32_t>(word)) *
                      uniform(static_cast<std::uint32_t>(word >> 32)));
}

std::int64_t rounded_down(double value) {
    const auto whole = static_cast<std::int64_t>(value);
    return whole - (static_cast<double>(whole) > value ? 1 : 0);
}

struct Draw {
    double rank;  // the least wins
    std::int64_t steps;
};

// Algorithm 1 of Ioffe, in logarithms.
Draw draw(std::uint64_t feature, std::uint64_t permutation, double log_weight) {
    const std::uint64_t word = bits::fmix64(feature ^ permutation);
    const double r = gamma2(bits::fmix64(word + kStep));
    const double c = gamma2(bits::fmix64(word + 2 * kStep));
    const double shift = static_cast<double>(bits::fmix64(word + 3 * kStep) >> 11) * 0x1p-53;
    const std::int64_t steps = rounded_down(log_weight / r + shift);
    const double log_y = r * (static_cast<double>(steps) - shift);
    return {logarithm(c) - log_y - r, steps};
}

}  // namespace

void weighted_minhash(const Source& source, WeightKind kind, const Vocabulary* vocabulary,
                      std::uint64_t seed, std::size_t permutations, Work work,
                      std::uint32_t* values) {
    struct State {
        Reader reader;
        Weigher weigher;
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
    };
    std::vector<std::uint64_t> words(permutations);
    for (std::size_t index = 0; index < permutations; ++index)
        words[index] = bits::fmix64(bits::fmix64(seed + kStep) + (index + 1) * kStep);
    const State initial{{}, Weigher(kind, vocabulary), {}, {}};
    per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        state.weigher.weigh(state.reader.read(source, document), state.features, state.weights);
        // Weights that were learned may differ in the last digit from machine to machine.
        for (double& weight : state.weights)
            weight = logarithm(std::max(static_cast<double>(static_cast<float>(weight)), 0x1p-126));
        std::uint32_t* const row = values + document * permutations;
        for (std::size_t index = 0; index < permutations; ++index) {
            double least = std::numeric_limits<double>::infinity();
            std::uint64_t drawn = 0;
            std::int64_t steps = 0;
            for (std::size_t at = 0; at < state.features.size(); ++at) {
                const Draw one = draw(state.features[at], words[index], state.weights[at]);
                if (one.rank < least)
                    least = one.rank, drawn = state.features[at], steps = one.steps;
            }
            const std::uint64_t value =
                bits::fmix64(drawn ^ bits::fmix64(static_cast<std::uint64_t>(steps) + kStep));
            row[index] = state.features.empty()
                             ? kEmpty
                             : std::min(static_cast<std::uint32_t>(value >> 32), kEmpty - 1);
        }
    });
}

}  // namespace lookalike::sign
