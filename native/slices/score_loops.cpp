#include "slices/score_loops.hpp"

#include "bits/choice.hpp"

namespace lookalike::search {

extern const ScoreLoops scalar_score_loops;
#if defined(LOOKALIKE_X86)
extern const ScoreLoops avx2_score_loops;
extern const ScoreLoops avx512_score_loops;

const ScoreLoops& score_loops() {
    return bits::chosen(scalar_score_loops, avx2_score_loops, avx512_score_loops);
}
#else
const ScoreLoops& score_loops() {
    return scalar_score_loops;
}
#endif

}  // namespace lookalike::search
