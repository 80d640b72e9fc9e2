#include "bits/instruction_sets.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace lookalike::bits {

namespace {

struct Row {
    const char* name;
    bool (*supported)();
};

constexpr Row kRows[] = {
#define SET(name, flags, supported) {#name, []() -> bool { return supported; }},
#include "bits/instruction_sets.inc"
};

const Row& row_of(InstructionSet set) {
    return kRows[static_cast<std::size_t>(set)];
}

// A function-local static, because the processor is asked only on first use.
std::atomic<InstructionSet>& choice() {
    static std::atomic<InstructionSet> chosen{
        *std::ranges::find_if(kInstructionSets, is_supported)};
    return chosen;
}

}  // namespace

const char* name_of(InstructionSet set) {
    return row_of(set).name;
}

bool is_supported(InstructionSet set) {
    return row_of(set).supported();
}

InstructionSet selected() {
    return choice().load(std::memory_order_acquire);
}

bool select(const char* name) {
    for (const InstructionSet set : kInstructionSets)
        if (std::strcmp(name_of(set), name) == 0 && is_supported(set)) {
            choice().store(set, std::memory_order_release);
            return true;
        }
    return false;
}

}  // namespace lookalike::bits
