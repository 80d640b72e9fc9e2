// AVX-512 with VPOPCNTDQ: one instruction counts the ones of eight words; eight rows at a time.

#include <immintrin.h>

#include "bits/kernel_loops.hpp"

namespace lookalike::bits {
namespace {

inline __m512i load(const std::uint8_t* from) {
    return _mm512_loadu_si512(from);
}

// The ones of left ^ right, or of (left ^ right) & mask, which is one instruction as well.
template <bool kMasked>
inline __m512i ones_per_word(__m512i left, __m512i right, __m512i mask) {
    if constexpr (kMasked)
        return _mm512_popcnt_epi64(_mm512_ternarylogic_epi64(right, left, mask, 0x28));
    else
        return _mm512_popcnt_epi64(_mm512_xor_si512(left, right));
}

// The bytes behind the last whole 64 of a signature; a masked load does not touch the others.
inline __mmask64 tail_mask(std::size_t bytes) {
    return (std::uint64_t{1} << (bytes % 64)) - 1;
}

// Adds neighbouring words of two vectors: 128-bit lane j holds the sums of lane j of both.
inline __m512i add_words(__m512i left, __m512i right) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(left, right), _mm512_unpackhi_epi64(left, right));
}

// Adds neighbouring 128-bit lanes of two vectors: two sums of `left`, then two of `right`.
inline __m512i add_lanes(__m512i left, __m512i right) {
    return _mm512_add_epi64(_mm512_shuffle_i64x2(left, right, 0x88),
                            _mm512_shuffle_i64x2(left, right, 0xdd));
}

// Where `add_words` interleaved rows 0-3 with rows 4-7, puts them back in order.
inline __m512i in_row_order(__m512i interleaved) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), interleaved);
}

// The sums of two rows side by side, in the halves of each word: no distance has more than 31 bits.
inline __m512i beside(__m512i low, __m512i high) {
    return _mm512_mask_shuffle_epi32(low, 0xaaaa, high, _MM_PERM_CCAA);
}

// Distances of eight rows of 32 bits each: four in the first of four lanes, and again in the
// second, four in the others.
struct PackedDistances {
    __m512i lanes;
};

// Eight partial sums over one pair; together they are its distance.
template <std::size_t kBytes, bool kMasked>
inline __m512i lanes_of_pair(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
    const auto counting = [&](__mmask64 lanes, std::size_t at) {
        return kMasked ? _mm512_maskz_loadu_epi8(lanes, mask + at) : _mm512_setzero_si512();
    };
    const std::size_t width = kBytes == kAnyWidth ? bytes : kBytes;
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t at = 0; at + 64 <= width; at += 64)
        sums = _mm512_add_epi64(sums, ones_per_word<kMasked>(load(left + at), load(right + at),
                                                             counting(~__mmask64{0}, at)));
    if (kBytes % 64 != 0 || kBytes == kAnyWidth) {
        const __mmask64 tail = tail_mask(width);
        const std::size_t at = width / 64 * 64;
        if (tail != 0)
            sums = _mm512_add_epi64(
                sums, ones_per_word<kMasked>(_mm512_maskz_loadu_epi8(tail, left + at),
                                             _mm512_maskz_loadu_epi8(tail, right + at),
                                             counting(tail, at)));
    }
    return sums;
}

struct Avx512 {
    static constexpr std::size_t group = 8;

    template <std::size_t kBytes, bool kMasked>
    static std::uint32_t one(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
        if constexpr (kBytes == 8)
            return static_cast<std::uint32_t>(
                _mm_popcnt_u64(counted<kMasked>(load_word(left) ^ load_word(right), mask, 0, 8)));
        else
            return static_cast<std::uint32_t>(
                _mm512_reduce_add_epi64(lanes_of_pair<kBytes, kMasked>(left, right, bytes, mask)));
    }

    // Any width: a register of partial sums per row, which `lanes(row)` gives. Rows are read in
    // order (see keep_order): where the next one is comes out of what is said to be made of this
    // one's sums. Nothing else is held up by that, and queries stay in their registers.
    template <class Lanes>
    [[gnu::always_inline]] static PackedDistances of_rows(const std::uint8_t* row,
                                                          std::size_t width, const Lanes& lanes) {
        __m512i sums[group];
        for (std::size_t index = 0; index < group; ++index, row += width) {
            sums[index] = lanes(row);
            asm volatile("" : "+v"(sums[index]), "+r"(row));
        }
        const __m512i rows03 = add_words(beside(sums[0], sums[1]), beside(sums[2], sums[3]));
        const __m512i rows47 = add_words(beside(sums[4], sums[5]), beside(sums[6], sums[7]));
        const __m512i twice = add_lanes(rows03, rows47);
        return {_mm512_add_epi64(twice, _mm512_shuffle_i64x2(twice, twice, 0xb1))};
    }

    template <std::size_t kBytes, bool kMasked>
    struct Query;

    template <std::size_t kBytes>
        requires(kBytes != 8)
    static __m512i of_pairs(const std::uint8_t* const* left, const std::uint8_t* const* right,
                            std::size_t bytes) {
        const auto pair = [&](std::size_t index) {
            return lanes_of_pair<kBytes, false>(left[index], right[index], bytes, nullptr);
        };
        const __m512i pairs03 = add_lanes(add_words(pair(0), pair(1)), add_words(pair(2), pair(3)));
        const __m512i pairs47 = add_lanes(add_words(pair(4), pair(5)), add_words(pair(6), pair(7)));
        return add_lanes(pairs03, pairs47);
    }

    static std::uint32_t at_most(__m512i distances, std::uint32_t cutoff) {
        return _mm512_cmple_epu64_mask(distances, _mm512_set1_epi64(cutoff));
    }

    static std::uint32_t at_most(const PackedDistances& distances, std::uint32_t cutoff) {
        const std::uint32_t near = _mm512_cmple_epu32_mask(
            distances.lanes, _mm512_set1_epi32(static_cast<std::int32_t>(cutoff)));
        return (near & 0x0f) | (near >> 4 & 0xf0);
    }

    static void store(const PackedDistances& distances, std::uint32_t* lanes) {
        const __m512i once = _mm512_setr_epi64(0, 1, 4, 5, 0, 1, 4, 5);
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(lanes),
            _mm512_castsi512_si256(_mm512_permutexvar_epi64(once, distances.lanes)));
    }

    static void store(__m512i distances, std::uint32_t* lanes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), _mm512_cvtepi64_epi32(distances));
    }

    using Sum = __m512i;
    static void add_line(Sum& sum, const std::uint8_t* line) {
        sum = _mm512_add_epi64(sum, load(line));
    }
    static std::uint64_t total(Sum sum) {
        std::uint64_t words[8], all = 0;
        _mm512_storeu_si512(words, sum);
        for (const std::uint64_t word : words)
            all += word;
        return all;
    }
};

// 64 bytes of a query, in registers: were they read for each row, the mask would be one load more
// to two.
template <bool kMasked>
struct Part {
    __m512i query, mask;

    Part(const std::uint8_t* from, const std::uint8_t* counting)
        : query(load(from)), mask(kMasked ? load(counting) : _mm512_setzero_si512()) {}

    // The row's bytes are given to the instruction as they are in memory, which compilers do only
    // where it does not take a copy of the query; that costs less than a load by itself.
    __m512i ones(const std::uint8_t* row) const {
        if constexpr (kMasked) {
            __m512i difference = query;
            asm("vpternlogq $0x48, %2, %1, %0"  // (query ^ row) & mask
                : "+v"(difference)
                : "v"(mask), "m"(*reinterpret_cast<const __m512i_u*>(row)));
            return _mm512_popcnt_epi64(difference);
        } else {
            return ones_per_word<false>(query, load(row), mask);
        }
    }
};

template <bool kMasked>
struct Avx512::Query<64, kMasked> {
    Part<kMasked> part;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : part(from, counting) {}

    PackedDistances distances(const std::uint8_t* rows) const {
        return of_rows(rows, 64, [&](const std::uint8_t* row) { return part.ones(row); });
    }
};

// Not an array of parts, which compilers keep in memory.
template <bool kMasked>
struct Avx512::Query<128, kMasked> {
    Part<kMasked> first, second;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : first(from, counting), second(from + 64, kMasked ? counting + 64 : nullptr) {}

    PackedDistances distances(const std::uint8_t* rows) const {
        return of_rows(rows, 128, [&](const std::uint8_t* row) {
            const __m512i ones = first.ones(row);
            return _mm512_add_epi64(ones, second.ones(row + 64));
        });
    }
};

template <bool kMasked>
struct Avx512::Query<kAnyWidth, kMasked> {
    const std::uint8_t* query;
    std::size_t bytes;
    const std::uint8_t* mask;

    Query(const std::uint8_t* from, std::size_t width, const std::uint8_t* counting)
        : query(from), bytes(width), mask(counting) {}

    PackedDistances distances(const std::uint8_t* rows) const {
        return of_rows(rows, bytes, [&](const std::uint8_t* row) {
            return lanes_of_pair<kAnyWidth, kMasked>(query, row, bytes, mask);
        });
    }
};

// Narrow signatures share a register: eight rows, four or two, against the query repeated.

template <bool kMasked>
struct Avx512::Query<8, kMasked> {
    __m512i query, mask;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : query(repeated(from)), mask(kMasked ? repeated(counting) : _mm512_setzero_si512()) {}

    static __m512i repeated(const std::uint8_t* from) {
        return _mm512_set1_epi64(static_cast<long long>(load_word(from)));
    }

    __m512i distances(const std::uint8_t* rows) const {
        return ones_per_word<kMasked>(query, load(rows), mask);
    }
};

template <bool kMasked>
struct Avx512::Query<16, kMasked> {
    __m512i query, mask;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : query(repeated(from)), mask(kMasked ? repeated(counting) : _mm512_setzero_si512()) {}

    static __m512i repeated(const std::uint8_t* from) {
        return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }

    __m512i distances(const std::uint8_t* rows) const {
        return in_row_order(add_words(ones_per_word<kMasked>(query, load(rows), mask),
                                      ones_per_word<kMasked>(query, load(rows + 64), mask)));
    }
};

template <bool kMasked>
struct Avx512::Query<32, kMasked> {
    __m512i query, mask;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : query(repeated(from)), mask(kMasked ? repeated(counting) : _mm512_setzero_si512()) {}

    static __m512i repeated(const std::uint8_t* from) {
        return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }

    __m512i distances(const std::uint8_t* rows) const {
        const auto rows_at = [&](std::size_t at) {
            return ones_per_word<kMasked>(query, load(rows + at), mask);
        };
        return in_row_order(
            add_words(add_lanes(rows_at(0), rows_at(64)), add_lanes(rows_at(128), rows_at(192))));
    }
};

bool supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("popcnt");
}

}  // namespace

extern const InstructionSet avx512_set{"avx512", supported, kernels_of<Avx512>, read_lines<Avx512>};

}  // namespace lookalike::bits
