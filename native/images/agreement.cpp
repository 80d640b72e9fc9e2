#include "images/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace lookalike::images {

namespace {

constexpr std::size_t kParts = 32;  // each way, of what two images have in common
constexpr std::size_t kFine = 64;   // the same, to compare fine detail
constexpr std::size_t kWindow = 8, kStride = 4;
constexpr double kLeastSide = 0.05;
constexpr double kDetail = 4;        // variance of gray levels
constexpr double kSameWindow = 0.7;  // correlation
constexpr double kNoise = 0.25;      // energy of a frequency
constexpr std::size_t kAround = 2;   // parts each way whose mean is not detail
constexpr double kFineDetail = 1;    // variance of gray levels
constexpr double kSameDetail = 0.5;  // correlation
constexpr std::size_t kSlowest = 4;  // of which there are fewer than this across and down
constexpr std::size_t kSlow = 5;     // half octaves
constexpr std::size_t kBorder = 19;  // the widest plain border of a thumbnail
constexpr std::size_t kMiddle = 14;  // where the part of a border begins that has to be plain
constexpr double kWorthRefining = 0.4;
constexpr double kWorthCounting = 0.5;  // share of windows that agree
constexpr double kFirstStep = 0.02, kLastStep = 0.002;
constexpr double kWorthLeaning = 0.7, kUpright = 0.998;    // correlations
constexpr std::array kLeans = {0.02, -0.02, 0.04, -0.04};  // about 1° and 2°
constexpr double kBetterLeaning = 0.004;                   // correlation
constexpr double kFirstLean = 0.01;
constexpr double kBetter = 1e-6;

template <std::size_t kSide>
using Grid = std::array<double, kSide * kSide>;
using Values = Grid<kParts>;
using Fine = Grid<kFine>;

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

    // Values at the corners of kSide × kSide parts of a box.
    template <std::size_t kSide>
    void corners(const Box& box, Grid<kSide + 1>& found) const {
        std::array<double, kThumbnail + 1> line;
        std::array<std::pair<std::size_t, double>, kSide + 1> columns;
        for (std::size_t column = 0; column <= kSide; ++column)
            columns[column] = place(between<kSide>(box.left, box.right, column));
        for (std::size_t row = 0; row <= kSide; ++row) {
            const auto [y, down] = place(between<kSide>(box.top, box.bottom, row));
            const double* const own = sums_.data() + y * kLine;
            for (std::size_t x = 0; x < kLine; ++x)
                line[x] = own[x] * (1 - down) + own[x + kLine] * down;
            for (std::size_t column = 0; column <= kSide; ++column) {
                const auto [x, right] = columns[column];
                found[row * (kSide + 1) + column] = line[x] * (1 - right) + line[x + 1] * right;
            }
        }
    }

    // The sum of what is in a box.
    double inside(const Box& box) const {
        const auto left = place(box.left), top = place(box.top), right = place(box.right),
                   bottom = place(box.bottom);
        return at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top);
    }

  private:
    static constexpr std::size_t kLine = kThumbnail + 1;

    using Place = std::pair<std::size_t, double>;  // a line, and how far it is to the next one

    template <std::size_t kSide>
    static double between(double begin, double end, std::size_t part) {
        return begin + (end - begin) * static_cast<double>(part) / kSide;
    }

    static Place place(double share) {
        const double at = std::clamp(share, 0.0, 1.0) * kThumbnail;
        const std::size_t whole = std::min(static_cast<std::size_t>(at), kThumbnail - 1);
        return {whole, at - static_cast<double>(whole)};
    }

    double at(const Place& across, const Place& down) const {
        const double* const own = sums_.data() + down.first * kLine + across.first;
        const double above = own[0] * (1 - across.second) + own[1] * across.second;
        const double below = own[kLine] * (1 - across.second) + own[kLine + 1] * across.second;
        return above * (1 - down.second) + below * down.second;
    }

    std::array<double, kLine * kLine> sums_{};
};

// Gray values of a part of a box, in levels, are what is in it times this.
template <std::size_t kSide>
double per_part(const Box& box) {
    return static_cast<double>(kSide * kSide) / ((box.right - box.left) * (box.bottom - box.top) *
                                                 static_cast<double>(kThumbnail * kThumbnail));
}

// Averages over equal parts of a box, in gray levels.
template <std::size_t kSide>
void averages_of(const Sums& sums, const Box& box, Grid<kSide>& values) {
    Grid<kSide + 1> corners;
    sums.corners<kSide>(box, corners);
    const double scale = per_part<kSide>(box);
    for (std::size_t y = 0; y < kSide; ++y) {
        const double* const above = corners.data() + y * (kSide + 1);
        const double* const below = above + kSide + 1;
        for (std::size_t x = 0; x < kSide; ++x)
            values[y * kSide + x] = (below[x + 1] - below[x] - above[x + 1] + above[x]) * scale;
    }
}

// The same of a box that leans: each row of parts is moved across, and each column down, in
// proportion to how far `from` has it from the middle of its image.
template <std::size_t kSide>
void leaning_averages(const Sums& sums, const Box& box, const Box& from, const Placement& at,
                      Grid<kSide>& values) {
    const double width = (box.right - box.left) / kSide, height = (box.bottom - box.top) / kSide;
    const double scale = per_part<kSide>(box);
    const auto middle = [](double begin, double end, std::size_t part) {
        return begin + (end - begin) * (static_cast<double>(part) + 0.5) / kSide - 0.5;
    };
    for (std::size_t y = 0; y < kSide; ++y)
        for (std::size_t x = 0; x < kSide; ++x) {
            const double left = box.left + width * static_cast<double>(x) +
                                at.across_lean * middle(from.top, from.bottom, y);
            const double top = box.top + height * static_cast<double>(y) +
                               at.down_lean * middle(from.left, from.right, x);
            const double across = std::clamp(left, 0.0, 1 - width);
            const double down = std::clamp(top, 0.0, 1 - height);
            values[y * kSide + x] =
                sums.inside({across, down, across + width, down + height}) * scale;
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

// Waves are the same, or the opposite, from the other end. So half of their values are enough: by
// place, then by frequency, the even ones and the odd ones.
struct Waves {
    static constexpr std::size_t kHalf = kFine / 2;
    std::array<std::array<double, kHalf>, kHalf> even, odd;
};

const Waves& waves() {
    static const Waves made = [] {
        Waves found;
        for (std::size_t wave = 0; wave < kFine; ++wave)
            for (std::size_t at = 0; at < Waves::kHalf; ++at)
                (wave % 2 ? found.odd : found.even)[at][wave / 2] =
                    std::cos(std::numbers::pi * static_cast<double>(wave * (2 * at + 1)) /
                             (2 * kFine)) *
                    std::sqrt((wave ? 2.0 : 1.0) / kFine);
        return found;
    }();
    return made;
}

Fine frequencies(const Fine& values) {
    const auto& [even, odd] = waves();
    Fine lines{}, found{};
    for (std::size_t y = 0; y < kFine; ++y) {
        const double* const own = values.data() + y * kFine;
        std::array<double, Waves::kHalf> sums{}, differences{};
        for (std::size_t x = 0; x < Waves::kHalf; ++x) {
            const double sum = own[x] + own[kFine - 1 - x], differ = own[x] - own[kFine - 1 - x];
            for (std::size_t wave = 0; wave < Waves::kHalf; ++wave) {
                sums[wave] += sum * even[x][wave];
                differences[wave] += differ * odd[x][wave];
            }
        }
        for (std::size_t wave = 0; wave < Waves::kHalf; ++wave) {
            lines[y * kFine + 2 * wave] = sums[wave];
            lines[y * kFine + 2 * wave + 1] = differences[wave];
        }
    }
    for (std::size_t y = 0; y < Waves::kHalf; ++y) {
        std::array<double, kFine> sums, differences;
        for (std::size_t x = 0; x < kFine; ++x) {
            const double one = lines[y * kFine + x], two = lines[(kFine - 1 - y) * kFine + x];
            sums[x] = one + two;
            differences[x] = one - two;
        }
        for (std::size_t wave = 0; wave < kFine; ++wave) {
            const double height = (wave % 2 ? odd : even)[y][wave / 2];
            const auto& from = wave % 2 ? differences : sums;
            double* const to = found.data() + wave * kFine;
            for (std::size_t x = 0; x < kFine; ++x)
                to[x] += height * from[x];
        }
    }
    return found;
}

// Frequencies of half an octave, in one direction.
struct Band {
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

constexpr std::size_t kDirections = 3, kBands = 12 * kDirections;

// The band of a frequency: across, down or slanted, by half octaves of the higher one.
std::size_t band_of(std::size_t down, std::size_t across) {
    const std::size_t higher = std::max(down, across);
    std::size_t half_octave = 0;
    while (higher * higher >> (half_octave + 1))
        ++half_octave;
    const std::size_t direction = 2 * down < across ? 0 : 2 * across < down ? 1 : 2;
    return half_octave * kDirections + direction;
}

const std::array<std::uint8_t, kFine * kFine>& band_numbers() {
    static const auto made = [] {
        std::array<std::uint8_t, kFine * kFine> found{};
        for (std::size_t down = 0; down < kFine; ++down)
            for (std::size_t across = down == 0 ? 1 : 0; across < kFine; ++across)
                found[down * kFine + across] = static_cast<std::uint8_t>(band_of(down, across));
        return found;
    }();
    return made;
}

// Adds what the frequencies of both tell.
void compare_frequencies(const Fine& first, const Fine& second, Agreement& agreement) {
    const Fine one = frequencies(first), two = frequencies(second);
    std::array<Band, kBands> bands;
    for (std::size_t at = 1; at < one.size(); ++at)  // all but the mean
        bands[band_numbers()[at]].add(one[at], two[at]);
    double energy = 0, other_energy = 0;
    for (std::size_t number = 0; number < kBands; ++number) {
        const Band& band = bands[number];
        const double evidence = band.evidence();
        agreement.evidence += evidence;
        if (number < kSlow * kDirections)
            agreement.slow += evidence;
        energy += band.first;
        other_energy += band.second;
    }
    if (energy <= 0 || other_energy <= 0)
        return;
    // Both are brought to the same contrast, so that noise is as strong in both.
    const double gain = std::sqrt(other_energy / energy), noise = std::sqrt(1 + gain * gain);
    double differ = 0;
    for (std::size_t down = 0; down < kSlowest; ++down)
        for (std::size_t across = down == 0 ? 1 : 0; across < kSlowest; ++across) {
            const std::size_t at = down * kFine + across;
            const double apart = (two[at] - gain * one[at]) / noise;
            differ += apart * apart;
        }
    agreement.difference = differ / (kSlowest * kSlowest - 1);
}

// What is not the mean of the parts around it. Beyond a border is what is on it.
Fine detail(const Fine& values) {
    constexpr std::size_t kWide = 2 * kAround + 1;
    const auto near = [](std::size_t at, std::size_t step) {
        return std::min(std::max(at + step, kAround) - kAround, kFine - 1);
    };
    Fine across{}, found = values;
    for (std::size_t y = 0; y < kFine; ++y)
        for (std::size_t x = 0; x < kFine; ++x)
            for (std::size_t step = 0; step < kWide; ++step)
                across[y * kFine + x] += values[y * kFine + near(x, step)];
    for (std::size_t y = 0; y < kFine; ++y)
        for (std::size_t step = 0; step < kWide; ++step)
            for (std::size_t x = 0; x < kFine; ++x)
                found[y * kFine + x] -= across[near(y, step) * kFine + x] / (kWide * kWide);
    return found;
}

template <std::size_t kSide>
Moments window_of(const Grid<kSide>& first, const Grid<kSide>& second, std::size_t begin) {
    Moments window;
    for (std::size_t y = 0; y < kWindow; ++y)
        for (std::size_t x = 0; x < kWindow; ++x)
            window.add(first[begin + y * kSide + x], second[begin + y * kSide + x]);
    return window;
}

// Counts the windows in which both have the same fine detail.
double same_details(const Fine& first, const Fine& second) {
    const Fine one = detail(first), two = detail(second);
    double count = 0;
    for (std::size_t row = 0; row + kWindow <= kFine; row += kStride)
        for (std::size_t column = 0; column + kWindow <= kFine; column += kStride) {
            const Moments window = window_of<kFine>(one, two, row * kFine + column);
            count += std::max(window.variance(), window.other_variance()) >= kFineDetail &&
                     window.correlation() >= kSameDetail;
        }
    return count;
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
                const Moments window = window_of<kParts>(first, second, begin);
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
        take<kParts>(box, at, one_, two_);
        return correlation(one_, two_);
    }

    void refine(Placement& at) {
        double best = correlation_at(at);
        if (best < kWorthRefining)
            return;
        for (double step = kFirstStep; step > kLastStep; step /= 2)
            for (int round = 0; round < 3 && moved(at, step, best); ++round) {
            }
        if (best >= kWorthLeaning && best < kUpright)
            lean(at, best);
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
        take<kParts>(inner, at, one_, two_);
        found.correlation = correlation(one_, two_);
        Windows windows;
        windows.add(one_, two_, found);
        found.inside = windows.correlation(one_, two_);
        if (found.agreeing < kWorthCounting * found.windows)
            return found;
        Fine one, two;
        take<kFine>(windows.without_sides(inner), at, one, two);
        compare_frequencies(one, two, found);
        found.details = same_details(one, two);
        return found;
    }

  private:
    template <std::size_t kSide>
    void take(const Box& box, const Placement& at, Grid<kSide>& one, Grid<kSide>& two) const {
        averages_of<kSide>(first_sums_, box, one);
        if (at.across_lean == 0 && at.down_lean == 0)
            averages_of<kSide>(second_sums_, placed(box, at), two);
        else
            leaning_averages<kSide>(second_sums_, placed(box, at), box, at, two);
    }

    // Takes another placement if it is better by as much as `more`.
    bool take_better(const Placement& other, Placement& at, double& best, double more) {
        const double value = correlation_at(other);
        if (value <= best + more)
            return false;
        best = value;
        at = other;
        return true;
    }

    // An image that was turned a little leans across, and in the opposite direction down. How far
    // depends on its shape.
    void lean(Placement& at, double& best) {
        const Placement upright = at;
        bool any = false;
        for (const double lean : kLeans) {
            Placement other = upright;
            other.across_lean = -lean;
            other.down_lean = lean;
            any |= take_better(other, at, best, any ? 0 : kBetterLeaning);
        }
        if (!any)
            return;
        for (double step = kFirstLean; step > kLastStep; step /= 2)
            for (int round = 0; round < 3 && leaned(at, step, best); ++round) {
            }
    }

    // Whether a little more or less of a lean is better, or a step in any direction.
    bool leaned(Placement& at, double step, double& best) {
        bool any = false;
        for (const double change : {-step, step}) {
            Placement other = at;
            other.across_lean += change;
            any |= take_better(other, at, best, kBetter);
            other = at;
            other.down_lean += change;
            any |= take_better(other, at, best, kBetter);
        }
        return moved(at, step, best) || any;
    }

    // Whether one step in any direction is better; then it is taken.
    bool moved(Placement& at, double step, double& best) {
        bool any = false;
        const auto accept = [&](const Placement& other) {
            any |= take_better(other, at, best, kBetter);
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
