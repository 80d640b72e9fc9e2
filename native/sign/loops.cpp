#include "sign/loops.hpp"

#include "bits/choice.hpp"

namespace lookalike::sign {

extern const Loops scalar_loops;
#if defined(LOOKALIKE_X86)
extern const Loops avx2_loops;
extern const Loops avx512_loops;

const Loops& loops() {
    return bits::chosen(scalar_loops, avx2_loops, avx512_loops);
}
#else
const Loops& loops() {
    return scalar_loops;
}
#endif

}  // namespace lookalike::sign
