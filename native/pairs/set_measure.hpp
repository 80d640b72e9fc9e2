// How alike two sets are, and what follows from that for the sizes and the overlap of a pair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lookalike::search {

enum class Measure { jaccard, containment, cosine };

// A similarity of sets of sizes a and b, and the least that makes a pair. The similarity decides;
// bounds on sizes and overlaps may be too low by rounding, never too high.
class SetMeasure {
  public:
    SetMeasure(Measure measure, double threshold)
        : measure_(measure),
          threshold_(threshold - kRounding),
          bound_(std::max(0.0, threshold - 2 * kRounding)) {}

    // What is the threshold but for rounding, is.
    bool enough(double similarity) const { return similarity >= threshold_; }

    // Of numbers of elements, or of their weights.
    double similarity(double common, double x, double y) const {
        switch (measure_) {
            case Measure::jaccard:
                return common / (x + y - common);
            case Measure::containment:
                return common / std::min(x, y);
            case Measure::cosine:
                return std::min(1.0, common / (std::sqrt(x) * std::sqrt(y)));
        }
        return 0;
    }

    // The least number of elements that the sets of a pair have in common.
    std::uint32_t least_overlap(std::uint32_t a, std::uint32_t b) const {
        return at_least(least_common(a, b));
    }

    // The same, of a set of size a and any that is not smaller, or any that is not larger.
    std::uint32_t least_with_larger(std::uint32_t a) const { return least_overlap(a, a); }
    std::uint32_t least_with_smaller(std::uint32_t a) const {
        // The smaller set is all in the larger one, at best: its size is the overlap.
        return least_size(a);
    }

    // The least size of a set that makes a pair with one of size a.
    std::uint32_t least_size(std::uint32_t a) const { return at_least(least_other(a)); }

    // The same of elements with weights.
    double least_common_weight(double a, double b) const { return least_common(a, b) * kBelow; }
    double least_other_weight(double a) const { return least_other(a) * kBelow; }

    // Of a weighted set: squares of weights that sum up to less than this share of all leave less
    // than the threshold, whatever the other set is (Cauchy and Schwarz).
    double least_share_of_squares() const { return bound_ * bound_ * (1 - kSlack); }

  private:
    static constexpr double kRounding = 1e-12;  // as in dedup/pairs/verify.py
    static constexpr double kSlack = 1e-9;      // more than the errors of the formulas above

    static constexpr double kBelow = 1 - kSlack;

    double least_common(double x, double y) const {
        switch (measure_) {
            case Measure::jaccard:
                return bound_ / (1 + bound_) * (x + y);
            case Measure::containment:
                return bound_ * std::min(x, y);
            case Measure::cosine:
                return bound_ * std::sqrt(x * y);
        }
        return 0;
    }
    double least_other(double x) const {
        switch (measure_) {
            case Measure::jaccard:
                return bound_ * x;
            case Measure::containment:
                return 0;
            case Measure::cosine:
                return bound_ * bound_ * x;
        }
        return 0;
    }
    static std::uint32_t at_least(double number) {
        return static_cast<std::uint32_t>(std::max(1.0, std::ceil(number * (1 - kSlack) - kSlack)));
    }

    Measure measure_;
    double threshold_;
    double bound_;
};

}  // namespace lookalike::search
