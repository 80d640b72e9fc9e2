#include "slices/thresholds.hpp"

#include <cmath>

#include "bits/step_costs.hpp"

namespace lookalike::search {

namespace {

// Which share of sketches differs in at most so many bits, if their bits are drawn at random.
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
                                          std::uint32_t radius, std::size_t queries) {
    const bool sketches = slicing.has_sketches();
    const ListCosts costs(slicing, rows, radius, sketches, queries);
    // Slices of the same width are alike, and there are two widths at most.
    struct Alike {
        std::size_t width, slices, ones;
    };
    Alike alike[2] = {{slicing.widest(), 0, 0}, {slicing.width(slicing.count() - 1), 0, 0}};
    for (std::size_t position = 0; position < slicing.count(); ++position)
        ++alike[slicing.width(position) == slicing.widest() ? 0 : 1].slices;
    double next[2] = {costs.step(alike[0].width, 0), costs.step(alike[1].width, 0)};
    const std::size_t widths = alike[1].slices == 0 ? 1 : 2;
    ExpectedWork work;
    const double cost = take_cheapest(
        std::size_t{radius} + 1, {next, widths}, [&](std::size_t place, std::size_t left) {
            Alike& here = alike[place];
            const std::size_t taken = std::min(left, here.slices);
            const double lists = static_cast<double>(taken) * choose(here.width, here.ones);
            const double postings =
                lists * static_cast<double>(rows) / static_cast<double>(1u << here.width);
            work.lists += lists;
            work.postings += postings;
            work.compared += postings * (sketches ? near_by_chance(radius - here.ones) : 1);
            next[place] = costs.step(here.width, ++here.ones);
            return taken;
        });
    if (cost > costs.scan())
        return std::nullopt;
    return work;
}

}  // namespace lookalike::search
