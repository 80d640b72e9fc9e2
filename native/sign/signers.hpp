// From bags of features to signatures. All functions give the same result on every machine and for
// any number of threads; outputs have a row per document.
#pragma once

#include <cstdint>
#include <vector>

#include "bits/threads.hpp"
#include "sign/bag.hpp"
#include "sign/weights.hpp"

namespace lookalike::sign {

struct Work {
    std::size_t threads;
    const bits::Checkpoint& checkpoint;
};

// How many features each document has, repetitions included.
void count_features(const Source& source, Work work, std::int64_t* counts);

// How many different ones.
void count_distinct(const Source& source, Work work, std::int64_t* counts);

// What the features of each document weigh together.
void total_weights(const Source& source, WeightKind kind, const Vocabulary* vocabulary, Work work,
                   double* totals);

// The different features of documents, with their weights: those of document d are at offsets[d] to
// offsets[d + 1].
struct FeatureLists {
    std::vector<std::int64_t> offsets;
    std::vector<std::uint64_t> features;
    std::vector<double> weights;
};
FeatureLists list_features(const Source& source, WeightKind kind, const Vocabulary* vocabulary,
                           Work work);

// Algorithm 1 of Sood and Loguinov: bit j is 1 where the weights of features whose hash has bit j,
// minus those of the others, are 0 or more. Word 0 of the hash is the feature itself if `seed` is
// 0. `signatures` has bytes = bits / 8 a row. `sums`, unless null, gets bits floats a row: those
// differences over the Euclidean length of the weights.
void simhash(const Source& source, WeightKind kind, const Vocabulary* vocabulary, std::size_t bytes,
             std::uint64_t seed, Work work, std::uint8_t* signatures, float* sums);

// The same with normal numbers in place of +1 and -1 (eq. 4 of theirs): each 16 random bits choose
// one, by 15 of them from `normals`, which are those above 0 in whole units, ascending; the
// sixteenth is its sign. `unit` is how many units are 1.
void normal_simhash(const Source& source, WeightKind kind, const Vocabulary* vocabulary,
                    std::size_t bytes, std::uint64_t seed, const std::int16_t* normals, double unit,
                    Work work, std::uint8_t* signatures, float* sums);

// Ternary random indexing (Geva and De Vries): of each `density` neighboring positions a feature
// has one that is not 0, +1 in half of these groups and -1 in the others; bit j is 1 where the
// weighted sum is above 0. With `terms_per_part` > 0, a document of more features is signed in
// parts of about equal length, each with at most that many; `parts[i]` is how many rows document i
// has. `masks`, unless null, get a row beside each signature: 1 where the sum is not 0. `sums`,
// unless null, gets bits floats for each document, which is then not cut into parts: those sums
// over the Euclidean length of the weights, times the square root of `density`, so that their
// variance is 1.
void topsig(const Source& source, WeightKind kind, const Vocabulary* vocabulary, std::size_t bytes,
            std::size_t density, std::uint64_t seed, std::size_t terms_per_part, Work work,
            std::vector<std::int64_t>& parts, std::vector<std::uint8_t>& signatures,
            std::vector<std::uint8_t>* masks, float* sums);

// minima[p] = min of (factors[p] * x + terms[p]) modulo 2^32 over the upper halves x of the
// features; 2^32 - 1 for a document without any. Factors are odd, so that each is a permutation.
void minhash(const Source& source, const std::vector<std::uint32_t>& factors,
             const std::vector<std::uint32_t>& terms, Work work, std::uint32_t* minima);

// The same, packed as `pack_minima` does.
void packed_minhash(const Source& source, const std::vector<std::uint32_t>& factors,
                    const std::vector<std::uint32_t>& terms, std::size_t b, Work work,
                    std::uint8_t* signatures);

// The permutations of datasketch: minima[p] becomes the least of itself and of the lower 32 bits of
// (factors[p] * h + terms[p] modulo 2^64) modulo 2^61 - 1, over the hashes h.
void mersenne_minima(const std::uint64_t* hashes, std::size_t count, const std::uint64_t* factors,
                     const std::uint64_t* terms, std::size_t permutations, std::uint64_t* minima);

// Consistent weighted sampling (Ioffe): value p is a hash of a feature and of how often it fits
// into its weight, drawn so that two documents draw the same with a probability that is their
// weighted Jaccard similarity. 2^32 - 1 for a document without weights.
void weighted_minhash(const Source& source, WeightKind kind, const Vocabulary* vocabulary,
                      std::uint64_t seed, std::size_t permutations, Work work,
                      std::uint32_t* values);

// The lowest b bits of each value, packed in order of position: with `mix`, after mixing it with
// its position.
void pack_minima(const std::uint32_t* minima, std::size_t documents, std::size_t permutations,
                 std::size_t b, bool mix, Work work, std::uint8_t* signatures);

// For each pair of packed rows, how many of their values are equal.
void equal_values(const std::uint8_t* left, const std::uint8_t* right, std::size_t rows,
                  std::size_t permutations, std::size_t b, std::int32_t* equal);

// Bit j is 1 where vector · matrix column j is 0 or more; `matrix` is dimensions rows of bits.
// Exact: products are summed in single precision first, and where that is too close to 0 to be sure
// of the sign, once more in double precision in a fixed order.
void project(const float* vectors, std::size_t count, std::size_t dimensions, const float* matrix,
             std::size_t bytes, Work work, std::uint8_t* signatures);

// The same bits, and the products behind them over the length of the vector, in double precision in
// a fixed order throughout: bits floats a row.
void project_with_sums(const float* vectors, std::size_t count, std::size_t dimensions,
                       const float* matrix, std::size_t bytes, Work work, std::uint8_t* signatures,
                       float* sums);

// Pairs of documents: left[i] of one source with right[i] of another, which may be the same.
struct DocumentPairs {
    const Source& left_source;
    const Source& right_source;
    const std::int64_t* left;
    const std::int64_t* right;
    std::size_t count;
};

// Exact Jaccard similarity of the feature sets, 0 if both are empty. Each document that occurs is
// read once.
void jaccard(const DocumentPairs& pairs, Work work, double* similarities);

// Exact weighted Jaccard similarity, likewise: the sum of the lesser weights of all features over
// that of the greater ones.
void weighted_jaccard(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary,
                      Work work, double* similarities);

// Exact containment of the smaller feature set in the larger one, likewise.
void containment(const DocumentPairs& pairs, Work work, double* similarities);

// The same with weights: the sum of the lesser weights over the lesser sum of weights.
void weighted_containment(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary,
                          Work work, double* similarities);

// Exact cosine of the weighted features, likewise.
void cosine(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary, Work work,
            double* similarities);

}  // namespace lookalike::sign
