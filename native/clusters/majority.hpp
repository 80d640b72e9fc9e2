// Centers of groups: each bit is the one that most members have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/threads.hpp"
#include "scan/scan.hpp"

namespace lookalike::search {

// Sets each of `groups` centers to the majority of the rows whose label is its number. Where just
// as many have a bit as have it not, and where there are none, the center keeps the bit it has.
void majority_centers(const Signatures& rows, const std::int64_t* labels, std::size_t groups,
                      std::size_t threads, const bits::Checkpoint& checkpoint,
                      std::uint8_t* centers);

}  // namespace lookalike::search
