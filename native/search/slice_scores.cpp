#include "search/slice_scores.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace lookalike::search {

namespace {

// Lists are looked up this many ahead: first their offsets are asked for, then their rows.
constexpr std::size_t kAhead = 32;

// Above this share of the collection, sweeping all scores beats remembering which were touched.
constexpr std::size_t kDenseShare = 32;

constexpr std::size_t kScored = 64 << 10;  // postings that are worth a second thread

// Tables that are not in use.
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

}  // namespace

ScoredSegment::ScoredSegment(std::size_t rows) : rows_(rows), scores_(pool().take(rows)) {}

ScoredSegment::~ScoredSegment() {
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

double postings_expected(const Slicing& slicing, std::size_t rows, std::size_t expand) {
    double share = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position)
        for (std::size_t ones = 0; ones <= std::min(expand, slicing.width(position)); ++ones)
            share += choose(slicing.width(position), ones) /
                     static_cast<double>(std::uint64_t{1} << slicing.width(position));
    return share * static_cast<double>(rows);
}

void score_segment(const Segment& segment, const SlicedQuery& query, const Neighbourhood& near,
                   const TopSettings& settings, std::size_t threads,
                   const bits::Checkpoint& checkpoint, ScoredSegment& scored, Counters& counters) {
    const auto score = [&](const auto& lists) {
        if constexpr (std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
            score_directly(segment.collection, query, settings, scored);
        else
            score_lists(lists, query, near, settings, threads, checkpoint, scored, counters);
    };
    std::visit(score, segment.lists);
}

}  // namespace lookalike::search
