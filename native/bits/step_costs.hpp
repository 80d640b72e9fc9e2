// What single steps of a search cost, in nanoseconds.
#pragma once

#include <cstddef>

namespace lookalike::bits {

// Whoever has several ways to the same answer counts the steps of each and weighs them by these.
// They are those of a usual processor: only how they compare counts, and all who choose have them
// from here. What a step costs on the machine at hand is measured where times are predicted.
struct StepCosts {
    double touch = 6;             // something at a place of its own in memory, asked for in time
    double compared_byte = 0.12;  // of a signature that lies at a place of its own
    double scanned_byte = 0.03;   // of signatures compared in the order they lie in
    double posting = 1.5;         // an entry of a list, added to a score
    double sketch = 0.3;          // compared in the order they lie in

    // A list or a bucket: where it begins, and what is there.
    constexpr double look_up() const { return 2 * touch; }
    constexpr double compare(std::size_t bytes) const {
        return touch + compared_byte * static_cast<double>(bytes);
    }
    constexpr double scan(std::size_t bytes) const {
        return scanned_byte * static_cast<double>(bytes);
    }
};

inline constexpr StepCosts kUsualCosts;

}  // namespace lookalike::bits
