// From documents to sets of numbered features: two passes over the documents, and what lies in
// memory are the features that two of them share.
#pragma once

#include <atomic>
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
    // `kind` uniform gives sets without weights. `expected` is about how many features there are,
    // with repetitions; a wrong guess costs time or memory only. `add` throws TooManyResults when
    // shared features would take more than `most_bytes`.
    FeatureSets(sign::WeightKind kind, std::size_t expected, std::size_t most_bytes);
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

    std::size_t place(std::uint64_t feature) const;
    bool repeated(std::uint64_t feature) const;
    Numbers number_features(std::size_t threads, const bits::Checkpoint& checkpoint);

    sign::WeightKind kind_;
    std::size_t most_bytes_;
    // A bit for features that came once, and one for those that came again; some share bits, so
    // that a few more seem to have come again.
    std::vector<std::atomic<std::uint64_t>> seen_, again_;
    std::vector<std::uint64_t> features_;
    std::vector<double> weights_;
    std::vector<std::uint64_t> offsets_{0};
    std::vector<std::uint32_t> sizes_;
    std::vector<double> lengths_;
};

}  // namespace lookalike::search
