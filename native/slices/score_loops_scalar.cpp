#include "slices/score_loops_body.hpp"

namespace lookalike::search {

extern const ScoreLoops scalar_score_loops;
const ScoreLoops scalar_score_loops = kLoops;

}  // namespace lookalike::search
