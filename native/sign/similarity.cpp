#include <cmath>

#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

struct Entry {
    std::uint64_t feature;
    double weight;
};

// The features of one document, ascending.
struct FeatureVector {
    std::vector<Entry> entries;
    double length = 0;  // Euclidean
};

// One thread's way from a document to its vector.
struct VectorReader {
    Reader reader;
    Weigher weigher;
    std::vector<std::uint64_t> features;
    std::vector<double> weights;

    FeatureVector read(const Source& source, std::size_t document) {
        weigher.weigh(reader.read(source, document), features, weights);
        FeatureVector vector;
        vector.entries.resize(features.size());
        double squares = 0;
        for (std::size_t index = 0; index < features.size(); ++index) {
            vector.entries[index] = {features[index], weights[index]};
            squares += weights[index] * weights[index];
        }
        std::sort(vector.entries.begin(), vector.entries.end(),
                  [](const Entry& a, const Entry& b) { return a.feature < b.feature; });
        vector.length = std::sqrt(squares);
        return vector;
    }
};

// The vectors of those documents of a source that `positions` name; the others stay empty.
std::vector<FeatureVector> read_named(const Source& source,
                                      const std::vector<const std::int64_t*>& positions,
                                      std::size_t count, const Weigher& weigher, Work work) {
    std::vector<bool> named(source.size());
    for (const std::int64_t* list : positions)
        for (std::size_t index = 0; index < count; ++index)
            named[static_cast<std::size_t>(list[index])] = true;
    std::vector<FeatureVector> vectors(source.size());
    const VectorReader initial{{}, weigher, {}, {}};
    per_document(source.size(), work, initial, [&](VectorReader& reader, std::size_t document) {
        if (named[document])
            vectors[document] = reader.read(source, document);
    });
    return vectors;
}

// Reads all documents once, then calls compare(left vector, right vector) for each pair.
template <class Compare>
void compare_pairs(const DocumentPairs& pairs, const Weigher& weigher, Work work,
                   double* similarities, Compare compare) {
    const bool same = &pairs.left_source == &pairs.right_source;
    std::vector<FeatureVector> first, second;
    if (same) {
        first =
            read_named(pairs.left_source, {pairs.left, pairs.right}, pairs.count, weigher, work);
    } else {
        first = read_named(pairs.left_source, {pairs.left}, pairs.count, weigher, work);
        second = read_named(pairs.right_source, {pairs.right}, pairs.count, weigher, work);
    }
    const auto& left = first;
    const auto& right = same ? first : second;
    struct NoState {};
    per_document(pairs.count, work, NoState{}, [&](NoState&, std::size_t pair) {
        similarities[pair] = compare(left[static_cast<std::size_t>(pairs.left[pair])],
                                     right[static_cast<std::size_t>(pairs.right[pair])]);
    });
}

// Calls both(a, b) for each feature that is in both.
template <class Both>
void intersect(const FeatureVector& a, const FeatureVector& b, Both both) {
    auto left = a.entries.begin(), right = b.entries.begin();
    while (left != a.entries.end() && right != b.entries.end()) {
        if (left->feature < right->feature)
            ++left;
        else if (right->feature < left->feature)
            ++right;
        else
            both(*left++, *right++);
    }
}

}  // namespace

void jaccard(const DocumentPairs& pairs, Work work, double* similarities) {
    const Weigher uniform(WeightKind::uniform, nullptr);
    compare_pairs(
        pairs, uniform, work, similarities, [](const FeatureVector& a, const FeatureVector& b) {
            std::size_t common = 0;
            intersect(a, b, [&](const Entry&, const Entry&) { ++common; });
            const std::size_t all = a.entries.size() + b.entries.size() - common;
            return all == 0 ? 0.0 : static_cast<double>(common) / static_cast<double>(all);
        });
}

void weighted_jaccard(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary,
                      Work work, double* similarities) {
    const auto sum = [](const FeatureVector& vector) {
        double total = 0;
        for (const Entry& entry : vector.entries)
            total += entry.weight;
        return total;
    };
    compare_pairs(pairs, Weigher(kind, vocabulary), work, similarities,
                  [&](const FeatureVector& a, const FeatureVector& b) {
                      double lesser = 0;
                      intersect(a, b, [&](const Entry& x, const Entry& y) {
                          lesser += std::min(x.weight, y.weight);
                      });
                      const double greater = sum(a) + sum(b) - lesser;
                      return greater <= 0 ? 0.0 : std::min(1.0, lesser / greater);
                  });
}

void cosine(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary, Work work,
            double* similarities) {
    compare_pairs(pairs, Weigher(kind, vocabulary), work, similarities,
                  [](const FeatureVector& a, const FeatureVector& b) {
                      double product = 0;
                      intersect(a, b, [&](const Entry& x, const Entry& y) {
                          product += x.weight * y.weight;
                      });
                      const double lengths = a.length * b.length;
                      return lengths == 0 ? 0.0 : std::min(1.0, product / lengths);
                  });
}

}  // namespace lookalike::sign
