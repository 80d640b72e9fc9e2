// Every pair of sets that are alike enough, by prefixes (AllPairs, Bayardo et al.; PPJoin, Xiao et
// al.): of two sets that have many elements in common, in one order of all elements, the first ones
// of both have one in common, too. With rare elements first, that is rare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/threads.hpp"
#include "pairs/set_measure.hpp"
#include "pairs/sets.hpp"

namespace lookalike::search {

struct SimilarPairs {
    std::vector<std::int64_t> left, right;  // documents, left < right
    std::vector<double> similarities;
};

// Equal sets are one in the search. With weights the measure has to be the cosine, with weights by
// frequency any other: then sizes and overlaps are those of weights, and what is rare is heavy,
// too. Pairs of two documents that are marked as old are left out, and so are documents without
// elements. What is found, and in which order, does not depend on threads.
class SetJoin {
  public:
    // Looks up in lists of at most about `most_postings` elements at a time, 8 bytes each.
    // `old` has a mark for each document, not 0 for an old one.
    SetJoin(Sets sets, SetMeasure measure, std::vector<std::uint8_t> old,
            std::size_t most_postings);

    // The next pairs, at most `most`, perhaps none although there are more to come.
    SimilarPairs next(std::size_t most, std::size_t threads, const bits::Checkpoint& checkpoint);

    bool finished() const { return waiting_from_ == waiting_.size() && begin_ == order_.size(); }
    double share() const;  // of the work that is done, about

    // Pairs of different sets that share an element at their beginnings, and those of them that
    // were compared.
    std::uint64_t candidates() const { return candidates_; }
    std::uint64_t compared() const { return compared_; }

  private:
    struct Posting {
        std::uint32_t set;
        std::uint32_t place;  // of the element in the set
    };
    // Two sets that each stand for those equal to them.
    struct Found {
        std::uint32_t one, two;
        double similarity;
    };
    struct Worker {
        std::vector<std::uint32_t> counts;  // of common elements by set, 0 between two probes
        std::vector<double> sums;           // of products of weights, or of weights, likewise
        std::vector<std::uint32_t> needed;
        std::vector<std::uint32_t> touched;
        std::uint64_t candidates = 0, compared = 0;
    };

    void group_equal();
    bool equal(std::uint32_t one, std::uint32_t two) const;
    void choose_prefixes();
    std::uint32_t weighty_prefix(std::size_t set);
    void choose_prefixes_by_frequency(std::size_t set);
    std::size_t first_partner(std::size_t set) const;
    void index_next_block();
    void probe_some(std::size_t threads, const bits::Checkpoint& checkpoint);
    void probe(Worker& worker, std::size_t set, std::vector<Found>& found) const;
    void touch(Worker& worker, std::size_t set, std::size_t place, std::size_t from) const;
    void decide(Worker& worker, std::size_t set, std::vector<Found>& found) const;
    double plain_similarity(Worker& worker, std::size_t set, std::uint32_t other, std::size_t place,
                            std::size_t other_place, std::uint32_t count) const;
    double similarity_by_frequency(Worker& worker, std::size_t set, std::uint32_t other,
                                   std::size_t place, std::size_t other_place, double sum) const;
    double weighted_similarity(Worker& worker, std::size_t set, std::uint32_t other,
                               std::size_t place, std::size_t other_place, double sum) const;
    double rest(std::size_t set, std::size_t place) const;
    void emit(std::size_t most, SimilarPairs& pairs);

    Sets sets_;
    SetMeasure measure_;
    std::vector<std::uint8_t> old_;
    std::size_t most_postings_;

    // Documents of equal sets, ascending: those that set s stands for are members_[group_[s]] to
    // members_[group_[s] + group_sizes_[s]]. Sets that another stands for have none.
    std::vector<std::uint32_t> members_, group_sizes_;
    std::vector<std::uint64_t> group_;
    std::vector<std::uint8_t> group_old_;  // whether all of them are
    std::vector<std::uint32_t> order_;     // the sets that are searched, ascending

    // Elements at the beginning, stored or not, by which a set is looked up among smaller ones, and
    // by which larger ones find it.
    std::vector<std::uint32_t> probed_, indexed_;
    // Of weighted sets, from each stored element on: the Euclidean length, or the weight by
    // frequency.
    std::vector<float> rests_;

    // The block of sets that can be found at present, as places in order_; next_ is the next query.
    std::size_t begin_ = 0, end_ = 0, next_ = 0;
    std::vector<std::uint64_t> lists_;
    std::vector<Posting> postings_;
    std::vector<double> posting_weights_;
    std::size_t at_a_time_ = 64;

    std::vector<Worker> workers_;
    std::vector<Found> waiting_;
    std::size_t waiting_from_ = 0, one_ = 0, two_ = 0;  // what was emitted last
    std::uint64_t candidates_ = 0, compared_ = 0;
};

}  // namespace lookalike::search
