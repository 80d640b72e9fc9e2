// Matches of many queries, gathered task by task.
#pragma once

#include <algorithm>
#include <atomic>
#include <numeric>
#include <span>
#include <utility>
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

    // By (query, distance, id).
    void sort() {
        const auto before = [](const Found& a, const Found& b) {
            return a.query != b.query
                       ? a.query < b.query
                       : bits::Neighbor{a.distance, a.id} < bits::Neighbor{b.distance, b.id};
        };
        if (!std::is_sorted(found_.begin(), found_.end(), before))  // scans leave it so
            std::sort(found_.begin(), found_.end(), before);
    }

    void swap(TaskMatches& other) { found_.swap(other.found_); }

    // Takes over what another worker found for the same queries.
    void take_in(TaskMatches& other) {
        if (found_.empty())
            return swap(other);
        found_.insert(found_.end(), other.found_.begin(), other.found_.end());
        other.found_ = {};
    }

    std::vector<Found> take() { return std::exchange(found_, {}); }

  private:
    std::atomic<std::size_t>& total_;
    std::size_t limit_;
    std::vector<Found> found_;
};

// How many of the queries make a task: at most `most`.
inline std::size_t queries_per_task(std::size_t queries, std::size_t most, std::size_t threads) {
    return std::clamp<std::size_t>(queries / std::max<std::size_t>(1, 4 * threads), 1, most);
}

// Puts what tasks of `per_task` queries each found together, which is sorted.
inline Matches put_together(std::size_t queries, std::size_t per_task, std::span<TaskMatches> tasks,
                            std::size_t total) {
    Matches matches;
    matches.offsets.assign(queries + 1, 0);
    matches.ids.reserve(total);
    matches.distances.reserve(total);
    for (std::size_t index = 0; index < tasks.size(); ++index)
        for (const TaskMatches::Found& one : tasks[index].take()) {
            ++matches.offsets[index * per_task + one.query + 1];
            matches.ids.push_back(one.id);
            matches.distances.push_back(static_cast<std::int32_t>(one.distance));
        }
    std::partial_sum(matches.offsets.begin(), matches.offsets.end(), matches.offsets.begin());
    return matches;
}

// Runs task(worker, begin, end, matches) for runs of at most `most` queries and puts the matches
// together, sorted by (query, distance, id).
template <class Task>
Matches gather_matches(std::size_t queries, std::size_t most, std::size_t limit,
                       std::size_t threads, const bits::Checkpoint& checkpoint, Task task) {
    const std::size_t per_task = queries_per_task(queries, most, threads);
    const std::size_t tasks = (queries + per_task - 1) / per_task;
    std::atomic<std::size_t> total{0};
    std::vector<TaskMatches> found(tasks, TaskMatches(total, limit));
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t worker, std::size_t index) {
        TaskMatches matches(total, limit);  // of its own: no line of the cache is shared
        task(worker, index * per_task, std::min(queries, (index + 1) * per_task), matches);
        matches.sort();
        found[index].swap(matches);
    });
    return put_together(queries, per_task, found, total);
}

}  // namespace lookalike::search
