// Sweeps over scores, sketches, keys and words, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"

namespace lookalike::search {

struct WordPair {
    std::uint32_t left, right, distance;
};

// The slices of a query, to be compared with those of signatures. Arrays have room for a multiple
// of 16 slices; what is behind the last has a mask and a width of 0.
struct ComparedSlices {
    const std::uint32_t* starts;  // bits before a slice
    const std::uint32_t* values;
    const std::uint32_t* masks;
    const std::uint32_t* widths;
    std::size_t count;
    std::uint32_t widest;
    std::size_t bytes;           // of a signature
    std::uint32_t above, up_to;  // a slice counts if more bits differ than `above`, up to `up_to`
};

struct [[gnu::visibility("hidden")]] ScoreLoops {
    // Writes the places of scores >= least, ascending, and returns how many there are. If there are
    // marks, those whose bit is 0 are passed over; 64 scores a word.
    std::size_t (*collect)(const std::uint8_t* scores, std::size_t count, std::uint8_t least,
                           std::uint64_t* places, const std::uint64_t* marks);
    // How many scores are >= least.
    std::size_t (*count_from)(const std::uint8_t* scores, std::size_t count, std::uint8_t least);
    // Sets bit i where score i is >= least, and clears the others; 64 scores a word.
    void (*mark_from)(const std::uint8_t* scores, std::size_t count, std::uint8_t least,
                      std::uint64_t* marks);
    // Writes the places of sketches that differ from the query's in `cutoff` bits or fewer,
    // ascending, and returns how many there are; at most 2^32 sketches.
    std::size_t (*near_sketches)(const std::uint16_t* sketches, std::size_t count,
                                 std::uint16_t query, std::uint16_t cutoff, std::uint32_t* places);

    // Compares 64-bit words from number `first` on, each with those behind it, and writes those
    // that differ in `cutoff` bits or fewer. Goes on with as many as there is certainly room for
    // (`count` for each), and returns how many were written; `first` is then the next one.
    std::size_t (*near_words)(const std::uint64_t* words, std::size_t count, std::uint32_t cutoff,
                              std::size_t& first, WordPair* pairs, std::size_t room);

    // Moves keys to `marked` for which, of 2^16 bits, the one of the number above the lowest
    // `shift` bits is set, and returns how many there are. The others stay, in front, in order.
    std::size_t (*set_apart)(std::uint32_t* keys, std::size_t count, std::size_t shift,
                             const std::uint32_t* bits, std::uint32_t* marked);
    // How many keys are at most `limit`.
    std::size_t (*count_up_to)(const std::uint32_t* keys, std::size_t count, std::uint32_t limit);
    // Copies those that are more than `limit` by up to `more`, and returns how many there are.
    // There is room for 16 more of them.
    std::size_t (*copy_near)(const std::uint32_t* keys, std::size_t count, std::uint32_t limit,
                             std::uint32_t more, std::uint32_t* to);
    // Moves those up to the limit to the front, in order, and returns how many there are.
    std::size_t (*keep_up_to)(std::uint32_t* keys, std::size_t count, std::uint32_t limit);

    // The bits that agree in slices that count, of each of these rows.
    void (*compare_slices)(const std::uint8_t* signatures, const ComparedSlices& query,
                           const std::uint64_t* rows, std::size_t count, std::uint32_t* scores);
    // How many slices of a row are compared at once, if each is at a place known before; else 1.
    std::size_t (*compared_at_once)(const ComparedSlices& query);

#define SET(name, ...) static const ScoreLoops name;
#include "bits/instruction_sets.inc"
};

inline const ScoreLoops& score_loops() {
    return bits::chosen<ScoreLoops>();
}

}  // namespace lookalike::search
