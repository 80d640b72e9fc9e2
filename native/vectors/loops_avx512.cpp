#include "vectors/loops_body.hpp"

namespace lookalike::vectors {

extern const Loops avx512_loops;
const Loops avx512_loops = kLoops;

}  // namespace lookalike::vectors
