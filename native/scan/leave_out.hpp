// Rows that are none of the collection any more, or not of those asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bits/kernels.hpp"

namespace lookalike::search {

// Takes out hits whose rows are removed, and returns how many are left.
inline std::size_t leave_out(bits::Hit* hits, std::size_t count, const std::uint8_t* removed) {
    const auto is_removed = [&](const bits::Hit& hit) { return removed[hit.row] != 0; };
    return static_cast<std::size_t>(std::remove_if(hits, hits + count, is_removed) - hits);
}

}  // namespace lookalike::search
