// NEON: ones are counted per byte by one instruction, four rows at a time.

#include <arm_neon.h>

#include "bits/kernel_loops.hpp"

namespace lookalike::bits {
namespace {

inline std::uint32_t count_word(std::uint64_t word) {
    return vaddv_u8(vcnt_u8(vcreate_u8(word)));
}

// A vector of byte counts grows by at most 8 a step, so 31 steps fit before it must be summed.
constexpr std::size_t kStepsPerSum = 31;

// Partial sums over the whole 16-byte steps of one pair; the four lanes together are its distance.
template <std::size_t kBytes, bool kMasked>
inline uint32x4_t lanes_of_pair(const std::uint8_t* left, const std::uint8_t* right,
                                std::size_t bytes, const std::uint8_t* mask) {
    const std::size_t steps = (kBytes == kAnyWidth ? bytes : kBytes) / 16;
    uint32x4_t sums = vdupq_n_u32(0);
    for (std::size_t step = 0; step < steps;) {
        const std::size_t stop = step + kStepsPerSum < steps ? step + kStepsPerSum : steps;
        uint8x16_t counts = vdupq_n_u8(0);
        for (; step < stop; ++step) {
            uint8x16_t difference =
                veorq_u8(vld1q_u8(left + step * 16), vld1q_u8(right + step * 16));
            if constexpr (kMasked)
                difference = vandq_u8(difference, vld1q_u8(mask + step * 16));
            counts = vaddq_u8(counts, vcntq_u8(difference));
        }
        sums = vaddq_u32(sums, vpaddlq_u16(vpaddlq_u8(counts)));
    }
    return sums;
}

template <bool kMasked>
inline std::uint32_t tail_of_pair(const std::uint8_t* left, const std::uint8_t* right,
                                  std::size_t bytes, const std::uint8_t* mask) {
    std::uint32_t distance = 0;
    std::size_t at = bytes / 16 * 16;
    for (; at + 8 <= bytes; at += 8)
        distance +=
            count_word(counted<kMasked>(load_word(left + at) ^ load_word(right + at), mask, at, 8));
    if (at < bytes)
        distance += count_word(counted<kMasked>(
            load_partial(left + at, bytes - at) ^ load_partial(right + at, bytes - at), mask, at,
            bytes - at));
    return distance;
}

struct Neon {
    static constexpr std::size_t group = 4;

    template <std::size_t kBytes, bool kMasked>
    static std::uint32_t one(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
        if constexpr (kBytes == 8) {
            return count_word(counted<kMasked>(load_word(left) ^ load_word(right), mask, 0, 8));
        } else {
            std::uint32_t distance =
                vaddvq_u32(lanes_of_pair<kBytes, kMasked>(left, right, bytes, mask));
            if constexpr (kBytes == kAnyWidth)
                distance += tail_of_pair<kMasked>(left, right, bytes, mask);
            return distance;
        }
    }

    template <std::size_t kBytes, bool kMasked>
    struct Query {
        const std::uint8_t* query;
        std::size_t bytes;
        const std::uint8_t* mask;

        Query(const std::uint8_t* from, std::size_t width, const std::uint8_t* counting)
            : query(from), bytes(width), mask(counting) {}

        uint32x4_t distances(const std::uint8_t* rows) const {
            const std::size_t width = kBytes == kAnyWidth ? bytes : kBytes;
            const auto row = [&](std::size_t index) {
                return lanes_of_pair<kBytes, kMasked>(query, rows + index * width, width, mask);
            };
            uint32x4_t sums[group];
            for (std::size_t index = 0; index < group; ++index) {
                sums[index] = row(index);
                keep_order();
            }
            const uint32x4_t whole =
                vpaddq_u32(vpaddq_u32(sums[0], sums[1]), vpaddq_u32(sums[2], sums[3]));
            if (kBytes != kAnyWidth || width % 16 == 0)
                return whole;
            std::uint32_t tails[group];
            for (std::size_t index = 0; index < group; ++index)
                tails[index] = tail_of_pair<kMasked>(query, rows + index * width, width, mask);
            return vaddq_u32(whole, vld1q_u32(tails));
        }
    };

    static std::uint32_t at_most(uint32x4_t distances, std::uint32_t cutoff) {
        const std::uint32_t bit[4] = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(vcleq_u32(distances, vdupq_n_u32(cutoff)), vld1q_u32(bit)));
    }

    static void store(uint32x4_t distances, std::uint32_t* lanes) { vst1q_u32(lanes, distances); }

    using Sum = uint64x2_t;
    static void add_line(Sum& sum, const std::uint8_t* line) {
        for (std::size_t at = 0; at < 64; at += 16)
            sum = vaddq_u64(sum, vreinterpretq_u64_u8(vld1q_u8(line + at)));
    }
    static std::uint64_t total(Sum sum) { return vaddvq_u64(sum); }
};

// Two rows of 64 bits a register.
template <bool kMasked>
struct Neon::Query<8, kMasked> {
    uint8x16_t query, mask;

    Query(const std::uint8_t* from, std::size_t, const std::uint8_t* counting)
        : query(repeated(from)), mask(kMasked ? repeated(counting) : vdupq_n_u8(0xff)) {}

    static uint8x16_t repeated(const std::uint8_t* from) {
        return vcombine_u8(vld1_u8(from), vld1_u8(from));
    }

    uint32x4_t distances(const std::uint8_t* rows) const {
        const auto words = [&](std::size_t at) {
            uint8x16_t difference = veorq_u8(query, vld1q_u8(rows + at));
            if constexpr (kMasked)
                difference = vandq_u8(difference, mask);
            return vpaddlq_u16(vpaddlq_u8(vcntq_u8(difference)));
        };
        return vpaddq_u32(words(0), words(16));
    }
};

}  // namespace

constinit const KernelLoops KernelLoops::neon{kernels_of<Neon>, read_lines<Neon>};

}  // namespace lookalike::bits
