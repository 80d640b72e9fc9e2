// Lists are read for several queries at once; few postings a query are added up by sorting, many
// in a table.

#include <algorithm>
#include <bit>
#include <numeric>

#include "bits/prefetch.hpp"
#include "slices/scoring/scores.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kPostingsAtOnce = 1 << 24;  // of a block: 64 MB
constexpr double kMostQueries = 1024;
constexpr double kLonger = 4;
constexpr double kKeptPostings = 1 << 22;  // more are not kept for the next search

// Many postings are written and read again; that pays if lists do not stay in the cache, and if so
// many queries share a block that hardly any list is looked up for one of them alone.
constexpr std::size_t kListBytes = 32 << 20;
constexpr std::size_t kLeastQueries = 64;

constexpr std::size_t kAhead = 32;       // lists looked up ahead of reading
constexpr std::size_t kRowsAhead = 128;  // of a list; behind them the processor fetches ahead

constexpr std::size_t kWrittenAhead = 32;  // keys

constexpr std::size_t kDigitBits = 11;

// Sorts by bits of keys, `width` of them from `from` on, least significant digit first. The result
// is where `keys` were.
template <class Key>
void sort_by(Key* keys, Key* spare, std::size_t count, std::size_t from, std::size_t width) {
    if (count < 128) {
        std::sort(keys, keys + count);
        return;
    }
    const std::size_t passes = (width + kDigitBits - 1) / kDigitBits;
    const std::size_t digit = (width + passes - 1) / passes, values = std::size_t{1} << digit;
    std::uint32_t places[1 << kDigitBits];
    for (std::size_t pass = 0; pass < passes; ++pass) {
        const std::size_t shift = from + pass * digit;
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

bool PostingBlock::is_for(const Segment& segment, const Neighborhood& near, std::size_t expand,
                          std::size_t queries) {
    const Slicing& slicing = near.slicing;
    const auto rows = static_cast<double>(segment.collection.count);
    const double postings = postings_expected(slicing, segment.collection.count, expand);
    if (!segment.has_lists() || slicing.widest() >> kAmountBits != 0)
        return false;
    if (postings <= rows * kTableShare)
        return true;
    const auto lists = static_cast<double>(lists_read(slicing, near, expand));
    return queries >= kLeastQueries && queries_at_once(postings, lists) >= kLeastQueries &&
           segment.collection.count * slicing.count() >= kListBytes / sizeof(std::uint32_t);
}

std::size_t PostingBlock::queries_at_once(double postings, double lists) {
    const double bytes = sizeof(std::uint32_t) * postings + sizeof(Span) * lists;
    return static_cast<std::size_t>(std::clamp(
        static_cast<double>(sizeof(std::uint32_t) * kPostingsAtOnce) / bytes, 1.0, kMostQueries));
}

PostingBlock::PostingBlock(const Segment& segment, std::span<const SlicedQuery> queries,
                           const Neighborhood& near, const NearestSettings& settings)
    : segment_(segment),
      bits_(8 * segment.collection.bytes),
      lists_(lists_read(near.slicing, near, settings.expand)),
      few_(postings_expected(near.slicing, segment.collection.count, settings.expand) <=
           static_cast<double>(segment.collection.count) * kTableShare),
      narrow_(segment.collection.count >> (32 - kLabelBits) == 0) {
    const Slicing& slicing = near.slicing;
    const std::size_t narrowest = slicing.narrowest();
    most_amount_ = static_cast<std::uint32_t>(slicing.widest());
    least_amount_ = static_cast<std::uint32_t>(narrowest - std::min(narrowest, settings.expand));
    all_count_ = least_amount_ > 0 && settings.expand <= settings.admit;
    all_admit_ = settings.expand <= settings.admit;
    const auto find = [&](const auto& lists) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
            look_up(lists, queries, near, settings);
    };
    std::visit(find, segment.lists);
    // Lists of values that are not equally frequent may be longer than was to be expected.
    if (static_cast<double>(store_->ends.back()) >
        kLonger * static_cast<double>(queries.size() * segment.collection.count) * kTableShare)
        few_ = false;
}

void PostingBlock::free_unused(double postings) {
    if (postings * kMostQueries > kKeptPostings)
        bits::Pooled<Store>::free_unused();
}

std::size_t PostingBlock::room_for() const {
    const std::vector<std::size_t>& ends = store_->ends;
    const auto beyond = std::upper_bound(ends.begin(), ends.end(), kPostingsAtOnce);
    return static_cast<std::size_t>(beyond - ends.begin()) - 1;
}

void PostingBlock::read(std::size_t queries) {
    const std::size_t all = store_->ends[queries] + 1;
    const auto fill = [&](const auto& lists) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>) {
            if (narrow_)
                read(lists, queries, store_->narrow.of(all));
            else
                read(lists, queries, store_->wide.of(all));
        }
    };
    std::visit(fill, segment_.lists);
}

// Finds the lists of all queries, in the order in which they lie in memory.
template <class Row>
void PostingBlock::look_up(const SliceLists<Row>& lists, std::span<const SlicedQuery> queries,
                           const Neighborhood& near, const NearestSettings& settings) {
    const Slicing& slicing = near.slicing;
    std::vector<std::uint64_t>& probes = store_->probes;
    std::vector<Span>& spans = store_->spans;
    std::vector<std::size_t>& ends = store_->ends;
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
        if (store_->probes_spare.size() < probes.size())
            store_->probes_spare.resize(probes.size());
        sort_by(probes.data(), store_->probes_spare.data(), probes.size(), 32, width);
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
void PostingBlock::read(const SliceLists<Row>& lists, std::size_t queries, Key* keys) {
    const std::vector<Span>& spans = store_->spans;
    std::vector<std::size_t>& places = store_->ends;  // begins of queries, which become ends
    const auto ask_for = [&](std::size_t at) __attribute__((always_inline)) {
        if (at >= spans.size() || spans[at].query >= queries)
            return;
        const Row* const begin = static_cast<const Row*>(spans[at].begin);
        bits::prefetch_all(reinterpret_cast<const std::uint8_t*>(begin),
                           sizeof(Row) * std::min(spans[at].size, kRowsAhead));
        // And about where they go.
        __builtin_prefetch(keys + places[spans[at].query] + kWrittenAhead, 1);
    };
    for (std::size_t at = 0; at < kAhead; ++at)
        ask_for(at);
    for (std::size_t at = 0; at < spans.size(); ++at) {
        ask_for(at + kAhead);
        const Span& span = spans[at];
        if (span.query >= queries)
            continue;
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
    const auto add = [&](auto& keys, auto& spare) {
        const std::span mine(keys.of(0) + begin, count);
        if (few_)
            add_up(mine, spare.of(count), scores);
        else
            add_to_table(std::span<const typename decltype(mine)::value_type>(mine),
                         scores.begin_table(segment_.collection.count));
    };
    if (narrow_)
        add(store_->narrow, store_->narrow_spare);
    else
        add(store_->wide, store_->wide_spare);
}

template <class Key>
void PostingBlock::add_up(std::span<Key> keys, Key* spare, SegmentScores& scores) {
    sort_by(keys.data(), spare, keys.size(), kLabelBits,
            static_cast<std::size_t>(std::bit_width(segment_.collection.count)));
    ScoredRow* const list = scores.begin_list(keys.size());
    std::size_t count = 0;
    for (std::size_t at = 0; at < keys.size();) {
        const Key row = keys[at] >> kLabelBits;
        std::uint32_t score = amount(keys[at]);
        Key admits = keys[at] & 1;
        for (++at; at < keys.size() && keys[at] >> kLabelBits == row; ++at) [[unlikely]] {
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

template <class Key>
void PostingBlock::add_to_table(std::span<const Key> keys, ScoreTable& table) {
    const auto row_of = [](Key key) { return static_cast<std::size_t>(key >> kLabelBits); };
    if (all_admit_) {
        table.add(keys.data(), keys.size(), row_of, amount<Key>);
        return;
    }
    // First what admits rows, then what only adds to those.
    for (const Key key : keys)
        if ((key & 1) != 0)
            table.add(&key, 1, row_of, amount<Key>);
    for (const Key key : keys)
        if ((key & 1) == 0 && !table.is_zero(row_of(key)))
            table.add(&key, 1, row_of, amount<Key>);
}

}  // namespace lookalike::search
