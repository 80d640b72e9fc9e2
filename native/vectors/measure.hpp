// The cosine of a query with one row after the other.
#pragma once

#include <algorithm>
#include <cmath>

#include "bits/prefetch.hpp"
#include "vectors/cosines.hpp"
#include "vectors/loops.hpp"

namespace lookalike::vectors {

// Better ones come first: the larger cosine, then the lower id.
struct Similar {
    double cosine;
    std::int64_t id;

    friend bool operator<(const Similar& a, const Similar& b) {
        return a.cosine != b.cosine ? a.cosine > b.cosine : a.id < b.id;
    }
};

// A zero vector has the cosine 0 with all. A vector has exactly 1 with itself, because the root of
// a square is exact. What is no number, which only a damaged file can hold, comes last.
inline double cosine_of(double both, double squares, double others) {
    const double lengths = squares * others;
    if (lengths == 0)
        return 0;
    const double cosine = both / std::sqrt(lengths);
    return cosine >= -1 ? std::min(cosine, 1.0) : -1;
}

class Measure {
  public:
    Measure(const Rows& rows, const float* query)
        : rows_(rows),
          loops_(loops()),
          query_(query),
          squares_(loops_.products(query, query, rows.dimensions).squares) {}

    double operator()(std::size_t place) const {
        const std::uint8_t* const row = rows_.row(place);
        const Products found =
            rows_.halves
                ? loops_.products_of_halves(query_, reinterpret_cast<const std::uint16_t*>(row),
                                            rows_.dimensions)
                : loops_.products(query_, reinterpret_cast<const float*>(row), rows_.dimensions);
        return cosine_of(found.both, found.squares, squares_);
    }

    void prefetch(std::size_t place) const {
        bits::prefetch_all(rows_.row(place), rows_.row_bytes());
    }

    double squares() const { return squares_; }

  private:
    const Rows& rows_;
    const Loops& loops_;
    const float* query_;
    double squares_;
};

}  // namespace lookalike::vectors
