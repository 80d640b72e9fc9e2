#include "images/points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "images/point_loops.hpp"

namespace lookalike::images {

namespace {

constexpr double kFirstWidth = 1.2;  // of a bell, in parts
constexpr double kOwnWidth = 0.5;    // that averaging has given the grid
constexpr std::size_t kWidths = 3;   // per doubling
constexpr std::size_t kBells = kWidths + 3;
constexpr std::size_t kDoublings = 6;
constexpr std::size_t kLeastPlane = 12;  // parts each way of a plane that is looked at
constexpr float kLeast = 200;            // of a difference, in 1/256 of a gray level
constexpr float kLongest = 10;           // a spot may be as many times longer than wide
constexpr double kReach = 6;             // half a square, in widths of the bell
constexpr std::int64_t kUnit = 16;       // units of a part
constexpr std::size_t kSide = 8;         // parts of a square, each way
constexpr std::size_t kWordBits = 32;

struct Plane {
    std::size_t width, height;
    std::vector<float> values;

    const float* row(std::size_t y) const { return values.data() + y * width; }
    float* row(std::size_t y) { return values.data() + y * width; }
};

std::vector<float> bell(double width) {
    const int reach = std::max(1, static_cast<int>(std::ceil(3 * width)));
    std::vector<double> heights;
    double sum = 0;
    for (int at = -reach; at <= reach; ++at) {
        heights.push_back(std::exp(-at * at / (2 * width * width)));
        sum += heights.back();
    }
    std::vector<float> weights;
    for (const double height : heights)
        weights.push_back(static_cast<float>(std::rint(65536 * height / sum) / 65536));
    return weights;
}

// Bells that widen a plane from one width to the next.
const std::array<std::vector<float>, kBells>& bells() {
    static const auto made = [] {
        std::array<std::vector<float>, kBells> found;
        double before = kOwnWidth;
        for (std::size_t number = 0; number < kBells; ++number) {
            const double width =
                kFirstWidth * std::exp2(static_cast<double>(number) / double{kWidths});
            found[number] = bell(std::sqrt(width * width - before * before));
            before = width;
        }
        return found;
    }();
    return made;
}

// Beyond a border is what is on it.
Plane blurred(const Plane& plane, const std::vector<float>& weights) {
    const PointLoops& loops = point_loops();
    const std::size_t width = plane.width, height = plane.height, count = weights.size(),
                      reach = count / 2;
    Plane across{width, height, std::vector<float>(width * height)}, found = across;
    std::vector<float> line(width + 2 * reach);
    std::vector<const float*> rows(count);
    for (std::size_t y = 0; y < height; ++y) {
        const float* const from = plane.row(y);
        std::fill_n(line.begin(), reach, from[0]);
        std::copy_n(from, width, line.begin() + static_cast<std::ptrdiff_t>(reach));
        std::fill_n(line.end() - static_cast<std::ptrdiff_t>(reach), reach, from[width - 1]);
        for (std::size_t at = 0; at < count; ++at)
            rows[at] = line.data() + at;
        loops.weigh(rows.data(), weights.data(), count, across.row(y), width);
    }
    for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t at = 0; at < count; ++at)
            rows[at] = across.row(std::min(std::max(y + at, reach) - reach, height - 1));
        loops.weigh(rows.data(), weights.data(), count, found.row(y), width);
    }
    return found;
}

Plane difference(const Plane& wide, const Plane& narrow) {
    Plane found{wide.width, wide.height, std::vector<float>(wide.values.size())};
    for (std::size_t at = 0; at < found.values.size(); ++at)
        found.values[at] = wide.values[at] - narrow.values[at];
    return found;
}

Plane halved(const Plane& plane) {
    Plane found{(plane.width + 1) / 2, (plane.height + 1) / 2, {}};
    found.values.reserve(found.width * found.height);
    for (std::size_t y = 0; y < plane.height; y += 2)
        for (std::size_t x = 0; x < plane.width; x += 2)
            found.values.push_back(plane.row(y)[x]);
    return found;
}

struct Spot {
    float clear;
    std::int64_t across, down;
    int size;
};

// How far the top of a parabola through three neighbors is from the middle one, in 1/unit.
std::int64_t top(float before, float middle, float after, double unit) {
    const double bend = double{before} + after - 2 * double{middle};
    const double place = bend == 0 ? 0 : (double{before} - after) / (2 * bend);
    return std::llround(unit * std::clamp(place, -0.5, 0.5));
}

class Differences {
  public:
    explicit Differences(const std::array<Plane, kBells>& planes) {
        for (std::size_t at = 0; at + 1 < kBells; ++at)
            planes_[at] = difference(planes[at + 1], planes[at]);
    }

    // Appends the spots at one width.
    void find(std::size_t number, std::size_t doubling, std::vector<Spot>& spots) const {
        const PointLoops& loops = point_loops();
        const Plane& plane = planes_[number];
        std::vector<std::uint8_t> tops(plane.width);
        for (std::size_t y = 1; y + 1 < plane.height; ++y) {
            loops.tops(plane.row(y - 1), plane.row(y), plane.row(y + 1), kLeast, plane.width,
                       tops.data());
            for (std::size_t x = 1; x + 1 < plane.width; ++x)
                if (tops[x] != 0 && is_top(number, x, y) && is_round(plane, x, y))
                    spots.push_back(spot(number, x, y, doubling));
        }
    }

  private:
    bool is_top(std::size_t number, std::size_t x, std::size_t y) const {
        const float value = planes_[number].row(y)[x], sign = value > 0 ? 1 : -1;
        for (std::size_t other = number - 1; other <= number + 1; ++other)
            for (std::size_t row = y - 1; row <= y + 1; ++row)
                for (std::size_t column = x - 1; column <= x + 1; ++column)
                    if (sign * planes_[other].row(row)[column] >= sign * value &&
                        !(other == number && row == y && column == x))
                        return false;
        return true;
    }

    static bool is_round(const Plane& plane, std::size_t x, std::size_t y) {
        const float *const above = plane.row(y - 1), *const own = plane.row(y),
                           *const below = plane.row(y + 1);
        const double value = own[x];
        const double across = double{own[x - 1]} + own[x + 1] - 2 * value;
        const double down = double{above[x]} + below[x] - 2 * value;
        const double slanted =
            (double{below[x + 1]} + above[x - 1] - below[x - 1] - above[x + 1]) / 4;
        const double curved = across * down - slanted * slanted, sum = across + down;
        return curved > 0 && sum * sum * kLongest < (kLongest + 1) * (kLongest + 1) * curved;
    }

    Spot spot(std::size_t number, std::size_t x, std::size_t y, std::size_t doubling) const {
        const auto at = [&](std::size_t other, std::size_t column, std::size_t row) {
            return planes_[other].row(row)[column];
        };
        const float value = at(number, x, y);
        const auto far = static_cast<double>(kUnit << doubling);
        const auto place = [&](std::size_t middle, std::int64_t moved) {
            return (static_cast<std::int64_t>(middle) * kUnit << doubling) + moved + kUnit / 2;
        };
        constexpr int kStep = kStepsOfSize / static_cast<int>(kWidths);
        return {
            std::abs(value), place(x, top(at(number, x - 1, y), value, at(number, x + 1, y), far)),
            place(y, top(at(number, x, y - 1), value, at(number, x, y + 1), far)),
            static_cast<int>(kWidths * doubling + number) * kStep +
                static_cast<int>(top(at(number - 1, x, y), value, at(number + 1, x, y), kStep))};
    }

    std::array<Plane, kBells - 1> planes_;
};

std::vector<Spot> spots(Plane plane) {
    std::vector<Spot> found;
    plane = blurred(plane, bells()[0]);
    for (std::size_t doubling = 0; doubling < kDoublings; ++doubling) {
        if (std::min(plane.width, plane.height) < kLeastPlane)
            break;
        std::array<Plane, kBells> planes{std::move(plane)};
        for (std::size_t at = 1; at < kBells; ++at)
            planes[at] = blurred(planes[at - 1], bells()[at]);
        const Differences differences(planes);
        for (std::size_t number = 1; number <= kWidths; ++number)
            differences.find(number, doubling, found);
        plane = halved(planes[kWidths]);
    }
    std::sort(found.begin(), found.end(), [](const Spot& a, const Spot& b) {
        return std::tie(b.clear, a.size, a.down, a.across) <
               std::tie(a.clear, b.size, b.down, b.across);
    });
    return found;
}

// Sums over rectangles of the grid, whose corners are in units.
class Sums {
  public:
    Sums(const std::vector<std::int64_t>& grid, std::size_t rows, std::size_t columns)
        : columns_(columns + 2), sums_((rows + 2) * (columns + 2)) {
        for (std::size_t y = 0; y <= rows; ++y) {  // the last row and column are there twice
            std::int64_t sum = 0;
            for (std::size_t x = 0; x <= columns; ++x) {
                if (y < rows && x < columns)
                    sum += grid[y * columns + x];
                sums_[(y + 1) * columns_ + x + 1] = sums_[y * columns_ + x + 1] + sum;
            }
        }
    }

    std::int64_t mean(std::int64_t left, std::int64_t top, std::int64_t right,
                      std::int64_t bottom) const {
        return quotient(at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top),
                        (right - left) * (bottom - top));
    }

  private:
    // Of all that is above and left of a corner, times the square of a unit.
    std::int64_t at(std::int64_t x, std::int64_t y) const {
        const std::int64_t* const own = sums_.data() +
                                        static_cast<std::size_t>(y / kUnit) * columns_ +
                                        static_cast<std::size_t>(x / kUnit);
        const std::int64_t* const below = own + columns_;
        const std::int64_t right = x % kUnit, down = y % kUnit;
        return (own[0] * (kUnit - right) + own[1] * right) * (kUnit - down) +
               (below[0] * (kUnit - right) + below[1] * right) * down;
    }

    std::size_t columns_;
    std::vector<std::int64_t> sums_;
};

struct Frequencies {
    std::array<std::array<std::int64_t, kSide>, kSide> waves;
    std::array<std::pair<std::size_t, std::size_t>, kWordBits> bits;  // down, across
};

const Frequencies& frequencies() {
    static const auto made = [] {
        Frequencies found;
        std::vector<std::pair<std::size_t, std::size_t>> all;
        for (std::size_t wave = 0; wave < kSide; ++wave)
            for (std::size_t x = 0; x < kSide; ++x) {
                const double angle = std::numbers::pi * static_cast<double>(wave * (2 * x + 1)) /
                                     static_cast<double>(2 * kSide);
                found.waves[wave][x] = std::llround(4096 * std::cos(angle));
                if (wave + x > 0)
                    all.emplace_back(wave, x);
            }
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return std::make_tuple(a.first + a.second, std::max(a.first, a.second), a.second) <
                   std::make_tuple(b.first + b.second, std::max(b.first, b.second), b.second);
        });
        std::copy_n(all.begin(), kWordBits, found.bits.begin());
        return found;
    }();
    return made;
}

std::uint32_t word(const Sums& sums, std::int64_t left, std::int64_t top, std::int64_t side) {
    std::array<std::int64_t, kSide + 1> edges;
    for (std::size_t at = 0; at <= kSide; ++at)
        edges[at] = side * static_cast<std::int64_t>(at) / static_cast<std::int64_t>(kSide);
    std::array<std::array<std::int64_t, kSide>, kSide> parts;
    std::int64_t mean = 0;
    for (std::size_t y = 0; y < kSide; ++y)
        for (std::size_t x = 0; x < kSide; ++x) {
            parts[y][x] =
                sums.mean(left + edges[x], top + edges[y], left + edges[x + 1], top + edges[y + 1]);
            mean += parts[y][x];
        }
    mean /= static_cast<std::int64_t>(kSide * kSide);
    const auto& [waves, bits] = frequencies();
    std::array<std::array<std::int64_t, kSide>, kSide> lines{};  // by row and wave across
    for (std::size_t y = 0; y < kSide; ++y)
        for (std::size_t wave = 0; wave < kSide; ++wave)
            for (std::size_t x = 0; x < kSide; ++x)
                lines[y][wave] += (parts[y][x] - mean) * waves[wave][x];
    std::uint32_t found = 0;
    for (std::size_t bit = 0; bit < kWordBits; ++bit) {
        std::int64_t height = 0;
        for (std::size_t y = 0; y < kSide; ++y)
            height += lines[y][bits[bit].second] * waves[bits[bit].first][y];
        found |= static_cast<std::uint32_t>(height > 0) << bit;
    }
    return found;
}

// Half of the square around a spot, in units, by what its size is beyond a whole doubling.
const std::array<double, kStepsOfSize>& reaches() {
    static const auto made = [] {
        std::array<double, kStepsOfSize> found;
        for (int step = 0; step < kStepsOfSize; ++step)
            found[static_cast<std::size_t>(step)] =
                std::rint(kFirstWidth * kReach * double{kUnit} * 65536 *
                          std::exp2(static_cast<double>(step) / kStepsOfSize)) /
                65536;
        return found;
    }();
    return made;
}

}  // namespace

Points points(const Blocks& blocks, std::size_t rows, std::size_t columns, std::size_t most) {
    std::vector<std::int64_t> grid(rows * columns);
    averages(blocks, rows, columns, grid.data());
    const Sums sums(grid, rows, columns);
    const std::int64_t width = static_cast<std::int64_t>(columns) * kUnit,
                       height = static_cast<std::int64_t>(rows) * kUnit;
    Points found;
    for (const Spot& spot : spots({columns, rows, {grid.begin(), grid.end()}})) {
        if (found.words.size() == most)
            break;
        const auto step = static_cast<std::size_t>(spot.size % kStepsOfSize);
        const std::int64_t half =
            std::llround(std::ldexp(reaches()[step], spot.size / kStepsOfSize));
        const std::int64_t left = spot.across - half, top = spot.down - half;
        if (left < 0 || top < 0 || left + 2 * half > width || top + 2 * half > height)
            continue;
        found.words.push_back(word(sums, left, top, 2 * half));
        found.across.push_back(static_cast<std::int32_t>(spot.across));
        found.down.push_back(static_cast<std::int32_t>(spot.down));
        found.sizes.push_back(spot.size);
    }
    return found;
}

}  // namespace lookalike::images
