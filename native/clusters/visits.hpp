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
                             room[worker].resize((last - first) * centers.count);
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
    explicit Visits(std::size_t groups) : groups_(groups) {}

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
                    const std::uint32_t group = wanted_[at].group;
                    const Visit* const begin = ordered_.data() + wanted_[at].begin;
                    const Visit* const end = ordered_.data() + wanted_[at].end;
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
        wanted_.clear();
        if (added_.size() < groups_ / kFewVisits)
            sort();
        else
            count();
    }

    // For few visits: nothing is done for groups without any.
    void sort() {
        ordered_ = added_;
        std::stable_sort(ordered_.begin(), ordered_.end(),
                         [](const Visit& a, const Visit& b) { return a.group < b.group; });
        for (std::size_t at = 0; at < ordered_.size(); ++at) {
            if (wanted_.empty() || wanted_.back().group != ordered_[at].group)
                wanted_.push_back({ordered_[at].group, at, at});
            wanted_.back().end = at + 1;
        }
    }

    void count() {
        next_.assign(groups_ + 1, 0);
        for (const Visit& visit : added_)
            ++next_[visit.group + 1];
        for (std::size_t group = 0; group < groups_; ++group) {
            const std::size_t begin = next_[group], size = next_[group + 1];
            if (size != 0)
                wanted_.push_back({static_cast<std::uint32_t>(group), begin, begin + size});
            next_[group + 1] += begin;
        }
        ordered_.resize(added_.size());
        for (const Visit& visit : added_)
            ordered_[next_[visit.group]++] = visit;
    }

    static constexpr std::size_t kFewVisits = 8;  // groups per visit, from which on these are few

    // The visits of one group, in ordered_.
    struct Run {
        std::uint32_t group;
        std::size_t begin, end;
    };

    std::size_t groups_;
    std::vector<Visit> added_, ordered_;
    std::vector<std::size_t> next_;
    std::vector<Run> wanted_;
};

}  // namespace lookalike::search
