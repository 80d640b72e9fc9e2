// Compiled once per instruction set: see bits/instruction_sets.hpp.

#include "tables/flip_loops.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lookalike::search {
namespace {

constexpr std::size_t kBits = 32;  // of a header, at most
constexpr std::uint32_t kPlace = kBits - 1;

// Vectors of 16-bit numbers. Comparing gives -1 where it is true.
#if defined(__AVX2__)
using Lanes = __m256i;
inline Lanes all_lanes(std::int16_t value) {
    return _mm256_set1_epi16(value);
}
inline Lanes less(Lanes a, Lanes b) {
    return _mm256_cmpgt_epi16(b, a);
}
inline Lanes minus(Lanes a, Lanes b) {
    return _mm256_sub_epi16(a, b);
}
#else
using Lanes = std::int16_t __attribute__((vector_size(16)));
inline Lanes all_lanes(std::int16_t value) {
    return Lanes{} + value;
}
inline Lanes less(Lanes a, Lanes b) {
    return a < b;
}
inline Lanes minus(Lanes a, Lanes b) {
    return a - b;
}
#endif
constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(std::int16_t);

inline Lanes load_lanes(const std::int16_t* from) {
    Lanes lanes;
    __builtin_memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

inline void store_lanes(std::int16_t* to, Lanes lanes) {
    __builtin_memcpy(to, &lanes, sizeof lanes);
}

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

// Writes costs and bits of sorted keys.
inline void write_ranked(const std::int16_t* sorted, std::size_t count, std::size_t missing,
                         const FlipCosts& costs, RankedBits& ranked) {
    ranked.count = static_cast<std::uint32_t>(count);
    for (std::size_t place = 0; place < count; ++place) {
        const auto key = static_cast<std::uint32_t>(sorted[place]);
        ranked.costs[place] = costs.costs[key / kBits];
        ranked.bits[place] = std::uint64_t{1} << ((key & kPlace) - missing);
    }
    ranked.costs[RankedBits::kMost] = 0;
    ranked.bits[RankedBits::kMost] = 0;
}

// Ranks bits by their steps: for each one it is counted how many come before it. That is more work
// than sorting, but all of it in vectors and without a branch. `step(lane)` is that of the bit
// `lane - (kBits - bits)` of the header.
template <class Step>
inline void rank(Step step, std::size_t bits, const FlipCosts& costs, RankedBits& ranked) {
    alignas(64) std::int16_t keys[kBits], ranks[kBits], sorted[kBits + 1];
    const std::size_t missing = kBits - bits;
    for (std::size_t lane = 0; lane < kBits; ++lane) {
        const auto key = static_cast<std::int16_t>(step(lane) * std::int32_t{kBits} |
                                                   static_cast<std::int32_t>(lane));
        keys[lane] = lane < missing ? std::int16_t{0x7fff} : key;
    }
    for (std::size_t begin = 0; begin < kBits; begin += 2 * kLanes) {
        const Lanes low = load_lanes(keys + begin), high = load_lanes(keys + begin + kLanes);
        Lanes low_ranks{}, high_ranks{};
        for (std::size_t lane = missing; lane < kBits; ++lane) {
            const Lanes other = all_lanes(keys[lane]);
            low_ranks = minus(low_ranks, less(other, low));
            high_ranks = minus(high_ranks, less(other, high));
        }
        store_lanes(ranks + begin, low_ranks);
        store_lanes(ranks + begin + kLanes, high_ranks);
    }
    for (std::size_t lane = missing; lane < kBits; ++lane)
        sorted[ranks[lane]] = keys[lane];
    write_ranked(sorted, bits, missing, costs, ranked);
}

// The 32 weights that end with the header's; those before it are not looked at.
template <class Weight, class Step>
inline void rank_weights(const Weight* weights, std::size_t bits, bool before,
                         const FlipCosts& costs, RankedBits& ranked, Step step) {
    Weight copies[kBits];
    const Weight* window = weights - (kBits - bits);
    if (!before) {
        for (std::size_t lane = 0; lane < kBits; ++lane)
            copies[lane] = lane < kBits - bits ? Weight{} : weights[lane - (kBits - bits)];
        window = copies;
    }
    rank([=](std::size_t lane) { return step(window[lane]); }, bits, costs, ranked);
}

// Which step of the costs a weight is in.
struct FloatStep {
    float scale;
    explicit FloatStep(const FlipCosts& costs) : scale(costs.scale) {}

    std::int32_t operator()(float weight) const {
        constexpr float last = static_cast<float>(FlipCosts::kSteps - 1);
        const float step = __builtin_fabsf(weight) * scale;
        return static_cast<std::int32_t>(step < last ? step : last);
    }
};

struct UnitStep {
    float scale;
    explicit UnitStep(const FlipCosts& costs) : scale(costs.scale * (0.5f / 1024)) {}

    std::int32_t operator()(std::int16_t weight) const {
        constexpr float last = static_cast<float>(FlipCosts::kSteps - 1);
        const std::int32_t twice = 2 * std::int32_t{weight} + 1;  // the middle of the unit
        const float step = static_cast<float>(twice < 0 ? -twice : twice) * scale;
        return static_cast<std::int32_t>(step < last ? step : last);
    }
};

void rank_floats(const float* weights, std::size_t bits, bool before, const FlipCosts& costs,
                 RankedBits& ranked) {
    rank_weights(weights, bits, before, costs, ranked, FloatStep(costs));
}

void rank_units(const std::int16_t* weights, std::size_t bits, bool before, const FlipCosts& costs,
                RankedBits& ranked) {
    rank_weights(weights, bits, before, costs, ranked, UnitStep(costs));
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

// Orders of many queries at once, one in each lane: what is done for one query is done for all with
// the same instructions, without a branch and without a heap.
template <class Weight, class Step>
inline void choose_many(const Candidates& candidates, const Weight* weights, std::size_t stride,
                        std::size_t bits, const FlipCosts& costs, std::size_t queries,
                        std::uint32_t* const* flips, Step step) {
    constexpr std::size_t kQueries = FlipLoops::kChosenTogether;
    constexpr std::size_t kRoom = Candidates::kMostCandidates;
    using Row16 = std::int16_t[kQueries];
    using Row32 = std::uint32_t[kQueries];
    const std::size_t count = candidates.count, members = candidates.members;
    const std::size_t ranks = bits < candidates.wanted ? bits : candidates.wanted;
    // Least keys of each query, by insertion: a key is the step of a bit, then its position.
    alignas(64) Row16 keys[kBits], least[kBits], prices[kBits + 1];
    if (queries < kQueries) {  // some lanes are unused
        __builtin_memset(keys, 0, sizeof keys);
        __builtin_memset(prices, 0, sizeof prices);
    }
    for (std::size_t query = 0; query < queries; ++query) {
        const Weight* const own = weights + query * stride;
        std::int16_t steps[kBits];
        for (std::size_t bit = 0; bit < bits; ++bit)
            steps[bit] = static_cast<std::int16_t>(step(own[bit]) * std::int32_t{kBits} |
                                                   static_cast<std::int32_t>(bit));
        for (std::size_t bit = 0; bit < bits; ++bit)
            keys[bit][query] = steps[bit];
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::size_t query = 0; query < kQueries; ++query)
            least[rank][query] = 0x7fff;
    for (std::size_t bit = 0; bit < bits; ++bit)
        for (std::size_t rank = 0; rank < ranks; ++rank)
            for (std::size_t query = 0; query < kQueries; ++query) {
                const std::int16_t one = least[rank][query], two = keys[bit][query];
                least[rank][query] = one < two ? one : two;
                keys[bit][query] = one < two ? two : one;
            }
    // What a bit of each rank costs, and which it is; in the end no bit.
    alignas(64) Row32 places[kBits + 1];
    for (std::size_t query = 0; query < kQueries; ++query) {
        prices[kBits][query] = 0;
        places[kBits][query] = 0;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t query = 0; query < queries; ++query) {
            const auto key = static_cast<std::uint32_t>(least[rank][query]);
            prices[rank][query] = static_cast<std::int16_t>(costs.costs[key / kBits]);
        }
        for (std::size_t query = 0; query < kQueries; ++query)
            places[rank][query] = std::uint32_t{1}
                                  << (static_cast<std::uint32_t>(least[rank][query]) & kPlace);
    }
    alignas(64) Row16 sums[kRoom], before[kRoom];
    for (std::size_t one = 0; one < count; ++one) {
        const std::uint8_t* const own = candidates.ranks + one * members;
        for (std::size_t query = 0; query < kQueries; ++query)
            sums[one][query] = prices[own[0]][query];
        for (std::size_t member = 1; member < members && own[member] < kBits; ++member)
            for (std::size_t query = 0; query < kQueries; ++query)
                sums[one][query] =
                    static_cast<std::int16_t>(sums[one][query] + prices[own[member]][query]);
    }
    // One comes before another if its sum is less, or if it is equal and the place before.
    for (std::size_t two = 0; two < count; ++two) {
        alignas(64) Row16 ahead;
        for (std::size_t query = 0; query < kQueries; ++query)
            ahead[query] = static_cast<std::int16_t>(two);
        for (std::size_t one = 0; one < two; ++one)
            for (std::size_t query = 0; query < kQueries; ++query) {
                const std::int16_t less = sums[two][query] < sums[one][query] ? 1 : 0;
                before[one][query] = static_cast<std::int16_t>(before[one][query] + less);
                ahead[query] = static_cast<std::int16_t>(ahead[query] - less);
            }
        for (std::size_t query = 0; query < kQueries; ++query)
            before[two][query] = ahead[query];
    }
    std::uint32_t ordered[kQueries][kRoom];
    for (std::size_t one = 0; one < count; ++one) {
        const std::uint8_t* const own = candidates.ranks + one * members;
        alignas(64) Row32 set;
        for (std::size_t query = 0; query < kQueries; ++query)
            set[query] = places[own[0]][query];
        for (std::size_t member = 1; member < members && own[member] < kBits; ++member)
            for (std::size_t query = 0; query < kQueries; ++query)
                set[query] |= places[own[member]][query];
        for (std::size_t query = 0; query < queries; ++query)
            ordered[query][before[one][query]] = set[query];
    }
    for (std::size_t query = 0; query < queries; ++query)
        __builtin_memcpy(flips[query], ordered[query], candidates.wanted * sizeof(std::uint32_t));
}

void choose_floats(const Candidates& candidates, const float* weights, std::size_t stride,
                   std::size_t bits, const FlipCosts& costs, std::size_t queries,
                   std::uint32_t* const* flips) {
    choose_many(candidates, weights, stride, bits, costs, queries, flips, FloatStep(costs));
}

void choose_units(const Candidates& candidates, const std::int16_t* weights, std::size_t stride,
                  std::size_t bits, const FlipCosts& costs, std::size_t queries,
                  std::uint32_t* const* flips) {
    choose_many(candidates, weights, stride, bits, costs, queries, flips, UnitStep(costs));
}

// Writes those of up to kMostHits signatures that are within the radius.
inline FlipHit* compare(const std::uint64_t* signatures, std::size_t begin, std::size_t size,
                        std::uint64_t query, std::uint32_t number, std::uint32_t radius,
                        FlipHit* hits) {
#if defined(__AVX512VPOPCNTDQ__)
    // Whole cache lines, of which only what belongs to the bucket is loaded: a vector that crossed
    // into a line that was not prefetched would wait for it. Most buckets have up to three lines,
    // and these are compared without asking how many: the processor could not tell in advance.
    const auto address = reinterpret_cast<std::uintptr_t>(signatures + begin);
    const std::size_t before = address % 64 / 8;
    const std::uint64_t* const line = signatures + begin - before;
    const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(query));
    const __m512i most = _mm512_set1_epi64(radius);
    const auto near_in = [&](const std::uint64_t* from, std::uint64_t lanes) {
        const auto mask = static_cast<__mmask8>(lanes);
        const __m512i distances =
            _mm512_popcnt_epi64(_mm512_xor_si512(wanted, _mm512_maskz_load_epi64(mask, from)));
        return std::uint64_t{_mm512_mask_cmple_epu64_mask(mask, distances, most)};
    };
    const std::uint64_t lanes = ((std::uint64_t{1} << size) - 1) << before;
    std::uint64_t near = near_in(line, lanes);
    near |= near_in(lanes >> 8 != 0 ? line + 8 : line, lanes >> 8) << 8;
    near |= near_in(lanes >> 16 != 0 ? line + 16 : line, lanes >> 16) << 16;
    for (std::size_t at = 24; at < 64 && lanes >> at != 0; at += 8)
        near |= near_in(line + at, lanes >> at) << at;
    for (; near != 0; near &= near - 1) {
        const auto lane = static_cast<std::size_t>(__builtin_ctzll(near));
        *hits++ = {number, ones(query ^ line[lane]),
                   static_cast<std::uint32_t>(begin - before + lane)};
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
        const std::uint32_t last = end != begin ? end - 1 : 0;
        __builtin_prefetch(sorted.signatures + (end != begin ? begin : 0));
        __builtin_prefetch(sorted.signatures + (begin + 8 < last ? begin + 8 : last));
        __builtin_prefetch(sorted.signatures + (begin + 16 < last ? begin + 16 : last));
        __builtin_prefetch(sorted.signatures + last);
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

constexpr FlipLoops kLoops{rank_floats, rank_units, all_finite, choose_floats, choose_units, probe};

}  // namespace

constinit const FlipLoops FlipLoops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::search
