// Included by each score_loops_*.cpp, which are compiled with different flags. Anonymous, so that
// the linker cannot merge the copies.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "search/score_loops.hpp"

namespace lookalike::search {
namespace {

constexpr std::size_t kBlock = 64;

// Bit i is set where score i of a block is `least` or more.
#if defined(__AVX512BW__)
std::uint64_t reached(const std::uint8_t* scores, std::uint8_t least) {
    return _mm512_cmpge_epu8_mask(_mm512_loadu_si512(scores),
                                  _mm512_set1_epi8(static_cast<char>(least)));
}
#elif defined(__AVX2__)
std::uint64_t reached(const std::uint8_t* scores, std::uint8_t least) {
    const __m256i limit = _mm256_set1_epi8(static_cast<char>(least));
    const auto half = [&](const std::uint8_t* from) {
        const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i equal = _mm256_cmpeq_epi8(_mm256_max_epu8(some, limit), some);
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
    };
    return std::uint64_t{half(scores + 32)} << 32 | half(scores);
}
#else
std::uint64_t reached(const std::uint8_t* scores, std::uint8_t least) {
    std::uint8_t largest = 0;
    for (std::size_t at = 0; at < kBlock; ++at)
        largest = scores[at] > largest ? scores[at] : largest;
    if (largest < least) [[likely]]
        return 0;
    std::uint64_t mask = 0;
    for (std::size_t at = 0; at < kBlock; ++at)
        mask |= std::uint64_t{scores[at] >= least} << at;
    return mask;
}
#endif

std::size_t collect(const std::uint8_t* scores, std::size_t count, std::uint8_t least,
                    std::uint64_t* places) {
    std::size_t found = 0, begin = 0;
    for (; begin + kBlock <= count; begin += kBlock)
        for (std::uint64_t mask = reached(scores + begin, least); mask != 0; mask &= mask - 1)
            places[found++] = begin + static_cast<std::size_t>(__builtin_ctzll(mask));
    for (; begin < count; ++begin)
        if (scores[begin] >= least)
            places[found++] = begin;
    return found;
}

std::size_t count_nonzero(const std::uint8_t* scores, std::size_t count) {
    std::size_t found = 0;
    for (std::size_t at = 0; at < count; ++at)
        found += scores[at] != 0 ? 1 : 0;
    return found;
}

constexpr ScoreLoops kLoops{collect, count_nonzero};

}  // namespace
}  // namespace lookalike::search
