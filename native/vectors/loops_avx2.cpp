#include "vectors/loops_body.hpp"

namespace lookalike::vectors {

extern const Loops avx2_loops;
const Loops avx2_loops = kLoops;

}  // namespace lookalike::vectors
