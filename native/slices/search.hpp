// Searching slice lists (Chappell, Geva and Zuccon): nearest neighbors by score and re-ranking,
// and everything within a radius by the general pigeonhole principle.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "bits/threads.hpp"
#include "slices/lists.hpp"

namespace lookalike::search {

// A part of a collection, with lists or, if it is small, without: then its signatures are scored
// one by one, to the same result.
struct Segment {
    Collection collection;
    const std::uint8_t* removed;  // a byte per row, not 0: taken out; null: none is
    std::size_t alive;            // rows that are not taken out
    std::variant<std::monostate, SliceLists<std::uint32_t>, SliceLists<std::uint64_t>> lists;

    bool has_lists() const { return lists.index() != 0; }
    bool is_removed(std::size_t row) const { return removed != nullptr && removed[row] != 0; }
};

// Which candidates get their true distance. A score says how near a signature may be (optimistic)
// and how far away (pessimistic: as many bits as do not add to the score).
enum class Cull {
    pessimistic,  // the `rerank` nearest by the pessimistic distance: those with the best scores
    optimistic,   // the `rerank` nearest by the optimistic distance, then by score
    both,         // those that may be nearer than the k-th is at most; at most `rerank`, by score
};

struct NearestSettings {
    std::size_t k;
    std::size_t
        expand;  // bits in which the values of the lists that are read may differ (the paper's i)
    std::size_t admit;   // lists that differ in more bits bring in no new candidates (j)
    std::size_t rerank;  // number of candidates, best score first, whose distance is computed
    bool exact;          // go on until the answer is proven, or scan
    bool or_scan;        // scan where lists would take longer
    bool explain;        // count candidates, which takes a sweep over all scores
    bool by_score;       // no true distances: the k best by (score, id) are the answer
    Cull cull = Cull::pessimistic;
};

// One row per query each; unused places are -1.
struct NearestOutput {
    std::int64_t* ids;         // k
    std::int32_t* distances;   // k; all -1 if true distances were not requested
    std::int32_t* scores;      // k
    std::int32_t* rest;        // the best score that was not re-ranked; -1: there is none
    std::uint8_t* exact;       // 1: no other signature can be among the k nearest
    std::int64_t* lists;       // read
    std::int64_t* postings;    // read
    std::int64_t* candidates;  // signatures with a score, if explained
    std::int64_t* reranked;    // true distances computed
    std::int64_t* expanded;    // the largest number of differing bits that was read
};

// Candidate: a signature that has a slice within `admit` bits of the query's. Score: the sum, over
// slices within `expand` bits, of the bits that agree. The `rerank` best by (score, id), or those
// that `cull` says, get their true distance; of those the k nearest by (distance, id) are the
// answer. It does not depend on the number of threads, nor on how the collection is cut into
// segments. Where a query is scanned, all bits are compared, as if slices of any number of
// differing bits had been read. By score, the k best by (score, id) are the answer, in that order,
// and nothing is proven.
void slice_nearest(const Slicing& slicing, const std::vector<Segment>& segments,
                   const Signatures& queries, const NearestSettings& settings, std::size_t threads,
                   const bits::Checkpoint& checkpoint, const NearestOutput& output);

// The least distance that a signature of that score can have, for every score from 0 to bits, given
// that slices up to `expand` bits away were read. A lower score may allow a lesser distance: 11 of
// two slices of 8 bits takes both, each with bits that differ; 8 can be one of them, all equal.
std::vector<std::int32_t> optimistic_distances(const Slicing& slicing, std::size_t expand);

// Signatures that were not seen have no slice within `admit` bits: their least distance.
std::int64_t least_unseen(const Slicing& slicing, std::size_t admit);

// The lowest score whose signatures may be as near as the k-th, of scores up to `rest`, the best of
// those that got no true distance (none: all did); 0 if there is none. Scores need not be in the
// order of what they allow, so all up to it count. Without a k-th, everything is near enough.
std::uint32_t lowest_doubtful(const std::vector<std::int32_t>& optimistic,
                              std::optional<std::uint32_t> rest, std::optional<std::int64_t> kth);

// Whether no signature that was not seen, or got no true distance, can be as near as the k-th.
bool nothing_is_nearer(const Slicing& slicing, const std::vector<std::int32_t>& optimistic,
                       std::size_t admit, std::optional<std::uint32_t> rest,
                       std::optional<std::int64_t> kth);

struct WithinWork {
    std::int64_t lists = 0, postings = 0, verified = 0;
};

// Everything within `radius`, sorted by (distance, id), never incomplete. Per query each position
// gets a threshold t >= -1 such that the sum of t + 1 is radius + 1: then whatever is near enough
// has a slice within its threshold. Thresholds are shared out by the lengths of lists; where that
// would cost more than a scan, the scan runs. `work` gets what each query took.
Matches slice_within(const Slicing& slicing, const std::vector<Segment>& segments,
                     const Signatures& queries, std::uint32_t radius, std::size_t limit,
                     std::size_t threads, const bits::Checkpoint& checkpoint,
                     std::vector<WithinWork>& work);

}  // namespace lookalike::search
