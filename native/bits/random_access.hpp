// What reading here and there costs: the floor under every look-up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::bits {

// Reads `reads` words at pseudo-random places, each asked for `ahead` reads earlier; with `ahead` 0
// the next place depends on what was read, so that one read waits for the other. Another `first`
// gives other places, which no cache has seen. Returns a sum, so that no compiler can leave the
// reading out. `count` is at least 1; the largest power of two in it is used.
std::uint64_t read_at_random(const std::uint64_t* words, std::size_t count, std::size_t first,
                             std::size_t reads, std::size_t ahead);

}  // namespace lookalike::bits
