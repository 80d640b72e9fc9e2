#include "tables/flip_loops_body.hpp"

namespace lookalike::search {

extern const FlipLoops avx512_flip_loops;
const FlipLoops avx512_flip_loops = kLoops;

}  // namespace lookalike::search
