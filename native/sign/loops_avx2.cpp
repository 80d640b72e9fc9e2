#include "sign/loops_body.hpp"

namespace lookalike::sign {

extern const Loops avx2_loops;
const Loops avx2_loops = kLoops;

}  // namespace lookalike::sign
