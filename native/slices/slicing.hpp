// How signatures are cut into slices, and the values near a slice's value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/bit_field.hpp"

namespace lookalike::search {

// The lowest bits of a word.
inline std::uint32_t low_bits(std::size_t width) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
}

// Slices of a signature, one behind the other from its first bit on. They need not reach its end:
// bits behind them count in distances, but no list is about them.
class Slicing {
  public:
    static constexpr std::size_t kMostSliceBits = 32;

    // As few slices of at most `slice_bits` bits as cover the signature, as equal as can be: the
    // first ones have w bits, the others w - 1.
    static std::vector<std::size_t> equal_widths(std::size_t bits, std::size_t slice_bits) {
        const std::size_t count = (bits + slice_bits - 1) / slice_bits;
        std::vector<std::size_t> widths(count, bits / count);
        std::fill_n(widths.begin(), bits % count, bits / count + 1);
        return widths;
    }
    Slicing(std::size_t bits, std::size_t slice_bits)
        : Slicing(bits, equal_widths(bits, slice_bits)) {}

    // Slices of these widths. Lists of a position are found by the highest `directory` bits of a
    // value, or by all if it has fewer.
    Slicing(std::size_t bits, const std::vector<std::size_t>& widths,
            std::size_t directory = kMostSliceBits)
        : bits_(bits) {
        slices_.reserve(widths.size() + 1);
        std::size_t start = 0, lists = 0;
        for (const std::size_t width : widths) {
            const std::size_t told = std::min(width, directory);
            slices_.push_back({start, width, width - told, lists});
            start += width;
            lists += std::size_t{1} << std::min<std::size_t>(told, 48);  // wider ones have no lists
            widest_ = std::max(widest_, width);
            narrowest_ = std::min(narrowest_, width);
        }
        slices_.push_back({start, 0, 0, lists});
    }

    bool operator==(const Slicing&) const = default;

    std::size_t bits() const { return bits_; }  // of a signature
    std::size_t count() const { return slices_.size() - 1; }
    std::size_t width(std::size_t position) const { return slices_[position].width; }
    std::size_t widest() const { return widest_; }
    std::size_t narrowest() const { return narrowest_; }
    std::size_t start(std::size_t position) const { return slices_[position].start; }

    // The lowest bits of a value that do not tell where its list is looked for.
    std::size_t untold(std::size_t position) const { return slices_[position].untold; }
    bool is_dense() const {
        return std::all_of(slices_.begin(), slices_.end(),
                           [](const Slice& one) { return one.untold == 0; });
    }

    // How many places of a directory there are at positions before this one: one for each list, or
    // for all lists whose values differ in untold bits.
    std::size_t lists_before(std::size_t position) const { return slices_[position].lists_before; }

    std::uint32_t value(const std::uint8_t* signature, std::size_t position) const {
        return static_cast<std::uint32_t>(bits_from(signature, bits_ / 8, start(position))) &
               low_bits(width(position));
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
    struct Slice {
        std::size_t start, width, untold, lists_before;
        bool operator==(const Slice&) const = default;
    };

    std::size_t bits_;
    std::size_t widest_ = 0, narrowest_ = SIZE_MAX;
    std::vector<Slice> slices_;  // and one behind the last
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
