// Documents as sets of numbers, in the order and with what a join needs to know of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lookalike::search {

// Sets by ascending size (or total weight, where elements weigh by their frequency), equal ones by
// document. Elements are numbered by rising frequency: 0 is one of the rarest. An element that no
// other set has can be in no intersection; it counts in `sizes`, `lengths` and `totals`, and is not
// stored. Such elements are the rarest, so they come before the stored ones in the order of all
// elements. Elements that weigh nothing by their frequency are in no set.
struct Sets {
    std::vector<std::uint32_t> documents;  // which one each set is of
    std::vector<std::uint32_t> sizes;      // elements, all of them
    std::vector<double> lengths;           // Euclidean, of the weights; empty without weights
    std::vector<std::uint64_t> offsets;    // of each set's elements; one more than there are sets
    std::vector<std::uint32_t> elements;   // stored ones, ascending in each set
    std::vector<double> weights;           // of the stored ones; empty if each is 1
    std::vector<double> element_weights;   // by frequency, of each number; else empty
    std::vector<double> totals;            // of the weights by frequency, of each set; else empty
    std::size_t numbers = 0;               // all elements are less

    std::size_t count() const { return documents.size(); }
    bool weighted() const { return !lengths.empty(); }
    bool by_frequency() const { return !totals.empty(); }
    std::uint32_t stored(std::size_t set) const {
        return static_cast<std::uint32_t>(offsets[set + 1] - offsets[set]);
    }
    std::uint32_t unstored(std::size_t set) const { return sizes[set] - stored(set); }
    std::span<const std::uint32_t> elements_of(std::size_t set) const {
        return {elements.data() + offsets[set], stored(set)};
    }
    const double* weights_of(std::size_t set) const { return weights.data() + offsets[set]; }
};

}  // namespace lookalike::search
