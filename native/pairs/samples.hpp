// Which documents have much of a smaller one in them: of each document some features are drawn, and
// looked up among all features of the larger ones. How large those are makes no difference to the
// chance of finding them, as it does where two signatures of one size are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sign/signers.hpp"

namespace lookalike::search {

struct SampledPairs {
    std::vector<std::int64_t> smaller, larger;  // documents
};

// Call `observe` for all documents, part by part, then `look_up` for the same parts in the same
// order, then `pairs`. The result does not depend on threads.
//
// A sample is the features with the least hashes, all of them if there are no more than `size`: of
// the features of a document each is drawn with the same chance, whatever other documents have.
//
// With weights, documents are ordered by weight instead of size. A sample is all features that
// weigh something if there are fewer than `size`, and each counts in proportion to its weight,
// `size` in all. Of other documents `size` features are drawn, one from each of `size` equal parts
// of the weight, and each draw counts 1. So a share p of the weight is in a larger document means
// that `size` independent draws are found with chances whose mean is p.
//
// A feature that more than `largest_group` samples have is looked up for the `leaders` largest
// documents only that have it. For the others it counts as found, as long as they have another one.
class Samples {
  public:
    // With a vocabulary, which must outlive this, features have weights of this kind, multiples of
    // 2^-16.
    Samples(std::size_t size, std::size_t largest_group, std::size_t leaders,
            sign::WeightKind kind = sign::WeightKind::uniform,
            const sign::Vocabulary* vocabulary = nullptr)
        : size_(size),
          largest_group_(largest_group),
          leaders_(leaders),
          kind_(kind),
          vocabulary_(vocabulary) {}
    Samples(const Samples&) = delete;
    Samples& operator=(const Samples&) = delete;

    void observe(const sign::Source& source, sign::Work work);
    void look_up(const sign::Source& source, sign::Work work);

    // Pairs whose larger document is among those from `begin` to `end` by ascending size (of equal
    // ones, the later document is the larger): at least needed[s] of a sample of s features are in
    // it. With weights, s is `size` for a sample that was drawn. Pairs of two documents below
    // `first_new` are left out, and those whose smaller document weighs less than `least_share` of
    // the larger one.
    SampledPairs pairs(std::size_t begin, std::size_t end, std::span<const double> needed,
                       std::size_t first_new, double least_share, sign::Work work);

    std::size_t size() const { return size_; }
    std::size_t observed() const { return sizes_.size(); }
    std::size_t looked_up() const { return offsets_.size() - 1; }
    // Documents of which larger ones may have been missed, because too many features of their
    // samples were not looked up for all documents: known after the first `pairs`.
    std::size_t in_large_groups() const { return in_large_groups_; }

  private:
    struct Sample {
        std::vector<std::uint64_t> hashes;
        std::vector<double> worths;
        double total = 0;
        bool drawn = false;
    };
    template <class Count>
    SampledPairs pairs_by(std::size_t begin, std::size_t end, std::span<const double> needed,
                          std::size_t first_new, double least_share, sign::Work work);

    bool weighted() const { return vocabulary_ != nullptr; }
    void observe_weighted(const sign::Source& source, sign::Work work);
    void draw(std::span<const std::pair<std::uint64_t, double>> features, Sample& sample) const;
    std::uint32_t first_partner(std::uint32_t place, double least_share) const;
    std::span<const std::uint32_t> list(std::uint32_t number) const {
        return {lists_.data() + begins_[number], begins_[number + 1] - begins_[number]};
    }
    void index();
    void order_by_size();
    std::uint32_t number_of(std::uint64_t hash) const;
    void limit_large_groups(std::span<const double> needed);
    std::size_t sample_size(std::uint32_t document) const {
        if (weighted() && drawn_[document])
            return size_;
        return sample_begins_[document + 1] - sample_begins_[document];
    }

    std::size_t size_, largest_group_, leaders_;
    sign::WeightKind kind_;
    const sign::Vocabulary* vocabulary_;
    std::vector<std::uint32_t> sizes_;  // different features of each document
    std::vector<std::uint64_t> samples_, sample_begins_{0};
    // With weights: of each document, what each sampled feature counts, and which samples are
    // drawn.
    std::vector<double> totals_, worths_;
    std::vector<std::uint8_t> drawn_;

    // Documents by size, and the place of each in that order.
    std::vector<std::uint32_t> order_, places_;
    // Sampled features are numbered; which samples have one, as places, ascending.
    std::vector<std::uint64_t> hashes_, begins_;
    std::vector<std::uint32_t> slots_, lists_;
    std::vector<double> list_worths_;  // beside `lists_`, with weights

    // The numbers of each document's features that are in samples, ascending.
    std::vector<std::uint32_t> found_;
    std::vector<std::uint64_t> offsets_{0};

    // From which place on documents look a feature up, and how many features of each sample are
    // not looked up for all documents.
    bool limited_ = false;
    std::vector<std::uint32_t> from_;
    std::vector<double> doubtful_;
    std::size_t in_large_groups_ = 0;
};

}  // namespace lookalike::search
