// The instruction sets in this build, and the one in use. instruction_sets.inc lists them.
//
// A family of loops is a struct of functions that has a static member for each set. The linker
// accepts a shared library that lacks a member, but not if the struct is hidden.
//
//   struct [[gnu::visibility("hidden")]] Loops {
//       void (*add)(...);
//   #define SET(name, ...) static const Loops name;
//   #include "bits/instruction_sets.inc"
//   };
//
// The file that defines the functions, *loops.cpp, is compiled once for each set, with the flags of
// the set and with LOOKALIKE_SET as its name, and ends with
//
//   constexpr Loops kLoops{add};
//   const Loops Loops::LOOKALIKE_SET = kLoops;
//
// Its functions are in an anonymous namespace and call no inline functions of other headers. If
// the linker merged two copies, the copy compiled for AVX-512 could be the one that remains, and
// run on a processor without AVX-512.
#pragma once

#include <cstddef>

namespace lookalike::bits {

enum class InstructionSet : std::size_t {
#define SET(name, ...) name,
#include "bits/instruction_sets.inc"
};

// All sets in this build, preferred first. The last one, scalar, is always supported.
inline constexpr InstructionSet kInstructionSets[] = {
#define SET(name, ...) InstructionSet::name,
#include "bits/instruction_sets.inc"
};

const char* name_of(InstructionSet set);

// Whether the running processor has it.
bool is_supported(InstructionSet set);

// The set in use: the first supported one, until `select` changes it.
InstructionSet selected();

// Returns false and changes nothing if the name is unknown or the processor lacks the set. Running
// searches finish with the set they started with.
bool select(const char* name);

// The member of a family for the set in use.
template <class Family>
const Family& chosen() {
    static constexpr const Family* kMembers[] = {
#define SET(name, ...) &Family::name,
#include "bits/instruction_sets.inc"
    };
    return *kMembers[static_cast<std::size_t>(selected())];
}

}  // namespace lookalike::bits
