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

// The nearest center of each row among its candidates, `count` numbers of centers, and its
// distance. Ties go to the lowest number.
void nearest_among(const Signatures& rows, const Signatures& centers,
                   const std::int64_t* candidates, std::size_t count, std::size_t threads,
                   const bits::Checkpoint& checkpoint, std::int64_t* labels,
                   std::int32_t* distances);

}  // namespace lookalike::search
