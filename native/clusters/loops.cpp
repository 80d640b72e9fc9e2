// Compiled once per instruction set: see bits/instruction_sets.hpp.

#include "clusters/loops.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lookalike::search {
namespace {

constexpr std::size_t kTogether = 16;

std::size_t count_at_most(const std::int32_t* numbers, std::size_t count, std::int32_t most) {
    std::uint32_t found = 0;
    for (std::size_t place = 0; place < count; ++place)
        found += numbers[place] <= most;
    return found;
}

// A bit for each of kTogether numbers: whether it is at most `most`.
unsigned marks_at_most(const std::int32_t* numbers, std::int32_t most) {
#if defined(__AVX512F__)
    return _mm512_cmple_epi32_mask(_mm512_loadu_si512(numbers), _mm512_set1_epi32(most));
#elif defined(__AVX2__)
    const __m256i limit = _mm256_set1_epi32(most);
    const auto larger = [&](const std::int32_t* from) {
        const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        return static_cast<unsigned>(
            _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(eight, limit))));
    };
    return (larger(numbers) | larger(numbers + 8) << 8) ^ 0xffffu;
#else
    unsigned marks = 0;
    for (std::size_t place = 0; place < kTogether; ++place)
        marks |= static_cast<unsigned>(numbers[place] <= most) << place;
    return marks;
#endif
}

std::size_t places_at_most(const std::int32_t* numbers, std::size_t count, std::int32_t most,
                           std::uint32_t* places) {
    std::uint32_t* to = places;
    std::size_t begin = 0;
    for (; begin + kTogether <= count; begin += kTogether)
        for (unsigned marks = marks_at_most(numbers + begin, most); marks != 0; marks &= marks - 1)
            *to++ = static_cast<std::uint32_t>(begin) +
                    static_cast<std::uint32_t>(__builtin_ctz(marks));
    for (; begin < count; ++begin)
        if (numbers[begin] <= most)
            *to++ = static_cast<std::uint32_t>(begin);
    return static_cast<std::size_t>(to - places);
}

std::int32_t least_bound(const std::int32_t* distances, const std::int32_t* nearest,
                         const std::int32_t* farthest, std::size_t count) {
    std::int32_t least = INT32_MAX;
    for (std::size_t place = 0; place < count; ++place) {
        const std::int32_t beyond = distances[place] - farthest[place];
        const std::int32_t before = nearest[place] - distances[place];
        const std::int32_t bound = beyond > before ? beyond : before;
        least = bound < least ? bound : least;
    }
    return least;
}

constexpr ChoiceLoops kLoops{count_at_most, places_at_most, least_bound};

}  // namespace

const ChoiceLoops ChoiceLoops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::search
