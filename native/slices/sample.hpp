// How slices of some queries and some signatures differ: what lists of a whole collection will be
// like, without building them.
#pragma once

#include <cstdint>

#include "scan/scan.hpp"
#include "slices/slicing.hpp"

namespace lookalike::search {

// For each query, position and number of differing bits, from 0 to the widest slice: how many rows
// differ so in that slice; and of how many of those the sketch differs in what `radius` leaves, if
// there are sketches, else the same. All must be 0 before.
void slice_levels(const Slicing& slicing, const Signatures& rows, const Signatures& queries,
                  std::uint32_t radius, std::int64_t* levels, std::int64_t* near);

// Scores with slices within 0, 1, ... `most` differing bits, one row of scores a query after the
// other: scores[(expand * queries.count + query) * rows.count + row]. All must be 0 before.
void slice_scores(const Slicing& slicing, const Signatures& rows, const Signatures& queries,
                  std::size_t most, std::int32_t* scores);

}  // namespace lookalike::search
