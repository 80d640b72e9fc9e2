// How much each feature of a document counts, and what has to be learned of a collection for that.
#pragma once

#include <cstdint>
#include <vector>

#include "bits/threads.hpp"
#include "sign/bag.hpp"
#include "text/hash_map.hpp"

namespace lookalike::sign {

enum class WeightKind { uniform, count, log_count, tfidf, log_likelihood };

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
    void observe(const Source& source, std::size_t threads, const bits::Checkpoint& checkpoint);
    // Makes room for `more` features, before those of another vocabulary are added.
    void reserve(std::size_t more) { features_.reserve(features_.size() + more); }
    void add(std::uint64_t feature, Counts counts);
    void add_totals(Counts totals, Counts forgotten);
    void forget_rare();

    // A feature that is not known counts like the most frequent forgotten one, and at least as one
    // that was seen once.
    Counts counts(std::uint64_t feature) const;
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
