// Mixing the bits of a number.
#pragma once

#include <cstdint>

namespace lookalike::bits {

// The finaliser of MurmurHash3 by Austin Appleby: a permutation in which every input bit reaches
// every output bit.
inline std::uint64_t fmix64(std::uint64_t value) {
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
    return value ^ (value >> 33);
}

}  // namespace lookalike::bits
