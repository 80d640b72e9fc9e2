// A keyword index: which documents have the words of a query, the best by BM25 first?
//
// A segment holds documents in the order of their numbers, and for each word the documents that
// have it. It is not changed once it is built. Segments that follow each other have larger and
// larger numbers. Removed documents stay in a segment until it is merged; they count nowhere.
//
// The score of a document is a sum of whole numbers, one for each word of the query that it has:
//
//   1 + (weight - 1) * count / (count + K1 * (1 - B + B * length / mean length)), rounded down
//
// in single precision, `weight` being ln(1 + (N - n + 0.5) / (n + 0.5)) * 2^16, rounded, at least
// 1, where n of N documents have the word. Sums of whole numbers do not depend on their order, so
// neither segments nor the order of words change a score.
//
// The best documents by these scores get a second look. Each word of the query adds up to 3/10 of
// its weight, in proportion to its pieces (bags.hpp) that the document has, rounded down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lookalike::words {

constexpr float kK1 = 0.6f, kB = 0.75f;
constexpr double kUnit = 65536;
constexpr std::size_t kMostWords = 64;    // of a query
constexpr std::size_t kSecondLook = 100;  // documents
constexpr std::uint64_t kPieceShare = 3, kPieceWhole = 10;

struct Segment {
    std::span<const std::int64_t> numbers;     // ascending
    std::span<const std::uint32_t> lengths;    // sums of counts
    std::span<const std::uint64_t> words;      // hashes, ascending
    std::span<const std::int64_t> offsets;     // of the lists of words, one more than words
    std::span<const std::uint32_t> documents;  // positions in the segment, ascending in each list
    std::span<const std::uint8_t> counts;      // of the word in the document, from 1 on
    std::span<const std::int64_t> piece_offsets;  // of documents, one more than these
    std::span<const std::uint8_t> pieces;         // as bags have them
    std::uint64_t length = 0;                     // the sum of `lengths`
    std::span<const std::uint32_t> removed;       // positions, ascending
};

struct BuiltSegment {
    std::vector<std::int64_t> numbers;
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint64_t> words;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint32_t> documents;
    std::vector<std::uint8_t> counts;
    std::vector<std::int64_t> piece_offsets{0};
    std::vector<std::uint8_t> pieces;
};

// Bag i (bags.hpp) is at offsets[i] to offsets[i + 1] of `bags`.
BuiltSegment build(std::span<const std::int64_t> numbers, std::span<const std::int64_t> offsets,
                   const std::uint8_t* bags);

// One segment of several that follow each other, without removed documents.
BuiltSegment merge(std::span<const Segment> segments);

struct Found {
    std::vector<std::int64_t> numbers;
    std::vector<std::int64_t> scores;
    std::vector<std::uint64_t> has;         // bit i: the document has the word i of the query
    std::vector<std::int64_t> frequencies;  // documents that have each word
    std::vector<std::int64_t> weights;      // of each word
};

// What is looked for: hashes of words, each once, at most kMostWords. The pieces of word i are at
// offsets[i] to offsets[i + 1].
struct Query {
    std::span<const std::uint64_t> words;
    std::span<const std::int64_t> offsets;
    std::span<const std::uint16_t> pieces;
};

// The k documents of the highest scores, those of equal scores by number. Documents that have no
// word of the query are not found. Fewer are the first of more.
Found search(std::span<const Segment> segments, const Query& query, std::size_t k);

}  // namespace lookalike::words
