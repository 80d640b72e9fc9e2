// What the memory can deliver: the floor under every scan and every look-up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::bits {

// Reads `data` once, with the given number of threads, and returns the sum of its 64-bit words, so
// that no compiler can leave the reading out. The last bytes that do not fill 64 are passed over.
std::uint64_t read_all(const std::uint8_t* data, std::size_t bytes, std::size_t threads);

// Reads `reads` words at pseudo-random places, each asked for `ahead` reads earlier; with `ahead` 0
// the next place depends on what was read, so that one read waits for the other. Another `first`
// gives other places, which no cache has seen. Returns a sum, so that no compiler can leave the
// reading out. `count` is at least 1; the largest power of two in it is used.
std::uint64_t read_at_random(const std::uint64_t* words, std::size_t count, std::size_t first,
                             std::size_t reads, std::size_t ahead);

}  // namespace lookalike::bits
