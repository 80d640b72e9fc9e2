// The bits of an image hash: which of its waves, or steps from part to part, are high.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "images/averages.hpp"

namespace lookalike::images {

// Waves over a square grid, and which of them are bits.
struct Waves {
    std::size_t size, count;
    std::vector<double> values;             // of count waves at size places each, whole numbers
    std::vector<std::size_t> down, across;  // of each bit, the wave downwards and the one across
};

class Bits {
  public:
    // A bit is 1 where the sum over the grid of its values times a wave downwards times one across
    // is more than `least`. Exact where no sum of absolute products is above 2**53.
    Bits(Waves waves, std::int64_t least);
    // Row by row of the grid, a bit is 1 where a part is more than `least` above its left
    // neighbor, in 1/256 of a gray level.
    Bits(std::size_t rows, std::size_t columns, std::int64_t least);

    std::size_t count() const { return waves_.size ? waves_.down.size() : rows_ * (columns_ - 1); }

    // Writes the bits of an image, the first in the lowest place of the first byte; returns how
    // many are clear: at least twice `least` above or below 0.
    std::size_t sign(const Blocks& blocks, std::uint8_t* signature) const;

  private:
    std::vector<double> heights(const std::vector<std::int64_t>& grid) const;

    std::size_t rows_, columns_;
    std::int64_t least_;
    Waves waves_;
    std::vector<double> by_place_;  // the values of all waves at one place after the other
};

}  // namespace lookalike::images
