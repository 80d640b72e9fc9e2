// Asking for memory before it is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::bits {

// Prefetches the cache lines of these bytes into the second-level cache, which takes more requests
// at a time than the first-level one. Always inlined, because a function that only prefetches has
// no effect in the eyes of GCC, and calls to it are left out.
[[gnu::always_inline]] inline void prefetch_all(const std::uint8_t* from, std::size_t bytes) {
    for (std::size_t byte = 0; byte < bytes; byte += 64)
        __builtin_prefetch(from + byte, 0, 2);
    __builtin_prefetch(from + bytes - 1, 0, 2);
}

}  // namespace lookalike::bits
