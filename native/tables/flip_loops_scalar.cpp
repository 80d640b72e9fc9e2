#include "tables/flip_loops_body.hpp"

namespace lookalike::search {

extern const FlipLoops scalar_flip_loops;
const FlipLoops scalar_flip_loops = kLoops;

}  // namespace lookalike::search
