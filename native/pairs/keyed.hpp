// Rows put together by equal keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace lookalike::search {

struct Keyed {
    std::uint32_t key;
    std::uint32_t row;
};

// Sorts by the lower `key_bits` of keys, least significant digit first; rows of equal keys stay in
// order. Returns which of the two arrays has the result.
template <class Entry>
Entry* sort_by_key(Entry* entries, Entry* spare, std::size_t count, std::size_t key_bits) {
    constexpr std::size_t kDigitBits = 11;
    if (key_bits == 0)
        return entries;
    const std::size_t passes = (key_bits + kDigitBits - 1) / kDigitBits;
    const std::size_t digit = (key_bits + passes - 1) / passes, values = std::size_t{1} << digit;
    std::vector<std::uint32_t> places(values);
    for (std::size_t shift = 0; shift < key_bits; shift += digit) {
        std::fill(places.begin(), places.end(), 0);
        for (std::size_t at = 0; at < count; ++at)
            ++places[entries[at].key >> shift & (values - 1)];
        std::exclusive_scan(places.begin(), places.end(), places.begin(), 0u);
        for (std::size_t at = 0; at < count; ++at)
            spare[places[entries[at].key >> shift & (values - 1)]++] = entries[at];
        std::swap(entries, spare);
    }
    return entries;
}

// Calls visit(first, end) for runs of equal keys of two or more.
template <class Entry, class Visit>
void each_group(std::span<const Entry> entries, Visit visit) {
    for (std::size_t first = 0, end; first < entries.size(); first = end) {
        for (end = first + 1; end < entries.size() && entries[end].key == entries[first].key;)
            ++end;
        if (end - first > 1)
            visit(first, end);
    }
}

}  // namespace lookalike::search
