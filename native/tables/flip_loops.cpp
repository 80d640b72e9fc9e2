#include "tables/flip_loops.hpp"

#include "bits/choice.hpp"

namespace lookalike::search {

extern const FlipLoops scalar_flip_loops;
#if defined(LOOKALIKE_X86)
extern const FlipLoops avx2_flip_loops;
extern const FlipLoops avx512_flip_loops;

const FlipLoops& flip_loops() {
    return bits::chosen(scalar_flip_loops, avx2_flip_loops, avx512_flip_loops);
}
#else
const FlipLoops& flip_loops() {
    return scalar_flip_loops;
}
#endif

}  // namespace lookalike::search
