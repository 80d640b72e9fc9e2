#include "parts/votes.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "bits/hash.hpp"

namespace lookalike::parts {

namespace {

struct Vote {
    std::int64_t item, difference;
    std::uint32_t query_part, at;  // where it is in what was given
    std::int32_t distance;
};

// How many pairs there are in each stretch of tolerance + 1 differences of an item. Several may
// share a counter, so it may say too many, never too few.
class Stretches {
  public:
    Stretches(std::size_t pairs, std::int64_t tolerance)
        : width_(static_cast<std::uint64_t>(tolerance) + 1),
          counts_(std::bit_ceil(std::max<std::size_t>(64, 2 * pairs))) {}

    void add(std::int64_t item, std::int64_t difference) { ++counts_[place(item, difference, 0)]; }

    // No window that this difference is in has more votes: it lies within two stretches.
    std::size_t most_votes(std::int64_t item, std::int64_t difference) const {
        const std::size_t own = counts_[place(item, difference, 0)];
        if (width_ == 1)
            return own;
        return own +
               std::max(counts_[place(item, difference, -1)], counts_[place(item, difference, 1)]);
    }

  private:
    std::size_t place(std::int64_t item, std::int64_t difference, std::int64_t beside) const {
        constexpr std::uint64_t kZero = std::uint64_t{1} << 62;  // so that none is negative
        const std::uint64_t stretch = (static_cast<std::uint64_t>(difference) + kZero) / width_ +
                                      static_cast<std::uint64_t>(beside);
        const auto number = static_cast<std::uint64_t>(item);
        return bits::fmix64(stretch + bits::fmix64(number)) & (counts_.size() - 1);
    }

    std::uint64_t width_;
    std::vector<std::uint32_t> counts_;
};

// Those that may be among enough votes, by item, difference and query part.
std::vector<Vote> promising(const NearParts& near, std::int64_t tolerance, std::size_t least) {
    Stretches stretches(near.items.size(), tolerance);
    for (std::size_t at = 0; at < near.items.size(); ++at)
        stretches.add(near.items[at], near.differences[at]);
    std::vector<Vote> votes;
    for (std::size_t at = 0; at < near.items.size(); ++at)
        if (stretches.most_votes(near.items[at], near.differences[at]) >= least)
            votes.push_back({near.items[at], near.differences[at],
                             static_cast<std::uint32_t>(near.query_parts[at]),
                             static_cast<std::uint32_t>(at), near.distances[at]});
    std::sort(votes.begin(), votes.end(), [](const Vote& a, const Vote& b) {
        return std::tie(a.item, a.difference, a.query_part, a.at) <
               std::tie(b.item, b.difference, b.query_part, b.at);
    });
    return votes;
}

struct Window {
    std::size_t begin, end;  // of the votes in it
    std::size_t votes;
    std::int64_t weight = 0;
};

// What one thread needs for the parts of a query: all 0 and kFar between two uses.
struct Scratch {
    static constexpr std::int32_t kFar = INT32_MAX;

    explicit Scratch(std::size_t query_parts) : inside(query_parts), nearest(query_parts, kFar) {}

    std::vector<std::uint32_t> inside;  // how many votes of a part are in the window
    std::vector<std::int32_t> nearest;
};

std::int64_t distance_of(const std::vector<Vote>& votes, const Window& window, Scratch& scratch) {
    std::int64_t sum = 0;
    for (std::size_t at = window.begin; at < window.end; ++at) {
        std::int32_t& nearest = scratch.nearest[votes[at].query_part];
        if (votes[at].distance < nearest) {
            sum += votes[at].distance - (nearest == Scratch::kFar ? 0 : nearest);
            nearest = votes[at].distance;
        }
    }
    for (std::size_t at = window.begin; at < window.end; ++at)
        scratch.nearest[votes[at].query_part] = Scratch::kFar;
    return sum;
}

// The weight of all query parts that vote in a window, each once.
std::int64_t weight_of(const std::vector<Vote>& votes, const Window& window,
                       std::span<const std::int64_t> weights, Scratch& scratch) {
    if (weights.empty())
        return static_cast<std::int64_t>(window.votes);
    std::int64_t sum = 0;
    for (std::size_t at = window.begin; at < window.end; ++at)
        if (scratch.inside[votes[at].query_part]++ == 0)
            sum += weights[votes[at].query_part];
    for (std::size_t at = window.begin; at < window.end; ++at)
        scratch.inside[votes[at].query_part] = 0;
    return sum;
}

// The best window with enough votes, of those of one item from `begin` to `end`.
Window best_window(const std::vector<Vote>& votes, std::size_t begin, std::size_t end,
                   std::int64_t tolerance, std::size_t least, std::int64_t vote, Scratch& scratch) {
    Window best{begin, begin, 0};
    std::int64_t most = 0;
    std::size_t count = 0, right = begin;
    for (std::size_t left = begin; left < end;) {
        const std::int64_t difference = votes[left].difference;
        while (right < end && votes[right].difference <= difference + tolerance)
            count += scratch.inside[votes[right++].query_part]++ == 0;
        const std::int64_t highest = static_cast<std::int64_t>(count) * vote;
        if (count >= least && highest > most) {
            const Window window{left, right, count};
            const std::int64_t worth = highest - distance_of(votes, window, scratch);
            if (worth > most) {
                best = window;
                most = worth;
            }
        }
        while (left < end && votes[left].difference == difference)
            count -= --scratch.inside[votes[left++].query_part] == 0;
    }
    return best;
}

struct Answer {
    std::int64_t item, offset, weight, distance;
    std::vector<std::uint32_t> matched;  // of each query part that votes, what was given
};

Answer answer_of(const NearParts& near, const std::vector<Vote>& votes, const Window& window,
                 std::int64_t vote, Scratch& scratch) {
    const Window common = best_window(votes, window.begin, window.end, 0, 1, vote, scratch);
    Answer answer{votes[window.begin].item, votes[common.begin].difference, window.weight, 0, {}};
    std::vector<std::uint32_t> inside;
    for (std::size_t at = window.begin; at < window.end; ++at)
        inside.push_back(votes[at].at);
    const auto rank = [&](std::uint32_t at) {
        return std::make_tuple(near.query_parts[at], near.distances[at],
                               std::abs(near.differences[at] - answer.offset), near.parts[at]);
    };
    std::sort(inside.begin(), inside.end(),
              [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
    for (const std::uint32_t at : inside)
        if (answer.matched.empty() ||
            near.query_parts[answer.matched.back()] != near.query_parts[at]) {
            answer.matched.push_back(at);
            answer.distance += near.distances[at];
        }
    return answer;
}

// Leaves those that may be among the first k.
void keep_most(std::vector<Window>& windows, std::size_t k) {
    if (windows.size() <= k)
        return;
    const auto last = windows.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(windows.begin(), last, windows.end(),
                     [](const Window& a, const Window& b) { return a.weight > b.weight; });
    std::erase_if(windows,
                  [least = last->weight](const Window& one) { return one.weight < least; });
}

}  // namespace

Votes count_votes(const NearParts& near, std::size_t query_parts,
                  std::span<const std::int64_t> weights, std::int64_t tolerance, std::size_t least,
                  std::size_t k, std::int64_t vote) {
    const std::vector<Vote> votes = promising(near, tolerance, least);
    Scratch scratch(query_parts);
    std::vector<Window> windows;
    for (std::size_t begin = 0, end; begin < votes.size(); begin = end) {
        for (end = begin + 1; end < votes.size() && votes[end].item == votes[begin].item;)
            ++end;
        Window best = best_window(votes, begin, end, tolerance, least, vote, scratch);
        if (best.votes < least)
            continue;
        best.weight = weight_of(votes, best, weights, scratch);
        windows.push_back(best);
    }
    keep_most(windows, k);
    std::vector<Answer> answers;
    for (const Window& window : windows)
        answers.push_back(answer_of(near, votes, window, vote, scratch));
    std::sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) {
        return std::tie(b.weight, a.distance, a.item) < std::tie(a.weight, b.distance, b.item);
    });
    answers.resize(std::min(k, answers.size()));
    Votes found;
    for (const Answer& answer : answers) {
        found.items.push_back(answer.item);
        found.offsets.push_back(answer.offset);
        found.votes.push_back(static_cast<std::int64_t>(answer.matched.size()));
        for (const std::uint32_t at : answer.matched) {
            found.query_parts.push_back(near.query_parts[at]);
            found.parts.push_back(near.parts[at]);
            found.distances.push_back(near.distances[at]);
        }
        found.begins.push_back(static_cast<std::int64_t>(found.parts.size()));
    }
    return found;
}

}  // namespace lookalike::parts
