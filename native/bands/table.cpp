#include "bands/table.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "bits/hash.hpp"
#include "bits/operation.hpp"
#include "bits/prefetch.hpp"
#include "scan/scan.hpp"

namespace lookalike::search {

namespace {

constexpr std::uint32_t kEmpty = 0xffffffffu;
constexpr std::size_t kAhead = 32;  // keys and rows that are asked for before their turn
constexpr std::size_t kQueriesPerTask = 64;
constexpr std::size_t kRowsAtATime = 1 << 14;
constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
constexpr std::size_t kFewRows = 8;

bool equal_band(const std::uint32_t* a, const std::uint32_t* b, std::size_t values) {
    for (std::size_t index = 0; index < values; ++index)
        if (a[index] != b[index])
            return false;
    return true;
}

bool any_empty(const std::uint32_t* values, std::size_t count) {
    std::uint32_t found = 0;  // a loop that compilers vectorize, which std::find is not
    for (std::size_t index = 0; index < count; ++index)
        found |= static_cast<std::uint32_t>(values[index] == kEmpty);
    return found != 0;
}

template <bool empty_counts>
std::int32_t equal_values(const std::uint32_t* a, const std::uint32_t* b, std::size_t values) {
    std::int32_t equal = 0;  // loops that compilers vectorize
    for (std::size_t index = 0; index < values; ++index)
        equal += static_cast<std::int32_t>(a[index] == b[index]) &
                 static_cast<std::int32_t>(empty_counts || a[index] != kEmpty);
    return equal;
}

}  // namespace

BandTable::BandTable(BandShape shape, bool empty_counts, std::uint64_t seed)
    : shape_(shape), empty_counts_(empty_counts), slots_(shape.bands) {
    const std::size_t row_bytes = 4 * shape.values;
    while ((row_bytes << (chunk_bits_ + 1)) <= kChunkBytes)
        ++chunk_bits_;
    for (std::size_t index = 0; index <= shape.band_values; ++index)
        factors_.push_back(bits::fmix64(seed + (index + 1) * 0x9e3779b97f4a7c15u));
    for (KeySlots& slots : slots_)
        slots.reserve(1);
}

std::size_t BandTable::size() const {
    const std::shared_lock lock(mutex_);
    return count_;
}

std::size_t BandTable::removed() const {
    const std::shared_lock lock(mutex_);
    return removed_count_;
}

std::size_t BandTable::memory_bytes() const {
    const std::shared_lock lock(mutex_);
    std::size_t bytes = capacity_ * shape_.values * sizeof(std::uint32_t) +
                        removed_.capacity() * sizeof(std::uint64_t) + lists_.memory_bytes();
    for (const KeySlots& slots : slots_)
        bytes += slots.memory_bytes();
    return bytes;
}

// Whether a band stands for something.
bool BandTable::has(const std::uint32_t* row, std::size_t band) const {
    return empty_counts_ || !any_empty(row + band * shape_.band_values, shape_.band_values);
}

// Multilinear hashing (Lemire and Kaser): with secret factors, bands that differ share a key once
// in 2^32.
std::uint32_t BandTable::key(const std::uint32_t* row, std::size_t band) const {
    const std::uint32_t* const first = row + band * shape_.band_values;
    std::uint64_t sum = factors_[shape_.band_values];
    for (std::size_t index = 0; index < shape_.band_values; ++index)
        sum += first[index] * factors_[index];
    return static_cast<std::uint32_t>(sum >> 32);
}

void BandTable::reserve(std::size_t rows) {
    if (rows > RowReference::kMostRows)
        throw std::length_error("more rows than can be numbered");
    const std::size_t chunk = std::size_t{1} << chunk_bits_, row_bytes = 4 * shape_.values;
    if (rows > capacity_ && capacity_ < chunk) {
        const std::size_t wanted = std::min(chunk, std::max({rows, 2 * capacity_, kFewRows}));
        std::unique_ptr<std::uint32_t, Free> larger(
            static_cast<std::uint32_t*>(bits::allocate_pages(wanted * row_bytes)));
        if (capacity_ > 0)
            std::copy_n(chunks_[0].get(), count_ * shape_.values, larger.get());
        chunks_.resize(1);
        chunks_[0] = std::move(larger);
        capacity_ = wanted;
    }
    while (rows > capacity_) {
        chunks_.emplace_back(static_cast<std::uint32_t*>(bits::allocate_pages(chunk * row_bytes)));
        capacity_ += chunk;
    }
    removed_.resize((capacity_ + 63) / 64);
}

std::size_t BandTable::insert(const std::uint32_t* rows, std::size_t count) {
    const std::unique_lock lock(mutex_);
    if (broken_)
        throw std::bad_alloc();
    const std::size_t first = count_;
    reserve(first + count);
    broken_ = true;                 // until all is done
    for (KeySlots& slots : slots_)  // what keys that are there already do not need is never touched
        slots.reserve(slots.size() + count);
    std::vector<std::uint32_t> keys(std::min(count, kRowsAtATime) * shape_.bands);
    for (std::size_t begin = 0; begin < count; begin += kRowsAtATime) {
        const std::size_t block = std::min(count - begin, kRowsAtATime);
        insert_block(rows + begin * shape_.values, block, first + begin, keys);
    }
    broken_ = false;
    count_ = first + count;
    return first;
}

// Band by band, so that only one table is gone to and fro in at a time, each place asked for some
// time before it is written.
void BandTable::insert_block(const std::uint32_t* rows, std::size_t count, std::size_t first,
                             std::vector<std::uint32_t>& keys) {
    bool whole = true;
    for (std::size_t index = 0; index < count; ++index) {
        const std::uint32_t* const values = rows + index * shape_.values;
        std::copy_n(values, shape_.values, row(first + index));
        for (std::size_t band = 0; band < shape_.bands; ++band)
            keys[band * count + index] = key(values, band);
        whole = whole && (empty_counts_ || !any_empty(values, shape_.values));
    }
    for (std::size_t band = 0; band < shape_.bands; ++band) {
        KeySlots& slots = slots_[band];
        const std::uint32_t* const of_band = keys.data() + band * count;
        for (std::size_t index = 0; index < std::min(kAhead, count); ++index)
            slots.prefetch(of_band[index]);
        for (std::size_t index = 0; index < count; ++index) {
            if (index + kAhead < count)
                slots.prefetch(of_band[index + kAhead]);
            if (whole || has(rows + index * shape_.values, band))
                slots.insert(of_band[index], static_cast<std::uint32_t>(first + index), lists_);
        }
    }
}

void BandTable::check(const std::int64_t* rows, std::size_t count) const {
    for (std::size_t index = 0; index < count; ++index)
        if (rows[index] < 0 || static_cast<std::size_t>(rows[index]) >= count_)
            throw std::out_of_range("a row that is not there");
}

void BandTable::remove(const std::int64_t* rows, std::size_t count) {
    const std::unique_lock lock(mutex_);
    check(rows, count);
    for (std::size_t index = 0; index < count; ++index) {
        const auto row = static_cast<std::uint32_t>(rows[index]);
        if (is_removed(row)) {
            while (index-- > 0)  // as it was before
                removed_[static_cast<std::size_t>(rows[index]) / 64] &=
                    ~(std::uint64_t{1} << (rows[index] % 64));
            throw std::out_of_range("a row that was removed before");
        }
        removed_[row / 64] |= std::uint64_t{1} << (row % 64);
    }
    removed_count_ += count;
}

void BandTable::copy(const std::int64_t* rows, std::size_t count, std::uint32_t* values) const {
    const std::shared_lock lock(mutex_);
    check(rows, count);
    for (std::size_t index = 0; index < count; ++index)
        std::copy_n(row(static_cast<std::size_t>(rows[index])), shape_.values,
                    values + index * shape_.values);
}

// One thread's way through some queries.
class BandTable::Searcher {
  public:
    Searcher(const BandTable& table, std::size_t bands, std::size_t least)
        : table_(table), bands_(bands), least_(static_cast<std::int32_t>(least)) {}

    // Appends what each query finds, and how many these are.
    void search(const std::uint32_t* queries, std::size_t count, std::size_t limit,
                std::vector<Found>& found, std::vector<std::size_t>& counts) {
        look_up(queries, count);
        std::size_t hit = 0;
        for (std::size_t query = 0; query < count; ++query) {
            bits::stop_if_canceled();
            const std::size_t before = found.size();
            for (; hit < hits_.size() && hits_[hit].query == query; ++hit) {
                if (hit + kAhead < hits_.size())
                    prefetch(hits_[hit + kAhead].rows);
                verify(queries + query * table_.shape_.values, hits_[hit], found);
                if (found.size() > limit)
                    throw TooManyResults();
            }
            std::sort(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                      [](const Found& a, const Found& b) {
                          return a.equal != b.equal ? a.equal > b.equal : a.row < b.row;
                      });
            counts.push_back(found.size() - before);
        }
    }

  private:
    struct Hit {
        std::uint32_t query, band;
        RowReference rows;
    };

    // Finds the keys of all bands, query by query, each asked for some time before it is read.
    void look_up(const std::uint32_t* queries, std::size_t count) {
        const std::size_t values = table_.shape_.values, total = count * bands_;
        keys_.resize(total);
        for (std::size_t query = 0; query < count; ++query)
            for (std::size_t band = 0; band < bands_; ++band)
                keys_[query * bands_ + band] = table_.key(queries + query * values, band);
        hits_.clear();
        std::size_t ahead = 0, band_ahead = 0, query = 0, band = 0;
        for (std::size_t at = 0; at < total; ++at) {
            for (; ahead < std::min(total, at + kAhead); ++ahead) {
                table_.slots_[band_ahead].prefetch(keys_[ahead]);
                if (++band_ahead == bands_)
                    band_ahead = 0;
            }
            const RowReference rows = table_.slots_[band].find(keys_[at]);
            if (!rows.none() && table_.has(queries + query * values, band))
                hits_.push_back(
                    {static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(band), rows});
            if (++band == bands_)
                band = 0, ++query;
        }
        for (std::size_t hit = 0; hit < std::min(kAhead, hits_.size()); ++hit)
            prefetch(hits_[hit].rows);
    }

    [[gnu::always_inline]] void prefetch_row(std::uint32_t row) const {
        bits::prefetch_all(reinterpret_cast<const std::uint8_t*>(table_.row(row)),
                           std::min<std::size_t>(table_.shape_.values * 4, 512));
    }

    [[gnu::always_inline]] void prefetch(RowReference rows) const {
        if (!rows.is_list())
            prefetch_row(rows.row());
    }

    void verify(const std::uint32_t* query, const Hit& hit, std::vector<Found>& found) const {
        if (!hit.rows.is_list()) {
            verify(query, hit.band, hit.rows.row(), found);
            return;
        }
        const std::span<const std::uint32_t> rows = table_.lists_.rows(hit.rows.list());
        constexpr std::size_t kRowsAhead = 4;
        for (std::size_t index = 0; index < rows.size(); ++index) {
            if (index + kRowsAhead < rows.size())
                prefetch_row(rows[index + kRowsAhead]);
            verify(query, hit.band, rows[index], found);
        }
    }

    // A row that shares several bands is found at the first of them, and passed over at the others:
    // no set of those seen is needed.
    void verify(const std::uint32_t* query, std::size_t band, std::uint32_t number,
                std::vector<Found>& found) const {
        if (table_.is_removed(number))
            return;
        const std::uint32_t* const row = table_.row(number);
        const std::size_t width = table_.shape_.band_values;
        if (!equal_band(query + band * width, row + band * width, width))
            return;
        for (std::size_t earlier = 0; earlier < band; ++earlier)
            if (equal_band(query + earlier * width, row + earlier * width, width) &&
                table_.has(query, earlier))
                return;
        const std::int32_t equal = table_.empty_counts_
                                       ? equal_values<true>(query, row, table_.shape_.values)
                                       : equal_values<false>(query, row, table_.shape_.values);
        if (equal >= least_)
            found.push_back({number, equal});
    }

    const BandTable& table_;
    std::size_t bands_;
    std::int32_t least_;
    std::vector<std::uint32_t> keys_;
    std::vector<Hit> hits_;  // by query, then band
};

BandMatches BandTable::query(const std::uint32_t* queries, std::size_t count, std::size_t bands,
                             std::size_t least, std::size_t limit, std::size_t threads,
                             const bits::Checkpoint& checkpoint) const {
    const std::shared_lock lock(mutex_);
    if (broken_)
        throw std::bad_alloc();
    const std::size_t tasks = (count + kQueriesPerTask - 1) / kQueriesPerTask;
    const std::size_t workers = std::max<std::size_t>(1, std::min(threads, tasks));
    std::vector<Searcher> searchers(workers, Searcher(*this, bands, least));
    std::vector<std::vector<Found>> found(tasks);
    std::vector<std::vector<std::size_t>> counts(tasks);
    bits::share_out(tasks, workers, checkpoint, [&](std::size_t worker, std::size_t task) {
        const std::size_t begin = task * kQueriesPerTask;
        searchers[worker].search(queries + begin * shape_.values,
                                 std::min(kQueriesPerTask, count - begin), limit, found[task],
                                 counts[task]);
    });
    std::size_t total = 0;
    for (const std::vector<Found>& part : found)
        total += part.size();
    if (total > limit)
        throw TooManyResults();
    BandMatches matches;
    matches.offsets.reserve(count + 1);
    matches.offsets.push_back(0);
    matches.rows.reserve(total);
    matches.equal.reserve(total);
    for (std::size_t task = 0; task < tasks; ++task) {
        for (const std::size_t number : counts[task])
            matches.offsets.push_back(matches.offsets.back() + static_cast<std::int64_t>(number));
        for (const Found& one : found[task]) {
            matches.rows.push_back(one.row);
            matches.equal.push_back(one.equal);
        }
    }
    return matches;
}

}  // namespace lookalike::search
