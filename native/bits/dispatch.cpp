// Which instruction sets this build has, and which one runs.

#include <atomic>
#include <cstring>

#include "bits/kernels.hpp"

namespace lookalike::bits {

extern const InstructionSet scalar_set;
#if defined(LOOKALIKE_X86)
extern const InstructionSet avx2_set;
extern const InstructionSet avx512_set;
#endif
#if defined(LOOKALIKE_NEON)
extern const InstructionSet neon_set;
#endif

namespace {

const InstructionSet* const kBuilt[] = {
#if defined(LOOKALIKE_X86)
    &avx512_set,
    &avx2_set,
#endif
#if defined(LOOKALIKE_NEON)
    &neon_set,
#endif
    &scalar_set,
};

const InstructionSet* widest_supported() {
    for (const InstructionSet* set : kBuilt)
        if (set->supported())
            return set;
    return &scalar_set;
}

// A function-local static, so that the choice is made on first use and never before the sets of
// the other files exist.
std::atomic<const InstructionSet*>& choice() {
    static std::atomic<const InstructionSet*> chosen{widest_supported()};
    return chosen;
}

}  // namespace

std::size_t instruction_set_count() {
    return sizeof kBuilt / sizeof *kBuilt;
}

const InstructionSet& instruction_set(std::size_t index) {
    return *kBuilt[index];
}

const InstructionSet& selected() {
    return *choice().load(std::memory_order_acquire);
}

bool select(const char* name) {
    for (const InstructionSet* set : kBuilt)
        if (std::strcmp(set->name, name) == 0 && set->supported()) {
            choice().store(set, std::memory_order_release);
            return true;
        }
    return false;
}

}  // namespace lookalike::bits
