// Windows of words that may occur again. Those that are sampled tell which texts to look at
// (`anchors`); of these, all windows whose sample occurs twice are compared by their hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bits/threads.hpp"
#include "repeats/texts.hpp"
#include "repeats/units.hpp"

namespace lookalike::repeats {

// Hashes of windows or units, and the positions where these begin.
struct Hashed {
    std::vector<std::uint64_t> hashes;
    std::vector<Position> positions;
};

// The hashes of sampled windows of texts `begin` to `end`, and how many each text has. Two equal
// runs of `words` words have a sampled window at the same place: see passages/windows.hpp.
struct Anchors {
    std::vector<std::uint64_t> hashes;
    std::vector<std::int64_t> counts;
};
Anchors anchors_of(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                   std::size_t threads, const bits::Checkpoint& checkpoint);

// Sets flags of the hashes that occur more than once, of those whose upper bits say `part` of
// 2^part_bits parts.
void mark_repeated(std::span<const std::uint64_t> hashes, std::size_t part, std::size_t part_bits,
                   std::uint8_t* flags, std::size_t threads, const bits::Checkpoint& checkpoint);

// The windows of `words` words of texts `begin` to `end` whose anchors are flagged; `flags` and
// `counts` are those of `anchors_of`. Only the lower `hash_bits` bits of a hash count.
Hashed flagged_windows(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                       std::span<const std::uint8_t> flags, std::span<const std::int64_t> counts,
                       std::size_t hash_bits, std::size_t threads,
                       const bits::Checkpoint& checkpoint);

// The windows of texts `begin` to `end` that have words from both sides of something that was
// removed: their hashes, and those of their anchors. Both ascend, and none is twice.
struct Joining {
    std::vector<std::uint64_t> hashes, anchors;
};
Joining joining_windows(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                        std::size_t hash_bits, std::size_t threads,
                        const bits::Checkpoint& checkpoint);

// Sets flags of texts that have one of the wanted anchors, which ascend; `anchors` and `counts` are
// those of `anchors_of`.
void mark_texts(std::span<const std::uint64_t> anchors, std::span<const std::int64_t> counts,
                std::span<const std::uint64_t> wanted, std::uint8_t* flags);

// The windows of texts `begin` to `end` with one of these hashes, ascending; only texts with a flag
// are looked at.
Hashed wanted_windows(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                      std::span<const std::uint64_t> wanted, std::span<const std::uint8_t> flags,
                      std::size_t hash_bits, std::size_t threads,
                      const bits::Checkpoint& checkpoint);

// The units of texts `begin` to `end` that have at least `words` words, and not none.
Hashed hashed_units(const Texts& texts, std::size_t begin, std::size_t end, Unit unit,
                    std::size_t words, std::size_t hash_bits, std::size_t threads,
                    const bits::Checkpoint& checkpoint);

// Sorts by hash, then by position.
void sort_hashed(Hashed& hashed, std::size_t threads, const bits::Checkpoint& checkpoint);

// Puts the entries of each of 2^part_bits parts together, by the upper ones of `hash_bits` bits;
// returns where parts begin.
std::vector<std::int64_t> divide(Hashed& hashed, std::size_t part_bits, std::size_t hash_bits);

}  // namespace lookalike::repeats
