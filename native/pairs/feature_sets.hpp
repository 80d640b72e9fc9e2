// From documents to sets of numbered features: two passes over the documents, and what lies in
// memory are the features that two of them share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pairs/sets.hpp"
#include "sign/signers.hpp"

namespace lookalike::search {

// Call `observe` for all documents, part by part, then `add` for the same parts in the same order,
// then `finish`. The result does not depend on threads.
class FeatureSets {
  public:
    // `kind` is uniform, for sets without weights, count, or idf, for weights by rarity; with idf
    // or uniform, elements of more than `common` documents weigh nothing. `expected` is as for
    // RepeatedFeatures. `add` throws TooManyResults when documents have more than `most` shared
    // features in all.
    FeatureSets(sign::WeightKind kind, std::size_t expected, std::size_t most,
                std::uint64_t common = sign::kNeverCommon);
    FeatureSets(const FeatureSets&) = delete;
    FeatureSets& operator=(const FeatureSets&) = delete;

    void observe(const sign::Source& source, sign::Work work);
    void add(const sign::Source& source, sign::Work work);
    Sets finish(std::size_t threads, const bits::Checkpoint& checkpoint);

    std::size_t count() const { return sizes_.size(); }
    bool weighted() const { return kind_ == sign::WeightKind::count; }
    bool by_frequency() const { return !frequency_weights_.plain(); }

  private:
    struct Document {
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
        std::uint32_t size = 0;
        double length = 0;
    };
    struct Numbers;

    std::vector<double> weigh_documents(const Numbers& numbers, std::size_t threads,
                                        const bits::Checkpoint& checkpoint);
    Numbers number_features(std::size_t threads, const bits::Checkpoint& checkpoint);

    sign::WeightKind kind_;
    std::size_t most_;
    sign::FrequencyWeights frequency_weights_;
    sign::RepeatedFeatures repeated_;
    std::vector<std::uint64_t> features_;
    std::vector<double> weights_;
    std::vector<std::uint64_t> offsets_{0};
    std::vector<std::uint32_t> sizes_;
    std::vector<double> lengths_;
};

}  // namespace lookalike::search
