// What single steps of a search cost, in nanoseconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lookalike::bits {

// Code with several ways to the same answer counts the steps of each and weighs them by these. They
// are those of a usual processor: only their ratios matter, and every choice uses the same ones.
// What a step costs on the machine at hand is measured where times are predicted.
struct StepCosts {
    double touch = 6;             // something at a place of its own in memory, asked for in time
    double compared_byte = 0.12;  // of a signature that lies at a place of its own
    double bucket_byte = 0.03;    // of signatures compared in the order they lie in, some at a time
    double scanned_byte = 0.0145;  // the same of a whole collection, where many queries share it
    double read_byte = 0.034;      // of what no cache holds, read in order
    double posting = 1.8;          // an entry of a list, added to a score
    double slices = 2.6;  // of a candidate, 16 or 32 of them, compared at once with the query's
    double slice = 1.5;   // compared by itself
    double list = 70;     // of a search within a radius, put in order and gone through
    double row = 13;      // of such a list, compared
    double sketch = 0.3;  // compared in the order they lie in
    double entry = 8;     // of a table that is used once: made and sorted
    double visit = 60;    // of some rows with the same key by others, before any is compared

    // A list or a bucket: where it begins, and what is there.
    constexpr double look_up() const { return 2 * touch; }
    constexpr double compare(std::size_t bytes) const {
        return touch + compared_byte * static_cast<double>(bytes);
    }
    constexpr double listed(std::size_t bytes) const {
        return row + compared_byte * static_cast<double>(bytes);
    }
    constexpr double bucket(std::size_t bytes) const {
        return bucket_byte * static_cast<double>(bytes);
    }
    // Reading all bytes, for one of some queries that are asked together.
    constexpr double scan(double bytes, double queries) const {
        constexpr double kCached = 1 << 24;
        return bytes * (bytes <= kCached || scanned_byte * queries > read_byte
                            ? scanned_byte
                            : read_byte / queries);
    }
    // What a touch costs more if it is anywhere in these bytes: a little for each doubling beyond a
    // cache, up to what main memory costs.
    double missed(double bytes) const {
        return std::clamp(2 * std::log2(bytes / (1 << 20)), 0.0, 12.0);
    }
};

inline constexpr StepCosts kUsualCosts;

}  // namespace lookalike::bits
