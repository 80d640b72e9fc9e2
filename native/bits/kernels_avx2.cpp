// AVX2: ones are counted by looking up nibbles in a register, four rows at a time.

#include <immintrin.h>

#include "bits/kernel_loops.hpp"

namespace lookalike::bits {
namespace {

inline __m256i load(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// For each byte of `difference`, its number of ones.
inline __m256i ones_per_byte(__m256i difference) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i nibble = _mm256_set1_epi8(0x0f);
    const __m256i low = _mm256_and_si256(difference, nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(difference, 4), nibble);
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
template <std::size_t kBytes>
inline __m256i lanes_of_pair(const std::uint8_t* left, const std::uint8_t* right,
                             std::size_t bytes) {
    const std::size_t steps = (kBytes == kAnyWidth ? bytes : kBytes) / 32;
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t step = 0; step < steps;) {
        const std::size_t stop = step + kStepsPerSum < steps ? step + kStepsPerSum : steps;
        __m256i counts = _mm256_setzero_si256();
        for (; step < stop; ++step)
            counts = _mm256_add_epi8(counts, ones_per_byte(_mm256_xor_si256(
                                                 load(left + step * 32), load(right + step * 32))));
        sums = _mm256_add_epi64(sums, sum_bytes(counts));
    }
    return sums;
}

inline std::uint32_t tail_of_pair(const std::uint8_t* left, const std::uint8_t* right,
                                  std::size_t bytes) {
    std::uint32_t distance = 0;
    std::size_t at = bytes / 32 * 32;
    for (; at + 8 <= bytes; at += 8)
        distance += count_word(load_word(left + at) ^ load_word(right + at));
    if (at < bytes)
        distance +=
            count_word(load_partial(left + at, bytes - at) ^ load_partial(right + at, bytes - at));
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

    template <std::size_t kBytes>
    static std::uint32_t one(const std::uint8_t* left, const std::uint8_t* right,
                             std::size_t bytes) {
        if constexpr (kBytes == 8) {
            return count_word(load_word(left) ^ load_word(right));
        } else if constexpr (kBytes == 16) {
            return count_word(load_word(left) ^ load_word(right)) +
                   count_word(load_word(left + 8) ^ load_word(right + 8));
        } else {
            const __m256i sums = lanes_of_pair<kBytes>(left, right, bytes);
            const __m128i half =
                _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
            auto distance =
                static_cast<std::uint32_t>(_mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1));
            if constexpr (kBytes == kAnyWidth)
                distance += tail_of_pair(left, right, bytes);
            return distance;
        }
    }

    // Widths of one step or more, and any other: a register of partial sums per row.
    template <std::size_t kBytes>
    struct Query {
        const std::uint8_t* query;
        std::size_t bytes;

        Query(const std::uint8_t* from, std::size_t width) : query(from), bytes(width) {}

        __m256i distances(const std::uint8_t* rows) const {
            const std::size_t width = kBytes == kAnyWidth ? bytes : kBytes;
            __m256i sums[group];
            for (std::size_t index = 0; index < group; ++index) {
                sums[index] = lanes_of_pair<kBytes>(query, rows + index * width, width);
                keep_order();
            }
            const __m256i whole = add_up_rows(sums[0], sums[1], sums[2], sums[3]);
            if (kBytes != kAnyWidth || width % 32 == 0)
                return whole;
            return _mm256_add_epi64(
                whole, _mm256_setr_epi64x(tail_of_pair(query, rows, width),
                                          tail_of_pair(query, rows + width, width),
                                          tail_of_pair(query, rows + 2 * width, width),
                                          tail_of_pair(query, rows + 3 * width, width)));
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

// Four rows of 64 bits fill one register, and the query is repeated in another.
template <>
struct Avx2::Query<8> {
    __m256i query;

    Query(const std::uint8_t* from, std::size_t)
        : query(_mm256_set1_epi64x(static_cast<long long>(load_word(from)))) {}

    __m256i distances(const std::uint8_t* rows) const {
        return sum_bytes(ones_per_byte(_mm256_xor_si256(query, load(rows))));
    }
};

// Two rows of 128 bits a register.
template <>
struct Avx2::Query<16> {
    __m256i query;

    Query(const std::uint8_t* from, std::size_t)
        : query(_mm256_broadcastsi128_si256(
              _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))) {}

    __m256i distances(const std::uint8_t* rows) const {
        const __m256i rows01 = sum_bytes(ones_per_byte(_mm256_xor_si256(query, load(rows))));
        const __m256i rows23 = sum_bytes(ones_per_byte(_mm256_xor_si256(query, load(rows + 32))));
        const __m256i rows0213 = _mm256_add_epi64(_mm256_unpacklo_epi64(rows01, rows23),
                                                  _mm256_unpackhi_epi64(rows01, rows23));
        return _mm256_permute4x64_epi64(rows0213, 0xd8);
    }
};

bool supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

}  // namespace

extern const InstructionSet avx2_set{"avx2", supported, kernels_of<Avx2>, read_lines<Avx2>};

}  // namespace lookalike::bits
