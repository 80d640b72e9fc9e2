#include "images/averages.hpp"

#include <vector>

namespace lookalike::images {

namespace {

constexpr std::int64_t kLevel = 256;  // units of a gray level

// What of a block lies in a part: in pixels, times the number of parts.
struct Share {
    std::size_t block, part;
    double size;
};

std::vector<Share> shares(const Axis& axis, std::size_t parts) {
    const auto count = static_cast<std::int64_t>(parts);
    const std::int64_t blocks = axis.blocks();
    std::vector<Share> found;
    found.reserve(static_cast<std::size_t>(blocks) + parts);
    std::int64_t part = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
        std::int64_t at = axis.edge(block) * count;
        const std::int64_t end = axis.edge(block + 1) * count;
        while (at < end) {
            const std::int64_t part_end = (part + 1) * axis.pixels;
            const std::int64_t until = std::min(end, part_end);
            found.push_back({static_cast<std::size_t>(block), static_cast<std::size_t>(part),
                             static_cast<double>(until - at)});
            at = until;
            part += at == part_end;
        }
    }
    return found;
}

}  // namespace

// All numbers are whole and far below 2**53: sums of doubles are exact, whatever their order.
void averages(const Blocks& blocks, std::size_t rows, std::size_t columns, std::int64_t* grid) {
    const auto width = static_cast<std::size_t>(blocks.columns.blocks());
    const std::int64_t pixels = blocks.rows.pixels * blocks.columns.pixels;
    std::vector<double> down(rows * width);
    for (const Share& share : shares(blocks.rows, rows)) {
        const std::uint8_t* const gray = blocks.gray + share.block * width;
        double* const sums = down.data() + share.part * width;
        for (std::size_t x = 0; x < width; ++x)
            sums[x] += share.size * gray[x];
    }
    const std::vector<Share> across = shares(blocks.columns, columns);
    std::vector<double> sums(columns);
    for (std::size_t row = 0; row < rows; ++row) {
        std::fill(sums.begin(), sums.end(), 0);
        for (const Share& share : across)
            sums[share.part] += share.size * down[row * width + share.block];
        for (std::size_t column = 0; column < columns; ++column)
            grid[row * columns + column] =
                quotient(static_cast<std::int64_t>(sums[column]) * kLevel + pixels / 2, pixels);
    }
}

}  // namespace lookalike::images
