// What the memory can deliver: the floor under every scan.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::bits {

// Reads `data` once, with the given number of threads, and returns the sum of its 64-bit words, so
// that no compiler can leave the reading out. The last bytes that do not
// fill 64 are passed over.
std::uint64_t read_all(const std::uint8_t* data, std::size_t bytes, std::size_t threads);

}  // namespace lookalike::bits
