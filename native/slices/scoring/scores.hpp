// Scores: how many bits of each signature agree with the query's in slices that are near enough.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bits/pool.hpp"
#include "slices/rerank.hpp"
#include "slices/scoring/loops.hpp"
#include "slices/search.hpp"

namespace lookalike::search {

struct Counters {
    std::int64_t lists = 0, postings = 0, candidates = 0, reranked = 0;
};

// The query's slices, the same for all segments.
struct SlicedQuery {
    const Slicing& slicing;
    const std::uint8_t* signature;
    std::vector<std::uint32_t> values;

    SlicedQuery(const Slicing& how, const std::uint8_t* query) : slicing(how), signature(query) {
        values.reserve(how.count());
        for (std::size_t position = 0; position < how.count(); ++position)
            values.push_back(how.value(query, position));
    }
};

// Variants for each width that a slicing has.
struct Neighborhood {
    const Slicing& slicing;

    Neighborhood(const Slicing& how, std::size_t most) : slicing(how) {
        for (std::size_t position = 0; position < how.count(); ++position)
            if (auto& one = variants_[how.width(position)]; !one)
                one.emplace(how.width(position), most);
    }

    const Variants& at(std::size_t position) const { return *variants_[slicing.width(position)]; }

  private:
    std::optional<Variants> variants_[Slicing::kMostSliceBits + 1];
};

// A row with its score.
struct ScoredRow {
    std::uint64_t row;
    std::uint32_t score;
};

// A score for each row of a segment, in one byte where it can be: a table of a million bytes stays
// in the second-level cache while hundreds of thousands of postings add to it.
class ScoreTable {
  public:
    // Sets the number of rows of the table. All scores are 0 before and after.
    void resize(std::size_t rows) {
        rows_ = rows;
        if (low_.size() < rows)
            low_.resize(rows);
    }

    std::size_t rows() const { return rows_; }
    const std::uint8_t* low() const { return low_.data(); }
    bool is_zero(std::size_t row) const { return low_[row] == 0; }
    std::uint32_t score(std::size_t row) const {
        return low_[row] + (overflowed_.empty() ? 0u : kCarry * high_[row]);
    }

    // Rows whose score is more than their byte tells.
    const std::vector<std::uint64_t>& overflowed() const { return overflowed_; }
    bool has_overflowed(std::size_t row) const { return !overflowed_.empty() && high_[row] != 0; }

    // Adds an amount of 1 to 255 to the scores of rows, which must be below `rows()`.
    template <class Row>
    void add(const Row* rows, std::size_t count, std::uint32_t amount) {
        std::uint8_t* const low = low_.data();
        for (std::size_t at = 0; at < count; ++at)
            add_to(low, rows[at], amount);
    }

    // Adds an amount to each of these rows that has a score already, unless that would carry: then
    // both are appended to `left`. Several threads may do so at a time, each with rows of its own.
    void raise_each(const std::uint64_t* rows, const std::uint32_t* amounts, std::size_t count,
                    std::vector<ScoredRow>& left) {
        for (std::size_t at = 0; at < count; ++at) {
            std::uint8_t& low = low_[rows[at]];
            const std::uint32_t sum = low + (amounts[at] & (0u - static_cast<unsigned>(low != 0)));
            if (sum <= UINT8_MAX) [[likely]]
                low = static_cast<std::uint8_t>(sum);
            else
                left.push_back({rows[at], amounts[at]});
        }
    }

    // Adds any amount to the score of one row.
    void add_one(std::size_t row, std::uint32_t amount) {
        for (; amount > kCarry; amount -= kCarry)
            add_to(low_.data(), row, kCarry);
        add_to(low_.data(), row, amount);
    }

    // The same for postings of different amounts; `row_of` and `amount_of` take them apart.
    template <class Key, class RowOf, class AmountOf>
    void add(const Key* keys, std::size_t count, RowOf row_of, AmountOf amount_of) {
        std::uint8_t* const low = low_.data();
        for (std::size_t at = 0; at < count; ++at)
            add_to(low, row_of(keys[at]), amount_of(keys[at]));
    }

    // Rows that have no score yet are no candidates from now on, whatever is added to them. Which
    // they are cannot be foreseen: adding to all takes less than looking first.
    void admit() {
        admitted_.resize((rows_ + 63) / 64);
        score_loops().mark_from(low_.data(), rows_, 1, admitted_.data());
        all_admitted_ = false;
    }

    // Whether a row with a score is a candidate.
    bool is_admitted(std::size_t row) const {
        return all_admitted_ || (admitted_[row / 64] >> row % 64 & 1) != 0;
    }

    // The bits of rows from `begin` on, a multiple of 64, or null: then all are candidates.
    const std::uint64_t* admitted(std::size_t begin) const {
        return all_admitted_ ? nullptr : admitted_.data() + begin / 64;
    }

    // Appends the scores of rows from `begin` to `end`; of rows that are no candidates, none.
    void copy_candidates(std::size_t begin, std::size_t end, std::vector<std::uint8_t>& to) const {
        if (all_admitted_)
            to.insert(to.end(), low_.data() + begin, low_.data() + end);
        else
            for (std::size_t row = begin; row < end; ++row)
                if (is_admitted(row))
                    to.push_back(low_[row]);
    }

    std::size_t candidates() const {
        std::size_t count = 0;
        if (all_admitted_)
            return score_loops().count_from(low_.data(), rows_, 1);
        for (const std::uint64_t marks : admitted_)
            count += static_cast<std::size_t>(std::popcount(marks));
        return count;
    }

    // Adds the scores of rows from `begin` to `end` of another table, which are 0 afterwards.
    // Several threads may do so at a time, each with rows of its own. Rows that would carry are
    // left as they are, and appended to `left`.
    void take_rows(ScoreTable& other, std::size_t begin, std::size_t end,
                   std::vector<std::uint64_t>& left) {
        for (; begin < end; begin += kTaken) {
            const std::size_t size = std::min(kTaken, end - begin);
            if (!take_block(low_.data() + begin, other.low_.data() + begin, size))
                for (std::size_t at = 0; at < size; ++at)
                    left.push_back(begin + at);
        }
    }

    // The rest of another table: the rows left by `take_rows`, and carries. It is all 0 then.
    void take_rest(ScoreTable& other, const std::vector<std::uint64_t>& left) {
        for (const std::uint64_t row : left) {
            if (other.low_[row] != 0)
                add_to(low_.data(), row, other.low_[row]);
            other.low_[row] = 0;
        }
        for (const std::uint64_t row : other.overflowed_) {
            carry(row, other.high_[row]);
            other.high_[row] = 0;
        }
        other.overflowed_.clear();
    }

    void clear() {
        std::fill_n(low_.begin(), rows_, std::uint8_t{0});
        for (const std::uint64_t row : overflowed_)
            high_[row] = 0;
        overflowed_.clear();
        all_admitted_ = true;
    }

  private:
    // What a carry stands for. One less than a byte holds, so that a score never leaves a byte of
    // 0, which would look like no score.
    static constexpr std::uint32_t kCarry = 255;

    static constexpr std::size_t kTaken = 64;  // rows at a time

    // Adds bytes, and clears those that were added, if no sum is more than a byte holds.
    static bool take_block(std::uint8_t* to, std::uint8_t* from, std::size_t size) {
        std::uint8_t sums[kTaken] = {}, over = 0;
        for (std::size_t at = 0; at < size; ++at) {
            sums[at] = static_cast<std::uint8_t>(to[at] + from[at]);
            over = static_cast<std::uint8_t>(over | (sums[at] < from[at]));
        }
        if (over != 0)
            return false;
        std::copy_n(sums, size, to);
        std::fill_n(from, size, std::uint8_t{0});
        return true;
    }

    void add_to(std::uint8_t* low, std::size_t row, std::uint32_t amount) {
        std::uint32_t sum = low[row] + amount;
        if (sum > 255) [[unlikely]] {
            carry(row, 1);
            sum -= kCarry;
        }
        low[row] = static_cast<std::uint8_t>(sum);
    }

    [[gnu::noinline]] void carry(std::size_t row, std::uint32_t times) {
        if (high_.size() < low_.size())
            high_.resize(low_.size());
        if (high_[row] == 0)
            overflowed_.push_back(row);
        high_[row] = static_cast<std::uint16_t>(high_[row] + times);
    }

    std::size_t rows_ = 0;
    std::vector<std::uint8_t> low_;
    std::vector<std::uint64_t> admitted_;  // a bit per row
    bool all_admitted_ = true;             // then those bits are not used
    std::vector<std::uint16_t> high_;      // carries; as long as `low_` once there has been one
    std::vector<std::uint64_t> overflowed_;
};

// The scores of one segment for one query: of all rows in a table, or, where few have one, a list
// of those. Goes back for the next search when it ends, whatever happens.
class SegmentScores {
  public:
    SegmentScores() = default;
    SegmentScores(SegmentScores&&) noexcept = default;
    ~SegmentScores();

    // A table of 0s, in place of a list.
    ScoreTable& begin_table(std::size_t rows);
    bool dense() const { return dense_; }
    ScoreTable& table() { return store_->table; }
    // Ascending by row, without rows that were removed; if not `dense`.
    std::span<const ScoredRow> list() { return {store_->list.of(0), listed_}; }
    // The same, to be changed.
    std::span<ScoredRow> changeable_list() { return {store_->list.of(0), listed_}; }
    // A place for a list of at most `most` rows.
    ScoredRow* begin_list(std::size_t most) { return store_->list.of(most); }
    void end_list(std::size_t count) { listed_ = count; }

    // All scores of the table have been taken out of it.
    void was_emptied() { dense_ = false; }

    // How many rows that were not removed have a score.
    std::int64_t candidates(const Segment& segment);

    // Calls visit(row, score) for rows that were not removed and have a score of `least` or more.
    // Rows ascend, but for scores above 255, which come first. What is visited may raise `least`,
    // which holds for all rows that come some thousands later. Of a table, `part` of `parts` are
    // visited, those with scores above 255 by the first; several threads may each have one.
    template <class Visit>
    void each(const Segment& segment, const std::uint32_t& least, Visit visit, std::size_t part = 0,
              std::size_t parts = 1) {
        if (!dense_) {
            for (const ScoredRow& one : list())
                if (one.score >= least)
                    visit(one.row, one.score);
            return;
        }
        const ScoreTable& scores = store_->table;
        if (part == 0)
            for (const std::uint64_t row : scores.overflowed())
                if (scores.score(row) >= least && scores.is_admitted(row) &&
                    !segment.is_removed(row))
                    visit(row, scores.score(row));
        if (least > UINT8_MAX)
            return;  // the others have no more than that
        std::uint64_t places[kSwept];
        const auto start = [&](std::size_t at) { return scores.rows() * at / parts / 64 * 64; };
        const std::size_t end = part + 1 == parts ? scores.rows() : start(part + 1);
        for (std::size_t begin = start(part); begin < end; begin += kSwept) {
            const std::size_t found = score_loops().collect(
                scores.low() + begin, std::min(kSwept, end - begin),
                static_cast<std::uint8_t>(std::max(1u, least)), places, scores.admitted(begin));
            for (std::size_t index = 0; index < found; ++index) {
                const std::uint64_t row = begin + places[index];
                if (!scores.has_overflowed(row) && !segment.is_removed(row))
                    visit(row, scores.score(row));
            }
        }
    }

  private:
    static constexpr std::size_t kSwept = 1 << 13;  // rows at a time

    struct Store {
        ScoreTable table;
        bits::Room<ScoredRow> list;
    };

    bool dense_ = false;
    std::size_t listed_ = 0;
    bits::Pooled<Store> store_;
};

// The postings of a block of queries in a segment with lists. Probes are sorted, so that each list
// comes from memory once for all queries that want it. How many postings there are is known once
// lists are looked up; those of as many queries as there is room for are then read.
class PostingBlock {
  public:
    // Whether a block of this number of queries is quicker than one query after the other.
    static bool is_for(const Segment& segment, const Neighborhood& near, std::size_t expand,
                       std::size_t queries);
    // The number of queries to share a block, if each reads `postings` of `lists`.
    static std::size_t queries_at_once(double postings, double lists);

    PostingBlock(const Segment& segment, std::span<const SlicedQuery> queries,
                 const Neighborhood& near, const NearestSettings& settings);

    // Of how many queries, from the first on, the postings can be held. 0: not even of one.
    std::size_t room_for() const;
    // Reads the postings of the first `queries`, one or more; they can then be scored.
    void read(std::size_t queries);

    void score(std::size_t query, SegmentScores& scores, Counters& counters);

    // Frees the memory of blocks that are done with, if they have many postings.
    static void free_unused(double postings);

    // Whether `choose` can take the place of `score`.
    bool can_choose() const { return few_ && narrow_ && segment_.collection.ascending; }

    // Hands the `wanted` best by (score, id) on to be re-ranked, as number `place` there: what
    // scoring and choosing by score come to, without putting all rows in order. Returns the best
    // score of the others, or more, or nothing if there are none.
    std::optional<std::uint32_t> choose(std::size_t query, std::size_t place, std::size_t wanted,
                                        Reranking& reranking, Counters& counters);

  private:
    // A key is a posting: the row, the amount that it adds, and whether it admits the row.
    static constexpr std::size_t kAmountBits = 5;
    static constexpr std::size_t kLabelBits = kAmountBits + 1;

    template <class Key>
    static std::uint32_t amount(Key key) {
        return static_cast<std::uint32_t>(key >> 1) & ((1u << kAmountBits) - 1);
    }
    static std::uint64_t row(std::uint32_t key) { return key >> kLabelBits; }

    struct Span {
        const void* begin;
        std::uint32_t query;
        std::uint32_t label;  // amount and whether it admits, as in keys
        std::size_t size;
    };
    struct Store {
        std::vector<std::uint64_t> probes, probes_spare;
        std::vector<Span> spans;
        std::vector<std::size_t> ends;  // of each query's keys
        std::vector<ScoredRow> several;
        std::vector<std::uint32_t> counts, rows;
        bits::Room<std::uint32_t> narrow, narrow_spare;
        bits::Room<std::uint64_t> wide, wide_spare;
    };

    template <class Row>
    void look_up(const SliceLists<Row>& lists, std::span<const SlicedQuery> queries,
                 const Neighborhood& near, const NearestSettings& settings);
    template <class Row, class Key>
    void read(const SliceLists<Row>& lists, std::size_t queries, Key* keys);
    template <class Key>
    void add_up(std::span<Key> keys, Key* spare, SegmentScores& scores);
    template <class Key>
    void add_to_table(std::span<const Key> keys, ScoreTable& table);
    // Parts of `choose`.
    using Keys = std::span<std::uint32_t>;
    std::size_t set_apart(Keys keys, std::uint32_t* several) const;
    void add_up_several(std::span<const std::uint32_t> keys);
    Keys without_uncounted(Keys singles) const;
    std::uint32_t least_score(std::size_t wanted, Keys singles, std::size_t& above);
    std::uint64_t row_of_rank(std::span<const std::uint32_t> ties, std::uint32_t score,
                              std::size_t rank);

    const Segment& segment_;
    std::size_t bits_;
    std::int64_t lists_ = 0;  // read for each query
    bool few_;                // postings a query: they are sorted, and not added to a table
    bool narrow_;             // keys
    std::uint32_t least_amount_ = 0, most_amount_ = 0;  // that a posting adds
    bool all_admit_ = false;                            // postings
    bool all_count_ = false;                            // and add something
    bits::Pooled<Store> store_;
};

// Which lists to read. Those that bring in no candidates only raise scores: if there are few
// candidates, comparing their slices with the query's is cheaper, and `score_rest` does that. Then
// the result has `admit` as its `expand`.
NearestSettings lists_to_read(const Slicing& slicing, const std::vector<Segment>& segments,
                              const NearestSettings& settings);

// Completes scores of lists up to `admit` bits away by those up to `expand` bits away.
void score_rest(const Segment& segment, const SlicedQuery& query, const Neighborhood& near,
                const NearestSettings& settings, std::size_t threads,
                const bits::Checkpoint& checkpoint, SegmentScores& scores, Counters& counters);

// Scores all rows of a segment: by its lists, shared among threads, or, if it has none, one by one.
void score_segment(const Segment& segment, const SlicedQuery& query, const Neighborhood& near,
                   const NearestSettings& settings, std::size_t threads,
                   const bits::Checkpoint& checkpoint, SegmentScores& scores, Counters& counters);

// Above this share of the collection, a table of all scores beats sorting postings.
constexpr double kTableShare = 1.0 / 128;

// How many postings the lists up to `expand` differing bits have, if values were equally frequent.
double postings_expected(const Slicing& slicing, std::size_t rows, std::size_t expand);

// How many lists that are for a query.
std::int64_t lists_read(const Slicing& slicing, const Neighborhood& near, std::size_t expand);

}  // namespace lookalike::search
