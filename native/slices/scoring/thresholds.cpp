#include "slices/scoring/thresholds.hpp"

#include <cmath>
#include <vector>

#include "bits/step_costs.hpp"

namespace lookalike::search {

namespace {

// The share of sketches that differ in at most `most` bits, if their bits are drawn at random.
double near_by_chance(std::size_t most) {
    double ways = 0;
    for (std::size_t ones = 0; ones <= std::min(most, Slicing::kSketchBits); ++ones)
        ways += choose(Slicing::kSketchBits, ones);
    return ways / static_cast<double>(1u << Slicing::kSketchBits);
}

}  // namespace

ListCosts::ListCosts(const Slicing& slicing, std::size_t rows, std::uint32_t radius, bool sketches,
                     std::size_t queries)
    : rows_(static_cast<double>(rows)) {
    const bits::StepCosts& costs = bits::kUsualCosts;
    const auto width = static_cast<double>(slicing.bits() / 8);
    const double postings = rows_ * static_cast<double>(slicing.count());
    const double lines = std::ceil(width / 64);
    row_ = costs.listed(slicing.bits() / 8) + lines * costs.missed(width * rows_);
    look_up_ = costs.list +
               costs.missed(4 * static_cast<double>(slicing.lists_before(slicing.count()))) +
               costs.missed((sketches ? 2 : 4) * postings);
    entry_ = 0;
    compared_ = 1;
    if (sketches) {  // only those whose sketches are near are looked at, by way of their postings
        entry_ = costs.sketch;
        compared_ = near_by_chance(radius);
        row_ += costs.missed(4 * postings);
    }
    scan_ = costs.scan(width * rows_, static_cast<double>(queries));
}

std::optional<ExpectedWork> expected_work(const Slicing& slicing, std::size_t rows,
                                          std::uint32_t radius, std::size_t queries,
                                          const double* lengths, const double* near) {
    const ListCosts costs(slicing, rows, radius, slicing.has_sketches(), queries);
    const std::size_t places = slicing.widest() + 1;
    const auto at = [&](const double* given, std::size_t position, std::size_t ones, double fair) {
        return given == nullptr ? fair : given[position * places + ones];
    };
    std::vector<std::size_t> ones(slicing.count());
    std::vector<double> next;
    for (std::size_t position = 0; position < slicing.count(); ++position)
        next.push_back(
            costs.lists(1, at(lengths, position, 0, costs.average(slicing.width(position)))));
    ExpectedWork work;
    double total = 0;
    for (std::size_t raised = 0; raised <= radius; ++raised) {
        const auto cheapest = std::min_element(next.begin(), next.end());
        if (total + *cheapest > costs.scan())
            return std::nullopt;
        const auto position = static_cast<std::size_t>(cheapest - next.begin());
        const std::size_t width = slicing.width(position), level = ones[position]++;
        const double number = choose(width, level);
        const double length = at(lengths, position, level, costs.average(width));
        const double fair = slicing.has_sketches() ? near_by_chance(radius - level) : 1;
        const double compared = number * length * at(near, position, level, fair);
        total += costs.lists(number, number * length, compared);
        work.lists += number;
        work.postings += number * length;
        work.compared += compared;
        *cheapest = costs.step(width, level + 1, length);
    }
    if (total > costs.scan())
        return std::nullopt;
    return work;
}

}  // namespace lookalike::search
