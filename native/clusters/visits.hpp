// Which queries are compared with which rows, put in the order of groups.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/kernels.hpp"
#include "bits/threads.hpp"
#include "clusters/groups.hpp"
#include "scan/grid.hpp"
#include "scan/leave_out.hpp"

namespace lookalike::search {

// Rows of one group that are to be compared with one query of a block.
struct Visit {
    std::uint32_t group;
    std::uint32_t query;
    Groups::Range rows;
};

// The number of queries that are answered together, each with up to `visits`: with more queries,
// more of them share a group, and more memory is taken.
inline std::size_t queries_together(std::size_t visits) {
    constexpr std::size_t kMostQueries = 4096, kMostVisits = std::size_t{1} << 21;
    return std::clamp<std::size_t>(kMostVisits / std::max<std::size_t>(1, visits), 1, kMostQueries);
}

// How many rows stay in the first-level cache.
inline std::size_t tile_rows(std::size_t bytes) {
    return std::clamp<std::size_t>(kTileBytes / bytes, 1, kTileRows);
}

// Calls take(worker, query, distances) for each query, with its distances to all centers, which it
// may change. A tile of centers is compared with some queries while it is in the cache.
template <class Take>
void each_from_centers(const Groups& groups, const Signatures& queries, std::size_t threads,
                       const bits::Checkpoint& checkpoint, Take take) {
    constexpr std::size_t kQueriesAtOnce = 16;
    const Signatures& centers = groups.centers;
    threads = bits::worthwhile_threads(threads, bytes_to_read(queries.count, centers));
    const bits::Kernels kernels = bits::kernels_for(centers.bytes);
    const std::size_t tile = tile_rows(centers.bytes);
    std::vector<std::vector<std::int32_t>> room(threads);
    bits::share_out_runs(queries.count, kQueriesAtOnce, threads, checkpoint,
                         [&](std::size_t worker, std::size_t first, std::size_t last) {
                             room[worker].resize(kQueriesAtOnce * centers.count);
                             std::int32_t* const distances = room[worker].data();
                             for (std::size_t begin = 0; begin < centers.count; begin += tile)
                                 for (std::size_t query = first; query < last; ++query)
                                     kernels.distances(
                                         queries.row(query), centers.row(begin),
                                         std::min(tile, centers.count - begin), centers.bytes,
                                         distances + (query - first) * centers.count + begin);
                             for (std::size_t query = first; query < last; ++query)
                                 take(worker, query, distances + (query - first) * centers.count);
                         });
}

// The visits of a block, by group.
class Visits {
  public:
    explicit Visits(std::size_t groups) : begins_(groups + 1) {}

    void clear() { added_.clear(); }
    void add(const Visit& visit) { added_.push_back(visit); }
    void add(const std::vector<Visit>& visits) {
        added_.insert(added_.end(), visits.begin(), visits.end());
    }

    // Calls compare(worker, query, row, count) for all rows that are to be compared, no more at
    // once than stay in the first-level cache with all queries that want them. One worker has a
    // group.
    template <class Compare>
    void run(const Groups& groups, std::size_t threads, const bits::Checkpoint& checkpoint,
             Compare compare) {
        put_in_order();
        const auto tile = static_cast<std::int64_t>(tile_rows(groups.rows.bytes));
        const std::size_t at_once = std::max<std::size_t>(1, wanted_.size() / (kTasks * threads));
        bits::share_out_runs(
            wanted_.size(), at_once, threads, checkpoint,
            [&](std::size_t worker, std::size_t first, std::size_t last) {
                for (std::size_t at = first; at < last; ++at) {
                    const std::uint32_t group = wanted_[at];
                    const Visit* const begin = ordered_.data() + begins_[group];
                    const Visit* const end = ordered_.data() + begins_[group + 1];
                    for (std::int64_t row = groups.offsets[group]; row < groups.offsets[group + 1];
                         row += tile)
                        for (const Visit* visit = begin; visit != end; ++visit) {
                            const std::int64_t from = std::max(row, visit->rows.begin);
                            const std::int64_t to = std::min(row + tile, visit->rows.end);
                            if (from < to)
                                compare(worker, visit->query, static_cast<std::size_t>(from),
                                        static_cast<std::size_t>(to - from));
                        }
                }
            });
    }

    // Rows to compare, in all visits.
    double rows() const {
        double all = 0;
        for (const Visit& visit : added_)
            all += static_cast<double>(visit.rows.end - visit.rows.begin);
        return all;
    }

  private:
    static constexpr std::size_t kTasks = 32;  // of each worker: enough to be shared out evenly

    void put_in_order() {
        std::fill(begins_.begin(), begins_.end(), 0);
        for (const Visit& visit : added_)
            ++begins_[visit.group + 1];
        wanted_.clear();
        for (std::size_t group = 0; group + 1 < begins_.size(); ++group) {
            if (begins_[group + 1] != 0)
                wanted_.push_back(static_cast<std::uint32_t>(group));
            begins_[group + 1] += begins_[group];
        }
        ordered_.resize(added_.size());
        next_.assign(begins_.begin(), begins_.end() - 1);
        for (const Visit& visit : added_)
            ordered_[next_[visit.group]++] = visit;
    }

    std::vector<Visit> added_, ordered_;
    std::vector<std::size_t> begins_, next_;
    std::vector<std::uint32_t> wanted_;  // groups with visits
};

}  // namespace lookalike::search
