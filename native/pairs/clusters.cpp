#include "pairs/clusters.hpp"

#include <algorithm>
#include <numeric>

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

void stars(std::size_t count, const std::int64_t* order, const std::int64_t* offsets,
           const std::int64_t* neighbours, std::int64_t* labels) {
    std::fill(labels, labels + count, std::int64_t{-1});
    for (std::size_t place = 0; place < count; ++place) {
        const std::int64_t centre = order[place];
        if (labels[centre] >= 0)
            continue;
        labels[centre] = centre;
        for (std::int64_t at = offsets[centre]; at < offsets[centre + 1]; ++at)
            if (labels[neighbours[at]] < 0)
                labels[neighbours[at]] = centre;
    }
}

}  // namespace lookalike::search
