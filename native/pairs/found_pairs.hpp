// Pairs as several tasks find them, each task its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "scan/scan.hpp"

namespace lookalike::search {

class FoundPairs {
  public:
    FoundPairs(std::size_t tasks, std::size_t limit) : limit_(limit), found_(tasks) {}

    // Of a task, which one thread has. Throws TooManyResults beyond the limit.
    void add(std::size_t task, std::uint32_t one, std::uint32_t two, std::uint32_t distance) {
        found_[task].push_back({std::min(one, two), std::max(one, two), distance});
        if (total_.fetch_add(1, std::memory_order_relaxed) >= limit_)
            throw TooManyResults();
    }

    // All of them by (left, right).
    Pairs take_sorted() {
        std::vector<Found> sorted;
        sorted.reserve(total_);
        for (std::vector<Found>& part : found_) {
            sorted.insert(sorted.end(), part.begin(), part.end());
            part = {};
        }
        std::sort(sorted.begin(), sorted.end(), [](const Found& a, const Found& b) {
            return a.left != b.left ? a.left < b.left : a.right < b.right;
        });
        Pairs pairs;
        for (const Found& one : sorted) {
            pairs.left.push_back(one.left);
            pairs.right.push_back(one.right);
            pairs.distances.push_back(static_cast<std::int32_t>(one.distance));
        }
        return pairs;
    }

  private:
    struct Found {
        std::uint32_t left, right, distance;
    };

    std::size_t limit_;
    std::vector<std::vector<Found>> found_;
    std::atomic<std::size_t> total_{0};
};

}  // namespace lookalike::search
