// How signatures are cut into slices, and the values near a slice's value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/bit_field.hpp"

namespace lookalike::search {

// As few slices of at most `slice_bits` bits as cover the signature, as equal as can be: the first
// ones have w bits, the others w - 1.
class Slicing {
  public:
    static constexpr std::size_t kMostSliceBits = 28;

    Slicing(std::size_t bits, std::size_t slice_bits)
        : bits_(bits),
          count_((bits + slice_bits - 1) / slice_bits),
          wide_(bits % count_),
          narrow_width_(bits / count_) {}

    bool operator==(const Slicing&) const = default;

    std::size_t bits() const { return bits_; }
    std::size_t count() const { return count_; }
    std::size_t width(std::size_t position) const {
        return narrow_width_ + (position < wide_ ? 1 : 0);
    }
    std::size_t widest() const { return width(0); }
    std::size_t start(std::size_t position) const {
        return position * narrow_width_ + (position < wide_ ? position : wide_);
    }

    // How many lists there are at positions before this one.
    std::size_t lists_before(std::size_t position) const {
        const std::size_t wide = position < wide_ ? position : wide_;
        return (wide << widest()) + ((position - wide) << narrow_width_);
    }

    std::uint32_t value(const std::uint8_t* signature, std::size_t position) const {
        return static_cast<std::uint32_t>(bits_from(signature, bits_ / 8, start(position))) &
               ((1u << width(position)) - 1);
    }

    // Sketches: kSketchBits bits beside a slice, kept with each posting, tell most rows of a list
    // apart from a query without looking at their signatures. Signatures of fewer bits have no
    // room for them, much wider ones differ too much for so few bits to tell.
    static constexpr std::size_t kSketchBits = 16;
    bool has_sketches() const { return bits_ >= 64 && bits_ < 128; }

    // Where the bits of the sketch begin: behind the slice, or, if that is the end, before it.
    std::size_t sketch_start(std::size_t position) const {
        const std::size_t end = start(position) + width(position);
        return end + kSketchBits <= bits_ ? end : start(position) - kSketchBits;
    }
    std::uint16_t sketch(const std::uint8_t* signature, std::size_t position) const {
        return static_cast<std::uint16_t>(bits_from(signature, bits_ / 8, sketch_start(position)));
    }

  private:
    std::size_t bits_, count_;
    std::size_t wide_;          // the number of slices that have a bit more
    std::size_t narrow_width_;  // than this
};

// All values of `width` bits with up to `most` ones, by number of ones: xor one with a slice's
// value and the result differs in that many bits. `ends[e]` is behind the last one with e ones.
struct Variants {
    std::vector<std::uint32_t> values;
    std::vector<std::size_t> ends;

    Variants(std::size_t width, std::size_t most) {
        for (std::size_t ones = 0; ones <= std::min(width, most); ++ones) {
            const std::uint64_t limit = std::uint64_t{1} << width;
            std::uint64_t value = (std::uint64_t{1} << ones) - 1;
            while (value < limit) {
                values.push_back(static_cast<std::uint32_t>(value));
                if (value == 0)
                    break;
                // The next number with as many ones (Gosper).
                const std::uint64_t lowest = value & -value, carried = value + lowest;
                value = carried | (((value ^ carried) / lowest) >> 2);
            }
            ends.push_back(values.size());
        }
        ends.resize(most + 1, values.size());
    }
};

// C(n, k), as a double because it only serves to weigh costs.
inline double choose(std::size_t n, std::size_t k) {
    double result = 1;
    for (std::size_t step = 0; step < k; ++step)
        result = result * static_cast<double>(n - step) / static_cast<double>(step + 1);
    return result;
}

// How many values of a slice differ from a query's in at most `expand` bits.
inline double lists_near(std::size_t width, std::size_t expand) {
    double lists = 0;
    for (std::size_t ones = 0; ones <= std::min(expand, width); ++ones)
        lists += choose(width, ones);
    return lists;
}

}  // namespace lookalike::search
