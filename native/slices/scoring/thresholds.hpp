// How many bits of each slice may differ in a search within a radius, so that it costs least.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

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
    // Lists with `entries`, of which the share expected by chance is compared.
    double lists(double number, double entries) const {
        return lists(number, entries, entries * compared_);
    }
    double compared() const { return compared_; }
    double average(std::size_t width) const {
        return rows_ / static_cast<double>(std::uint64_t{1} << width);
    }
    // All values that differ in `ones` bits, if their lists have that length, or the length of
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

// What a query takes.
struct ExpectedWork {
    double lists = 0, postings = 0, compared = 0;
};

// What it takes by lists of these lengths, one for each position and number of differing bits up to
// the widest slice, of which `near` is the share that is compared; as fair and independent bits
// have them where these are null. Nothing if the search scans.
std::optional<ExpectedWork> expected_work(const Slicing& slicing, std::size_t rows,
                                          std::uint32_t radius, std::size_t queries,
                                          const double* lengths = nullptr,
                                          const double* near = nullptr);

}  // namespace lookalike::search
