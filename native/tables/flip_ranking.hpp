// Which bits of a query's header are likely to have flipped, and which sets of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tables/flips.hpp"

namespace lookalike::search {

// Ranks the bits of a query's header, or, without weights, all bits alike.
class Ranking {
  public:
    Ranking(const FlipWeights& weights, const FlipCosts& costs, std::size_t bits)
        : loops_(flip_loops()),
          weights_(weights),
          costs_(costs),
          bits_(bits),
          before_(weights.from + bits >= Header::kMostBits) {
        all_alike_.count = static_cast<std::uint32_t>(bits);
        std::fill(std::begin(all_alike_.costs), std::end(all_alike_.costs), 0);
        std::fill(std::begin(all_alike_.bits), std::end(all_alike_.bits), 0);
        for (std::size_t bit = 0; bit < all_alike_.count; ++bit)
            all_alike_.bits[bit] = std::uint64_t{1} << bit;
    }

    // Throws NotFinite if one of the weights of these queries is not.
    void check(std::size_t begin, std::size_t end) const {
        if (weights_.floats == nullptr)
            return;
        for (std::size_t row = begin; row < end; ++row)
            if (!loops_.all_finite(weights_.floats + row * weights_.stride, weights_.stride))
                throw NotFinite(row);
    }

    const RankedBits& of(std::size_t query) {
        if (!weights_.given())
            return all_alike_;
        const std::size_t at = query * weights_.stride + weights_.from;
        if (bits_ > Header::kMostBits)
            rank_many(at);
        else if (weights_.floats != nullptr)
            loops_.rank_floats(weights_.floats + at, bits_, before_, costs_, ranked_);
        else
            loops_.rank_units(weights_.units + at, bits_, before_, costs_, ranked_);
        return ranked_;
    }

  private:
    // The same for more bits than a header has.
    void rank_many(std::size_t at) {
        std::vector<std::pair<std::size_t, std::size_t>> bits(bits_);
        for (std::size_t bit = 0; bit < bits_; ++bit) {
            const float weight = weights_.floats
                                     ? weights_.floats[at + bit]
                                     : (static_cast<float>(weights_.units[at + bit]) + 0.5f) / 1024;
            constexpr float last = static_cast<float>(FlipCosts::kSteps - 1);
            bits[bit] = {static_cast<std::size_t>(std::min(std::abs(weight) * costs_.scale, last)),
                         bit};
        }
        std::sort(bits.begin(), bits.end());
        ranked_ = all_alike_;
        for (std::size_t rank = 0; rank < ranked_.count; ++rank) {
            ranked_.costs[rank] = costs_.costs[bits[rank].first];
            ranked_.bits[rank] = std::uint64_t{1} << bits[rank].second;
        }
    }

    const FlipLoops& loops_;
    const FlipWeights& weights_;
    const FlipCosts& costs_;
    std::size_t bits_;
    bool before_;  // whether weights in front of the header can be read along
    RankedBits ranked_, all_alike_;
};

// Chooses the likeliest sets of queries, at most Candidates::kMostSets of each.
class Chooser {
  public:
    Chooser(const FlipWeights& weights, const FlipCosts& costs, std::size_t bits, std::size_t most,
            std::size_t wanted)
        : loops_(flip_loops()),
          weights_(weights),
          costs_(costs),
          bits_(bits),
          candidates_(candidates_for(wanted, bits, std::min(most, bits))) {
        if (weights.given())
            return;
        // All bits are alike, so candidates are in order.
        for (std::size_t place = 0; place < candidates_.wanted; ++place) {
            std::uint32_t set = 0;
            for (std::size_t member = 0; member < candidates_.members; ++member) {
                const std::uint8_t rank = candidates_.ranks[place * candidates_.members + member];
                set |= rank < RankedBits::kMost ? std::uint32_t{1} << rank : 0;
            }
            alike_.push_back(set);
        }
    }

    // Writes those of `count` queries to places(0), places(1) and so on.
    template <class Places>
    void choose(std::size_t first, std::size_t count, const Places& places) const {
        constexpr std::size_t together = FlipLoops::kChosenTogether;
        std::uint32_t* flips[together];
        for (std::size_t begin = 0; begin < count; begin += together) {
            const std::size_t some = std::min(together, count - begin);
            for (std::size_t query = 0; query < some; ++query)
                flips[query] = places(begin + query);
            const std::size_t at = (first + begin) * weights_.stride + weights_.from;
            if (weights_.floats != nullptr)
                loops_.choose_floats(candidates_, weights_.floats + at, weights_.stride, bits_,
                                     costs_, some, flips);
            else if (weights_.units != nullptr)
                loops_.choose_units(candidates_, weights_.units + at, weights_.stride, bits_,
                                    costs_, some, flips);
            else
                for (std::size_t query = 0; query < some; ++query)
                    std::copy(alike_.begin(), alike_.end(), flips[query]);
        }
    }

  private:
    const FlipLoops& loops_;
    const FlipWeights& weights_;
    const FlipCosts& costs_;
    std::size_t bits_;
    const Candidates& candidates_;
    std::vector<std::uint32_t> alike_;
};

}  // namespace lookalike::search
