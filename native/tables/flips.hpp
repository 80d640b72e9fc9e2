// Probabilistic search (Sood and Loguinov; PSM): one sorted table, looked up with the query's
// header and with those that differ from it in the bits most likely to have flipped.
#pragma once

#include "tables/flip_loops.hpp"
#include "tables/sorted_table.hpp"

namespace lookalike::search {

struct NotFinite : std::runtime_error {
    explicit NotFinite(std::size_t of)
        : std::runtime_error("weights that are not finite"), query(of) {}

    std::size_t query;
};

// The weights of each query, as many as its signature has bits; at most one of them is there.
struct FlipWeights {
    const float* floats = nullptr;
    const std::int16_t* units = nullptr;
    const std::uint32_t* sets = nullptr;  // or the sets themselves, `flips` in a row: flip_choices
    std::size_t stride = 0;               // bits of a signature
    std::size_t from = 0;                 // the first one of the header

    bool given() const { return floats != nullptr || units != nullptr; }
};

struct FlipSettings {
    std::uint32_t radius;
    std::uint64_t flips;  // number of sets that are tried after the query's own header
    bool first;           // stop at the first match of each query
    bool differences;     // give the headers' differences from the query's in place of ids
};

// Signatures within the radius whose header is one of those tried, sorted by (distance, id); with
// `first` at most one a query, the first that is met. Sets are tried in the order of VOSH; without
// weights all bits cost the same, so that small sets come first, and among these low positions. All
// sets of up to `radius` bits: complete.
Matches flip_within(const SortedTable& table, const std::int64_t* ids, const Signatures& queries,
                    const FlipWeights& weights, const FlipCosts& costs,
                    const FlipSettings& settings, std::size_t limit, std::size_t threads,
                    const bits::Checkpoint& checkpoint);

// The first `wanted` sets of each query, wanted in a row, as numbers to be xored with its header:
// at most Candidates::kMostSets of at most 32 bits. `flip_within` takes them, for queries that are
// asked several times, or in another order than that of their weights: those of query i go to place
// places[i], or, without `places`, i.
void flip_choices(std::size_t queries, const FlipWeights& weights, const std::uint32_t* places,
                  const FlipCosts& costs, std::size_t bits, std::size_t most, std::size_t wanted,
                  std::size_t threads, const bits::Checkpoint& checkpoint, std::uint32_t* sets);

// Which attempt looks up each difference, bits `from` on of the signature: 0 if there is none,
// 1 for the first set; -1 if it has more than `most` bits. `bits` at most 64.
void flip_attempts(std::size_t count, const FlipWeights& weights, const FlipCosts& costs,
                   std::size_t bits, std::size_t most, const std::uint64_t* differences,
                   std::size_t threads, const bits::Checkpoint& checkpoint, std::int64_t* attempts);

}  // namespace lookalike::search
