// AVX2: ones are counted by looking up nibbles in a register, four rows at a time.

#include <immintrin.h>

#include "bits/kernel_loops.hpp"

namespace lookalike::bits {
namespace {

inline __m256i load(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// The bits of the lower and upper halves of bytes that count: all, or those of a mask. Halves have
// to be cut out in any case, so that a mask costs nothing more.
struct Nibbles {
    __m256i low, high;
};

inline Nibbles whole_nibbles() {
    return {_mm256_set1_epi8(0x0f), _mm256_set1_epi8(0x0f)};
}

inline Nibbles nibbles_of(__m256i mask) {
    const __m256i nibble = _mm256_set1_epi8(0x0f);
    return {_mm256_and_si256(mask, nibble), _mm256_and_si256(_mm256_srli_epi16(mask, 4), nibble)};
}

// For each byte of `difference`, its number of ones that count.
inline __m256i ones_per_byte(__m256i difference, const Nibbles& counted) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_and_si256(difference, counted.low);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(difference, 4), counted.high);
    return _mm256_add_epi8(_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high));
}

// Four 64-bit sums of eight byte counts each.
inline __m256i sum_bytes(__m256i counts) {
    return _mm256_sad_epu8(counts, _mm256_setzero_si256());
}

inline std::uint32_t count_word(std::uint64_t word) {
    return static_cast<std::uint32_t>(_mm_popcnt_u64(word));
}

// Every vector of byte counts grows by at most 8 a step, so 31 steps fit before it must be summed.
constexpr std::size_t kStepsPerSum = 31;

// Partial sums over the whole 32-byte steps of one pair; the four lanes together are its distance.
template <std::size_t kBytes, bool kMasked>
inline __m256i lanes_of_pair(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
    const std::size_t steps = (kBytes == kAnyWidth ? bytes : kBytes) / 32;
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t step = 0; step < steps;) {
        const std::size_t stop = step + kStepsPerSum < steps ? step + kStepsPerSum : steps;
        __m256i counts = _mm256_setzero_si256();
        for (; step < stop; ++step) {
            __m256i difference = _mm256_xor_si256(load(left + step * 32), load(right + step * 32));
            if constexpr (kMasked)
                difference = _mm256_and_si256(difference, load(mask + step * 32));
            counts = _mm256_add_epi8(counts, ones_per_byte(difference, whole_nibbles()));
        }
        sums = _mm256_add_epi64(sums, sum_bytes(counts));
    }
    return sums;
}

template <bool kMasked>
inline std::uint32_t tail_of_pair(const std::uint8_t* left, const std::uint8_t* right,
                                  std::size_t bytes, const std::uint8_t* mask) {
    std::uint32_t distance = 0;
    std::size_t at = bytes / 32 * 32;
    for (; at + 8 <= bytes; at += 8)
        distance +=
            count_word(counted<kMasked>(load_word(left + at) ^ load_word(right + at), mask, at, 8));
    if (at < bytes)
        distance += count_word(counted<kMasked>(
            load_partial(left + at, bytes - at) ^ load_partial(right + at, bytes - at), mask, at,
            bytes - at));
    return distance;
}

// Lane i of the result is the sum of the four lanes of row i.
inline __m256i add_up_rows(__m256i row0, __m256i row1, __m256i row2, __m256i row3) {
    const __m256i rows01 =
        _mm256_add_epi64(_mm256_unpacklo_epi64(row0, row1), _mm256_unpackhi_epi64(row0, row1));
    const __m256i rows23 =
        _mm256_add_epi64(_mm256_unpacklo_epi64(row2, row3), _mm256_unpackhi_epi64(row2, row3));
    return _mm256_add_epi64(_mm256_permute2x128_si256(rows01, rows23, 0x20),
                            _mm256_permute2x128_si256(rows01, rows23, 0x31));
}

struct Avx2 {
    static constexpr std::size_t group = 4;
    static constexpr bool narrow = true;

    template <std::size_t kBytes, bool kMasked>
    static std::uint32_t one(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
        const auto word = [&](std::size_t at) {
            return count_word(
                counted<kMasked>(load_word(left + at) ^ load_word(right + at), mask, at, 8));
        };
        if constexpr (kBytes == 4) {
            return count_word(
                counted<kMasked>(load_partial(left, 4) ^ load_partial(right, 4), mask, 0, 4));
        } else if constexpr (kBytes == 8) {
            return word(0);
        } else if constexpr (kBytes == 16) {
            return word(0) + word(8);
        } else {
            const __m256i sums = lanes_of_pair<kBytes, kMasked>(left, right, bytes, mask);
            const __m128i half =
                _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
            auto distance =
                static_cast<std::uint32_t>(_mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1));
            if constexpr (kBytes == kAnyWidth)
                distance += tail_of_pair<kMasked>(left, right, bytes, mask);
            return distance;
        }
    }

    // A register of partial sums per row, which `lanes(row)` gives.
    template <class Lanes>
    static __m256i of_rows(const std::uint8_t* rows, std::size_t width, Lanes lanes) {
        __m256i sums[group];
        for (std::size_t index = 0; index < group; ++index) {
            sums[index] = lanes(rows + index * width);
            keep_order();
        }
        return add_up_rows(sums[0], sums[1], sums[2], sums[3]);
    }

    // Widths of one step or more, and any other.
    template <std::size_t kBytes, bool kMasked>
    struct Query {
        const std::uint8_t* query;
        std::size_t bytes;
        const std::uint8_t* mask;

        Query(const std::uint8_t* from, std::size_t width, const std::uint8_t* counting)
            : query(from), bytes(width), mask(counting) {}

        __m256i distances(const std::uint8_t* rows) const {
            const std::size_t width = kBytes == kAnyWidth ? bytes : kBytes;
            const __m256i whole = of_rows(rows, width, [&](const std::uint8_t* row) {
                return lanes_of_pair<kBytes, kMasked>(query, row, width, mask);
            });
            if (kBytes != kAnyWidth || width % 32 == 0)
                return whole;
            const auto tail = [&](std::size_t row) {
                return tail_of_pair<kMasked>(query, rows + row * width, width, mask);
            };
            return _mm256_add_epi64(whole, _mm256_setr_epi64x(tail(0), tail(1), tail(2), tail(3)));
        }
    };

    // The halves of a mask's bytes are cut out once, and not for every row.
    template <std::size_t kBytes>
        requires(kBytes >= 32)
    struct Query<kBytes, true> {
        static constexpr std::size_t kSteps = kBytes / 32;
        static_assert(kSteps <= kStepsPerSum);
        __m256i query[kSteps];
        Nibbles counting[kSteps];

        Query(const std::uint8_t* from, std::size_t, const std::uint8_t* mask) {
            for (std::size_t step = 0; step < kSteps; ++step) {
                query[step] = load(from + 32 * step);
                counting[step] = nibbles_of(load(mask + 32 * step));
            }
        }

        __m256i distances(const std::uint8_t* rows) const {
            return of_rows(rows, kBytes, [&](const std::uint8_t* row) {
                __m256i counts = _mm256_setzero_si256();
                for (std::size_t step = 0; step < kSteps; ++step)
                    counts = _mm256_add_epi8(
                        counts, ones_per_byte(_mm256_xor_si256(query[step], load(row + 32 * step)),
                                              counting[step]));
                return sum_bytes(counts);
            });
        }
    };

    static std::uint32_t at_most(__m256i distances, std::uint32_t cutoff) {
        const __m256i above = _mm256_cmpgt_epi64(distances, _mm256_set1_epi64x(cutoff));
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(above))) ^ 0xfu;
    }

    static void store(__m256i distances, std::uint32_t* lanes) {
        const __m256i low_halves = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
        const __m256i packed = _mm256_permutevar8x32_epi32(distances, low_halves);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes), _mm256_castsi256_si128(packed));
    }

    using Sum = __m256i;
    static void add_line(Sum& sum, const std::uint8_t* line) {
        sum = _mm256_add_epi64(sum, _mm256_add_epi64(load(line), load(line + 32)));
    }
    static std::uint64_t total(Sum sum) {
        std::uint64_t words[4];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), sum);
        return words[0] + words[1] + words[2] + words[3];
    }
};

// Rows of 32 bits are read as words whose other half is zero.
template <bool kMasked>
struct Avx2::Query<4, kMasked> {
    __m256i query;
    Nibbles counting;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* mask)
        : query(repeated(from)), counting(kMasked ? nibbles_of(repeated(mask)) : whole_nibbles()) {}

    static __m256i repeated(const std::uint8_t* from) {
        return _mm256_set1_epi64x(static_cast<long long>(load_partial(from, 4)));
    }

    __m256i distances(const std::uint8_t* rows) const {
        const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows));
        return sum_bytes(
            ones_per_byte(_mm256_xor_si256(query, _mm256_cvtepu32_epi64(words)), counting));
    }
};

// Four rows of 64 bits fill one register, and the query is repeated in another.
template <bool kMasked>
struct Avx2::Query<8, kMasked> {
    __m256i query;
    Nibbles counting;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* mask)
        : query(repeated(from)), counting(kMasked ? nibbles_of(repeated(mask)) : whole_nibbles()) {}

    static __m256i repeated(const std::uint8_t* from) {
        return _mm256_set1_epi64x(static_cast<long long>(load_word(from)));
    }

    __m256i distances(const std::uint8_t* rows) const {
        return sum_bytes(ones_per_byte(_mm256_xor_si256(query, load(rows)), counting));
    }
};

// Two rows of 128 bits a register.
template <bool kMasked>
struct Avx2::Query<16, kMasked> {
    __m256i query;
    Nibbles counting;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* mask)
        : query(repeated(from)), counting(kMasked ? nibbles_of(repeated(mask)) : whole_nibbles()) {}

    static __m256i repeated(const std::uint8_t* from) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }

    __m256i distances(const std::uint8_t* rows) const {
        const auto two = [&](std::size_t at) {
            return sum_bytes(ones_per_byte(_mm256_xor_si256(query, load(rows + at)), counting));
        };
        const __m256i rows01 = two(0), rows23 = two(32);
        const __m256i rows0213 = _mm256_add_epi64(_mm256_unpacklo_epi64(rows01, rows23),
                                                  _mm256_unpackhi_epi64(rows01, rows23));
        return _mm256_permute4x64_epi64(rows0213, 0xd8);
    }
};

}  // namespace

constinit const KernelLoops KernelLoops::avx2{kernels_of<Avx2>, read_lines<Avx2>};

}  // namespace lookalike::bits
