#include <algorithm>

#include "sign/signers.hpp"

namespace lookalike::sign {

void mersenne_minima(const std::uint64_t* hashes, std::size_t count, const std::uint64_t* factors,
                     const std::uint64_t* terms, std::size_t permutations, std::uint64_t* minima) {
    constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
    for (std::size_t index = 0; index < permutations; ++index) {
        const std::uint64_t factor = factors[index], term = terms[index];
        std::uint64_t least = minima[index];
        for (std::size_t at = 0; at < count; ++at) {
            const std::uint64_t product = factor * hashes[at] + term;
            const std::uint64_t folded = (product & kPrime) + (product >> 61);
            const std::uint64_t value = folded >= kPrime ? folded - kPrime : folded;
            least = std::min(least, value & 0xffffffffu);
        }
        minima[index] = least;
    }
}

}  // namespace lookalike::sign
