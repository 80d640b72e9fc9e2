// Signatures that occur more than once.
#pragma once

#include <cstdint>
#include <vector>

#include "scan/scan.hpp"

namespace lookalike::search {

// Group g has rows[offsets[g]] to rows[offsets[g + 1]], two or more, ascending.
struct EqualRows {
    std::vector<std::int64_t> rows, offsets;
};

// Groups of rows that are equal; all others stand alone. Takes a few nanoseconds a row, and a byte
// or two, where few are equal; those that are get sorted.
EqualRows equal_rows(const Signatures& signatures);

}  // namespace lookalike::search
