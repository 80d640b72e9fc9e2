#include "images/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace lookalike::images {

namespace {

constexpr std::size_t kParts = 32;  // each way, of what two images have in common
constexpr std::size_t kWindow = 8, kStride = 4;
constexpr double kLeastSide = 0.05;
constexpr double kDetail = 4;        // variance of gray levels
constexpr double kSameWindow = 0.7;  // correlation
constexpr double kNoise = 0.25;      // energy of a frequency
constexpr std::size_t kBorder = 19;  // the widest plain border of a thumbnail
constexpr std::size_t kMiddle = 14;  // where the part of a border begins that has to be plain
constexpr double kWorthRefining = 0.4;
constexpr double kWorthCounting = 0.5;  // share of windows that agree
constexpr double kFirstStep = 0.02, kLastStep = 0.002;

using Values = std::array<double, kParts * kParts>;

struct Box {
    double left, top, right, bottom;
};

// Sums over rectangles of a thumbnail.
class Sums {
  public:
    explicit Sums(const std::uint8_t* gray) {
        for (std::size_t y = 0; y < kThumbnail; ++y) {
            double sum = 0;
            for (std::size_t x = 0; x < kThumbnail; ++x) {
                sum += gray[y * kThumbnail + x];
                sums_[(y + 1) * kLine + x + 1] = sums_[y * kLine + x + 1] + sum;
            }
        }
    }

    // Values at the corners of kParts × kParts parts of a box.
    void corners(const Box& box, std::array<double, (kParts + 1) * (kParts + 1)>& found) const {
        std::array<double, kThumbnail + 1> line;
        std::array<std::pair<std::size_t, double>, kParts + 1> columns;
        for (std::size_t column = 0; column <= kParts; ++column)
            columns[column] = place(box.left, box.right, column);
        for (std::size_t row = 0; row <= kParts; ++row) {
            const auto [y, down] = place(box.top, box.bottom, row);
            const double* const own = sums_.data() + y * kLine;
            for (std::size_t x = 0; x < kLine; ++x)
                line[x] = own[x] * (1 - down) + own[x + kLine] * down;
            for (std::size_t column = 0; column <= kParts; ++column) {
                const auto [x, right] = columns[column];
                found[row * (kParts + 1) + column] = line[x] * (1 - right) + line[x + 1] * right;
            }
        }
    }

  private:
    static constexpr std::size_t kLine = kThumbnail + 1;

    static std::pair<std::size_t, double> place(double begin, double end, std::size_t part) {
        const double at =
            std::clamp(begin + (end - begin) * static_cast<double>(part) / kParts, 0.0, 1.0) *
            kThumbnail;
        const std::size_t whole = std::min(static_cast<std::size_t>(at), kThumbnail - 1);
        return {whole, at - static_cast<double>(whole)};
    }

    std::array<double, kLine * kLine> sums_{};
};

// Averages over equal parts of a box, in gray levels.
void averages_of(const Sums& sums, const Box& box, Values& values) {
    std::array<double, (kParts + 1) * (kParts + 1)> corners;
    sums.corners(box, corners);
    const double area = (box.right - box.left) * (box.bottom - box.top) *
                        static_cast<double>(kThumbnail * kThumbnail) /
                        static_cast<double>(kParts * kParts);
    for (std::size_t y = 0; y < kParts; ++y) {
        const double* const above = corners.data() + y * (kParts + 1);
        const double* const below = above + kParts + 1;
        for (std::size_t x = 0; x < kParts; ++x)
            values[y * kParts + x] = (below[x + 1] - below[x] - above[x + 1] + above[x]) / area;
    }
}

// How many rows, or columns, at one border of a thumbnail hardly change along it. One more is left
// out with them, of which a part may belong to the border.
double border(const std::uint8_t* gray, bool rows, bool from_end) {
    std::size_t count = 0;
    for (; count < kBorder; ++count) {
        const std::size_t line = from_end ? kThumbnail - 1 - count : count;
        double sum = 0, squares = 0;
        for (std::size_t at = kMiddle; at < kThumbnail - kMiddle; ++at) {
            const double value = gray[rows ? line * kThumbnail + at : at * kThumbnail + line];
            sum += value;
            squares += value * value;
        }
        const double number = kThumbnail - 2 * kMiddle;
        if (squares / number - sum / number * (sum / number) >= kDetail)
            break;
    }
    return static_cast<double>(count + (count > 0)) / kThumbnail;
}

Box content(const std::uint8_t* gray) {
    return {border(gray, false, false), border(gray, true, false), 1 - border(gray, false, true),
            1 - border(gray, true, true)};
}

Box placed(const Box& box, const Placement& at) {
    return {at.across_scale * box.left + at.across_shift, at.down_scale * box.top + at.down_shift,
            at.across_scale * box.right + at.across_shift,
            at.down_scale * box.bottom + at.down_shift};
}

Box taken_back(const Box& box, const Placement& at) {
    return {(box.left - at.across_shift) / at.across_scale,
            (box.top - at.down_shift) / at.down_scale,
            (box.right - at.across_shift) / at.across_scale,
            (box.bottom - at.down_shift) / at.down_scale};
}

bool is_wide(const Box& box) {
    return box.right - box.left >= kLeastSide && box.bottom - box.top >= kLeastSide;
}

// Sums of two sets of values, from which a correlation comes.
struct Moments {
    double count = 0, first = 0, second = 0, squares = 0, other_squares = 0, products = 0;

    void add(double one, double two) {
        ++count;
        first += one;
        second += two;
        squares += one * one;
        other_squares += two * two;
        products += one * two;
    }
    double variance() const { return squares / count - first / count * (first / count); }
    double other_variance() const {
        return other_squares / count - second / count * (second / count);
    }
    double correlation() const {
        const double both = variance() * other_variance();
        if (variance() <= 0 || other_variance() <= 0)
            return 0;
        return (products / count - first / count * (second / count)) / std::sqrt(both);
    }
};

double correlation(const Values& first, const Values& second) {
    Moments all;
    for (std::size_t at = 0; at < first.size(); ++at)
        all.add(first[at], second[at]);
    return all.correlation();
}

using Waves = std::array<std::array<double, kParts>, kParts>;

const Waves& waves() {
    static const Waves made = [] {
        Waves found;
        for (std::size_t wave = 0; wave < kParts; ++wave)
            for (std::size_t at = 0; at < kParts; ++at)
                found[wave][at] =
                    std::cos(std::numbers::pi * static_cast<double>(wave * (2 * at + 1)) /
                             (2 * kParts)) *
                    std::sqrt((wave ? 2.0 : 1.0) / kParts);
        return found;
    }();
    return made;
}

Values frequencies(const Values& values) {
    Values lines{}, found{};
    for (std::size_t wave = 0; wave < kParts; ++wave)
        for (std::size_t y = 0; y < kParts; ++y)
            for (std::size_t x = 0; x < kParts; ++x)
                lines[wave * kParts + x] += waves()[wave][y] * values[y * kParts + x];
    Waves turned;
    for (std::size_t wave = 0; wave < kParts; ++wave)
        for (std::size_t x = 0; x < kParts; ++x)
            turned[x][wave] = waves()[wave][x];
    for (std::size_t down = 0; down < kParts; ++down)
        for (std::size_t x = 0; x < kParts; ++x)
            for (std::size_t wave = 0; wave < kParts; ++wave)
                found[down * kParts + wave] += lines[down * kParts + x] * turned[x][wave];
    return found;
}

// Frequencies from one power of 2 to the next.
struct Octave {
    double count = 0, first = 0, second = 0, both = 0, first_peaks = 0, second_peaks = 0;

    void add(double one, double two) {
        ++count;
        first += one * one;
        second += two * two;
        both += one * two;
        first_peaks += one * one * one * one;
        second_peaks += two * two * two * two;
    }

    double evidence() const {
        const double noise = kNoise * count, energy = std::min(first, second);
        if (energy <= noise || both <= 0)
            return 0;
        const double same = both * both / (first * second);
        const double differ = std::sqrt(std::max(std::max(0.0, 1 - same), noise / energy));
        // As many as carry the energy: one if it is all in one of them.
        const double carrying =
            std::min(first * first / first_peaks, second * second / second_peaks);
        return -carrying * std::log2(std::min(1.0, differ));
    }
};

double evidence(const Values& first, const Values& second) {
    const Values one = frequencies(first), two = frequencies(second);
    std::array<Octave, 5> octaves;
    for (std::size_t down = 0; down < kParts; ++down)
        for (std::size_t across = 0; across < kParts; ++across) {
            const std::size_t higher = std::max(down, across);
            if (higher == 0)
                continue;
            std::size_t octave = 0;
            while (higher >> (octave + 1))
                ++octave;
            octaves[octave].add(one[down * kParts + across], two[down * kParts + across]);
        }
    double sum = 0;
    for (const Octave& octave : octaves)
        sum += octave.evidence();
    return sum;
}

constexpr std::size_t kLines = (kParts - kWindow) / kStride + 1;  // of windows, each way

// What was found in windows.
struct Windows {
    std::array<bool, kParts * kParts> inside{};  // parts in a window that agrees or has no detail
    std::array<std::size_t, kLines> down{}, across{};  // windows of each line that do not agree

    void add(const Values& first, const Values& second, Agreement& agreement) {
        for (std::size_t row = 0; row < kLines; ++row)
            for (std::size_t column = 0; column < kLines; ++column) {
                const std::size_t begin = row * kStride * kParts + column * kStride;
                Moments window;
                for (std::size_t y = 0; y < kWindow; ++y)
                    for (std::size_t x = 0; x < kWindow; ++x)
                        window.add(first[begin + y * kParts + x], second[begin + y * kParts + x]);
                const bool detail = std::max(window.variance(), window.other_variance()) >= kDetail;
                const bool same = !detail || window.correlation() >= kSameWindow;
                agreement.windows += detail;
                agreement.agreeing += detail && same;
                down[row] += !same;
                across[column] += !same;
                for (std::size_t y = 0; same && y < kWindow; ++y)
                    std::fill_n(inside.begin() + static_cast<std::ptrdiff_t>(begin + y * kParts),
                                kWindow, true);
            }
    }

    double correlation(const Values& first, const Values& second) const {
        Moments all;
        for (std::size_t at = 0; at < inside.size(); ++at)
            if (inside[at])
                all.add(first[at], second[at]);
        return all.count ? all.correlation() : 0;
    }

    // A box without the sides where most windows do not agree: a caption or a banner.
    Box without_sides(const Box& box) const {
        const auto differs = [](std::size_t count) { return 2 * count > kLines; };
        const double side = static_cast<double>(kStride) / kParts;
        const double width = side * (box.right - box.left), height = side * (box.bottom - box.top);
        return {
            box.left + width * differs(across.front()), box.top + height * differs(down.front()),
            box.right - width * differs(across.back()), box.bottom - height * differs(down.back())};
    }
};

class Comparison {
  public:
    Comparison(const std::uint8_t* first, const std::uint8_t* second)
        : first_(first), second_(second), first_sums_(first), second_sums_(second) {}

    // The part of the first that is in the second.
    static Box common(const Placement& at) {
        const Box other = taken_back({0, 0, 1, 1}, at);
        return {std::max(0.0, other.left), std::max(0.0, other.top), std::min(1.0, other.right),
                std::min(1.0, other.bottom)};
    }

    double correlation_at(const Placement& at) {
        const Box box = common(at);
        if (!is_wide(box) || !is_wide(placed(box, at)))
            return -2;
        take(box, at);
        return correlation(one_, two_);
    }

    void refine(Placement& at) {
        double best = correlation_at(at);
        if (best < kWorthRefining)
            return;
        for (double step = kFirstStep; step > kLastStep; step /= 2)
            for (int round = 0; round < 3 && moved(at, step, best); ++round) {
            }
    }

    Agreement agreement(const Placement& at) {
        Agreement found;
        const Box box = common(at);
        if (!is_wide(box) || !is_wide(placed(box, at)))
            return found;
        found.first_share = (box.right - box.left) * (box.bottom - box.top);
        found.second_share = found.first_share * at.across_scale * at.down_scale;
        const Box own = content(first_), other = taken_back(content(second_), at);
        const Box inner{std::max(box.left, std::min(own.left, other.left)),
                        std::max(box.top, std::min(own.top, other.top)),
                        std::min(box.right, std::max(own.right, other.right)),
                        std::min(box.bottom, std::max(own.bottom, other.bottom))};
        if (!is_wide(inner) || !is_wide(placed(inner, at)))
            return found;
        take(inner, at);
        found.correlation = correlation(one_, two_);
        Windows windows;
        windows.add(one_, two_, found);
        found.inside = windows.correlation(one_, two_);
        if (found.agreeing < kWorthCounting * found.windows)
            return found;
        take(windows.without_sides(inner), at);
        found.evidence = evidence(one_, two_);
        return found;
    }

  private:
    void take(const Box& box, const Placement& at) {
        averages_of(first_sums_, box, one_);
        averages_of(second_sums_, placed(box, at), two_);
    }

    // Whether one step in any direction is better; then it is taken.
    bool moved(Placement& at, double step, double& best) {
        bool any = false;
        const auto accept = [&](const Placement& other) {
            const double value = correlation_at(other);
            if (value > best + 1e-6) {
                best = value;
                at = other;
                any = true;
            }
        };
        for (const double sign : {-1.0, 1.0}) {
            Placement other = at;
            other.across_shift += sign * step;
            accept(other);
            other = at;
            other.down_shift += sign * step;
            accept(other);
            const Box box = common(at);
            other = at;
            const double center = (box.left + box.right) / 2, middle = (box.top + box.bottom) / 2;
            other.across_scale *= 1 + sign * step;
            other.across_shift += (at.across_scale - other.across_scale) * center;
            accept(other);
            other = at;
            other.down_scale *= 1 + sign * step;
            other.down_shift += (at.down_scale - other.down_scale) * middle;
            accept(other);
        }
        return any;
    }

    const std::uint8_t *first_, *second_;
    Sums first_sums_, second_sums_;
    Values one_, two_;
};

}  // namespace

void thumbnail(const Blocks& blocks, std::uint8_t* gray) {
    std::vector<std::int64_t> grid(kThumbnail * kThumbnail);
    averages(blocks, kThumbnail, kThumbnail, grid.data());
    for (std::size_t at = 0; at < grid.size(); ++at)
        gray[at] = static_cast<std::uint8_t>((grid[at] + 128) / 256);
}

Agreement compare(const std::uint8_t* first, const std::uint8_t* second, Placement& placement,
                  bool refine) {
    Comparison comparison(first, second);
    if (refine)
        comparison.refine(placement);
    return comparison.agreement(placement);
}

}  // namespace lookalike::images
