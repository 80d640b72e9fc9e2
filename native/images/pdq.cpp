#include "images/pdq.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace lookalike::images {

namespace {

constexpr std::size_t kGrid = 64, kWaves = 16, kBits = kWaves * kWaves;
constexpr std::size_t kTogether = 8;  // rows whose sums are independent, so that none waits

// Luminance as pdqhash computes it: in double precision, then rounded once.
struct Luma {
    std::array<double, 256> red{}, green{}, blue{};

    Luma() {
        for (std::size_t value = 0; value < 256; ++value) {
            const auto level = static_cast<double>(value);
            red[value] = level * 0.299;
            green[value] = level * 0.587;
            blue[value] = level * 0.114;
        }
    }
};

// Cosine waves of 1 to 16 halves over the grid.
std::array<float, kWaves * kGrid> make_waves() {
    std::array<float, kWaves * kGrid> waves{};
    const float scale = static_cast<float>(std::sqrt(2.0 / kGrid));
    for (std::size_t wave = 0; wave < kWaves; ++wave)
        for (std::size_t at = 0; at < kGrid; ++at)
            waves[wave * kGrid + at] = static_cast<float>(
                static_cast<double>(scale) *
                std::cos(std::numbers::pi / 2.0 / kGrid * static_cast<double>(wave + 1) *
                         static_cast<double>(2 * at + 1)));
    return waves;
}

std::vector<std::size_t> sample_places(std::size_t length) {
    std::vector<std::size_t> places(kGrid);
    for (std::size_t at = 0; at < kGrid; ++at)
        places[at] = static_cast<std::size_t>((static_cast<double>(at) + 0.5) *
                                              static_cast<double>(length) / kGrid);
    return places;
}

// How much neighbors of the grid differ: percents of the range of gray, each rounded towards 0.
int quality_of(const std::vector<float>& grid) {
    int sum = 0;
    const auto add = [&sum](float one, float other) {
        sum += std::abs(static_cast<int>((one - other) * 100.0F / 255.0F));
    };
    for (std::size_t at = 0; at + kGrid < grid.size(); ++at)
        add(grid[at], grid[at + kGrid]);
    for (std::size_t at = 0; at + 1 < grid.size(); ++at)
        if (at % kGrid != kGrid - 1)
            add(grid[at], grid[at + 1]);
    return std::min(sum / 90, 100);
}

std::array<float, kBits> heights_of(const std::vector<float>& grid) {
    static const std::array<float, kWaves * kGrid> waves = make_waves();
    std::array<float, kWaves * kGrid> lines{};
    std::array<float, kBits> heights{};
    for (std::size_t wave = 0; wave < kWaves; ++wave)
        for (std::size_t y = 0; y < kGrid; ++y) {
            const float factor = waves[wave * kGrid + y];
            for (std::size_t x = 0; x < kGrid; ++x)
                lines[wave * kGrid + x] += factor * grid[y * kGrid + x];
        }
    for (std::size_t down = 0; down < kWaves; ++down)
        for (std::size_t x = 0; x < kGrid; ++x)
            for (std::size_t across = 0; across < kWaves; ++across)
                heights[down * kWaves + across] +=
                    lines[down * kGrid + x] * waves[across * kGrid + x];
    return heights;
}

// Bit 255 of the reference comes first, as in its hexadecimal digits.
void write_bits(const std::array<float, kBits>& heights, std::uint8_t* signature) {
    std::array<float, kBits> sorted = heights;
    const auto middle = sorted.begin() + (kBits + 1) / 2 - 1;
    std::nth_element(sorted.begin(), middle, sorted.end());
    const float median = *middle;
    std::fill(signature, signature + kPdqBytes, std::uint8_t{0});
    for (std::size_t bit = 0; bit < kBits; ++bit) {
        const std::size_t place = kBits - 1 - bit;
        signature[place / 8] |=
            static_cast<std::uint8_t>((heights[bit] > median ? 1U : 0U) << place % 8);
    }
}

// A mirrored image has the same waves, those of an odd number of halves upside down.
std::array<float, kBits> turned(const std::array<float, kBits>& heights, bool swap,
                                bool upside_down, bool mirrored) {
    std::array<float, kBits> result{};
    for (std::size_t down = 0; down < kWaves; ++down)
        for (std::size_t across = 0; across < kWaves; ++across) {
            const float height = heights[swap ? across * kWaves + down : down * kWaves + across];
            const bool negative = (upside_down && down % 2 == 0) != (mirrored && across % 2 == 0);
            result[down * kWaves + across] = negative ? -height : height;
        }
    return result;
}

using Sums = std::array<float, kTogether>;

// Calls `use` with each column and its averages in kTogether rows, whose sums advance together.
template <typename Use>
void average_along(const Box& box, const float* rows, std::size_t columns, const Use& use) {
    Sums sums{}, averages{};
    const std::size_t ahead = box.ahead(), window = box.window();
    const auto add = [&](std::size_t x) {
        for (std::size_t row = 0; row < kTogether; ++row)
            sums[row] += rows[row * columns + x];
    };
    const auto subtract = [&](std::size_t x) {
        for (std::size_t row = 0; row < kTogether; ++row)
            sums[row] -= rows[row * columns + x];
    };
    const auto tell = [&](std::size_t x, std::size_t items) {
        const auto count = static_cast<float>(items);
        for (std::size_t row = 0; row < kTogether; ++row)
            averages[row] = sums[row] / count;
        use(x, averages);
    };
    for (std::size_t x = 0; x < window; ++x) {
        add(x);
        if (x >= ahead)
            tell(x - ahead, box.count(x - ahead));
    }
    for (std::size_t x = window; x < columns; ++x) {
        add(x);
        subtract(x - window);
        tell(x - ahead, window);
    }
    for (std::size_t x = columns; x < columns + ahead; ++x) {
        subtract(x - window);
        tell(x - ahead, box.count(x - ahead));
    }
}

// Of each EXIF orientation: whether rows and columns are swapped, then rows reversed, then columns.
constexpr bool kTurns[kPdqOrientations][3] = {
    {false, false, false}, {false, false, true}, {false, true, true}, {false, true, false},
    {true, false, false},  {true, false, true},  {true, true, true},  {true, true, false}};

}  // namespace

Box::Box(std::size_t length)
    : length_(length), window_((length + 2 * kGrid - 1) / (2 * kGrid)), ahead_(window_ / 2) {}

std::size_t Box::count(std::size_t item) const {
    const std::size_t behind = window_ - ahead_ - 1;
    return std::min(item + ahead_ + 1, length_) - (item > behind ? item - behind : 0);
}

RowAverages::RowAverages(std::size_t rows, std::size_t width)
    : box_(rows), width_(width), sums_(width), held_(box_.window() * width) {}

bool RowAverages::add(const float* row, float* result) {
    float* const sums = sums_.data();
    for (std::size_t x = 0; x < width_; ++x)
        sums[x] += row[x];
    if (added_ >= box_.window())
        subtract();
    std::copy_n(row, width_, held_.data() + added_ % box_.window() * width_);
    ++added_;
    if (added_ <= box_.ahead())
        return false;
    write(result);
    return true;
}

void RowAverages::end(float* result) {
    subtract();
    ++added_;
    write(result);
}

// The oldest row is the one whose place the next takes.
void RowAverages::subtract() {
    float* const sums = sums_.data();
    const float* const oldest = held_.data() + added_ % box_.window() * width_;
    for (std::size_t x = 0; x < width_; ++x)
        sums[x] -= oldest[x];
}

void RowAverages::write(float* result) {
    const auto count = static_cast<float>(box_.count(written_++));
    for (std::size_t x = 0; x < width_; ++x)
        result[x] = sums_[x] / count;
}

Pdq::Pdq(std::size_t rows, std::size_t columns)
    : rows_(rows),
      columns_(columns),
      plain_(rows == kGrid && columns == kGrid),
      at_row_(sample_places(rows)),
      at_column_(sample_places(columns)),
      across_(columns),
      first_(rows, columns),
      second_(rows, kGrid),
      gray_(kTogether * columns),
      averaged_(kTogether * columns),
      once_averaged_(kTogether * columns),
      samples_(kTogether * kGrid),
      sampled_result_(kGrid),
      grid_(kGrid * kGrid) {}

void Pdq::feed(const std::uint8_t* pixels, std::size_t rows, std::size_t channels) {
    static const Luma luma;
    while (rows > 0) {
        const std::size_t some = std::min(rows, kTogether);
        const std::size_t count = some * columns_;
        for (std::size_t at = 0; at < count; ++at) {
            if (channels == 1)
                gray_[at] = pixels[at];
            else
                gray_[at] =
                    static_cast<float>(luma.red[pixels[3 * at]] + luma.green[pixels[3 * at + 1]] +
                                       luma.blue[pixels[3 * at + 2]]);
        }
        if (plain_)
            std::copy_n(gray_.data(), count, grid_.data() + fed_ * columns_);
        else
            add_rows(some);
        pixels += count * channels;
        rows -= some;
        fed_ += some;
    }
}

void Pdq::add_rows(std::size_t rows) {
    average_along(across_, gray_.data(), columns_, [&](std::size_t x, const Sums& averages) {
        for (std::size_t row = 0; row < kTogether; ++row)
            averaged_[row * columns_ + x] = averages[row];
    });
    for (std::size_t row = 0; row < rows; ++row)
        if (first_.add(averaged_.data() + row * columns_, next_once_averaged()))
            add_once_averaged();
}

float* Pdq::next_once_averaged() {
    return once_averaged_.data() + waiting_ * columns_;
}

void Pdq::add_once_averaged() {
    if (++waiting_ == kTogether)
        filter_again();
}

// The second filter along rows, of which only the sampled places are needed.
void Pdq::filter_again() {
    std::size_t sample = 0;
    average_along(across_, once_averaged_.data(), columns_,
                  [&](std::size_t x, const Sums& averages) {
                      for (; sample < kGrid && x == at_column_[sample]; ++sample)
                          for (std::size_t row = 0; row < kTogether; ++row)
                              samples_[row * kGrid + sample] = averages[row];
                  });
    for (std::size_t row = 0; row < waiting_; ++row)
        if (second_.add(samples_.data() + row * kGrid, sampled_result_.data()))
            add_twice_averaged(sampled_result_.data());
    waiting_ = 0;
}

void Pdq::add_twice_averaged(const float* row) {
    for (; sampled_ < kGrid && at_row_[sampled_] == row_; ++sampled_)
        std::copy_n(row, kGrid, grid_.data() + sampled_ * kGrid);
    ++row_;
}

int Pdq::finish(std::uint8_t* signatures, std::size_t orientations) {
    if (rows_ < kPdqLeastSide || columns_ < kPdqLeastSide) {
        std::fill(signatures, signatures + orientations * kPdqBytes, std::uint8_t{0});
        return 0;
    }
    if (!plain_) {
        const Box down(rows_);
        for (std::size_t rest = 0; rest < down.ahead(); ++rest) {
            first_.end(next_once_averaged());
            add_once_averaged();
        }
        filter_again();
        for (std::size_t rest = 0; rest < down.ahead(); ++rest) {
            second_.end(sampled_result_.data());
            add_twice_averaged(sampled_result_.data());
        }
    }
    const std::array<float, kBits> heights = heights_of(grid_);
    for (std::size_t turn = 0; turn < orientations; ++turn)
        write_bits(turned(heights, kTurns[turn][0], kTurns[turn][1], kTurns[turn][2]),
                   signatures + turn * kPdqBytes);
    return quality_of(grid_);
}

}  // namespace lookalike::images
