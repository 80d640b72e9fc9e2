#include "images/bits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lookalike::images {

Bits::Bits(Waves waves, std::int64_t least)
    : rows_(waves.size),
      columns_(waves.size),
      least_(least),
      waves_(std::move(waves)),
      by_place_(waves_.values.size()) {
    for (std::size_t wave = 0; wave < waves_.count; ++wave)
        for (std::size_t x = 0; x < waves_.size; ++x)
            by_place_[x * waves_.count + wave] = waves_.values[wave * waves_.size + x];
}

Bits::Bits(std::size_t rows, std::size_t columns, std::int64_t least)
    : rows_(rows), columns_(columns), least_(least), waves_{} {}

// Loops over neighboring doubles, each of which has a sum of its own: compilers make vectors of
// these, and need not change the order of additions for it.
std::vector<double> Bits::heights(const std::vector<std::int64_t>& grid) const {
    const std::size_t size = waves_.size, count = waves_.count;
    const std::vector<double> values(grid.begin(), grid.end());
    std::vector<double> line(size), all(count * count), found(waves_.down.size());
    for (std::size_t down = 0; down < count; ++down) {
        std::fill(line.begin(), line.end(), 0);
        for (std::size_t y = 0; y < size; ++y) {
            const double factor = waves_.values[down * size + y];
            for (std::size_t x = 0; x < size; ++x)
                line[x] += factor * values[y * size + x];
        }
        double* const across = all.data() + down * count;
        for (std::size_t x = 0; x < size; ++x)
            for (std::size_t wave = 0; wave < count; ++wave)
                across[wave] += line[x] * by_place_[x * count + wave];
    }
    for (std::size_t bit = 0; bit < found.size(); ++bit)
        found[bit] = all[waves_.down[bit] * count + waves_.across[bit]];
    return found;
}

std::size_t Bits::sign(const Blocks& blocks, std::uint8_t* signature) const {
    std::vector<std::int64_t> grid(rows_ * columns_);
    averages(blocks, rows_, columns_, grid.data());
    std::vector<double> high;
    if (waves_.size) {
        high = heights(grid);
    } else {
        high.reserve(count());
        for (std::size_t at = 1; at < grid.size(); ++at)
            if (at % columns_)
                high.push_back(static_cast<double>(grid[at] - grid[at - 1]));
    }
    const auto least = static_cast<double>(least_);
    std::size_t clear = 0;
    std::fill(signature, signature + high.size() / 8, std::uint8_t{0});
    for (std::size_t bit = 0; bit < high.size(); ++bit) {
        signature[bit / 8] |= static_cast<std::uint8_t>((high[bit] > least) << bit % 8);
        clear += std::abs(high[bit]) >= 2 * least;
    }
    return clear;
}

}  // namespace lookalike::images
