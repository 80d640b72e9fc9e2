// Included by each flip_loops_*.cpp, which are compiled with different flags. Anonymous, and
// without inline functions of other headers, so that the linker cannot merge the copies.
#pragma once

#include "search/flip_loops.hpp"

#if defined(__AVX512VPOPCNTDQ__)
#include <immintrin.h>
#endif

namespace lookalike::search {
namespace {

constexpr std::size_t kBits = 32;            // of a header, at most
constexpr std::uint32_t kPlace = kBits - 1;  // the bits of a key that hold a bit's place

inline std::uint32_t ones(std::uint64_t word) {
#if defined(__POPCNT__) || defined(__aarch64__)
    return static_cast<std::uint32_t>(__builtin_popcountll(word));
#else
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<std::uint32_t>((word * 0x0101010101010101u) >> 56);
#endif
}

// sorted[i]: the i-th smallest of distinct keys, by counting for each how many are smaller. That is
// more work than sorting, but all of it in vectors and without a branch.
inline void sort_keys(const std::uint32_t* keys, std::uint32_t* sorted) {
    std::uint32_t ranks[kBits] = {};
    for (std::size_t other = 0; other < kBits; ++other)
        for (std::size_t key = 0; key < kBits; ++key)
            ranks[key] += keys[other] < keys[key] ? 1 : 0;
    for (std::size_t key = 0; key < kBits; ++key)
        sorted[ranks[key]] = keys[key];
}

template <class Magnitude>
inline void finish_ranking(const std::uint32_t* keys, std::size_t bits, std::size_t needed,
                           const FlipCosts& costs, RankedBits& ranked, Magnitude magnitude) {
    alignas(64) std::uint32_t sorted[kBits];
    sort_keys(keys, sorted);
    const std::size_t count = bits < needed ? bits : needed;
    ranked.count = static_cast<std::uint32_t>(count);
    for (std::size_t rank = 0; rank < count; ++rank) {
        const float step = magnitude(sorted[rank]) * costs.scale;
        constexpr float last = static_cast<float>(FlipCosts::kSteps - 1);
        ranked.costs[rank] = costs.costs[static_cast<std::size_t>(step < last ? step : last)];
        ranked.bits[rank] = std::uint64_t{1} << (sorted[rank] & kPlace);
    }
    ranked.costs[RankedBits::kMost] = 0;
    ranked.bits[RankedBits::kMost] = 0;
}

void rank_floats(const float* weights, std::size_t bits, std::size_t needed, const FlipCosts& costs,
                 RankedBits& ranked) {
    // Without their sign, floats are ordered as the numbers that their bits make. The lowest of
    // these make room for the place.
    alignas(64) std::uint32_t keys[kBits];
    for (std::size_t bit = 0; bit < kBits; ++bit)
        keys[bit] = ~kPlace | static_cast<std::uint32_t>(bit);
    for (std::size_t bit = 0; bit < bits; ++bit) {
        std::uint32_t key;
        __builtin_memcpy(&key, weights + bit, sizeof key);
        keys[bit] = (key & 0x7fffffffu & ~kPlace) | static_cast<std::uint32_t>(bit);
    }
    finish_ranking(keys, bits, needed, costs, ranked, [](std::uint32_t key) {
        key &= ~kPlace;
        float magnitude;
        __builtin_memcpy(&magnitude, &key, sizeof magnitude);
        return magnitude;
    });
}

void rank_units(const std::int16_t* weights, std::size_t bits, std::size_t needed,
                const FlipCosts& costs, RankedBits& ranked) {
    alignas(64) std::uint32_t keys[kBits];
    for (std::size_t bit = 0; bit < kBits; ++bit)
        keys[bit] = ~kPlace | static_cast<std::uint32_t>(bit);
    for (std::size_t bit = 0; bit < bits; ++bit) {
        const std::int32_t twice = 2 * std::int32_t{weights[bit]} + 1;  // the middle of the step
        keys[bit] = static_cast<std::uint32_t>(twice < 0 ? -twice : twice) * kBits |
                    static_cast<std::uint32_t>(bit);
    }
    finish_ranking(keys, bits, needed, costs, ranked, [](std::uint32_t key) {
        return static_cast<float>(key / kBits) * (0.5f / 1024);
    });
}

bool all_finite(const float* weights, std::size_t count) {
    std::uint32_t largest = 0;
    for (std::size_t at = 0; at < count; ++at) {
        std::uint32_t bits;
        __builtin_memcpy(&bits, weights + at, sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000u;
}

void choose(const Candidates& candidates, const RankedBits& ranked, std::uint32_t* flips) {
    constexpr std::size_t kRoom = Candidates::kMostCandidates, kLanes = Candidates::kLanes;
    alignas(64) std::uint32_t keys[kRoom], sets[kRoom], ranks[kRoom];
    const std::size_t padded = (candidates.count + kLanes - 1) / kLanes * kLanes;
    for (std::size_t index = 0; index < padded; ++index)
        keys[index] = sets[index] = ranks[index] = 0;
    for (std::size_t member = 0; member < candidates.members; ++member) {
        const std::uint8_t* const chosen = candidates.member[member];
        for (std::size_t index = 0; index < candidates.count; ++index) {
            keys[index] += ranked.costs[chosen[index]];
            sets[index] |= static_cast<std::uint32_t>(ranked.bits[chosen[index]]);
        }
    }
    for (std::size_t index = 0; index < padded; ++index)
        keys[index] = (index < candidates.count ? keys[index] : (1u << 23) - 1) * kRoom +
                      static_cast<std::uint32_t>(index);
    for (std::size_t begin = 0; begin < padded; begin += kLanes)
        for (std::size_t other = 0; other < candidates.count; ++other)
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                ranks[begin + lane] += keys[other] < keys[begin + lane] ? 1 : 0;
    for (std::size_t index = 0; index < candidates.count; ++index)
        if (ranks[index] < candidates.wanted)
            flips[ranks[index]] = sets[index];
}

// Writes those of up to kMostHits signatures that are within the radius.
inline FlipHit* compare(const std::uint64_t* signatures, std::size_t begin, std::size_t size,
                        std::uint64_t query, std::uint32_t number, std::uint32_t radius,
                        FlipHit* hits) {
#if defined(__AVX512VPOPCNTDQ__)
    // Whole cache lines, of which only what belongs to the bucket is loaded: a vector that crossed
    // into a line that nobody asked for would wait for it.
    const auto address = reinterpret_cast<std::uintptr_t>(signatures + begin);
    const std::size_t before = address % 64 / 8;
    const std::uint64_t* line = signatures + begin - before;
    const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(query));
    const __m512i most = _mm512_set1_epi64(radius);
    std::size_t at = begin - before;
    for (std::uint32_t lanes = ((1u << size) - 1) << before; lanes != 0;
         lanes >>= 8, line += 8, at += 8) {
        const auto mask = static_cast<__mmask8>(lanes);
        const __m512i distances =
            _mm512_popcnt_epi64(_mm512_xor_si512(wanted, _mm512_maskz_load_epi64(mask, line)));
        std::uint32_t near = _mm512_mask_cmple_epu64_mask(mask, distances, most);
        for (; near != 0; near &= near - 1) {
            const auto lane = static_cast<std::uint32_t>(__builtin_ctz(near));
            *hits++ = {number, ones(query ^ line[lane]), static_cast<std::uint32_t>(at + lane)};
        }
    }
#else
    for (std::size_t at = begin; at < begin + size; ++at) {
        const std::uint32_t distance = ones(query ^ signatures[at]);
        if (distance <= radius)
            *hits++ = {number, distance, static_cast<std::uint32_t>(at)};
    }
#endif
    return hits;
}

std::size_t probe(const Sorted64& sorted, const std::uint64_t* queries, std::uint32_t radius,
                  const FlipProbe* probes, std::size_t count, FlipHit* spare, FlipHit* hits) {
    // Where the buckets are; those that are empty, more than a third, are dropped.
    std::size_t left = 0;
    bool valid = true;
    for (std::size_t at = 0; at < count; ++at) {
        const std::uint32_t begin = sorted.offsets[probes[at].header];
        const std::uint32_t end = sorted.offsets[probes[at].header + 1];
        valid &= begin <= end && end <= sorted.count;
        spare[left] = {probes[at].query, end - begin, begin};
        left += end != begin ? 1 : 0;
        // An empty bucket asks for what is there already, which is cheaper than a branch.
        __builtin_prefetch(sorted.signatures + (end != begin ? begin : 0));
        __builtin_prefetch(sorted.signatures + (end != begin ? end - 1 : 0));
    }
    if (!valid) {
        *hits = {0, FlipHit::kCorrupt, 0};
        return 1;
    }
    FlipHit* next = hits;
    for (std::size_t at = 0; at < left; ++at) {
        const FlipHit bucket = spare[at];
        if (bucket.distance > FlipLoops::kMostHits) [[unlikely]]
            *next++ = {bucket.query, FlipHit::kLarge, bucket.place};
        else
            next = compare(sorted.signatures, bucket.place, bucket.distance, queries[bucket.query],
                           bucket.query, radius, next);
    }
    return static_cast<std::size_t>(next - hits);
}

constexpr FlipLoops kLoops{rank_floats, rank_units, all_finite, choose, probe};

}  // namespace
}  // namespace lookalike::search
