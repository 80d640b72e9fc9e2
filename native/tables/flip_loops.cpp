#include "bits/choice.hpp"
#include "tables/flip_loops_body.hpp"

namespace lookalike::search {

#if defined(LOOKALIKE_X86)
extern const FlipLoops avx2_flip_loops;
extern const FlipLoops avx512_flip_loops;

const FlipLoops& flip_loops() {
    return bits::chosen(kLoops, avx2_flip_loops, avx512_flip_loops);
}
#else
const FlipLoops& flip_loops() {
    return kLoops;
}
#endif

}  // namespace lookalike::search
