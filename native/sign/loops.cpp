#include "sign/loops.hpp"

#include <cstring>

#include "bits/kernels.hpp"

namespace lookalike::sign {

extern const Loops
    scalar_loops;  // on other processors than x86 this has all that the compiler gives
#if defined(LOOKALIKE_X86)
extern const Loops avx2_loops;
extern const Loops avx512_loops;
#endif

const Loops& loops() {
#if defined(LOOKALIKE_X86)
    const char* const name = bits::selected().name;
    if (std::strcmp(name, "avx512") == 0)
        return avx512_loops;
    if (std::strcmp(name, "avx2") == 0)
        return avx2_loops;
#endif
    return scalar_loops;
}

}  // namespace lookalike::sign
