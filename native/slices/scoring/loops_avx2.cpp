#include "slices/scoring/loops_body.hpp"

namespace lookalike::search {

extern const ScoreLoops avx2_score_loops;
const ScoreLoops avx2_score_loops = kLoops;

}  // namespace lookalike::search
