#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "bits/kernels.hpp"
#include "bits/top_k.hpp"
#include "search/score_loops.hpp"
#include "search/slice_search.hpp"

namespace lookalike::search {

using bits::Kernels;
using bits::Neighbor;
using bits::TopK;

namespace {

// Rough costs in nanoseconds, for choosing between ways to the same answer.
constexpr double kListCost = 6;
constexpr double kPostingCost = 1.5;
constexpr double kScannedByteCost = 0.08;

// Lists are looked up this many ahead: first their offsets are asked for, then their rows.
constexpr std::size_t kAhead = 32;

// Above this share of the collection, sweeping all scores beats remembering which were touched.
constexpr std::size_t kDenseShare = 32;

constexpr std::size_t kScored = 64 << 10;  // postings that are worth a second thread

struct Scores {
    std::vector<std::uint16_t> table;    // all 0 between searches
    std::vector<std::uint64_t> touched;  // rows whose score is not 0, unless dense; with room
    std::size_t touched_count = 0;
    std::vector<std::uint64_t> places;  // room for sweeps
    bool dense = false;
};

// Score tables are as long as the collection, so they are kept from one search to the next.
class ScorePool {
  public:
    std::unique_ptr<Scores> take(std::size_t rows) {
        std::unique_ptr<Scores> scores;
        {
            const std::scoped_lock lock(mutex_);
            if (!free_.empty()) {
                scores = std::move(free_.back());
                free_.pop_back();
            }
        }
        if (!scores)
            scores = std::make_unique<Scores>();
        if (scores->table.size() < rows)
            scores->table.assign(rows, 0);
        return scores;
    }
    void give_back(std::unique_ptr<Scores> scores) {
        const std::scoped_lock lock(mutex_);
        if (free_.size() < kMostKept)
            free_.push_back(std::move(scores));
    }

  private:
    static constexpr std::size_t kMostKept = 32;

    std::mutex mutex_;
    std::vector<std::unique_ptr<Scores>> free_;
};

ScorePool& pool() {
    static ScorePool only;
    return only;
}

struct Candidate {
    std::uint32_t score;
    std::uint32_t segment;
    std::uint64_t row;
    std::int64_t id;

    // Better first.
    friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score > b.score : a.id < b.id;
    }
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

// Reads lists and adds to scores. Looking up where lists are, and reading them, are done in turns
// of many lists each, so that the memory works on several at a time.
template <class Row>
class ListScorer {
  public:
    ListScorer(const SliceLists<Row>& lists, const SlicedQuery& query, const Neighbourhood& near,
               Scores& scores)
        : lists_(lists), query_(query), near_(near), scores_(scores) {
        for (std::size_t position = 0; position < query.slicing.count(); ++position)
            __builtin_prefetch(lists.offset_of(position, query.values[position]));
    }

    // Adds the lists of a range of positions whose values differ in `from` to `to` bits from the
    // query's. Rows without a score yet are passed over unless `admitting`.
    void add(std::size_t from, std::size_t to, std::size_t first_position, std::size_t end_position,
             bool admitting) {
        for (std::size_t position = first_position; position < end_position; ++position)
            for (std::size_t ones = from; ones <= std::min(to, query_.slicing.width(position));
                 ++ones)
                look_up(position, ones, admitting);
        read(admitting);
    }

    std::int64_t postings = 0;

  private:
    static constexpr std::size_t kSpans = 512;

    struct Span {
        const Row* begin;
        std::size_t size;
        std::uint16_t amount;
    };

    void look_up(std::size_t position, std::size_t ones, bool admitting) {
        const Variants& variants = near_.at(position);
        const std::uint32_t value = query_.values[position];
        const std::size_t width = query_.slicing.width(position);
        const auto amount = static_cast<std::uint16_t>(width - ones);
        const Row* const offsets = lists_.offset_of(position, 0);
        const Row* const rows = lists_.rows + position * lists_.count;
        const std::uint32_t last = (1u << width) - 1;
        const std::size_t end = variants.ends[ones];
        for (std::size_t at = ones == 0 ? 0 : variants.ends[ones - 1]; at < end; ++at) {
            if (at + kAhead < end)
                __builtin_prefetch(offsets + (value ^ variants.values[at + kAhead]));
            const std::uint32_t near_value = value ^ variants.values[at];
            const std::size_t begin = offsets[near_value];
            const std::size_t stop = near_value == last ? lists_.count : offsets[near_value + 1];
            if (begin > stop || stop > lists_.count)
                throw CorruptLists();
            if (begin == stop)
                continue;
            if (count_ == kSpans)
                read(admitting);
            spans_[count_++] = {rows + begin, stop - begin, amount};
        }
    }

    void read(bool admitting) {
        const auto prefetch = [&](std::size_t at) {
            if (at >= count_)
                return;
            __builtin_prefetch(spans_[at].begin);
            __builtin_prefetch(spans_[at].begin + spans_[at].size - 1);
        };
        for (std::size_t at = 0; at < kAhead; ++at)
            prefetch(at);
        for (std::size_t at = 0; at < count_; ++at) {
            prefetch(at + kAhead);
            postings += static_cast<std::int64_t>(spans_[at].size);
            if (!admitting)
                each(spans_[at], [](std::uint16_t& score, Row, std::uint16_t amount) {
                    score = static_cast<std::uint16_t>(score + (score != 0 ? amount : 0));
                });
            else if (scores_.dense)
                each(spans_[at], [](std::uint16_t& score, Row, std::uint16_t amount) {
                    score = static_cast<std::uint16_t>(score + amount);
                });
            else
                add_touching(spans_[at]);
        }
        count_ = 0;
    }

    // Rows are checked before they are used: those of a damaged file could be anywhere.
    template <class Change>
    void each(const Span& span, Change change) {
        std::uint16_t* const table = scores_.table.data();
        for (std::size_t index = 0; index < span.size; ++index) {
            const Row row = span.begin[index];
            if (row >= lists_.count) [[unlikely]]
                throw CorruptLists();
            change(table[row], row, span.amount);
        }
    }

    void add_touching(const Span& span) {
        std::size_t count = scores_.touched_count;
        if (scores_.touched.size() < count + span.size)
            scores_.touched.resize(2 * (count + span.size));
        std::uint64_t* const touched = scores_.touched.data();
        each(span, [&](std::uint16_t& score, Row row, std::uint16_t amount) {
            touched[count] = row;
            count += score == 0 ? 1 : 0;
            score = static_cast<std::uint16_t>(score + amount);
        });
        scores_.touched_count = count;
    }

    const SliceLists<Row>& lists_;
    const SlicedQuery& query_;
    const Neighbourhood& near_;
    Scores& scores_;
    Span spans_[kSpans];
    std::size_t count_ = 0;
};

double postings_expected(const Slicing& slicing, std::size_t rows, std::size_t expand) {
    double share = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position)
        for (std::size_t ones = 0; ones <= std::min(expand, slicing.width(position)); ++ones)
            share += choose(slicing.width(position), ones) /
                     static_cast<double>(std::uint64_t{1} << slicing.width(position));
    return share * static_cast<double>(rows);
}

// A score table that is back in the pool, all 0, whatever happens.
class ScoredSegment {
  public:
    ScoredSegment(std::size_t rows) : rows_(rows), scores_(pool().take(rows)) {}
    ScoredSegment(const ScoredSegment&) = delete;
    ScoredSegment& operator=(const ScoredSegment&) = delete;
    ScoredSegment(ScoredSegment&&) = default;
    ~ScoredSegment() {
        if (!scores_)
            return;
        // After an exception it is not known which rows were touched.
        if (scores_->dense || std::uncaught_exceptions() != 0)
            std::fill_n(scores_->table.begin(), rows_, std::uint16_t{0});
        else
            for (std::size_t at = 0; at < scores_->touched_count; ++at)
                scores_->table[scores_->touched[at]] = 0;
        scores_->touched_count = 0;
        scores_->dense = false;
        pool().give_back(std::move(scores_));
    }

    Scores& operator*() { return *scores_; }
    Scores* operator->() { return scores_.get(); }
    std::size_t rows() const { return rows_; }

  private:
    std::size_t rows_;
    std::unique_ptr<Scores> scores_;
};

// Scores the lists of all positions, shared among threads: each adds up positions of its own.
template <class Row>
void score_lists(const SliceLists<Row>& lists, const SlicedQuery& query, const Neighbourhood& near,
                 const TopSettings& settings, std::size_t threads,
                 const bits::Checkpoint& checkpoint, ScoredSegment& scored, Counters& counters) {
    const std::size_t positions = query.slicing.count();
    const double expected = postings_expected(query.slicing, lists.count, settings.expand);
    scored->dense = expected > static_cast<double>(lists.count / kDenseShare);
    threads = std::min({threads, positions, static_cast<std::size_t>(expected / kScored) + 1});
    const std::size_t admit = std::min(settings.admit, settings.expand);

    if (threads == 1 || !scored->dense) {
        ListScorer<Row> scorer(lists, query, near, *scored);
        scorer.add(0, admit, 0, positions, true);
        if (admit < settings.expand)
            scorer.add(admit + 1, settings.expand, 0, positions, false);
        counters.postings += scorer.postings;
    } else {
        // A table per thread, added to the first one after each phase.
        std::vector<ScoredSegment> tables;
        for (std::size_t thread = 1; thread < threads; ++thread) {
            tables.emplace_back(lists.count);
            tables.back()->dense = true;
        }
        std::atomic<std::int64_t> postings{0};
        const auto phase = [&](std::size_t from, std::size_t to) {
            bits::share_out(threads, threads, checkpoint, [&](std::size_t, std::size_t part) {
                ListScorer<Row> scorer(lists, query, near, part == 0 ? *scored : *tables[part - 1]);
                scorer.add(from, to, positions * part / threads, positions * (part + 1) / threads,
                           true);
                postings += scorer.postings;
            });
        };
        const auto add_up = [&](auto&& admitted) {
            for (ScoredSegment& table : tables)
                for (std::size_t row = 0; row < lists.count; ++row) {
                    scored->table[row] = static_cast<std::uint16_t>(
                        scored->table[row] + (admitted(row) ? table->table[row] : 0));
                    table->table[row] = 0;
                }
        };
        phase(0, admit);
        add_up([](std::size_t) { return true; });
        if (admit < settings.expand) {
            const std::vector<std::uint16_t> before(
                scored->table.begin(),
                scored->table.begin() + static_cast<std::ptrdiff_t>(lists.count));
            phase(admit + 1, settings.expand);
            add_up([&](std::size_t row) { return before[row] != 0; });
            for (std::size_t row = 0; row < lists.count; ++row)
                if (before[row] == 0)
                    scored->table[row] = 0;
        }
        counters.postings += postings;
    }
    for (std::size_t position = 0; position < positions; ++position)
        counters.lists += static_cast<std::int64_t>(near.at(position).ends[settings.expand]);
}

// The same scores for a segment without lists, slice by slice.
void score_directly(const Collection& collection, const SlicedQuery& query,
                    const TopSettings& settings, ScoredSegment& scored) {
    scored->dense = true;
    const std::size_t admit = std::min(settings.admit, settings.expand);
    for (std::size_t row = 0; row < collection.count; ++row) {
        std::uint32_t score = 0;
        bool admitted = false;
        for (std::size_t position = 0; position < query.slicing.count(); ++position) {
            const std::uint32_t flips =
                query.slicing.value(collection.row(row), position) ^ query.values[position];
            const auto ones = static_cast<std::size_t>(__builtin_popcount(flips));
            admitted = admitted || ones <= admit;
            if (ones <= settings.expand)
                score += static_cast<std::uint32_t>(query.slicing.width(position) - ones);
        }
        scored->table[row] = static_cast<std::uint16_t>(admitted ? score : 0);
    }
}

// Appends candidates with a score from `least` to `most`.
void collect(const Segment& segment, std::size_t number, ScoredSegment& scored, std::uint32_t least,
             std::uint32_t most, std::vector<Candidate>& candidates) {
    const std::size_t bits = 8 * segment.collection.bytes;
    const auto add = [&](std::uint64_t row) {
        const std::uint32_t score = scored->table[row];
        if (score > bits)
            throw CorruptLists();
        if (score >= least && score <= most && !segment.is_removed(row))
            candidates.push_back(
                {score, static_cast<std::uint32_t>(number), row, segment.collection.id(row)});
    };
    if (!scored->dense) {
        for (std::size_t at = 0; at < scored->touched_count; ++at)
            add(scored->touched[at]);
        return;
    }
    constexpr std::size_t kRows = 1 << 16;
    scored->places.resize(kRows);
    for (std::size_t begin = 0; begin < scored.rows(); begin += kRows) {
        const std::size_t count = std::min(kRows, scored.rows() - begin);
        const std::size_t found = score_loops().collect(
            scored->table.data() + begin, count, static_cast<std::uint16_t>(std::max(1u, least)),
            scored->places.data(), kRows);
        for (std::size_t index = 0; index < found; ++index)
            add(begin + scored->places[index]);
    }
}

// A score that at least `wanted` candidates are likely to reach, and not many more: from a sample
// of the tables where they are large.
std::uint32_t likely_threshold(std::vector<ScoredSegment>& scored, std::size_t wanted,
                               std::size_t bits) {
    constexpr std::size_t kRun = 64, kStep = 16;
    std::vector<std::uint32_t> histogram(bits + 1, 0);
    const auto count = [&](std::uint16_t score) {
        if (score > bits)
            throw CorruptLists();  // more than all slices together: a row is in a list twice
        ++histogram[score];
    };
    double sampled = 0, all = 0;
    for (ScoredSegment& part : scored) {
        if (!part->dense) {
            for (std::size_t at = 0; at < part->touched_count; ++at)
                count(part->table[part->touched[at]]);
            sampled += static_cast<double>(part->touched_count);
            all += static_cast<double>(part->touched_count);
            continue;
        }
        const std::size_t step = part.rows() > 64 * kRun * kStep ? kRun * kStep : kRun;
        for (std::size_t begin = 0; begin < part.rows(); begin += step)
            for (std::size_t row = begin; row < std::min(part.rows(), begin + kRun); ++row)
                count(part->table[row]);
        sampled += static_cast<double>(part.rows()) * static_cast<double>(kRun) /
                   static_cast<double>(step);
        all += static_cast<double>(part.rows());
    }
    const double target = all == 0 ? 0 : static_cast<double>(wanted) * sampled / all * 1.3 + 8;
    double found = 0;
    for (std::size_t score = bits; score > 1; --score) {
        found += histogram[score];
        if (found >= target)
            return static_cast<std::uint32_t>(score);
    }
    return 1;
}

// One query at one expansion: the scored segments, and what has been re-ranked of them so far.
class Round {
  public:
    Round(const std::vector<Segment>& segments, const SlicedQuery& query,
          const TopSettings& settings, const Kernels& kernels)
        : segments_(segments),
          query_(query),
          settings_(settings),
          kernels_(kernels),
          nearest_(settings.k) {}

    void score(const Neighbourhood& near, std::size_t threads, const bits::Checkpoint& checkpoint,
               Counters& counters) {
        for (const Segment& segment : segments_) {
            scored_.emplace_back(segment.collection.count);
            const auto with_lists = [&](const auto& lists) {
                if constexpr (std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
                    score_directly(segment.collection, query_, settings_, scored_.back());
                else
                    score_lists(lists, query_, near, settings_, threads, checkpoint, scored_.back(),
                                counters);
            };
            std::visit(with_lists, segment.lists);
        }
    }

    // Re-ranks the best `rerank` candidates. Afterwards `rest` is the best score among the others,
    // or nothing if there are no others.
    void rerank_best(Counters& counters) {
        const auto bits = static_cast<std::uint32_t>(query_.slicing.bits());
        std::uint32_t least = likely_threshold(scored_, settings_.rerank, bits);
        while (true) {
            candidates_.clear();
            for (std::size_t number = 0; number < segments_.size(); ++number)
                collect(segments_[number], number, scored_[number], least, bits, candidates_);
            if (candidates_.size() >= settings_.rerank || least == 1)
                break;
            least = least > 8 ? least / 2 : 1;
        }
        if (candidates_.size() > settings_.rerank) {
            const auto cut = candidates_.begin() + static_cast<std::ptrdiff_t>(settings_.rerank);
            std::nth_element(candidates_.begin(), cut, candidates_.end());
            rest = cut->score;
            for (auto at = cut; at != candidates_.end(); ++at)
                rest = std::max(*rest, at->score);
            candidates_.erase(cut, candidates_.end());
        } else if (least > 1) {
            rest = least - 1;
        }
        rerank(candidates_, counters);
    }

    // Re-ranks all other candidates with a score from `least` up.
    void rerank_rest(std::uint32_t least, Counters& counters) {
        std::vector<Candidate> more;
        for (std::size_t number = 0; number < segments_.size(); ++number)
            collect(segments_[number], number, scored_[number], least, *rest, more);
        // Those re-ranked before are the best by (score, id), so the others come after the last.
        const Candidate last = candidates_.empty()
                                   ? Candidate{UINT32_MAX, 0, 0, -1}
                                   : *std::max_element(candidates_.begin(), candidates_.end());
        std::erase_if(more, [&](const Candidate& one) { return !(last < one); });
        rerank(more, counters);
        rest = least > 1 ? std::optional(least - 1) : std::nullopt;
    }

    std::int64_t count_candidates() {
        std::int64_t total = 0;
        for (ScoredSegment& part : scored_)
            total += static_cast<std::int64_t>(
                part->dense ? score_loops().count_nonzero(part->table.data(), part.rows())
                            : part->touched_count);
        return total;
    }

    // The k-th distance so far, or nothing if there are fewer than k.
    std::optional<std::int64_t> kth() const {
        const std::int64_t cutoff = nearest_.cutoff(false);
        return cutoff == UINT32_MAX ? std::nullopt : std::optional(cutoff);
    }

    std::optional<std::uint32_t> rest;
    TopK& nearest() { return nearest_; }
    std::size_t reranked() const { return reranked_; }
    std::uint32_t score_of(std::int64_t id) const {
        const auto found = std::find_if(entered_.begin(), entered_.end(),
                                        [&](const Candidate& one) { return one.id == id; });
        return found == entered_.end() ? 0 : found->score;
    }

  private:
    static constexpr std::size_t kRowsAtOnce = 64;

    // Reads a byte of each cache line of the next rows. Loads that do not depend on each other are
    // in flight together; asked for one row at a time, each would be waited for.
    void bring_in(const std::vector<Candidate>& candidates, std::size_t begin, std::size_t bytes) {
        const std::size_t end = std::min(candidates.size(), begin + kRowsAtOnce);
        std::uint32_t sum = 0;
        for (std::size_t at = begin; at < end; ++at) {
            const std::uint8_t* const row =
                segments_[candidates[at].segment].collection.row(candidates[at].row);
            for (std::size_t byte = 0; byte < bytes; byte += 64)
                sum += row[byte];
            sum += row[bytes - 1];
        }
        touched_ = sum;
    }

    void rerank(const std::vector<Candidate>& candidates, Counters& counters) {
        const std::size_t bytes = query_.slicing.bits() / 8;
        for (std::size_t at = 0; at < candidates.size(); ++at) {
            if (at % kRowsAtOnce == 0)
                bring_in(candidates, at, bytes);
            const Candidate& one = candidates[at];
            std::int32_t distance;
            kernels_.distances(query_.signature, segments_[one.segment].collection.row(one.row), 1,
                               bytes, &distance);
            const auto far = static_cast<std::uint32_t>(distance);
            if (static_cast<std::int64_t>(far) <= nearest_.cutoff(false)) {
                nearest_.push({far, one.id});
                entered_.push_back(one);
            }
        }
        counters.reranked += static_cast<std::int64_t>(candidates.size());
        reranked_ += candidates.size();
    }

    const std::vector<Segment>& segments_;
    const SlicedQuery& query_;
    const TopSettings& settings_;
    const Kernels& kernels_;
    std::vector<ScoredSegment> scored_;
    std::vector<Candidate> candidates_;
    TopK nearest_;
    std::size_t reranked_ = 0;
    volatile std::uint32_t touched_ = 0;  // so that the reading is not left out
    std::vector<Candidate> entered_;      // whatever got among the nearest, if only for a while
};

// Signatures that were not seen have no slice within `admit` bits: their least distance.
std::int64_t least_unseen(const Slicing& slicing, std::size_t admit) {
    std::int64_t least = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position) {
        if (admit >= slicing.width(position))
            return INT64_MAX;  // every signature is seen at this position
        least += static_cast<std::int64_t>(admit) + 1;
    }
    return least;
}

double scan_cost(const std::vector<Segment>& segments, std::size_t bytes) {
    double total = 0;
    for (const Segment& segment : segments)
        total += static_cast<double>(segment.collection.count) * static_cast<double>(bytes);
    return total * kScannedByteCost;
}

double list_cost(const std::vector<Segment>& segments, const Slicing& slicing, std::size_t expand) {
    double total = 0;
    for (const Segment& segment : segments) {
        if (!segment.has_lists())
            continue;
        total += postings_expected(slicing, segment.collection.count, expand) * kPostingCost;
        for (std::size_t position = 0; position < slicing.count(); ++position)
            for (std::size_t ones = 0; ones <= std::min(expand, slicing.width(position)); ++ones)
                total += choose(slicing.width(position), ones) * kListCost;
    }
    return total;
}

}  // namespace

std::vector<std::int32_t> optimistic_distances(const Slicing& slicing, std::size_t expand) {
    const std::size_t bits = slicing.bits(), widest = slicing.widest();
    std::size_t wide = 0;
    while (wide < slicing.count() && slicing.width(wide) == widest)
        ++wide;
    const std::size_t narrow = slicing.count() - wide;
    const std::size_t narrow_width = widest - 1;
    const auto unseen = [&](std::size_t count, std::size_t width) {
        return count * std::min(expand + 1, width);
    };
    // With `a` wide and `b` narrow slices seen, a score S leaves their width less S, and each slice
    // that was not seen has at least one bit more than was looked for.
    std::vector<std::int32_t> least(bits + 1, static_cast<std::int32_t>(bits));
    for (std::size_t a = 0; a <= wide; ++a)
        for (std::size_t b = 0; b <= narrow; ++b) {
            const std::size_t seen = a * widest + b * narrow_width;
            const std::size_t total =
                seen + unseen(wide - a, widest) + unseen(narrow - b, narrow_width);
            least[seen] = std::min(least[seen], static_cast<std::int32_t>(total));
        }
    for (std::size_t score = bits; score-- > 0;)
        least[score] = std::min(least[score], least[score + 1]);
    for (std::size_t score = 0; score <= bits; ++score)
        least[score] = std::max(0, least[score] - static_cast<std::int32_t>(score));
    return least;
}

namespace {

// All that the queries of one call have in common.
class TopSearch {
  public:
    TopSearch(const Slicing& slicing, const std::vector<Segment>& segments,
              const TopSettings& settings, std::size_t list_threads,
              const bits::Checkpoint& checkpoint, const TopOutput& output)
        : slicing_(slicing),
          segments_(segments),
          settings_(settings),
          list_threads_(list_threads),
          checkpoint_(checkpoint),
          output_(output),
          kernels_(bits::kernels_for(slicing.bits() / 8)) {
        const std::size_t first = settings.exact ? 0 : settings.expand;
        prepare(first);
        for (const Segment& segment : segments)
            alive_ += segment.alive;
    }

    void search(std::size_t index, const std::uint8_t* signature) const {
        const SlicedQuery query(slicing_, signature);
        Counters counters;
        if (!settings_.exact) {
            one_round(index, query, *near_, optimistic_, settings_, counters);
            return;
        }
        TopSettings now = settings_;
        const bool lists = std::any_of(segments_.begin(), segments_.end(),
                                       [](const Segment& one) { return one.has_lists(); });
        for (now.expand = now.admit = 0; lists && now.expand <= slicing_.widest();
             ++now.expand, ++now.admit) {
            const Neighbourhood near(slicing_, now.expand);
            if (one_round(index, query, near, optimistic_distances(slicing_, now.expand), now,
                          counters))
                return;
            if (list_cost(segments_, slicing_, now.expand + 1) >
                scan_cost(segments_, slicing_.bits() / 8))
                break;
        }
        TopK nearest = scan(signature);
        write(
            index, nearest.take_sorted(), [](std::int64_t) { return 0u; }, std::nullopt, true,
            counters, now.expand);
    }

  private:
    void prepare(std::size_t expand) {
        near_.emplace(slicing_, expand);
        optimistic_ = optimistic_distances(slicing_, expand);
    }

    // Writes the answer, unless it has to be exact and is not; returns whether it did.
    bool one_round(std::size_t index, const SlicedQuery& query, const Neighbourhood& near,
                   const std::vector<std::int32_t>& optimistic, const TopSettings& now,
                   Counters& counters) const {
        Round round(segments_, query, now, kernels_);
        round.score(near, list_threads_, checkpoint_, counters);
        if (now.explain)
            counters.candidates = round.count_candidates();
        round.rerank_best(counters);
        const auto farther = [&](std::int64_t least) {
            const auto kth = round.kth();
            return kth && least > *kth;
        };
        // The lowest score whose signatures may be near enough; scores need not be in order of
        // that.
        const auto doubtful = [&]() -> std::uint32_t {
            for (std::uint32_t score = 1; round.rest && score <= *round.rest; ++score)
                if (!farther(optimistic[score]))
                    return score;
            return 0;
        };
        if (now.exact && round.kth() && doubtful() != 0)
            round.rerank_rest(doubtful(), counters);
        const std::size_t admit = std::min(now.admit, now.expand);
        const bool nothing_left = round.reranked() == alive_;
        const bool exact =
            nothing_left || (doubtful() == 0 && farther(least_unseen(slicing_, admit)));
        if (now.exact && !exact)
            return false;
        write(
            index, round.nearest().take_sorted(),
            [&](std::int64_t id) { return round.score_of(id); }, round.rest, exact, counters,
            now.expand);
        return true;
    }

    TopK scan(const std::uint8_t* signature) const {
        TopK nearest(settings_.k);
        const std::size_t bytes = slicing_.bits() / 8;
        std::vector<bits::Hit> hits(1024);
        for (const Segment& segment : segments_) {
            const Collection& rows = segment.collection;
            for (std::size_t begin = 0; begin < rows.count; begin += hits.size()) {
                const std::size_t found = kernels_.filter_from_memory(
                    signature, rows.row(begin), std::min(hits.size(), rows.count - begin), bytes,
                    static_cast<std::uint32_t>(nearest.cutoff(false)), hits.data());
                for (std::size_t hit = 0; hit < found; ++hit)
                    if (!segment.is_removed(begin + hits[hit].row))
                        nearest.push({hits[hit].distance, rows.id(begin + hits[hit].row)});
            }
        }
        return nearest;
    }

    template <class ScoreOf>
    void write(std::size_t query, const std::vector<Neighbor>& found, ScoreOf score_of,
               std::optional<std::uint32_t> rest, bool exact, const Counters& counters,
               std::size_t expanded) const {
        for (std::size_t index = 0; index < found.size(); ++index) {
            const std::size_t at = query * settings_.k + index;
            output_.ids[at] = found[index].id;
            output_.distances[at] = static_cast<std::int32_t>(found[index].distance);
            output_.scores[at] = static_cast<std::int32_t>(score_of(found[index].id));
        }
        output_.rest[query] = rest ? static_cast<std::int32_t>(*rest) : -1;
        output_.exact[query] = exact ? 1 : 0;
        output_.lists[query] = counters.lists;
        output_.postings[query] = counters.postings;
        output_.candidates[query] = counters.candidates;
        output_.reranked[query] = counters.reranked;
        output_.expanded[query] = static_cast<std::int64_t>(expanded);
    }

    const Slicing& slicing_;
    const std::vector<Segment>& segments_;
    const TopSettings& settings_;
    std::size_t list_threads_;
    const bits::Checkpoint& checkpoint_;
    const TopOutput& output_;
    Kernels kernels_;
    std::optional<Neighbourhood> near_;
    std::vector<std::int32_t> optimistic_;
    std::size_t alive_ = 0;
};

}  // namespace

void slice_top(const Slicing& slicing, const std::vector<Segment>& segments,
               const Signatures& queries, const TopSettings& settings, std::size_t threads,
               const bits::Checkpoint& checkpoint, const TopOutput& output) {
    // Threads over queries where there are enough of them, else over the lists of each query.
    const bool enough = queries.count >= threads;
    const TopSearch top(slicing, segments, settings, enough ? 1 : threads, checkpoint, output);
    bits::share_out(queries.count, enough ? threads : 1, checkpoint,
                    [&](std::size_t, std::size_t query) { top.search(query, queries.row(query)); });
}

}  // namespace lookalike::search
