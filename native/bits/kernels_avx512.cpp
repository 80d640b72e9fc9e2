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

// Adds neighboring words of two vectors: 128-bit lane j holds the sums of lane j of both.
inline __m512i add_words(__m512i left, __m512i right) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(left, right), _mm512_unpackhi_epi64(left, right));
}

// Adds neighboring 128-bit lanes of two vectors: two sums of `left`, then two of `right`.
inline __m512i add_lanes(__m512i left, __m512i right) {
    return _mm512_add_epi64(_mm512_shuffle_i64x2(left, right, 0x88),
                            _mm512_shuffle_i64x2(left, right, 0xdd));
}

// Where `add_words` interleaved rows 0-3 with rows 4-7, puts them back in order.
inline __m512i in_row_order(__m512i interleaved) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), interleaved);
}

// The sums of two rows, 32 bits of each, side by side: in each 128-bit lane two, then two.
inline __m512i beside(__m512i left, __m512i right) {
    return _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(left), _mm512_castsi512_ps(right), 0x88));
}

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
    static constexpr bool narrow = true;

    template <std::size_t kBytes, bool kMasked>
    static std::uint32_t one(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
        if constexpr (kBytes == 4)
            return static_cast<std::uint32_t>(_mm_popcnt_u64(
                counted<kMasked>(load_partial(left, 4) ^ load_partial(right, 4), mask, 0, 4)));
        else if constexpr (kBytes == 8)
            return static_cast<std::uint32_t>(
                _mm_popcnt_u64(counted<kMasked>(load_word(left) ^ load_word(right), mask, 0, 8)));
        else
            return static_cast<std::uint32_t>(
                _mm512_reduce_add_epi64(lanes_of_pair<kBytes, kMasked>(left, right, bytes, mask)));
    }

    // Eight partial sums of each of eight rows or pairs.
    struct Sums {
        __m512i of[group];

        [[gnu::always_inline]] __m512i distances() const {
            return add_lanes(add_lanes(add_words(of[0], of[1]), add_words(of[2], of[3])),
                             add_lanes(add_words(of[4], of[5]), add_words(of[6], of[7])));
        }

        // The same where no sum is more than 255, as of three words: a byte has room for it, one
        // register for all 64, and one instruction adds up the eight of a row.
        [[gnu::always_inline]] __m512i distances_by_bytes() const {
            const __m512i lanes = _mm512_packus_epi16(
                _mm512_packus_epi32(beside(of[0], of[1]), beside(of[2], of[3])),
                _mm512_packus_epi32(beside(of[4], of[5]), beside(of[6], of[7])));
            alignas(64) static constexpr std::uint16_t kByRow[32] = {
                0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
            return _mm512_sad_epu8(_mm512_permutexvar_epi16(_mm512_load_si512(kByRow), lanes),
                                   _mm512_setzero_si512());
        }
    };

    // Any width: a register of partial sums per row, which `lanes(row)` gives. Rows are read in
    // order (see keep_order): where the next one is comes out of what is said to be made of this
    // one's sums. Nothing else is held up by that, and queries stay in their registers.
    template <class Lanes>
    [[gnu::always_inline]] static Sums of_rows(const std::uint8_t* row, std::size_t width,
                                               const Lanes& lanes) {
        Sums sums;
        for (std::size_t index = 0; index < group; ++index, row += width) {
            sums.of[index] = lanes(row);
            asm volatile("" : "+v"(sums.of[index]), "+r"(row));
        }
        return sums;
    }

    template <std::size_t kBytes, bool kMasked>
    struct Query;

    // Those of short signatures, a word of eight of them in each register: nothing is left to add
    // up across lanes.
    template <std::size_t kBytes>
        requires(kBytes == 8 || kBytes == 16)
    struct Rows;

    template <std::size_t kBytes>
        requires(kBytes != 4 && kBytes != 8)
    static __m512i of_pairs(const std::uint8_t* const* left, const std::uint8_t* const* right,
                            std::size_t bytes) {
        Sums sums;
        for (std::size_t index = 0; index < group; ++index)
            sums.of[index] =
                lanes_of_pair<kBytes, false>(left[index], right[index], bytes, nullptr);
        return sums.distances();
    }

    static std::uint32_t at_most(__m512i distances, std::uint32_t cutoff) {
        return _mm512_cmple_epu64_mask(distances, _mm512_set1_epi64(cutoff));
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
    [[gnu::always_inline]] __m512i ones(const std::uint8_t* row) const {
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

    __m512i distances(const std::uint8_t* rows) const {
        return of_rows(rows, 64, [&](const std::uint8_t* row) { return part.ones(row); })
            .distances_by_bytes();
    }
};

// Several parts, the last of which may be shorter: `tail` has its bytes. Not an array, which
// compilers keep in memory, as they do what is not inlined at once.
template <bool kMasked, std::size_t kParts>
struct Parts {
    Part<kMasked> first;
    Parts<kMasked, kParts - 1> others;

    Parts(const std::uint8_t* from, const std::uint8_t* counting, __mmask64 tail)
        : first(from, counting), others(from + 64, kMasked ? counting + 64 : nullptr, tail) {}

    [[gnu::always_inline]] __m512i ones(const std::uint8_t* row, __mmask64 tail) const {
        const __m512i ones = first.ones(row);
        return _mm512_add_epi64(ones, others.ones(row + 64, tail));
    }

    // Says that queries are made here: compilers that know where one was read do so for each row.
    [[gnu::always_inline]] void hold() {
        asm("" : "+v"(first.query));
        others.hold();
    }
};

template <bool kMasked>
struct Parts<kMasked, 1> {
    __m512i query, mask;

    Parts(const std::uint8_t* from, const std::uint8_t* counting, __mmask64 tail)
        : query(_mm512_maskz_loadu_epi8(tail, from)),
          mask(kMasked ? _mm512_maskz_loadu_epi8(tail, counting) : _mm512_setzero_si512()) {}

    [[gnu::always_inline]] __m512i ones(const std::uint8_t* row, __mmask64 tail) const {
        return ones_per_word<kMasked>(query, _mm512_maskz_loadu_epi8(tail, row), mask);
    }

    [[gnu::always_inline]] void hold() { asm("" : "+v"(query)); }
};

template <bool kMasked>
struct Avx512::Query<128, kMasked> {
    Part<kMasked> first, second;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : first(from, counting), second(from + 64, kMasked ? counting + 64 : nullptr) {}

    __m512i distances(const std::uint8_t* rows) const {
        return of_rows(rows, 128,
                       [&](const std::uint8_t* row) {
                           const __m512i ones = first.ones(row);
                           return _mm512_add_epi64(ones, second.ones(row + 64));
                       })
            .distances_by_bytes();
    }
};

// Signatures of other widths: up to four parts are in registers for eight rows. Wider ones are read
// with each row: part by part of eight rows, they would not come in order.
template <bool kMasked>
struct Avx512::Query<kAnyWidth, kMasked> {
    const std::uint8_t* query;
    std::size_t bytes;
    const std::uint8_t* mask;

    Query(const std::uint8_t* from, std::size_t width, const std::uint8_t* counting)
        : query(from), bytes(width), mask(counting) {}

    template <std::size_t kParts>
    __m512i in_registers(const std::uint8_t* rows) const {
        const std::size_t last = bytes - (kParts - 1) * 64;
        const __mmask64 tail = last < 64 ? tail_mask(last) : ~__mmask64{0};
        Parts<kMasked, kParts> parts(query, mask, tail);
        parts.hold();
        const auto ones = [&](const std::uint8_t* row)
                              __attribute__((always_inline)) { return parts.ones(row, tail); };
        const Sums sums = of_rows(rows, bytes, ones);
        return kParts <= 3 ? sums.distances_by_bytes() : sums.distances();
    }

    __m512i distances(const std::uint8_t* rows) const {
        switch ((bytes + 63) / 64) {
            case 1:
                return in_registers<1>(rows);
            case 2:
                return in_registers<2>(rows);
            case 3:
                return in_registers<3>(rows);
            case 4:
                return in_registers<4>(rows);
        }
        return of_rows(rows, bytes,
                       [&](const std::uint8_t* row) {
                           return lanes_of_pair<kAnyWidth, kMasked>(query, row, bytes, mask);
                       })
            .distances();
    }
};

// Narrow signatures share a register: eight rows, four or two, against the query repeated.

// Those of 32 bits are read as words whose other half is zero.
template <bool kMasked>
struct Avx512::Query<4, kMasked> {
    __m512i query, mask;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : query(repeated(from)), mask(kMasked ? repeated(counting) : _mm512_setzero_si512()) {}

    static __m512i repeated(const std::uint8_t* from) {
        return _mm512_set1_epi64(static_cast<long long>(load_partial(from, 4)));
    }

    __m512i distances(const std::uint8_t* rows) const {
        const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
        return ones_per_word<kMasked>(query, _mm512_cvtepu32_epi64(words), mask);
    }
};

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

template <>
struct Avx512::Rows<8> {
    __m512i words;

    explicit Rows(const std::uint8_t* rows) : words(load(rows)) {}

    __m512i distances(const std::uint8_t* query) const {
        return ones_per_word<false>(Query<8, false>::repeated(query), words, words);
    }
};

template <>
struct Avx512::Rows<16> {
    __m512i first, second;

    explicit Rows(const std::uint8_t* rows) {
        const __m512i before = load(rows), behind = load(rows + 64);
        first =
            _mm512_permutex2var_epi64(before, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), behind);
        second =
            _mm512_permutex2var_epi64(before, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), behind);
    }

    __m512i distances(const std::uint8_t* query) const {
        const auto of_word = [&](const std::uint8_t* from, __m512i words) {
            return ones_per_word<false>(Query<8, false>::repeated(from), words, words);
        };
        return _mm512_add_epi64(of_word(query, first), of_word(query + 8, second));
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

}  // namespace

constinit const KernelLoops KernelLoops::avx512{kernels_of<Avx512>, read_lines<Avx512>};

}  // namespace lookalike::bits
