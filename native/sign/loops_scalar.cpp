#include "sign/loops_body.hpp"

namespace lookalike::sign {

extern const Loops scalar_loops;
const Loops scalar_loops = kLoops;

}  // namespace lookalike::sign
