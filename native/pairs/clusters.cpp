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
    // The neighbours of i are neighbours[begins[i]] to neighbours[begins[i + 1]]: counted, then
    // put there from the end on, which leaves each begin where it belongs.
    std::vector<std::size_t> begins(count + 1, 0);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        ++begins[left[pair]];
        ++begins[right[pair]];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::int64_t> neighbours(2 * pairs);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        neighbours[--begins[left[pair]]] = right[pair];
        neighbours[--begins[right[pair]]] = left[pair];
    }
    std::fill(labels, labels + count, std::int64_t{-1});
    for (std::size_t place = 0; place < count; ++place) {
        const std::int64_t centre = order[place];
        if (labels[centre] >= 0)
            continue;
        labels[centre] = centre;
        for (std::size_t at = begins[centre]; at < begins[centre + 1]; ++at)
            if (labels[neighbours[at]] < 0)
                labels[neighbours[at]] = centre;
    }
}

}  // namespace lookalike::search
