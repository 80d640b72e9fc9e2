// From documents to sets of numbered features: two passes over the documents, and what lies in
// memory are the features that two of them share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pairs/sets.hpp"
#include "sign/signers.hpp"
#include "text/hash_map.hpp"

namespace lookalike::search {

// Call `observe` for all documents, part by part, then `add` for the same parts in the same order,
// then `finish`. The result does not depend on threads.
class FeatureSets {
  public:
    // `kind` is uniform, for sets without weights, or count. `expected` is about how many features
    // there are, with repetitions; a wrong guess costs time or memory only. `add` throws
    // TooManyResults when documents have more than `most` shared features in all.
    FeatureSets(sign::WeightKind kind, std::size_t expected, std::size_t most);
    FeatureSets(const FeatureSets&) = delete;
    FeatureSets& operator=(const FeatureSets&) = delete;

    void observe(const sign::Source& source, sign::Work work);
    void add(const sign::Source& source, sign::Work work);
    Sets finish(std::size_t threads, const bits::Checkpoint& checkpoint);

    std::size_t count() const { return sizes_.size(); }
    bool weighted() const { return kind_ != sign::WeightKind::uniform; }

  private:
    struct Document {
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
        std::uint32_t size = 0;
        double length = 0;
    };
    struct Numbers;

    std::size_t place(std::uint64_t feature) const {
        return text::place_in_table(feature, marks_.size() * 32);
    }
    void mark(std::uint64_t feature);
    bool repeated(std::uint64_t feature) const;
    // Inlined, because what only prefetches has no effect in the eyes of GCC, and is left out.
    [[gnu::always_inline]] void prefetch(const std::vector<std::uint64_t>& features) const {
        for (const std::uint64_t feature : features)
            __builtin_prefetch(&marks_[place(feature) / 32], 1, 2);
    }
    Numbers number_features(std::size_t threads, const bits::Checkpoint& checkpoint);

    sign::WeightKind kind_;
    std::size_t most_;
    // A bit for features that came once, and one beside it for those that came again. Some share
    // these bits, so that a few more seem to have come again.
    std::vector<std::atomic<std::uint64_t>> marks_;
    std::vector<std::uint64_t> features_;
    std::vector<double> weights_;
    std::vector<std::uint64_t> offsets_{0};
    std::vector<std::uint32_t> sizes_;
    std::vector<double> lengths_;
};

}  // namespace lookalike::search
