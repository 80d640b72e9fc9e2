#include "slices/scoring/loops_body.hpp"

namespace lookalike::search {

extern const ScoreLoops avx512_score_loops;
const ScoreLoops avx512_score_loops = kLoops;

}  // namespace lookalike::search
