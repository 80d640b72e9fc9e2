#include "bits/random_access.hpp"

#include <bit>

#include "bits/mix.hpp"

namespace lookalike::bits {

std::uint64_t read_at_random(const std::uint64_t* words, std::size_t count, std::size_t first,
                             std::size_t reads, std::size_t ahead) {
    const std::size_t mask = std::bit_floor(count) - 1;
    std::uint64_t sum = 0;
    if (ahead == 0) {
        for (std::size_t read = first; read < first + reads; ++read)
            sum += words[fmix64(sum + read) & mask] + 1;
        return sum;
    }
    for (std::size_t read = first; read < first + reads; ++read) {
        __builtin_prefetch(words + (fmix64(read + ahead) & mask));
        sum += words[fmix64(read) & mask];
    }
    return sum;
}

}  // namespace lookalike::bits
