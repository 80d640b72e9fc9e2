// Exhaustive search: every query against every signature, blocked so that a signature read from
// memory serves many queries while it is in the first-level cache.
//
// All functions give the same answer for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bits/threads.hpp"

namespace lookalike::search {

struct Signatures {
    const std::uint8_t* data;
    std::size_t count;
    std::size_t bytes;  // of one signature, at least 1

    const std::uint8_t* row(std::size_t index) const { return data + index * bytes; }
};

// Queries of which only some bits count, each by a mask of its own: ones where they do.
struct MaskedQueries : Signatures {
    const std::uint8_t* masks;

    const std::uint8_t* mask(std::size_t index) const { return masks + index * bytes; }
};

// A collection to be searched. Ids must be distinct.
struct Collection : Signatures {
    const std::int64_t* ids;  // null: positions are the ids
    bool ascending;           // ids grow with position

    std::int64_t id(std::size_t index) const {
        return ids ? ids[index] : static_cast<std::int64_t>(index);
    }
};

struct Matches {
    std::vector<std::int64_t> offsets;  // of each query's matches; one more at the end
    std::vector<std::int64_t> ids;
    std::vector<std::int32_t> distances;
    std::vector<std::int32_t> unmasked;  // of masked queries, over all bits; else empty
};

struct Pairs {
    std::vector<std::int64_t> left, right;
    std::vector<std::int32_t> distances;
};

struct TooManyResults : std::runtime_error {
    TooManyResults() : std::runtime_error("more results than the limit allows") {}
};

// The k nearest of each query, to rows of k ids and k distances; k is at most how many there are.
void scan_nearest(const Collection& collection, const Signatures& queries, std::size_t k,
                  std::size_t threads, const bits::Checkpoint& checkpoint, std::int64_t* ids,
                  std::int32_t* distances, const std::uint8_t* removed = nullptr);

// Everything within `radius` of each query, sorted by (distance, id).
// Throws TooManyResults as soon as there are more than `limit`. `removed`: a byte per row, not 0
// where it is none of the collection any more; null: all are.
Matches scan_within(const Collection& collection, const Signatures& queries, std::uint32_t radius,
                    std::size_t limit, std::size_t threads, const bits::Checkpoint& checkpoint,
                    const std::uint8_t* removed = nullptr);

// The same by the bits that count: by (masked distance, unmasked distance, id). Distances are the
// masked ones; `unmasked` gets those over all bits.
void scan_nearest_masked(const Collection& collection, const MaskedQueries& queries, std::size_t k,
                         std::size_t threads, const bits::Checkpoint& checkpoint, std::int64_t* ids,
                         std::int32_t* distances, std::int32_t* unmasked,
                         const std::uint8_t* removed = nullptr);
Matches scan_within_masked(const Collection& collection, const MaskedQueries& queries,
                           std::uint32_t radius, std::size_t limit, std::size_t threads,
                           const bits::Checkpoint& checkpoint,
                           const std::uint8_t* removed = nullptr);

// All pairs of the collection within `radius`, each once with left < right, sorted by
// (left, right). Throws TooManyResults as soon as there are more than `limit`.
Pairs scan_pairs(const Collection& collection, std::uint32_t radius, std::size_t limit,
                 std::size_t threads, const bits::Checkpoint& checkpoint);

// out[i * b.count + j] = distance(a[i], b[j])
void scan_all(const Signatures& a, const Signatures& b, std::size_t threads,
              const bits::Checkpoint& checkpoint, std::int32_t* out);

}  // namespace lookalike::search
