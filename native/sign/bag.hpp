// A document as a bag of features: what every signer starts from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/features.hpp"

namespace lookalike::sign {

struct Bag {
    std::vector<std::uint64_t> features;
    std::vector<double> weights;  // of each feature; empty: all 1

    // Features of one kind, up to `end`; whatever their weights come to is taken `factor` times.
    struct Run {
        std::size_t end;
        double factor;
    };
    std::vector<Run> runs;  // empty: there is one kind

    void clear() {
        features.clear();
        weights.clear();
        runs.clear();
    }

    // Whether each occurrence of a feature counts 1.
    bool counts_alone() const {
        return weights.empty() && std::all_of(runs.begin(), runs.end(),
                                              [](const Run& run) { return run.factor == 1; });
    }
};

// Documents that can be read as bags, by many threads at once.
class Source {
  public:
    virtual ~Source() = default;
    virtual std::size_t size() const = 0;
    // Adds what the document has to the bag.
    virtual void append(std::size_t document, text::Scratch& scratch, Bag& bag) const = 0;

    void read(std::size_t document, text::Scratch& scratch, Bag& bag) const {
        bag.clear();
        append(document, scratch, bag);
    }

    // The first document with a weight below 0; -1 if there is none, as in texts.
    virtual std::int64_t first_below_zero() const { return -1; }
};

// Texts; they and the options must outlive this.
class TextSource : public Source {
  public:
    TextSource(const std::vector<std::string_view>& texts, const text::FeatureOptions& options,
               std::shared_ptr<const text::Stems> stems)
        : texts_(texts), options_(options), stems_(std::move(stems)) {}

    std::size_t size() const override { return texts_.size(); }
    void append(std::size_t document, text::Scratch& scratch, Bag& bag) const override {
        text::extract(texts_[document], options_, *stems_, scratch, bag.features);
        if (!bag.weights.empty())
            bag.weights.resize(bag.features.size(), 1.0);
    }

  private:
    const std::vector<std::string_view>& texts_;
    const text::FeatureOptions& options_;
    std::shared_ptr<const text::Stems> stems_;
};

// Ready-made features: those of document i are at offsets[i] to offsets[i + 1].
class ReadySource : public Source {
  public:
    ReadySource(const std::int64_t* offsets, std::size_t documents, const std::uint64_t* features,
                const double* weights)
        : offsets_(offsets), documents_(documents), features_(features), weights_(weights) {}

    std::size_t size() const override { return documents_; }
    void append(std::size_t document, text::Scratch&, Bag& bag) const override {
        const std::int64_t begin = offsets_[document], end = offsets_[document + 1];
        bag.weights.resize(bag.features.size(), 1.0);
        bag.features.insert(bag.features.end(), features_ + begin, features_ + end);
        bag.weights.insert(bag.weights.end(), weights_ + begin, weights_ + end);
    }
    std::int64_t first_below_zero() const override {
        std::size_t document = 0;
        for (std::int64_t at = 0; at < offsets_[documents_]; ++at)
            if (weights_[at] < 0) {
                while (offsets_[document + 1] <= at)
                    ++document;
                return static_cast<std::int64_t>(document);
            }
        return -1;
    }

  private:
    const std::int64_t* offsets_;
    std::size_t documents_;
    const std::uint64_t* features_;
    const double* weights_;
};

}  // namespace lookalike::sign
