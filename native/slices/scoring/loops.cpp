#include "bits/choice.hpp"
#include "slices/scoring/loops_body.hpp"

namespace lookalike::search {

#if defined(LOOKALIKE_X86)
extern const ScoreLoops avx2_score_loops;
extern const ScoreLoops avx512_score_loops;

const ScoreLoops& score_loops() {
    return bits::chosen(kLoops, avx2_score_loops, avx512_score_loops);
}
#else
const ScoreLoops& score_loops() {
    return kLoops;
}
#endif

}  // namespace lookalike::search
