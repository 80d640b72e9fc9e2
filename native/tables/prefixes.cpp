#include "tables/prefixes.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "bits/kernels.hpp"
#include "bits/operation.hpp"
#include "bits/prefetch.hpp"
#include "bits/top_k.hpp"
#include "scan/task_matches.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kRowsPerTask = 1 << 14;
constexpr std::size_t kQueriesPerTask = 64;
constexpr std::size_t kAhead = 32;  // rows are prefetched this far ahead
constexpr std::size_t kBlock = 16;  // pairs that are compared at a time

// Rows that have been met, each once.
class RowSet {
  public:
    // Forgets all rows, and makes room for `most`.
    void clear(std::size_t most) {
        const std::size_t size = std::bit_ceil(2 * most + 2);
        slots_.assign(size, 0);
        mask_ = size - 1;
    }

    // Whether it is new.
    bool insert(std::uint32_t row) {
        for (std::size_t at = row * std::uint64_t{0x9e3779b97f4a7c15} >> 32;; ++at) {
            std::uint32_t& slot = slots_[at & mask_];
            if (slot == row + 1)
                return false;
            if (slot == 0) {
                slot = row + 1;  // count < 2^32, so that this is not 0
                return true;
            }
        }
    }

  private:
    std::vector<std::uint32_t> slots_;
    std::size_t mask_ = 0;
};

// One order around a query's place.
struct Cursor {
    const std::uint64_t* keys;
    std::size_t count;
    std::size_t below, above;        // the next places are below - 1 and above
    int prefix_below, prefix_above;  // how many bits these share with the query; -1: there is none
};

// Answers one query after the other.
class PrefixTask {
  public:
    explicit PrefixTask(const PrefixSearch& search)
        : search_(search), kernels_(bits::kernels_for(search.queries.bytes)) {}

    // Calls take(row, distance) for all that is examined, and returns how many places were looked
    // at and how many signatures compared.
    template <class Take>
    std::pair<std::int64_t, std::int64_t> run(std::size_t query, Take take) {
        find_places(query);
        gather(query);
        compare(search_.queries.row(query), take);
        return {places_, static_cast<std::int64_t>(rows_.size())};
    }

  private:
    static int shared(std::uint64_t a, std::uint64_t b) { return std::countl_zero(a ^ b); }

    std::uint64_t key(std::size_t order, std::size_t query) const {
        return search_.keys[order * search_.queries.count + query];
    }

    // In turns of all orders each, so that the memory works on several at a time.
    void find_places(std::size_t query) {
        const std::size_t orders = search_.orders.size();
        headers_.resize(orders);
        buckets_.resize(orders);
        cursors_.resize(orders);
        for (std::size_t order = 0; order < orders; ++order) {
            const std::uint64_t own = key(order, query);
            headers_[order] =
                search_.orders[order].header.value(reinterpret_cast<const std::uint8_t*>(&own));
            __builtin_prefetch(search_.orders[order].offsets + headers_[order]);
        }
        for (std::size_t order = 0; order < orders; ++order) {
            const SortedTable& table = search_.orders[order];
            buckets_[order] = table.bucket(headers_[order]);
            const std::size_t middle = (buckets_[order].begin + buckets_[order].end) / 2;
            __builtin_prefetch(table.signatures.row(middle));
            __builtin_prefetch(table.rows + middle);
        }
        for (std::size_t order = 0; order < orders; ++order) {
            const SortedTable& table = search_.orders[order];
            const auto* const keys = reinterpret_cast<const std::uint64_t*>(table.signatures.data);
            const auto place = static_cast<std::size_t>(
                std::lower_bound(keys + buckets_[order].begin, keys + buckets_[order].end,
                                 key(order, query)) -
                keys);
            cursors_[order] = {keys, table.signatures.count, place, place, -1, -1};
            look_below(order, query);
            look_above(order, query);
        }
    }

    void look_below(std::size_t order, std::size_t query) {
        Cursor& at = cursors_[order];
        at.prefix_below = at.below == 0 ? -1 : shared(at.keys[at.below - 1], key(order, query));
    }
    void look_above(std::size_t order, std::size_t query) {
        Cursor& at = cursors_[order];
        at.prefix_above = at.above == at.count ? -1 : shared(at.keys[at.above], key(order, query));
    }

    // Collects rows, longest common prefix first, until there are enough.
    void gather(std::size_t query) {
        places_ = 0;
        rows_.clear();
        met_.clear(search_.examine);
        int next = kMostPrefixBits;
        while (next >= 0 && rows_.size() < search_.examine) {
            const int length = next;
            next = -1;  // the longest that is left
            for (std::size_t order = 0; order < cursors_.size(); ++order) {
                Cursor& at = cursors_[order];
                while (at.prefix_below >= length) {
                    if (rows_.size() == search_.examine)
                        return;
                    take(order, --at.below);
                    look_below(order, query);
                }
                while (at.prefix_above >= length) {
                    if (rows_.size() == search_.examine)
                        return;
                    take(order, at.above++);
                    look_above(order, query);
                }
                next = std::max({next, at.prefix_below, at.prefix_above});
            }
        }
    }

    void take(std::size_t order, std::size_t place) {
        ++places_;
        const std::size_t row = search_.orders[order].row(place);
        if ((search_.removed == nullptr || search_.removed[row] == 0) &&
            met_.insert(static_cast<std::uint32_t>(row)))
            rows_.push_back(row);
    }

    template <class Take>
    void compare(const std::uint8_t* query, Take take) {
        const std::size_t bytes = search_.collection.bytes;
        const std::uint8_t *asking[kBlock], *asked[kBlock];
        std::int32_t distances[kBlock];
        const auto ask_for = [&](std::size_t at) {
            if (at < rows_.size())
                bits::prefetch_all(search_.collection.row(rows_[at]), bytes);
        };
        for (std::size_t at = 0; at < kAhead; ++at)
            ask_for(at);
        for (std::size_t begin = 0; begin < rows_.size(); begin += kBlock) {
            const std::size_t size = std::min(kBlock, rows_.size() - begin);
            for (std::size_t at = 0; at < size; ++at) {
                ask_for(begin + at + kAhead);
                asking[at] = query;
                asked[at] = search_.collection.row(rows_[begin + at]);
            }
            kernels_.scattered(asking, asked, size, bytes, distances);
            for (std::size_t at = 0; at < size; ++at)
                take(rows_[begin + at], static_cast<std::uint32_t>(distances[at]));
        }
    }

    const PrefixSearch& search_;
    bits::Kernels kernels_;
    std::vector<std::uint64_t> headers_;
    std::vector<SortedTable::Range> buckets_;
    std::vector<Cursor> cursors_;
    RowSet met_;
    std::vector<std::size_t> rows_;
    std::int64_t places_ = 0;
};

}  // namespace

void prefix_keys(const Signatures& signatures, std::span<const std::uint32_t> bits,
                 std::size_t threads, const bits::Checkpoint& checkpoint, std::uint64_t* keys) {
    bits::share_out_runs(signatures.count, kRowsPerTask, threads, checkpoint,
                         [&](std::size_t, std::size_t begin, std::size_t end) {
                             for (std::size_t row = begin; row < end; ++row) {
                                 const std::uint8_t* const signature = signatures.row(row);
                                 std::uint64_t key = 0;
                                 for (const std::uint32_t bit : bits)
                                     key = key << 1 | (signature[bit / 8] >> bit % 8 & 1);
                                 keys[row] =
                                     bits.empty() ? 0 : key << (kMostPrefixBits - bits.size());
                             }
                         });
}

void prefix_nearest(const PrefixSearch& search, std::size_t k, std::size_t threads,
                    const bits::Checkpoint& checkpoint, const PrefixOutput& output) {
    const std::size_t at_once = queries_per_task(search.queries.count, kQueriesPerTask, threads);
    bits::share_out_runs(search.queries.count, at_once, threads, checkpoint,
                         [&](std::size_t, std::size_t begin, std::size_t end) {
                             PrefixTask task(search);
                             for (std::size_t query = begin; query < end; ++query) {
                                 bits::stop_if_canceled();
                                 bits::TopK nearest(k);
                                 std::int64_t cutoff = nearest.cutoff(false);
                                 std::tie(output.places[query], output.compared[query]) =
                                     task.run(query, [&](std::size_t row, std::uint32_t distance) {
                                         if (distance > cutoff)
                                             return;
                                         nearest.push({distance, search.collection.id(row)});
                                         cutoff = nearest.cutoff(false);
                                     });
                                 std::size_t at = query * k;
                                 for (const bits::Neighbor& one : nearest.take_sorted()) {
                                     output.ids[at] = one.id;
                                     output.distances[at++] =
                                         static_cast<std::int32_t>(one.distance);
                                 }
                             }
                         });
}

Matches prefix_within(const PrefixSearch& search, std::uint32_t radius, std::size_t limit,
                      std::size_t threads, const bits::Checkpoint& checkpoint,
                      const PrefixOutput& output) {
    return gather_matches(
        search.queries.count, kQueriesPerTask, limit, threads, checkpoint,
        [&](std::size_t, std::size_t begin, std::size_t end, TaskMatches& matches) {
            PrefixTask task(search);
            for (std::size_t query = begin; query < end; ++query) {
                bits::stop_if_canceled();
                std::tie(output.places[query], output.compared[query]) =
                    task.run(query, [&](std::size_t row, std::uint32_t distance) {
                        if (distance <= radius)
                            matches.add(query - begin, distance, search.collection.id(row));
                    });
            }
        });
}

}  // namespace lookalike::search
