// Pairs of a collection within a radius, most of them, by bits that are drawn: signatures that
// agree in all bits of a key, or in all but one, are compared. Those that differ in few bits do so
// for some draw with a chance that does not depend on the data (Indyk and Motwani), but on the
// draws alone.
#pragma once

#include <cstdint>
#include <optional>

#include "scan/scan.hpp"

namespace lookalike::search {

// Numbers of bits, `width` of them in each of `count` draws, at most 64 and distinct within one.
struct Draws {
    const std::int32_t* bits;
    std::size_t count, width;

    std::int32_t bit(std::size_t draw, std::size_t place) const {
        return bits[draw * width + place];
    }
};

// Pairs of positions within the radius, left < right, sorted, that meet in a key: the `key_bits`
// bits that follow each other in a draw, at 0, `key_bits`, ... up to its width. Of its first
// `near_bits` one may differ, the others not. `skipped` as for block_pairs.
// Nothing if that would cost more than `most` nanoseconds by the usual costs of steps.
std::optional<Pairs> drawn_pairs(const Signatures& signatures, const std::uint8_t* skipped,
                                 const Draws& draws, std::size_t key_bits, std::size_t near_bits,
                                 std::uint32_t radius, double most, std::size_t limit,
                                 std::size_t threads, const bits::Checkpoint& checkpoint);

}  // namespace lookalike::search
