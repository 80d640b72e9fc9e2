// Sketches: vectors as bytes, in groups of near ones, to find candidates before any cosine.
//
// A value of a sketch is a whole number from -127 to 127, held with 128 added, and the sketch of a
// vector of length 1 is these times its scale. Sixteen sketches lie together, four values of each
// at a time: their products with a query are made side by side, in whole numbers, so that they are
// the same for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vectors/cosines.hpp"
#include "vectors/loops.hpp"

namespace lookalike::vectors {

inline std::size_t sketch_steps(std::size_t dimensions) {
    return (dimensions + kSketchStep - 1) / kSketchStep;
}

// Sketches in blocks of 16; scales are there for the rows that are missing in the last block, too.
struct Sketches {
    const std::uint8_t* blocks;
    const float* scales;
    std::size_t count, steps;

    std::size_t block_bytes() const { return kSketchRows * kSketchStep * steps; }
};

struct SketchGroups {
    Sketches rows;                // those of group g are at offsets[g] to offsets[g + 1]
    const std::uint32_t* places;  // the row of the vectors that each is the sketch of
    const std::int64_t* offsets;
    Sketches centers;
    double error;  // no sketch is farther than that from its vector of length 1

    // Rows from this place on have no sketch yet, and are all compared.
    std::size_t covered() const { return rows.count; }
};

// Writes the sketches of the rows from `first` on, one after the other, each of 4 * steps bytes,
// and returns the largest error.
double sketch_rows(const Rows& rows, std::size_t first, const Work& work, std::uint8_t* codes,
                   float* scales);

// The sketch with the largest product for each of `count` others, ties to the first, and what it
// is, without the scale of the other.
void nearest_sketches(const Sketches& among, const std::uint8_t* codes, std::size_t count,
                      const Work& work, std::int64_t* nearest, float* products);

// What a search did for each query.
struct SketchWork {
    std::int64_t *groups, *rows, *cosines;
};

struct SketchEffort {
    std::size_t candidates, probe;
};

// The `k` largest cosines among the candidates of each query: those with the largest products of
// sketches in the `probe` groups with the nearest centers, and in as many more as it takes to have
// k of them, and the rows that have no sketch. `skip` is as in best_of_all, and so are the answers.
void best_of_groups(const Rows& rows, const SketchGroups& groups, const std::uint8_t* skip,
                    const Queries& queries, std::size_t k, const SketchEffort& effort,
                    const Work& work, std::int64_t* ids, double* cosines, const SketchWork& done);

// The places of these candidates, the largest products first and ties by place, to rows of
// effort.candidates places; what is missing is left as it was.
void candidates_of_groups(const Rows& rows, const SketchGroups& groups, const Queries& queries,
                          const std::uint8_t* skip, const SketchEffort& effort, const Work& work,
                          std::int64_t* places);

// The same as best_of_all: rows are left out only where their sketch proves that they are not among
// the k.
void best_by_sketches(const Rows& rows, const SketchGroups& groups, const std::uint8_t* skip,
                      const Queries& queries, std::size_t k, const Work& work, std::int64_t* ids,
                      double* cosines, const SketchWork& done);

}  // namespace lookalike::vectors
