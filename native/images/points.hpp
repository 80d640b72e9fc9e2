// Points of an image that stay where they are when it is cropped, framed or scaled: bright and dark
// spots of any size. Each has a word, the bits of what is around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "images/averages.hpp"

namespace lookalike::images {

// Positions are in 1/16 of a part of the grid that the image is averaged over. Sizes are powers of
// 2 in 1/24, so that twice as large is 24 more.
struct Points {
    std::vector<std::uint32_t> words;
    std::vector<std::int32_t> across, down, sizes;
};

inline constexpr std::size_t kLeastSide = 16;  // parts of a grid, each way
inline constexpr int kStepsOfSize = 24;        // per doubling

// The most points of an image of rows × columns parts, the clearest first.
//
// The image is blurred by ever wider bells, a third of a doubling apart. A point is where the
// difference of two neighboring ones is larger, or less, than at all 26 neighbors in place and
// width, and is not an edge. The word of a point is the signs of the 32 lowest frequencies of the
// square around it, 12 bells wide, averaged over 8 × 8 parts. A point whose square is not wholly in
// the image is left out.
Points points(const Blocks& blocks, std::size_t rows, std::size_t columns, std::size_t most);

}  // namespace lookalike::images
