// How many bits of each slice may differ in a search within a radius, so that it costs least.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "slices/slicing.hpp"

namespace lookalike::search {

// What lists cost in such a search.
class ListCosts {
  public:
    ListCosts(std::size_t rows, std::size_t bytes, std::uint32_t radius, bool sketches);

    double one(std::size_t entries) const { return look_up_ + static_cast<double>(entries) * row_; }
    // All values that differ in so many bits, if values are equally frequent.
    double step(std::size_t width, std::size_t ones) const {
        if (ones > width)
            return std::numeric_limits<double>::infinity();
        const double average = rows_ / static_cast<double>(std::uint64_t{1} << width);
        return choose(width, ones) * (look_up_ + average * row_);
    }
    // Comparing everything in place of that.
    double scan() const { return scan_; }

  private:
    double rows_, look_up_, row_, scan_;
};

// Takes `steps` steps, always the cheapest: `next` has what the next one of each place costs, and
// never less than the one before, so that this is best. `take(place, left)` takes one at a place,
// or up to `left` that are alike, says how many, and what the next one costs. Returns the cost,
// infinity if there are not so many steps.
template <class Take>
double take_cheapest(std::size_t steps, std::span<double> next, Take take) {
    double total = 0;
    while (steps > 0) {
        const auto cheapest = std::min_element(next.begin(), next.end());
        const double cost = *cheapest;
        if (cost == std::numeric_limits<double>::infinity())
            return cost;
        const auto place = static_cast<std::size_t>(cheapest - next.begin());
        const std::size_t taken = take(place, steps);
        total += static_cast<double>(taken) * cost;
        steps -= taken;
    }
    return total;
}

// What a query takes on average if the bits of signatures are fair and independent.
struct ExpectedWork {
    double lists = 0, postings = 0, compared = 0;
};

// Nothing if the search scans.
std::optional<ExpectedWork> expected_work(const Slicing& slicing, std::size_t rows,
                                          std::uint32_t radius);

}  // namespace lookalike::search
