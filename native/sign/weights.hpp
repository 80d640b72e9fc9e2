// How much each feature of a document counts, and what has to be learned of a collection for that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/threads.hpp"
#include "sign/bag.hpp"
#include "text/hash_map.hpp"

namespace lookalike::sign {

enum class WeightKind { uniform, count, log_count, tfidf, log_likelihood, idf };

// What a feature weighs by its rarity: log(all / documents), if it is in `documents` of `all`
// documents. In multiples of 2^-16, so that sums are exact, in any order and on every machine.
double rarity(std::uint64_t documents, std::uint64_t all);

constexpr std::uint64_t kNeverCommon = UINT64_MAX;

// Weights that only the number of documents decides: by rarity, or 1 each, and 0 for a feature that
// more than `common` documents have.
struct FrequencyWeights {
    bool by_rarity = false;
    std::uint64_t common = kNeverCommon;

    bool plain() const { return !by_rarity && common == kNeverCommon; }
    double weight(std::uint64_t documents, std::uint64_t all) const {
        return documents > common ? 0 : by_rarity ? rarity(documents, all) : 1;
    }
};

// Which features several documents may have: two bits a place, for those that came once and those
// that came again. Some share a place, so that a few more seem to have come again.
class RepeatedFeatures {
  public:
    // `expected` is about how many features will come, with repetitions; a wrong guess costs time
    // or memory only.
    explicit RepeatedFeatures(std::size_t expected);
    RepeatedFeatures(const RepeatedFeatures&) = delete;
    RepeatedFeatures& operator=(const RepeatedFeatures&) = delete;

    // Marks what all documents of a source have; what one has twice counts as repeated, too.
    void observe(const Source& source, std::size_t threads, const bits::Checkpoint& checkpoint);
    bool repeated(std::uint64_t feature) const {
        const std::size_t at = place(feature);
        return marks_[at / 32].load(std::memory_order_relaxed) >> (2 * (at % 32) + 1) & 1;
    }
    // Inlined, because what only prefetches has no effect in the eyes of GCC, and is left out.
    [[gnu::always_inline]] void prefetch(const std::vector<std::uint64_t>& features) const {
        for (const std::uint64_t feature : features)
            __builtin_prefetch(&marks_[place(feature) / 32], 1, 2);
    }
    void release() { decltype(marks_)().swap(marks_); }

  private:
    std::size_t place(std::uint64_t feature) const {
        return text::place_in_table(feature, marks_.size() * 32);
    }
    void mark(std::uint64_t feature) {
        const std::size_t at = place(feature);
        std::atomic<std::uint64_t>& marks = marks_[at / 32];
        const std::uint64_t once = std::uint64_t{1} << (2 * (at % 32)), again = once << 1;
        if (marks.load(std::memory_order_relaxed) & again)
            return;
        if (marks.fetch_or(once, std::memory_order_relaxed) & once)
            marks.fetch_or(again, std::memory_order_relaxed);
    }

    std::vector<std::atomic<std::uint64_t>> marks_;
};

// What is known of a collection: in how many documents each feature occurs, and how often in all.
class Vocabulary {
  public:
    struct Counts {
        std::uint64_t documents = 0;
        std::uint64_t occurrences = 0;
    };

    // Keeps at most `most` features: when there are more, those in the fewest documents are
    // forgotten, until at most half of `most` are left.
    explicit Vocabulary(std::size_t most) : most_(most) {}

    // Counts all documents of a source. Sums do not depend on order, nor on the number of threads.
    // With `repeated`, which has seen all documents before, only features that it knows to have
    // come again are kept: the others are in one document, for which an unknown one is taken.
    void observe(const Source& source, const RepeatedFeatures* repeated, std::size_t threads,
                 const bits::Checkpoint& checkpoint);
    // Makes room for `more` features, before those of another vocabulary are added.
    void reserve(std::size_t more) { features_.reserve(features_.size() + more); }
    void add(std::uint64_t feature, Counts counts);
    void add_totals(Counts totals, Counts forgotten);
    void forget_rare();

    // A feature that is not known counts like the most frequent forgotten one, and at least as one
    // that was seen once.
    Counts counts(std::uint64_t feature) const;
    // A feature of more documents than that weighs 0, whatever the kind of weights.
    void leave_out_above(std::uint64_t documents) { common_ = documents; }
    bool is_common(std::uint64_t feature) const {
        return common_ != kNeverCommon && counts(feature).documents > common_;
    }
    Counts totals() const { return totals_; }
    Counts forgotten() const { return forgotten_; }
    std::size_t size() const { return features_.size(); }
    template <class Visit>
    void each(Visit visit) const {
        features_.each(visit);
    }

  private:
    std::size_t most_;
    text::HashMap<Counts> features_;
    Counts totals_;     // documents and occurrences in all
    Counts forgotten_;  // the largest counts that were forgotten
    std::uint64_t common_ = kNeverCommon;
};

// The distinct features of a bag, in order of first occurrence, and how often each occurs.
class DistinctFeatures {
  public:
    std::vector<std::uint64_t> features;
    std::vector<double> counts;
    std::vector<std::size_t> ends;  // of the runs of the bag, in `features`

    void fill(const Bag& bag);

  private:
    std::vector<std::uint32_t> slots_;
};

// The distinct features of a document with weights in whole units, so that sums are exact and the
// same on every machine: counts are their own unit; other weights are rounded to multiples of a
// power of two, 2^30 of which exceed the sum of their magnitudes.
struct WeightedFeatures {
    std::vector<std::uint64_t> features;
    std::vector<std::int32_t> weights;
    double norm = 0;  // Euclidean length of the weights, in units
};

// One thread's weigher. A ready-made weight below 0 counts as its magnitude would, subtracted.
class Weigher {
  public:
    Weigher(WeightKind kind, const Vocabulary* vocabulary) : kind_(kind), vocabulary_(vocabulary) {}

    // The real weights, before rounding to units; features of weight 0 are left out.
    void weigh(const Bag& bag, std::vector<std::uint64_t>& features, std::vector<double>& weights);
    void weigh(const Bag& bag, WeightedFeatures& out);

  private:
    double weight(std::uint64_t feature, double count, double total) const;

    WeightKind kind_;
    const Vocabulary* vocabulary_;
    DistinctFeatures distinct_;
    std::vector<double> weights_;
};

}  // namespace lookalike::sign
