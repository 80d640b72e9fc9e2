#include "scan/scan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>

#include "bits/operation.hpp"
#include "scan/compared_bits.hpp"
#include "scan/grid.hpp"
#include "scan/leave_out.hpp"

namespace lookalike::search {

using bits::Checkpoint;
using bits::Hit;
using bits::Kernels;
using bits::Neighbor;

namespace {

// The nearest of one block of queries, put together by all workers that took a chunk of it.
template <class Item>
class SharedBlock {
  public:
    using Heaps = std::vector<bits::TopItems<Item>>;

    // Adds what one worker found; `chunks_done` of `chunks` are then accounted for. Returns the
    // finished heaps to the worker that completes the block, nothing to the others.
    std::optional<Heaps> add(Heaps found, std::size_t chunks_done, std::size_t chunks) {
        const std::scoped_lock lock(mutex_);
        if (heaps_.empty())
            heaps_ = std::move(found);
        else
            for (std::size_t query = 0; query < heaps_.size(); ++query)
                heaps_[query].push_all(found[query]);
        done_ += chunks_done;
        if (done_ < chunks)
            return std::nullopt;
        return std::move(heaps_);
    }

  private:
    std::mutex mutex_;
    Heaps heaps_;
    std::size_t done_ = 0;
};

// A worker's private part of the block it is at.
template <class Item>
struct WorkerBlock {
    std::size_t block = 0;
    std::size_t chunks_done = 0;  // 0: not at any block
    std::vector<bits::TopItems<Item>> heaps;
    std::vector<Hit> hits;
};

struct Match {
    std::size_t query;
    std::size_t row;
    std::uint32_t distance;
    std::uint32_t tie = 0;  // which of those as far comes first; then it is the lower id
};

// Runs the grid and collects every (query, row) within the radius, in no particular order.
// `first_row(query)`, which must not fall as queries rise, is the first row to compare a query
// with.
template <class Bits, class FirstRow>
std::vector<std::vector<Match>> collect_matches(const Bits& compared, std::uint32_t radius,
                                                std::size_t limit, std::size_t threads,
                                                const Checkpoint& checkpoint,
                                                const std::uint8_t* removed, FirstRow first_row) {
    const Grid grid(compared.queries.count, compared.collection, compared.queries.count);
    std::vector<std::vector<Match>> found(threads);
    std::vector<std::vector<Hit>> hits(threads);
    std::atomic<std::size_t> total{0};

    bits::share_out(grid.tasks(), threads, checkpoint, [&](std::size_t worker, std::size_t task) {
        const Grid::Range block = grid.block_range(task / grid.chunks);
        hits[worker].resize(grid.tile);
        Hit* const buffer = hits[worker].data();
        Grid::Range rows = grid.chunk_range(task % grid.chunks);
        rows.begin = std::max(rows.begin, first_row(block.begin));
        grid.each_tile(rows, [&](std::size_t begin, std::size_t end) {
            for (std::size_t query = block.begin; query < block.end; ++query) {
                const std::size_t from = std::max(begin, first_row(query));
                if (from >= end)
                    continue;
                std::size_t count = compared.filter(query, from, end - from, radius, buffer);
                if (removed != nullptr)
                    count = leave_out(buffer, count, removed + from);
                if (count == 0)
                    continue;
                if (total.fetch_add(count, std::memory_order_relaxed) + count > limit)
                    throw TooManyResults();
                for (std::size_t hit = 0; hit < count; ++hit) {
                    const std::size_t row = from + buffer[hit].row;
                    found[worker].push_back(
                        {query, row, buffer[hit].distance, compared.tie(query, row)});
                }
            }
        });
    });
    return found;
}

std::size_t count_matches(const std::vector<std::vector<Match>>& found) {
    std::size_t total = 0;
    for (const auto& part : found)
        total += part.size();
    return total;
}

// Groups matches by query, in linear time, and hands each query's to
// `emit(offset, begin, end)`. Returns the offsets.
template <class Emit>
std::vector<std::int64_t> each_query(std::vector<std::vector<Match>> found, std::size_t queries,
                                     std::size_t threads, const Checkpoint& checkpoint, Emit emit) {
    std::vector<std::int64_t> offsets(queries + 1, 0);
    for (const auto& part : found)
        for (const Match& match : part)
            ++offsets[match.query + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());

    std::vector<Match> grouped(static_cast<std::size_t>(offsets.back()));
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
    for (auto& part : found) {
        for (const Match& match : part)
            grouped[static_cast<std::size_t>(next[match.query]++)] = match;
        part = {};
    }

    constexpr std::size_t kQueriesPerTask = 1024;
    const auto emit_all = [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t query = begin; query < end; ++query) {
            bits::stop_if_canceled();
            emit(static_cast<std::size_t>(offsets[query]), grouped.data() + offsets[query],
                 grouped.data() + offsets[query + 1]);
        }
    };
    bits::share_out_runs(queries, kQueriesPerTask, threads, checkpoint, emit_all);
    return offsets;
}

// Finds the k nearest of each query and calls write(at, item) for each, nearest first; those of
// query i are at i * k and following.
template <class Bits, class Write>
void find_nearest(const Bits& compared, std::size_t k, std::size_t threads,
                  const Checkpoint& checkpoint, const std::uint8_t* removed, Write write) {
    using Item = typename Bits::Item;
    const Collection& collection = compared.collection;
    const std::size_t queries = compared.queries.count;
    if (k == 0 || queries == 0)
        return;
    threads = bits::worthwhile_threads(threads, bytes_to_read(queries, collection));
    const std::size_t heaps_that_fit = kBlockHeapBytes / (k * sizeof(Item)) / threads;
    const Grid grid(queries, collection, std::max<std::size_t>(1, heaps_that_fit));
    const bool ties_lose = Bits::kTiesById && collection.ascending;
    std::vector<SharedBlock<Item>> shared(grid.blocks());
    std::vector<WorkerBlock<Item>> workers(threads);

    const auto write_all = [&](std::size_t query, bits::TopItems<Item>& heap) {
        std::size_t at = query * k;
        for (const Item& item : heap.take_sorted())
            write(at++, item);
    };
    const auto hand_in = [&](WorkerBlock<Item>& worker) {
        if (worker.chunks_done == 0)
            return;
        auto finished =
            shared[worker.block].add(std::move(worker.heaps), worker.chunks_done, grid.chunks);
        worker.chunks_done = 0;
        if (finished)
            for (std::size_t index = 0; index < finished->size(); ++index)
                write_all(grid.block_range(worker.block).begin + index, (*finished)[index]);
    };

    bits::share_out(grid.tasks(), threads, checkpoint, [&](std::size_t at, std::size_t task) {
        WorkerBlock<Item>& worker = workers[at];
        const std::size_t block = task / grid.chunks;
        const Grid::Range range = grid.block_range(block);
        if (worker.chunks_done == 0 || worker.block != block) {
            hand_in(worker);
            worker.block = block;
            worker.heaps.assign(range.end - range.begin, bits::TopItems<Item>(k));
            worker.hits.resize(grid.tile);
        }
        Hit* const buffer = worker.hits.data();
        grid.each_tile(
            grid.chunk_range(task % grid.chunks), [&](std::size_t begin, std::size_t end) {
                for (std::size_t query = range.begin; query < range.end; ++query) {
                    bits::TopItems<Item>& heap = worker.heaps[query - range.begin];
                    const std::int64_t cutoff = heap.cutoff(ties_lose);
                    if (cutoff < 0)
                        continue;
                    std::size_t count = compared.filter(query, begin, end - begin,
                                                        static_cast<std::uint32_t>(cutoff), buffer);
                    if (removed != nullptr)
                        count = leave_out(buffer, count, removed + begin);
                    for (const Hit* hit = buffer; hit < buffer + count; ++hit)
                        if (hit->distance <= heap.cutoff(ties_lose))  // which falls meanwhile
                            heap.push(compared.item(query, begin + hit->row, hit->distance));
                }
            });
        ++worker.chunks_done;
    });
    for (WorkerBlock<Item>& worker : workers)
        hand_in(worker);
}

template <class Bits>
Matches find_within(const Bits& compared, std::uint32_t radius, std::size_t limit,
                    std::size_t threads, const Checkpoint& checkpoint,
                    const std::uint8_t* removed) {
    const Collection& collection = compared.collection;
    const std::size_t queries = compared.queries.count;
    threads = bits::worthwhile_threads(threads, bytes_to_read(queries, collection));
    auto found = collect_matches(compared, radius, limit, threads, checkpoint, removed,
                                 [](std::size_t) { return std::size_t{0}; });
    const std::size_t total = count_matches(found);
    Matches matches;
    matches.ids.resize(total);
    matches.distances.resize(total);
    if (!Bits::kTiesById)
        matches.unmasked.resize(total);
    matches.offsets = each_query(
        std::move(found), queries, threads, checkpoint,
        [&](std::size_t offset, Match* begin, Match* end) {
            std::sort(begin, end, [&](const Match& a, const Match& b) {
                return a.distance != b.distance ? a.distance < b.distance
                                                : Neighbor{a.tie, collection.id(a.row)} <
                                                      Neighbor{b.tie, collection.id(b.row)};
            });
            for (const Match* match = begin; match != end; ++match, ++offset) {
                matches.ids[offset] = collection.id(match->row);
                matches.distances[offset] = static_cast<std::int32_t>(match->distance);
                if (!Bits::kTiesById)
                    matches.unmasked[offset] = static_cast<std::int32_t>(match->tie);
            }
        });
    return matches;
}

}  // namespace

void scan_nearest(const Collection& collection, const Signatures& queries, std::size_t k,
                  std::size_t threads, const Checkpoint& checkpoint, std::int64_t* ids,
                  std::int32_t* distances, const std::uint8_t* removed) {
    find_nearest(AllBits{collection, queries}, k, threads, checkpoint, removed,
                 [&](std::size_t at, const Neighbor& neighbor) {
                     ids[at] = neighbor.id;
                     distances[at] = static_cast<std::int32_t>(neighbor.distance);
                 });
}

void scan_nearest_masked(const Collection& collection, const MaskedQueries& queries, std::size_t k,
                         std::size_t threads, const Checkpoint& checkpoint, std::int64_t* ids,
                         std::int32_t* distances, std::int32_t* unmasked,
                         const std::uint8_t* removed) {
    find_nearest(CountedBits{collection, queries}, k, threads, checkpoint, removed,
                 [&](std::size_t at, const CountedBits::Item& item) {
                     ids[at] = item.id;
                     distances[at] = static_cast<std::int32_t>(item.distance);
                     unmasked[at] = static_cast<std::int32_t>(item.unmasked);
                 });
}

Matches scan_within(const Collection& collection, const Signatures& queries, std::uint32_t radius,
                    std::size_t limit, std::size_t threads, const Checkpoint& checkpoint,
                    const std::uint8_t* removed) {
    return find_within(AllBits{collection, queries}, radius, limit, threads, checkpoint, removed);
}

Matches scan_within_masked(const Collection& collection, const MaskedQueries& queries,
                           std::uint32_t radius, std::size_t limit, std::size_t threads,
                           const Checkpoint& checkpoint, const std::uint8_t* removed) {
    return find_within(CountedBits{collection, queries}, radius, limit, threads, checkpoint,
                       removed);
}

Pairs scan_pairs(const Collection& collection, std::uint32_t radius, std::size_t limit,
                 std::size_t threads, const Checkpoint& checkpoint) {
    threads = bits::worthwhile_threads(threads, bytes_to_read(collection.count, collection) / 2);
    auto found = collect_matches(AllBits{collection, collection}, radius, limit, threads,
                                 checkpoint, nullptr, [](std::size_t query) { return query + 1; });

    // Where ids do not grow with position, go on with ranks by id in place of positions.
    std::vector<std::size_t> by_id;
    if (!collection.ascending) {
        by_id.resize(collection.count);
        std::iota(by_id.begin(), by_id.end(), std::size_t{0});
        std::sort(by_id.begin(), by_id.end(), [&](std::size_t a, std::size_t b) {
            return collection.id(a) < collection.id(b);
        });
        std::vector<std::size_t> rank(collection.count);
        for (std::size_t index = 0; index < by_id.size(); ++index)
            rank[by_id[index]] = index;
        for (auto& part : found)
            for (Match& match : part) {
                const auto [left, right] = std::minmax(rank[match.query], rank[match.row]);
                match = {left, right, match.distance};
            }
    }
    const auto id = [&](std::size_t index) {
        return collection.id(by_id.empty() ? index : by_id[index]);
    };

    const std::size_t total = count_matches(found);
    Pairs pairs;
    pairs.left.resize(total);
    pairs.right.resize(total);
    pairs.distances.resize(total);
    each_query(std::move(found), collection.count, threads, checkpoint,
               [&](std::size_t offset, Match* begin, Match* end) {
                   std::sort(begin, end,
                             [](const Match& a, const Match& b) { return a.row < b.row; });
                   for (const Match* match = begin; match != end; ++match, ++offset) {
                       pairs.left[offset] = id(match->query);
                       pairs.right[offset] = id(match->row);
                       pairs.distances[offset] = static_cast<std::int32_t>(match->distance);
                   }
               });
    return pairs;
}

void scan_all(const Signatures& a, const Signatures& b, std::size_t threads,
              const Checkpoint& checkpoint, std::int32_t* out) {
    threads = bits::worthwhile_threads(threads, bytes_to_read(a.count, b));
    const Grid grid(a.count, b, a.count);
    const Kernels kernels = bits::kernels_for(b.bytes);
    bits::share_out(grid.tasks(), threads, checkpoint, [&](std::size_t, std::size_t task) {
        const Grid::Range block = grid.block_range(task / grid.chunks);
        grid.each_tile(grid.chunk_range(task % grid.chunks),
                       [&](std::size_t begin, std::size_t end) {
                           for (std::size_t query = block.begin; query < block.end; ++query)
                               kernels.distances(a.row(query), b.row(begin), end - begin, b.bytes,
                                                 out + query * b.count + begin);
                       });
    });
}

}  // namespace lookalike::search
