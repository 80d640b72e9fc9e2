// Code that is compiled once per instruction set and follows the choice of distance kernels.
#pragma once

#include <cstring>

#include "bits/kernels.hpp"

namespace lookalike::bits {

// The member of a family that goes with the selected kernels. Processors other than x86 have one
// member only, with all that the compiler gives.
template <class Family>
const Family& chosen(const Family& plain, const Family& avx2, const Family& avx512) {
    const char* const name = selected().name;
    if (std::strcmp(name, "avx512") == 0)
        return avx512;
    if (std::strcmp(name, "avx2") == 0)
        return avx2;
    return plain;
}

}  // namespace lookalike::bits
