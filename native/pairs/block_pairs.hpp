// All pairs of a collection within a radius, by blocks: signatures that differ in at most r bits
// agree in at least one of r + 1 blocks (Henzinger's argument), so only those that share a block
// are compared.
#pragma once

#include <optional>

#include "scan/scan.hpp"

namespace lookalike::search {

// Pairs of positions, left < right, sorted. Those with a byte in `skipped` that is not 0 are passed
// over; null: none is. The others have to be distinct: where many are equal, a block that they
// share would make this quadratic. Nothing if that would cost more than comparing all with all.
// Throws TooManyResults as soon as there are more than `limit`.
std::optional<Pairs> block_pairs(const Signatures& signatures, const std::uint8_t* skipped,
                                 std::uint32_t radius, std::size_t limit, std::size_t threads,
                                 const bits::Checkpoint& checkpoint);

}  // namespace lookalike::search
