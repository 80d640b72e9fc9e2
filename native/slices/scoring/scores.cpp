#include "slices/scoring/scores.hpp"

#include <atomic>
#include <cstring>
#include <numeric>

#include "bits/prefetch.hpp"
#include "bits/step_costs.hpp"

namespace lookalike::search {

using bits::kUsualCosts;

namespace {

// Lists are looked up this many ahead: first their offsets are asked for, then their rows.
constexpr std::size_t kAhead = 32;

constexpr std::size_t kScored = 256 << 10;    // postings that are worth a second thread
constexpr std::size_t kComparedApart = 4096;  // candidates that are worth a second thread
constexpr std::size_t kBlocks = 16;           // of kComparedApart rows, for a thread at a time
constexpr std::size_t kTogether = 1024;       // candidates that are compared at once, or more

// Above this share of candidates, reading all signatures in the order they lie in is quicker.
constexpr double kReadInOrder = 0.3;

// Reads lists and adds to a table. Looking up where lists are, copying them together, and adding
// are done in turns of many lists each: the memory then works on several at a time, and the adding
// is one long loop instead of many short ones whose ends cannot be foreseen.
template <class Row>
class ListScorer {
  public:
    ListScorer(const SliceLists<Row>& lists, const SlicedQuery& query, const Neighborhood& near,
               ScoreTable& scores)
        : lists_(lists), query_(query), near_(near), scores_(scores) {
        end_of_rows_ = lists.rows + query.slicing.count() * lists.count;
    }

    // Adds the lists of a range of positions whose values differ in `from` to `to` bits from the
    // query's.
    void add(std::size_t from, std::size_t to, std::size_t first_position,
             std::size_t end_position) {
        for (std::size_t ones = from; ones <= to; ++ones)
            for (std::size_t position = first_position; position < end_position; ++position) {
                const std::size_t width = query_.slicing.width(position);
                if (ones > width)
                    continue;
                if (amount_ != width - ones)
                    flush();
                amount_ = static_cast<std::uint32_t>(width - ones);
                look_up(position, ones);
            }
        flush();
    }

    std::int64_t postings = 0;

  private:
    static constexpr std::size_t kSpans = 512;
    static constexpr std::size_t kLong = 256;       // rows of a list that is added where it lies
    static constexpr std::size_t kGathered = 8192;  // rows
    static constexpr std::size_t kCopied = 64 / sizeof(Row);  // rows at a time: a cache line

    struct Span {
        const Row* begin;
        std::size_t size;
    };

    void look_up(std::size_t position, std::size_t ones) {
        const Variants& variants = near_.at(position);
        const std::uint32_t value = query_.values[position];
        const std::size_t width = query_.slicing.width(position);
        const Row* const offsets = lists_.offset_of(position, 0);
        const Row* const rows = lists_.rows + position * lists_.count;
        const std::uint32_t last = low_bits(width);
        const std::size_t end = variants.ends[ones];
        if (lists_.slicing.untold(position) != 0)
            return look_up_values(position, ones);
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
                gather();
            spans_[count_++] = {rows + begin, stop - begin};
        }
    }

    // The same for slices whose values are searched for.
    void look_up_values(std::size_t position, std::size_t ones) {
        const Variants& variants = near_.at(position);
        const std::uint32_t value = query_.values[position];
        const std::size_t end = variants.ends[ones];
        for (std::size_t at = ones == 0 ? 0 : variants.ends[ones - 1]; at < end; ++at) {
            if (at + kAhead < end)
                __builtin_prefetch(
                    lists_.offset_of(position, value ^ variants.values[at + kAhead]));
            if (at + kAhead / 2 < end)
                __builtin_prefetch(
                    lists_.values_near(position, value ^ variants.values[at + kAhead / 2]));
            const auto list = lists_.list(position, value ^ variants.values[at]);
            if (list.size == 0)
                continue;
            if (count_ == kSpans)
                gather();
            spans_[count_++] = {list.begin, list.size};
        }
    }

    // Copies the lists looked up so far behind each other.
    void gather() {
        const auto ask_for = [&](std::size_t at) __attribute__((always_inline)) {
            if (at >= count_)
                return;
            bits::prefetch_all(reinterpret_cast<const std::uint8_t*>(spans_[at].begin),
                               sizeof(Row) * std::min(spans_[at].size, kLong));
        };
        for (std::size_t at = 0; at < kAhead; ++at)
            ask_for(at);
        for (std::size_t at = 0; at < count_; ++at) {
            ask_for(at + kAhead);
            const auto [begin, size] = spans_[at];
            postings += static_cast<std::int64_t>(size);
            if (size > kLong || begin + size + kCopied > end_of_rows_) {
                add(begin, size);
                continue;
            }
            if (gathered_count_ + kLong + kCopied > kGathered)
                add_gathered();
            // Whole lines, and more than there is: what is too much is overwritten by the next.
            for (std::size_t copied = 0; copied < size; copied += kCopied)
                std::memcpy(gathered_ + gathered_count_ + copied, begin + copied,
                            kCopied * sizeof(Row));
            gathered_count_ += size;
        }
        count_ = 0;
    }

    void flush() {
        gather();
        add_gathered();
    }

    void add_gathered() {
        add(gathered_, gathered_count_);
        gathered_count_ = 0;
    }

    // Rows are checked before they are used: those of a damaged file could be anywhere.
    void add(const Row* rows, std::size_t count) {
        Row largest = 0;
        for (std::size_t at = 0; at < count; ++at)
            largest = std::max(largest, rows[at]);
        if (count != 0 && largest >= lists_.count)
            throw CorruptLists();
        scores_.add(rows, count, amount_);
    }

    const SliceLists<Row>& lists_;
    const SlicedQuery& query_;
    const Neighborhood& near_;
    ScoreTable& scores_;
    const Row* end_of_rows_;
    std::uint32_t amount_ = 0;
    Span spans_[kSpans];
    std::size_t count_ = 0;
    Row gathered_[kGathered];
    std::size_t gathered_count_ = 0;
};

// Adds the lists whose values differ in `from` to `to` bits, shared among threads: each adds up
// positions of its own.
template <class Row>
void add_lists(const SliceLists<Row>& lists, const SlicedQuery& query, const Neighborhood& near,
               std::size_t from, std::size_t to, std::size_t threads,
               const bits::Checkpoint& checkpoint, ScoreTable& table, Counters& counters) {
    const std::size_t positions = query.slicing.count();
    const double expected = postings_expected(query.slicing, lists.count, to);
    threads = std::min({threads, positions, static_cast<std::size_t>(expected / kScored) + 1});
    if (threads == 1) {
        ListScorer<Row> scorer(lists, query, near, table);
        scorer.add(from, to, 0, positions);
        counters.postings += scorer.postings;
        return;
    }
    // The first adds to the table itself, the others to tables of their own.
    std::atomic<std::int64_t> postings{0};
    std::vector<SegmentScores> parts(threads - 1);
    bits::share_out(threads, threads, checkpoint, [&](std::size_t, std::size_t part) {
        ScoreTable& own = part == 0 ? table : parts[part - 1].begin_table(lists.count);
        ListScorer<Row> scorer(lists, query, near, own);
        scorer.add(from, to, positions * part / threads, positions * (part + 1) / threads);
        postings += scorer.postings;
    });
    // Which are put together by rows, again shared among threads.
    std::vector<std::vector<std::uint64_t>> left(parts.size() * threads);
    bits::share_out(threads, threads, checkpoint, [&](std::size_t, std::size_t share) {
        const auto begin = lists.count * share / threads;
        const auto end = lists.count * (share + 1) / threads;
        for (std::size_t part = 0; part < parts.size(); ++part)
            table.take_rows(parts[part].table(), begin, end, left[part * threads + share]);
    });
    for (std::size_t part = 0; part < parts.size(); ++part) {
        for (std::size_t share = 0; share < threads; ++share)
            table.take_rest(parts[part].table(), left[part * threads + share]);
        parts[part].was_emptied();
    }
    counters.postings += postings;
}

// Adds the lists whose values differ in more than `admit` bits to rows that have a score.
template <class Row>
void add_to_candidates(const SliceLists<Row>& lists, const SlicedQuery& query,
                       const Neighborhood& near, std::size_t admit, std::size_t expand,
                       std::size_t threads, const bits::Checkpoint& checkpoint, ScoreTable& table,
                       Counters& counters) {
    table.admit();
    add_lists(lists, query, near, admit + 1, expand, threads, checkpoint, table, counters);
}

template <class Row>
void score_lists(const SliceLists<Row>& lists, const SlicedQuery& query, const Neighborhood& near,
                 const NearestSettings& settings, std::size_t threads,
                 const bits::Checkpoint& checkpoint, ScoreTable& table, Counters& counters) {
    const std::size_t admit = std::min(settings.admit, settings.expand);
    add_lists(lists, query, near, 0, admit, threads, checkpoint, table, counters);
    if (admit < settings.expand)
        add_to_candidates(lists, query, near, admit, settings.expand, threads, checkpoint, table,
                          counters);
    counters.lists += lists_read(query.slicing, near, settings.expand);
}

// The same scores for a segment without lists, slice by slice.
void score_directly(const Segment& segment, const SlicedQuery& query,
                    const NearestSettings& settings, SegmentScores& scores) {
    const Collection& collection = segment.collection;
    const std::size_t admit = std::min(settings.admit, settings.expand);
    ScoredRow* const list = scores.begin_list(collection.count);
    std::size_t count = 0;
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
        // Slices that differ in all their bits add nothing; then a row is admitted without a score.
        list[count] = {row, score};
        count += admitted && score != 0 && !segment.is_removed(row) ? 1 : 0;
    }
    scores.end_list(count);
}

}  // namespace

SegmentScores::~SegmentScores() {
    if (store_ && dense_)
        store_->table.clear();
}

ScoreTable& SegmentScores::begin_table(std::size_t rows) {
    dense_ = true;
    store_->table.resize(rows);
    return store_->table;
}

std::int64_t SegmentScores::candidates(const Segment& segment) {
    if (!dense_)
        return static_cast<std::int64_t>(listed_);
    const ScoreTable& scores = store_->table;
    std::size_t count = scores.candidates();
    if (segment.removed != nullptr)
        for (std::size_t row = 0; row < scores.rows(); ++row)
            count -=
                segment.is_removed(row) && !scores.is_zero(row) && scores.is_admitted(row) ? 1 : 0;
    return static_cast<std::int64_t>(count);
}

double postings_expected(const Slicing& slicing, std::size_t rows, std::size_t expand) {
    double share = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position)
        share += lists_near(slicing.width(position), expand) /
                 static_cast<double>(std::uint64_t{1} << slicing.width(position));
    return share * static_cast<double>(rows);
}

std::int64_t lists_read(const Slicing& slicing, const Neighborhood& near, std::size_t expand) {
    std::int64_t lists = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position)
        lists += static_cast<std::int64_t>(near.at(position).ends[expand]);
    return lists;
}

namespace {

// What reading the lists costs that bring in no candidates; `skew` is how much longer lists are
// than if values were equally frequent.
double rest_by_lists(const Slicing& slicing, std::size_t rows, const NearestSettings& settings,
                     double skew) {
    double lists = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position)
        lists += lists_near(slicing.width(position), settings.expand) -
                 lists_near(slicing.width(position), settings.admit);
    const double postings = postings_expected(slicing, rows, settings.expand) -
                            postings_expected(slicing, rows, settings.admit);
    const double tables = kUsualCosts.read_byte * static_cast<double>(rows);  // see `admit`
    return lists * kUsualCosts.look_up() + skew * postings * kUsualCosts.posting + tables;
}

// What comparing all slices of candidates costs instead. Where many rows are candidates, signatures
// are read in the order they lie in, while others are compared.
double rest_by_slices(const Slicing& slicing, std::size_t rows, double candidates) {
    const std::size_t bytes = slicing.bits() / 8;
    const ComparedSlices shape{nullptr,
                               nullptr,
                               nullptr,
                               nullptr,
                               slicing.count(),
                               static_cast<std::uint32_t>(slicing.widest()),
                               bytes,
                               0,
                               0};
    const std::size_t at_once = score_loops().compared_at_once(shape);
    const double slices = static_cast<double>(slicing.count()) / static_cast<double>(at_once) *
                          (at_once > 1 ? kUsualCosts.slices : kUsualCosts.slice);
    const double read = kUsualCosts.read_byte * static_cast<double>(bytes);
    const double added = kUsualCosts.posting;
    return std::min(candidates * (added + std::max(kUsualCosts.compare(bytes), slices)),
                    static_cast<double>(rows) * (added + std::max(read, slices)));
}

// Slices of a query, laid out for comparing them with those of candidates.
class SliceFlips {
  public:
    SliceFlips(const SlicedQuery& query, std::size_t above, std::size_t up_to)
        : query_(query), above_(above), up_to_(up_to) {
        const Slicing& slicing = query.slicing;
        const std::size_t room = (slicing.count() + 15) / 16 * 16;
        for (std::vector<std::uint32_t>* one : {&starts_, &values_, &masks_, &widths_})
            one->resize(room);
        for (std::size_t position = 0; position < slicing.count(); ++position) {
            starts_[position] = static_cast<std::uint32_t>(slicing.start(position));
            values_[position] = query.values[position];
            widths_[position] = static_cast<std::uint32_t>(slicing.width(position));
            masks_[position] = low_bits(widths_[position]);
        }
    }

    ComparedSlices compared() const {
        return {starts_.data(),
                values_.data(),
                masks_.data(),
                widths_.data(),
                query_.slicing.count(),
                static_cast<std::uint32_t>(query_.slicing.widest()),
                query_.slicing.bits() / 8,
                static_cast<std::uint32_t>(above_),
                static_cast<std::uint32_t>(up_to_)};
    }

  private:
    const SlicedQuery& query_;
    std::size_t above_, up_to_;
    std::vector<std::uint32_t> starts_, values_, masks_, widths_;
};

}  // namespace

NearestSettings lists_to_read(const Slicing& slicing, const std::vector<Segment>& segments,
                              const NearestSettings& settings) {
    NearestSettings reading = settings;
    if (settings.admit >= settings.expand)
        return reading;
    double by_lists = 0, by_slices = 0;
    for (const Segment& segment : segments) {
        if (!segment.has_lists())
            continue;
        const std::size_t rows = segment.collection.count;
        const double admitted = postings_expected(slicing, rows, settings.admit);
        by_lists += rest_by_lists(slicing, rows, settings, 1);
        by_slices += rest_by_slices(slicing, rows, std::min(admitted, static_cast<double>(rows)));
    }
    if (by_slices < by_lists)
        reading.expand = settings.admit;
    return reading;
}

void score_rest(const Segment& segment, const SlicedQuery& query, const Neighborhood& near,
                const NearestSettings& settings, std::size_t threads,
                const bits::Checkpoint& checkpoint, SegmentScores& scores, Counters& counters) {
    const Slicing& slicing = query.slicing;
    const Collection& collection = segment.collection;
    const auto candidates =
        static_cast<double>(scores.dense() ? scores.table().candidates() : scores.list().size());
    const double expected = postings_expected(slicing, collection.count, settings.admit);
    const double skew = std::max(1.0, candidates / expected);
    if (rest_by_slices(slicing, collection.count, candidates) >
        rest_by_lists(slicing, collection.count, settings, skew)) {
        // There are more candidates than was to be expected.
        if (!scores.dense()) {
            const std::vector<ScoredRow> listed(scores.list().begin(), scores.list().end());
            ScoreTable& table = scores.begin_table(collection.count);
            for (const ScoredRow& one : listed)
                table.add_one(one.row, one.score);
        }
        const auto add = [&](const auto& lists) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
                add_to_candidates(lists, query, near, settings.admit, settings.expand, threads,
                                  checkpoint, scores.table(), counters);
        };
        std::visit(add, segment.lists);
        counters.lists +=
            lists_read(slicing, near, settings.expand) - lists_read(slicing, near, settings.admit);
        return;
    }
    const SliceFlips flips(query, settings.admit, settings.expand);
    const auto compare = [&](const std::uint64_t* rows, std::size_t count, std::uint32_t* amounts) {
        score_loops().compare_slices(collection.data, flips.compared(), rows, count, amounts);
    };
    const bool dense = scores.dense();
    const std::size_t all = dense ? scores.table().rows() : scores.list().size();
    const std::size_t in_part = kComparedApart * (dense ? kBlocks : 1);
    const std::size_t parts = (all + in_part - 1) / in_part;
    std::vector<std::vector<ScoredRow>> left(parts);
    const auto complete = [&](std::size_t, std::size_t part) {
        std::uint64_t rows[kComparedApart + kTogether];
        std::uint32_t amounts[kComparedApart + kTogether];
        const std::size_t begin = part * in_part, end = std::min(begin + in_part, all);
        if (!dense) {
            const std::span<ScoredRow> listed =
                scores.changeable_list().subspan(begin, end - begin);
            for (std::size_t at = 0; at < listed.size(); ++at)
                rows[at] = listed[at].row;
            compare(rows, listed.size(), amounts);
            for (std::size_t at = 0; at < listed.size(); ++at)
                listed[at].score += amounts[at];
            return;
        }
        // Candidates of some blocks together: signatures are asked for ahead, but not beyond a
        // call.
        std::size_t held = 0;
        const auto raise = [&] {
            compare(rows, held, amounts);
            scores.table().raise_each(rows, amounts, held, left[part]);
            held = 0;
        };
        for (std::size_t block = begin; block < end; block += kComparedApart) {
            const std::size_t size = std::min(kComparedApart, end - block);
            const std::uint8_t* const low = scores.table().low() + block;
            const std::size_t found = score_loops().count_from(low, size, 1);
            if (static_cast<double>(found) > kReadInOrder * static_cast<double>(size)) {
                raise();
                std::iota(rows, rows + size, std::uint64_t{block});
                held = size;
                raise();
                continue;
            }
            score_loops().collect(low, size, 1, rows + held, nullptr);
            for (std::size_t at = held; at < held + found; ++at)
                rows[at] += block;
            held += found;
            if (held >= kTogether)
                raise();
        }
        raise();
    };
    bits::share_out(parts, std::min(threads, parts), checkpoint, complete);
    for (const std::vector<ScoredRow>& part : left)
        for (const ScoredRow& one : part)
            scores.table().add_one(one.row, one.score);
}

void score_segment(const Segment& segment, const SlicedQuery& query, const Neighborhood& near,
                   const NearestSettings& settings, std::size_t threads,
                   const bits::Checkpoint& checkpoint, SegmentScores& scores, Counters& counters) {
    const auto score = [&](const auto& lists) {
        if constexpr (std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
            score_directly(segment, query, settings, scores);
        else
            score_lists(lists, query, near, settings, threads, checkpoint,
                        scores.begin_table(segment.collection.count), counters);
    };
    std::visit(score, segment.lists);
}

}  // namespace lookalike::search
