// Distance kernels: the innermost loops of every search, one set per instruction set.
//
// A signature is `bytes` consecutive bytes; rows of a collection lie back to back, at any
// alignment. Every set computes the same numbers as the scalar one, bit for bit; only the speed
// differs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"

namespace lookalike::bits {

struct Hit {
    std::uint32_t row;
    std::uint32_t distance;
};

struct Crossing {
    std::uint32_t query;
    std::uint32_t row;
    std::uint32_t distance;
};

// The functions for one signature width. `bytes` is passed along because the fall-back for odd
// widths learns it only at run time; the others have it compiled in and ignore it.
struct Kernels {
    // out[i] = distance(query, rows[i])
    void (*distances)(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                      std::size_t bytes, std::int32_t* out);

    // Writes the rows with distance <= cutoff to `hits`, in row order, and returns how many there
    // are. `hits` must have room for `count` of them.
    std::size_t (*filter)(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                          std::size_t bytes, std::uint32_t cutoff, Hit* hits);

    // The same for several queries, which lie back to back, each with each row, in no given order.
    // `hits` must have room for all pairs.
    std::size_t (*crossed)(const std::uint8_t* queries, std::size_t asked, const std::uint8_t* rows,
                           std::size_t count, std::size_t bytes, std::uint32_t cutoff,
                           Crossing* hits);

    // The same as `filter` over the bits that `mask` sets, which is as wide as a row; the others
    // may differ.
    std::size_t (*masked_filter)(const std::uint8_t* query, const std::uint8_t* mask,
                                 const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                                 std::uint32_t cutoff, Hit* hits);

    // out[i] = distance(left[i], right[i])
    void (*paired)(const std::uint8_t* left, const std::uint8_t* right, std::size_t count,
                   std::size_t bytes, std::int32_t* out);

    // The same for signatures that lie anywhere: out[i] = distance(*left[i], *right[i])
    void (*scattered)(const std::uint8_t* const* left, const std::uint8_t* const* right,
                      std::size_t count, std::size_t bytes, std::int32_t* out);
};

// The family of distance kernels. Unlike other families, it has a source file for each set,
// kernels_NAME.cpp.
struct [[gnu::visibility("hidden")]] KernelLoops {
    Kernels (*kernels)(std::size_t bytes);  // for signatures of that width

    // Adds up the 64-bit words of `lines` times 64 bytes: nothing but reading, as fast as these
    // instructions can, to measure the bandwidth that bounds the kernels.
    std::uint64_t (*read)(const std::uint8_t* data, std::size_t lines);

#define SET(name, ...) static const KernelLoops name;
#include "bits/instruction_sets.inc"
};

inline Kernels kernels_for(std::size_t bytes) {
    return chosen<KernelLoops>().kernels(bytes);
}

}  // namespace lookalike::bits
