// An image as few gray blocks, and what is averaged over equal parts of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lookalike::images {

// The whole part of a quotient of numbers that are not negative. Doubles are divided several times
// as fast as integers. Below 2**51 they are exact enough: a quotient that is less than a whole
// number is less by 1 / divisor, and they round by a quarter of that at most.
inline std::int64_t quotient(std::int64_t number, std::int64_t divisor) {
    constexpr std::int64_t kExact = std::int64_t{1} << 51;
    if (number >= kExact)
        return number / divisor;
    return static_cast<std::int64_t>(static_cast<double>(number) / static_cast<double>(divisor));
}

// How pixels lie in blocks, in one direction.
struct Axis {
    std::int64_t pixels, block;  // the block at the end may have fewer
    bool turned;                 // the one at the beginning, then

    std::int64_t blocks() const { return (pixels + block - 1) / block; }

    // Where a block begins, or the one before it ends.
    std::int64_t edge(std::int64_t number) const {
        return turned ? pixels - std::min((blocks() - number) * block, pixels)
                      : std::min(number * block, pixels);
    }
};

// The average gray of blocks of pixels, row by row.
struct Blocks {
    const std::uint8_t* gray;
    Axis rows, columns;
};

// The most pixels of which sums, and 256 times these, are exact.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 44;
inline constexpr std::size_t kMostParts = 4096;  // each way

// Writes the average of each of rows × columns equal parts of the image, in 1/256 of a gray level,
// rounded half up. A block on the border of two parts counts for each by what of it lies there.
void averages(const Blocks& blocks, std::size_t rows, std::size_t columns, std::int64_t* grid);

}  // namespace lookalike::images
