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

constexpr std::size_t kMuchLarger = 16;

// Calls both(a, b) for each feature that is in both, ascending.
template <class Both>
void intersect(const FeatureVector& a, const FeatureVector& b, Both both) {
    const Entry *left = a.entries.data(), *const left_end = left + a.entries.size();
    const Entry *right = b.entries.data(), *const right_end = right + b.entries.size();
    const auto before = [](const Entry& entry, std::uint64_t feature) {
        return entry.feature < feature;
    };
    if (a.entries.size() * kMuchLarger < b.entries.size()) {
        // Most of the larger one is passed over, in steps that double.
        for (; left != left_end && right != right_end; ++left) {
            std::ptrdiff_t step = 1;
            while (step < right_end - right && right[step].feature < left->feature)
                step *= 2;
            right =
                std::lower_bound(right + step / 2, right + std::min(step + 1, right_end - right),
                                 left->feature, before);
            if (right != right_end && right->feature == left->feature)
                both(*left, *right);
        }
        return;
    }
    // Which one is behind is a coin toss, so that it is better not to guess: both move.
    while (left != left_end && right != right_end) {
        const std::uint64_t one = left->feature, two = right->feature;
        if (one == two)
            both(*left, *right);
        left += one <= two;
        right += two <= one;
    }
}

// The same, whichever is the larger one: for what does not matter which is which.
template <class Both>
void intersect_any(const FeatureVector& a, const FeatureVector& b, Both both) {
    if (a.entries.size() <= b.entries.size())
        intersect(a, b, both);
    else
        intersect(b, a, both);
}

double sum(const FeatureVector& vector) {
    double total = 0;
    for (const Entry& entry : vector.entries)
        total += entry.weight;
    return total;
}

// The sum of the lesser weights of features that are in both.
double lesser_weights(const FeatureVector& a, const FeatureVector& b) {
    double lesser = 0;
    intersect(a, b,
              [&](const Entry& x, const Entry& y) { lesser += std::min(x.weight, y.weight); });
    return lesser;
}

}  // namespace

void jaccard(const DocumentPairs& pairs, Work work, double* similarities) {
    const Weigher uniform(WeightKind::uniform, nullptr);
    compare_pairs(
        pairs, uniform, work, similarities, [](const FeatureVector& a, const FeatureVector& b) {
            std::size_t common = 0;
            intersect_any(a, b, [&](const Entry&, const Entry&) { ++common; });
            const std::size_t all = a.entries.size() + b.entries.size() - common;
            return all == 0 ? 0.0 : static_cast<double>(common) / static_cast<double>(all);
        });
}

void weighted_jaccard(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary,
                      Work work, double* similarities) {
    compare_pairs(pairs, Weigher(kind, vocabulary), work, similarities,
                  [&](const FeatureVector& a, const FeatureVector& b) {
                      const double lesser = lesser_weights(a, b);
                      const double greater = sum(a) + sum(b) - lesser;
                      return greater <= 0 ? 0.0 : std::min(1.0, lesser / greater);
                  });
}

void weighted_containment(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary,
                          Work work, double* similarities) {
    compare_pairs(pairs, Weigher(kind, vocabulary), work, similarities,
                  [&](const FeatureVector& a, const FeatureVector& b) {
                      const double smaller = std::min(sum(a), sum(b));
                      return smaller <= 0 ? 0.0 : std::min(1.0, lesser_weights(a, b) / smaller);
                  });
}

void containment(const DocumentPairs& pairs, Work work, double* similarities) {
    const Weigher uniform(WeightKind::uniform, nullptr);
    compare_pairs(
        pairs, uniform, work, similarities, [](const FeatureVector& a, const FeatureVector& b) {
            std::size_t common = 0;
            intersect_any(a, b, [&](const Entry&, const Entry&) { ++common; });
            const std::size_t smaller = std::min(a.entries.size(), b.entries.size());
            return smaller == 0 ? 0.0 : static_cast<double>(common) / static_cast<double>(smaller);
        });
}

void cosine(const DocumentPairs& pairs, WeightKind kind, const Vocabulary* vocabulary, Work work,
            double* similarities) {
    compare_pairs(pairs, Weigher(kind, vocabulary), work, similarities,
                  [](const FeatureVector& a, const FeatureVector& b) {
                      double product = 0;
                      intersect_any(a, b, [&](const Entry& x, const Entry& y) {
                          product += x.weight * y.weight;
                      });
                      const double lengths = a.length * b.length;
                      return lengths == 0 ? 0.0 : std::clamp(product / lengths, -1.0, 1.0);
                  });
}

}  // namespace lookalike::sign
