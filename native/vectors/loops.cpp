#include "bits/choice.hpp"
#include "vectors/loops_body.hpp"

namespace lookalike::vectors {

#if defined(LOOKALIKE_X86)
extern const Loops avx2_loops;
extern const Loops avx512_loops;

const Loops& loops() {
    return bits::chosen(kLoops, avx2_loops, avx512_loops);
}
#else
const Loops& loops() {
    return kLoops;
}
#endif

}  // namespace lookalike::vectors
