// The volatility ordered set heap (Sood and Loguinov, section 5): sets of bits in the order of how
// likely it is that a near-duplicate differs in just these.
//
// A bit that flips with probability p <= 1/2 has the cost log((1 - p) / p) >= 0, and the
// probability of a set is that of no flip at all times exp(-sum of costs). So the most likely sets
// are those of the least sums. Costs are whole numbers: sums are exact, and every way to order sets
// agrees. Sets of equal sums come in the order of their size, then of the number that their ranks
// make. No cost is above kMostCost: the sums that `Candidates` compares must fit into 14 bits.
//
// Bits are known by rank here, 0 for the most volatile; a set is a number with those bits set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lookalike::search {

// The bits of one query's header by rank: cost, and the bit as it stands in the header.
struct RankedBits {
    static constexpr std::size_t kMost = 64;
    static constexpr std::uint32_t kMostCost = 2730;

    std::uint32_t count;
    std::uint16_t costs[kMost + 1];  // ascending; one more: 0, for "no bit"
    std::uint64_t bits[kMost + 1];
};

// How many sets of 1 to `most` out of `bits` bits there are; no more than `enough`.
std::uint64_t count_sets(std::size_t bits, std::size_t most, std::uint64_t enough);

// All sets by a heap: O(log k) for the k-th, nothing allocated once it has grown.
class Vosh {
  public:
    // Calls take(flips) with sets of up to `most` bits, likely ones first, until it returns
    // false or there are no more.
    template <class Take>
    void each(const RankedBits& ranked, std::size_t most, Take take) {
        heap_.clear();
        Set root{0, 0, 0, 0};
        for (std::uint32_t size = 1; size <= std::min<std::size_t>(most, ranked.count); ++size) {
            root.cost += ranked.costs[size - 1];
            root.flips ^= ranked.bits[size - 1];
            root.ranks = root.ranks << 1 | 1;
            root.size = size;
            push(root);
        }
        while (!heap_.empty()) {
            const Set best = heap_.front();
            if (!take(best.flips))
                return;
            std::pop_heap(heap_.begin(), heap_.end(), later);
            heap_.pop_back();
            add_children(ranked, best);
        }
    }

  private:
    struct Set {
        std::uint64_t ranks;
        std::uint64_t flips;
        std::uint32_t cost;
        std::uint32_t size;
    };

    static bool later(const Set& a, const Set& b) {
        if (a.cost != b.cost)
            return a.cost > b.cost;
        return a.size != b.size ? a.size > b.size : a.ranks > b.ranks;
    }

    void push(const Set& set) {
        heap_.push_back(set);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    // Algorithm 2, as it must be meant: the left child moves the last bit up by one; the right one
    // moves the bit before the first gap from above, if that gap is one bit wide. No set has two
    // parents, and no child is likelier than its parent.
    void add_children(const RankedBits& ranked, const Set& set) {
        const std::uint32_t last = highest(set.ranks);
        if (last + 1 < ranked.count)
            push(moved(ranked, set, last));
        const std::uint64_t gaps = ~set.ranks & ((std::uint64_t{1} << last) - 1);
        if (gaps == 0)
            return;
        const std::uint32_t gap = highest(gaps);
        if (gap != 0 && (set.ranks >> (gap - 1) & 1) != 0)
            push(moved(ranked, set, gap - 1));
    }

    static Set moved(const RankedBits& ranked, Set set, std::uint32_t rank) {
        set.cost += std::uint32_t{ranked.costs[rank + 1]} - ranked.costs[rank];
        set.flips ^= ranked.bits[rank] ^ ranked.bits[rank + 1];
        set.ranks ^= std::uint64_t{3} << rank;
        return set;
    }

    static std::uint32_t highest(std::uint64_t word) {
        return 63 - static_cast<std::uint32_t>(__builtin_clzll(word));
    }

    std::vector<Set> heap_;
};

// For few sets there is a shorter way. Only some sets can be among the first k, whatever the costs:
// those that less than k others are sure to precede, being made from them by taking bits away or
// moving them to lower ranks. For k = 16 and up to 3 bits that is 35 sets: their sums are computed
// and compared, without a heap and without a branch.
struct Candidates {
    static constexpr std::size_t kMostSets = 64;    // the largest k
    static constexpr std::size_t kMostMembers = 6;  // 2^members - 1 sets precede: less than k
    static constexpr std::size_t kLanes = 16;
    static constexpr std::size_t kMostCandidates = 320;  // 227 for 64 sets

    std::size_t wanted;   // k, or as many sets as there are
    std::size_t count;    // candidates, in order of (size, ranks)
    std::size_t members;  // of the largest one
    // Those of candidate i from i * members on; RankedBits::kMost where it has less.
    const std::uint8_t* ranks;
};

// The candidates for the first `wanted` sets, at most kMostSets, of up to `most` out of `bits`
// bits. Made once and kept.
const Candidates& candidates_for(std::size_t wanted, std::size_t bits, std::size_t most);

}  // namespace lookalike::search
