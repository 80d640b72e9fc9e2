#include "pairs/clusters.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lookalike::search {

void components(std::size_t count, const std::int64_t* left, const std::int64_t* right,
                std::size_t pairs, std::int64_t* labels) {
    std::iota(labels, labels + count, std::int64_t{0});
    // A label never grows, so following labels ends at the least one.
    const auto root = [&](std::int64_t member) {
        while (labels[member] != member) {
            labels[member] = labels[labels[member]];
            member = labels[member];
        }
        return member;
    };
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        const std::int64_t one = root(left[pair]), two = root(right[pair]);
        labels[std::max(one, two)] = std::min(one, two);
    }
    for (std::size_t member = 0; member < count; ++member)
        labels[member] = labels[labels[member]];
}

void stars(std::size_t count, const std::int64_t* order, const std::int64_t* left,
           const std::int64_t* right, std::size_t pairs, std::int64_t* labels) {
    // The neighbors of i are neighbors[begins[i]] to neighbors[begins[i + 1]]: counted, then
    // put there from the end on, which leaves each begin where it belongs.
    std::vector<std::size_t> begins(count + 1, 0);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        ++begins[left[pair]];
        ++begins[right[pair]];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::int64_t> neighbors(2 * pairs);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        neighbors[--begins[left[pair]]] = right[pair];
        neighbors[--begins[right[pair]]] = left[pair];
    }
    std::fill(labels, labels + count, std::int64_t{-1});
    for (std::size_t place = 0; place < count; ++place) {
        const std::int64_t center = order[place];
        if (labels[center] >= 0)
            continue;
        labels[center] = center;
        for (std::size_t at = begins[center]; at < begins[center + 1]; ++at)
            if (labels[neighbors[at]] < 0)
                labels[neighbors[at]] = center;
    }
}

}  // namespace lookalike::search
