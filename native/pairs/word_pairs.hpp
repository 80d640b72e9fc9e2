// Pairs of 64-bit signatures that share a block of bits.
#pragma once

#include <cstdint>
#include <functional>

#include "scan/scan.hpp"

namespace lookalike::search {

struct WordBlock {
    std::size_t from, to;  // bits

    std::uint64_t mask() const {
        return (to - from == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (to - from)) - 1)
               << from;
    }
};

struct FoundWords {
    std::uint32_t left, right;  // rows, left < right
    std::uint64_t flips;        // bits that differ
    std::uint32_t distance;
};

// Calls found() for the pairs of rows within `radius` whose bits of the block are equal, in any
// order. `skipped`, unless it is null, has a byte for each row, not 0: passed over. Before rows are
// compared, may_compare(comparisons) is asked; when it says no, nothing more is done.
void join_words(const Signatures& signatures, const std::uint8_t* skipped, WordBlock block,
                std::uint32_t radius, const std::function<bool(double)>& may_compare,
                const std::function<void(const FoundWords&)>& found);

}  // namespace lookalike::search
