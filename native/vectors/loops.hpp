// The inner loops over vectors, written once in plain C++ and compiled once per instruction set.
// All sets give the same numbers: the lanes that sums are made in, and the order in which these are
// added, are fixed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"

namespace lookalike::vectors {

// A product of two floats is exact in a double, and so large or small a float as there is has a
// square that a double can hold.
struct Products {
    double both;     // a times b
    double squares;  // b times b
};

struct RoughProducts {
    float both, squares;
};

// Sketches that lie together, and the values of each that do (sketches.hpp).
inline constexpr std::size_t kSketchRows = 16, kSketchStep = 4;
inline constexpr std::size_t kSketchQueries = 4;  // that are multiplied at a time, or one

struct SketchHit {
    float product;
    std::uint32_t row;
};

struct [[gnu::visibility("hidden")]] Loops {
    Products (*products)(const float* a, const float* b, std::size_t dimensions);

    // The same where b has halves: IEEE 754 numbers of 16 bits, all of them finite.
    Products (*products_of_halves)(const float* a, const std::uint16_t* b, std::size_t dimensions);

    // The same in single precision, which is quicker, and off by some `dimensions` * 2^-24 times
    // the lengths of both, if squares are neither very small nor very large.
    RoughProducts (*rough)(const float* a, const float* b, std::size_t dimensions);
    RoughProducts (*rough_of_halves)(const float* a, const std::uint16_t* b,
                                     std::size_t dimensions);

    // Halves as floats, which hold each of them.
    void (*widen)(const std::uint16_t* halves, std::size_t count, float* floats);

    // The products of one query, or of kSketchQueries, with `blocks` blocks of sketches: whole
    // numbers, those of query q from sums + q * blocks * kSketchRows on. A query has 4 * steps
    // values, one after the other.
    void (*sketch_products)(const std::uint8_t* sketches, std::size_t blocks, std::size_t steps,
                            const std::int8_t* const* queries, std::size_t count,
                            std::int32_t* sums);

    // The products that are, times the scales, at least so large, in order; returns their number.
    std::size_t (*sketch_hits)(const std::int32_t* sums, const float* scales, std::size_t count,
                               float least, SketchHit* hits);

    // How many of the numbers are at least so large.
    std::size_t (*count_at_least)(const float* numbers, std::size_t count, float least);

#define SET(name, ...) static const Loops name;
#include "bits/instruction_sets.inc"
};

inline const Loops& loops() {
    return bits::chosen<Loops>();
}

}  // namespace lookalike::vectors
