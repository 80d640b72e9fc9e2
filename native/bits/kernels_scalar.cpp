// Plain C++ for any processor, and the definition of what the other sets must compute.

#include "bits/kernel_loops.hpp"

namespace lookalike::bits {
namespace {

// Adds neighboring bits, then pairs, then nibbles; the multiplication sums the eight bytes. Used
// instead of the built-in because a portable x86-64 build may not use the popcnt instruction and
// would call a table look-up in the run-time library.
inline std::uint32_t ones(std::uint64_t word) {
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<std::uint32_t>((word * 0x0101010101010101u) >> 56);
}

struct Scalar {
    static constexpr std::size_t group = 1;

    template <std::size_t kBytes, bool kMasked>
    static std::uint32_t one(const std::uint8_t* left, const std::uint8_t* right, std::size_t bytes,
                             const std::uint8_t* mask) {
        std::uint32_t distance = 0;
        std::size_t at = 0;
        for (; at + 8 <= bytes; at += 8)
            distance +=
                ones(counted<kMasked>(load_word(left + at) ^ load_word(right + at), mask, at, 8));
        if (kBytes == kAnyWidth && at < bytes)
            distance += ones(counted<kMasked>(
                load_partial(left + at, bytes - at) ^ load_partial(right + at, bytes - at), mask,
                at, bytes - at));
        return distance;
    }

    template <std::size_t kBytes, bool kMasked>
    struct Query {
        const std::uint8_t* query;
        std::size_t bytes;
        const std::uint8_t* mask;

        Query(const std::uint8_t* from, std::size_t width, const std::uint8_t* counting)
            : query(from), bytes(width), mask(counting) {}

        std::uint32_t distances(const std::uint8_t* row) const {
            return one<kBytes, kMasked>(query, row, kBytes == kAnyWidth ? bytes : kBytes, mask);
        }
    };

    static std::uint32_t at_most(std::uint32_t distance, std::uint32_t cutoff) {
        return distance <= cutoff ? 1 : 0;
    }
    static void store(std::uint32_t distance, std::uint32_t* lanes) { *lanes = distance; }

    using Sum = std::uint64_t;
    static void add_line(Sum& sum, const std::uint8_t* line) {
        for (std::size_t at = 0; at < 64; at += 8)
            sum += load_word(line + at);
    }
    static std::uint64_t total(Sum sum) { return sum; }
};

}  // namespace

constinit const KernelLoops KernelLoops::scalar{kernels_of<Scalar>, read_lines<Scalar>};

}  // namespace lookalike::bits
