// The k nearest of everything pushed so far, nearest first and ties by id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lookalike::bits {

struct Neighbor {
    std::uint32_t distance;
    std::int64_t id;

    friend bool operator<(const Neighbor& a, const Neighbor& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
    }
};

// A heap with the farthest on top. Because (distance, id) is a total order over distinct ids, the
// content does not depend on the order of pushing, hence not on the number of threads.
// `Item` is a Neighbor, perhaps with more that comes along.
template <class Item>
class TopItems {
  public:
    explicit TopItems(std::size_t k) : k_(k) {}

    void push(Item candidate) {
        if (heap_.size() < k_) {
            heap_.push_back(candidate);
            std::push_heap(heap_.begin(), heap_.end());
        } else if (candidate < heap_.front()) {
            replace_farthest(candidate);
        }
    }

    void push_all(const TopItems& other) {
        for (const Item& neighbor : other.heap_)
            push(neighbor);
    }

    // The largest distance that a candidate may still have and get in; -1 if none can. A caller
    // that pushes in ascending order of id says so, and is spared the ties that would lose.
    std::int64_t cutoff(bool ascending_ids) const {
        if (heap_.size() < k_)
            return UINT32_MAX;
        return static_cast<std::int64_t>(heap_.front().distance) - (ascending_ids ? 1 : 0);
    }

    std::size_t size() const { return heap_.size(); }
    const Item& worst() const { return heap_.front(); }  // of some

    // Nearest first. Leaves the heap empty.
    std::vector<Item> take_sorted() {
        std::sort_heap(heap_.begin(), heap_.end());
        return std::move(heap_);
    }

  private:
    // One way down, where taking the farthest out and pushing another would be down and up.
    void replace_farthest(const Item& candidate) {
        std::size_t hole = 0;
        for (std::size_t child; (child = 2 * hole + 1) < heap_.size(); hole = child) {
            if (child + 1 < heap_.size() && heap_[child] < heap_[child + 1])
                ++child;
            if (!(candidate < heap_[child]))
                break;
            heap_[hole] = heap_[child];
        }
        heap_[hole] = candidate;
    }

    std::size_t k_;
    std::vector<Item> heap_;
};

using TopK = TopItems<Neighbor>;

}  // namespace lookalike::bits
