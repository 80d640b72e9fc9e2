// Scores: how many bits of each signature agree with the query's in slices that are near enough.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "search/slice_search.hpp"

namespace lookalike::search {

struct Scores {
    std::vector<std::uint16_t> table;    // all 0 between searches
    std::vector<std::uint64_t> touched;  // rows whose score is not 0, unless dense; with room
    std::size_t touched_count = 0;
    std::vector<std::uint64_t> places;  // room for sweeps
    bool dense = false;
};

// A score table of one segment. Tables are as long as the collection, so they are kept from one
// search to the next; this one goes back to the others, all 0, whatever happens.
class ScoredSegment {
  public:
    explicit ScoredSegment(std::size_t rows);
    ScoredSegment(const ScoredSegment&) = delete;
    ScoredSegment& operator=(const ScoredSegment&) = delete;
    ScoredSegment(ScoredSegment&&) = default;
    ~ScoredSegment();

    Scores& operator*() { return *scores_; }
    Scores* operator->() { return scores_.get(); }
    std::size_t rows() const { return rows_; }

  private:
    std::size_t rows_;
    std::unique_ptr<Scores> scores_;
};

struct Counters {
    std::int64_t lists = 0, postings = 0, candidates = 0, reranked = 0;
};

// The query's slices and what is near them, the same for all segments.
struct SlicedQuery {
    const Slicing& slicing;
    const std::uint8_t* signature;
    std::vector<std::uint32_t> values;

    SlicedQuery(const Slicing& how, const std::uint8_t* query) : slicing(how), signature(query) {
        for (std::size_t position = 0; position < how.count(); ++position)
            values.push_back(how.value(query, position));
    }
};

// Variants for the two widths that a slicing has.
struct Neighbourhood {
    Variants wide, narrow;
    const Slicing& slicing;

    Neighbourhood(const Slicing& how, std::size_t most)
        : wide(how.widest(), most), narrow(how.width(how.count() - 1), most), slicing(how) {}

    const Variants& at(std::size_t position) const {
        return slicing.width(position) == slicing.widest() ? wide : narrow;
    }
};

// Scores the rows of a segment: by its lists, shared among threads, or, if it has none, one by one.
void score_segment(const Segment& segment, const SlicedQuery& query, const Neighbourhood& near,
                   const TopSettings& settings, std::size_t threads,
                   const bits::Checkpoint& checkpoint, ScoredSegment& scored, Counters& counters);

// How many postings the lists up to `expand` differing bits have, if values were equally frequent.
double postings_expected(const Slicing& slicing, std::size_t rows, std::size_t expand);

}  // namespace lookalike::search
