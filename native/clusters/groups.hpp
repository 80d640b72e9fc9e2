// Groups of signatures around centers, searched one group after the other.
//
// A group's rows lie together. All queries of a batch that want a group are compared with it while
// it is in the cache; a single query reads the groups it wants. By the triangle inequality, a row
// whose distance from its center is f, and a query at d from that center, are at least |d - f|
// apart: rows are kept in the order of f, so that those which cannot be near enough are left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "bits/threads.hpp"
#include "scan/scan.hpp"

namespace lookalike::search {

struct Groups {
    Collection rows;  // those of group g are at offsets[g] to offsets[g + 1]; none is empty
    const std::int64_t* offsets;
    Signatures centers;
    const std::int32_t* from_center;  // of each row; rises within a group
    const std::int32_t* nearest;      // of each group: the least of these
    const std::int32_t* farthest;     // and the largest
    const std::uint8_t* removed;      // a byte per row, not 0 where it is left out; or null

    std::size_t count() const { return centers.count; }
    std::int64_t size(std::size_t group) const { return offsets[group + 1] - offsets[group]; }

    // No row of the group is nearer to a query at that distance from the center.
    std::int64_t least(std::size_t group, std::int64_t distance) const {
        return std::max<std::int64_t>(distance - farthest[group], nearest[group] - distance);
    }

    struct Range {
        std::int64_t begin, end;
    };

    // The rows of a group that can be within `radius` of a query at that distance from the center.
    Range within(std::size_t group, std::int64_t distance, std::int64_t radius) const {
        std::int64_t begin = offsets[group], end = offsets[group + 1];
        if (nearest[group] < distance - radius)
            begin = std::lower_bound(from_center + begin, from_center + end, distance - radius) -
                    from_center;
        if (farthest[group] > distance + radius)
            end = std::upper_bound(from_center + begin, from_center + end, distance + radius) -
                  from_center;
        return {begin, end};
    }
};

// What a search did for each query.
struct GroupWork {
    std::int64_t* groups;    // that were read
    std::int64_t* compared;  // rows
};

// The k nearest of each query among the rows of the `probe` groups whose centers are nearest to it
// (ties by number), and of as many more as it takes to have k rows; to rows of k ids and k
// distances, which stay as they are where there are fewer. `proven` says whether no other group can
// have any that is as near.
void nearest_in_groups(const Groups& groups, const Signatures& queries, std::size_t k,
                       std::size_t probe, std::size_t threads, const bits::Checkpoint& checkpoint,
                       std::int64_t* ids, std::int32_t* distances, std::uint8_t* proven,
                       const GroupWork& work);

// Everything within `radius` of each query, sorted by (distance, id); groups that cannot have
// anything are left out. Throws TooManyResults as soon as there are more than `limit`.
Matches within_in_groups(const Groups& groups, const Signatures& queries, std::uint32_t radius,
                         std::size_t limit, std::size_t threads, const bits::Checkpoint& checkpoint,
                         const GroupWork& work);

}  // namespace lookalike::search
