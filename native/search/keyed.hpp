// Rows put together by equal keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lookalike::search {

struct Keyed {
    std::uint32_t key;
    std::uint32_t row;
};

// Sorts by keys of so many bits, least significant digit first; rows of equal keys stay in order.
inline void sort_by_key(std::vector<Keyed>& entries, std::vector<Keyed>& spare,
                        std::size_t key_bits) {
    const std::size_t digit = key_bits <= 16 ? key_bits : 11, values = std::size_t{1} << digit;
    std::vector<std::uint32_t> places(values);
    spare.resize(entries.size());
    for (std::size_t shift = 0; shift < key_bits; shift += digit) {
        std::fill(places.begin(), places.end(), 0);
        for (const Keyed& entry : entries)
            ++places[entry.key >> shift & (values - 1)];
        std::exclusive_scan(places.begin(), places.end(), places.begin(), 0u);
        for (const Keyed& entry : entries)
            spare[places[entry.key >> shift & (values - 1)]++] = entry;
        entries.swap(spare);
    }
}

// Calls visit(first, end) for runs of equal keys of two or more.
template <class Visit>
void each_group(const std::vector<Keyed>& entries, Visit visit) {
    for (std::size_t first = 0, end; first < entries.size(); first = end) {
        for (end = first + 1; end < entries.size() && entries[end].key == entries[first].key;)
            ++end;
        if (end - first > 1)
            visit(first, end);
    }
}

}  // namespace lookalike::search
