// Matches of many queries, gathered task by task.
#pragma once

#include <atomic>
#include <numeric>
#include <vector>

#include "bits/threads.hpp"
#include "bits/top_k.hpp"
#include "scan/scan.hpp"

namespace lookalike::search {

// What one task found; the task's queries are numbered from 0.
class TaskMatches {
  public:
    struct Found {
        std::uint32_t query;
        std::uint32_t distance;
        std::int64_t id;
    };

    TaskMatches(std::atomic<std::size_t>& total, std::size_t limit)
        : total_(total), limit_(limit) {}

    void add(std::size_t query, std::uint32_t distance, std::int64_t id) {
        if (total_.fetch_add(1, std::memory_order_relaxed) >= limit_)
            throw TooManyResults();
        found_.push_back({static_cast<std::uint32_t>(query), distance, id});
    }

    std::vector<Found> take_sorted() {
        std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
            return a.query != b.query
                       ? a.query < b.query
                       : bits::Neighbor{a.distance, a.id} < bits::Neighbor{b.distance, b.id};
        });
        return std::move(found_);
    }

  private:
    std::atomic<std::size_t>& total_;
    std::size_t limit_;
    std::vector<Found> found_;
};

// Runs task(worker, begin, end, matches) for runs of at most `most` queries and puts the matches
// together, sorted by (query, distance, id).
template <class Task>
Matches gather_matches(std::size_t queries, std::size_t most, std::size_t limit,
                       std::size_t threads, const bits::Checkpoint& checkpoint, Task task) {
    const std::size_t per_task =
        std::clamp<std::size_t>(queries / std::max<std::size_t>(1, 4 * threads), 1, most);
    const std::size_t tasks = (queries + per_task - 1) / per_task;
    std::vector<std::vector<TaskMatches::Found>> found(tasks);
    std::atomic<std::size_t> total{0};
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t worker, std::size_t index) {
        TaskMatches matches(total, limit);
        task(worker, index * per_task, std::min(queries, (index + 1) * per_task), matches);
        found[index] = matches.take_sorted();
    });
    Matches matches;
    matches.offsets.assign(queries + 1, 0);
    matches.ids.reserve(total);
    matches.distances.reserve(total);
    for (std::size_t index = 0; index < tasks; ++index) {
        for (const TaskMatches::Found& one : found[index]) {
            ++matches.offsets[index * per_task + one.query + 1];
            matches.ids.push_back(one.id);
            matches.distances.push_back(static_cast<std::int32_t>(one.distance));
        }
        found[index] = {};
    }
    std::partial_sum(matches.offsets.begin(), matches.offsets.end(), matches.offsets.begin());
    return matches;
}

}  // namespace lookalike::search
