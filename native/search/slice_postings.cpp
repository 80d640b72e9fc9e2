// Queries with few postings: lists are read for several at once, and added up by sorting.

#include <algorithm>
#include <bit>
#include <numeric>

#include "bits/prefetch.hpp"
#include "search/slice_scores.hpp"

namespace lookalike::search {

namespace {

// Above this share of the collection, a table of all scores beats sorting.
constexpr double kTableShare = 1.0 / 128;

constexpr double kPostingsAtOnce = 1 << 20;  // of a block: they stay in the second-level cache
constexpr std::size_t kMostQueries = 1024;
constexpr std::size_t kAhead = 32;       // lists looked up ahead of reading
constexpr std::size_t kRowsAhead = 128;  // of a list; behind them the processor fetches ahead

constexpr std::size_t kDigitBits = 11;

// Sorts by row, least significant digit first. The result is where `keys` were.
template <class Key>
void sort_by_row(Key* keys, Key* spare, std::size_t count, std::size_t row_bits,
                 std::size_t label_bits) {
    if (count < 128) {
        std::sort(keys, keys + count);
        return;
    }
    const std::size_t passes = (row_bits + kDigitBits - 1) / kDigitBits;
    const std::size_t digit = (row_bits + passes - 1) / passes, values = std::size_t{1} << digit;
    std::uint32_t places[1 << kDigitBits];
    for (std::size_t pass = 0; pass < passes; ++pass) {
        const std::size_t shift = label_bits + pass * digit;
        std::fill_n(places, values, 0);
        for (std::size_t at = 0; at < count; ++at)
            ++places[keys[at] >> shift & (values - 1)];
        std::exclusive_scan(places, places + values, places, 0u);
        for (std::size_t at = 0; at < count; ++at)
            spare[places[keys[at] >> shift & (values - 1)]++] = keys[at];
        std::swap(keys, spare);
    }
    if (passes % 2 != 0)
        std::copy_n(keys, count, spare);
}

}  // namespace

bool PostingBlock::is_for(const Segment& segment, const Slicing& slicing, std::size_t expand) {
    const auto rows = static_cast<double>(segment.collection.count);
    return segment.has_lists() &&
           postings_expected(slicing, segment.collection.count, expand) <= rows * kTableShare;
}

std::size_t PostingBlock::queries_at_once(double postings) {
    return static_cast<std::size_t>(
        std::clamp(kPostingsAtOnce / postings, 1.0, static_cast<double>(kMostQueries)));
}

PostingBlock::PostingBlock(const Segment& segment, std::span<const SlicedQuery> queries,
                           const Neighbourhood& near, const TopSettings& settings)
    : segment_(segment),
      bits_(8 * segment.collection.bytes),
      lists_(lists_read(near.slicing, near, settings.expand)),
      narrow_(segment.collection.count >> (32 - kLabelBits) == 0) {
    const Slicing& slicing = near.slicing;
    const std::size_t narrowest = slicing.width(slicing.count() - 1);
    most_amount_ = static_cast<std::uint32_t>(slicing.widest());
    least_amount_ = static_cast<std::uint32_t>(narrowest - std::min(narrowest, settings.expand));
    all_count_ = least_amount_ > 0 && settings.expand <= settings.admit;
    const auto fill = [&](const auto& lists) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>) {
            look_up(lists, queries, near, settings);
            const std::size_t all = store_->ends.back();
            if (narrow_)
                read(lists, store_->narrow.of(all + 1));
            else
                read(lists, store_->wide.of(all + 1));
        }
    };
    std::visit(fill, segment.lists);
}

// Finds the lists of all queries, in the order in which they lie in memory.
template <class Row>
void PostingBlock::look_up(const SliceLists<Row>& lists, std::span<const SlicedQuery> queries,
                           const Neighbourhood& near, const TopSettings& settings) {
    const Slicing& slicing = near.slicing;
    auto& [probes, spans, ends, several, counts, rows, narrow, narrow_spare, wide, wide_spare] =
        *store_;
    spans.clear();
    ends.assign(queries.size() + 1, 0);
    for (std::size_t position = 0; position < slicing.count(); ++position) {
        const Variants& variants = near.at(position);
        const std::size_t width = slicing.width(position);
        probes.clear();
        for (std::size_t query = 0; query < queries.size(); ++query) {
            const std::uint32_t value = queries[query].values[position];
            for (std::size_t ones = 0, at = 0; ones <= std::min(settings.expand, width); ++ones) {
                const auto label = static_cast<std::uint32_t>((width - ones) << 1) |
                                   (ones <= settings.admit ? 1u : 0u);
                for (; at < variants.ends[ones]; ++at)
                    probes.push_back(std::uint64_t{value ^ variants.values[at]} << 32 |
                                     query << kLabelBits | label);
            }
        }
        std::sort(probes.begin(), probes.end());
        for (std::size_t at = 0; at < probes.size(); ++at) {
            if (at + kAhead < probes.size())
                __builtin_prefetch(lists.offset_of(
                    position, static_cast<std::uint32_t>(probes[at + kAhead] >> 32)));
            const auto list = lists.list(position, static_cast<std::uint32_t>(probes[at] >> 32));
            const auto query = static_cast<std::uint32_t>(probes[at]) >> kLabelBits;
            if (list.size == 0)
                continue;
            spans.push_back({list.begin, query,
                             static_cast<std::uint32_t>(probes[at]) & ((1u << kLabelBits) - 1),
                             list.size});
            ends[query + 1] += list.size;
        }
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
}

template <class Row, class Key>
void PostingBlock::read(const SliceLists<Row>& lists, Key* keys) {
    std::vector<Span>& spans = store_->spans;
    std::vector<std::size_t>& places = store_->ends;  // begins of queries, which become ends
    const auto ask_for = [&](std::size_t at) __attribute__((always_inline)) {
        if (at >= spans.size())
            return;
        const Row* const begin = static_cast<const Row*>(spans[at].begin);
        bits::prefetch_all(reinterpret_cast<const std::uint8_t*>(begin),
                           sizeof(Row) * std::min(spans[at].size, kRowsAhead));
    };
    for (std::size_t at = 0; at < kAhead; ++at)
        ask_for(at);
    for (std::size_t at = 0; at < spans.size(); ++at) {
        ask_for(at + kAhead);
        const Span& span = spans[at];
        const Row* const rows = static_cast<const Row*>(span.begin);
        Key* const to = keys + places[span.query];
        bool outside = false;  // rows of a damaged file could be anywhere
        for (std::size_t index = 0; index < span.size; ++index) {
            outside |= rows[index] >= lists.count;
            to[index] = static_cast<Key>(rows[index]) << kLabelBits | span.label;
        }
        if (outside)
            throw CorruptLists();
        places[span.query] += span.size;
    }
}

void PostingBlock::score(std::size_t query, SegmentScores& scores, Counters& counters) {
    // Each query's place has moved on to where the next one began.
    const std::size_t begin = query == 0 ? 0 : store_->ends[query - 1];
    const std::size_t count = store_->ends[query] - begin;
    counters.lists += lists_;
    counters.postings += static_cast<std::int64_t>(count);
    if (narrow_)
        add_up(query, store_->narrow.of(0), store_->narrow_spare.of(count), scores);
    else
        add_up(query, store_->wide.of(0), store_->wide_spare.of(count), scores);
}

template <class Key>
void PostingBlock::add_up(std::size_t query, Key* keys, Key* spare, SegmentScores& scores) {
    const std::size_t begin = query == 0 ? 0 : store_->ends[query - 1];
    const std::size_t end = store_->ends[query];
    sort_by_row(keys + begin, spare, end - begin,
                static_cast<std::size_t>(std::bit_width(segment_.collection.count)), kLabelBits);
    ScoredRow* const list = scores.begin_list(end - begin);
    std::size_t count = 0;
    for (std::size_t at = begin; at < end;) {
        const Key row = keys[at] >> kLabelBits;
        std::uint32_t score = amount(keys[at]);
        Key admits = keys[at] & 1;
        for (++at; at < end && keys[at] >> kLabelBits == row; ++at) [[unlikely]] {
            score += amount(keys[at]);
            admits |= keys[at] & 1;
        }
        if (score > bits_)
            throw CorruptLists();  // more than all slices together: a row is in a list twice
        list[count] = {row, score};
        count += admits != 0 && score != 0 && !segment_.is_removed(row) ? 1 : 0;
    }
    scores.end_list(count);
}

}  // namespace lookalike::search
