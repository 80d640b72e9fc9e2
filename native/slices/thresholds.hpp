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
    // `queries` are asked together: where they are scanned, they share the reading.
    ListCosts(const Slicing& slicing, std::size_t rows, std::uint32_t radius, bool sketches,
              std::size_t queries);

    // `compared` of the entries get their distance; all do if there are no sketches.
    double lists(double number, double entries, double compared) const {
        return number * look_up_ + entries * entry_ + compared * row_;
    }
    // So many entries of which as many are compared as by chance.
    double lists(double number, double entries) const {
        return lists(number, entries, entries * compared_);
    }
    double compared() const { return compared_; }
    double average(std::size_t width) const {
        return rows_ / static_cast<double>(std::uint64_t{1} << width);
    }
    // All values that differ in so many bits, if their lists are of that length, or of that of
    // equally frequent values if that is more.
    double step(std::size_t width, std::size_t ones, double length = 0) const {
        if (ones > width)
            return std::numeric_limits<double>::infinity();
        const double number = choose(width, ones);
        return lists(number, number * std::max(average(width), length));
    }
    // Comparing everything in place of that.
    double scan() const { return scan_; }

  private:
    double rows_, look_up_, entry_, compared_, row_, scan_;
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
                                          std::uint32_t radius, std::size_t queries);

}  // namespace lookalike::search
