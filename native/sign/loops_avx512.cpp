#include "sign/loops_body.hpp"

namespace lookalike::sign {

extern const Loops avx512_loops;
const Loops avx512_loops = kLoops;

}  // namespace lookalike::sign
