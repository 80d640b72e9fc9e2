#include "scan/scan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>

#include "bits/kernels.hpp"
#include "bits/top_k.hpp"

namespace lookalike::search {

using bits::Checkpoint;
using bits::Hit;
using bits::Kernels;
using bits::Neighbor;
using bits::TopK;

namespace {

// A tile of rows stays in the first-level cache while all queries of a block are compared with it.
constexpr std::size_t kTileBytes = 16 << 10;
constexpr std::size_t kTileRows = 4096;  // bounds the hit buffer for very narrow signatures
constexpr std::size_t kBlockQueries = 256;
constexpr std::size_t kBlockBytes = 64 << 10;  // queries of a block stay in the second-level cache
constexpr std::size_t kBlockHeapBytes = 64 << 20;

// One task is a chunk of rows against a block of queries: about a millisecond of work, which is
// short enough to interrupt and to balance, and long enough not to notice the taking.
constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::size_t kTaskBytes = 64 << 20;

std::size_t divide_up(std::size_t a, std::size_t b) {
    return (a + b - 1) / b;
}

double bytes_to_read(std::size_t queries, const Signatures& rows) {
    return static_cast<double>(queries) * static_cast<double>(rows.count) *
           static_cast<double>(rows.bytes);
}

// Queries cut into blocks, rows into chunks, chunks into tiles.
struct Grid {
    std::size_t queries, rows;
    std::size_t block, chunk, tile;
    std::size_t chunks;

    Grid(std::size_t query_count, const Signatures& collection, std::size_t block_limit)
        : queries(query_count), rows(collection.count) {
        const std::size_t bytes = collection.bytes;
        block = std::clamp<std::size_t>(kBlockBytes / bytes, 1, kBlockQueries);
        block = std::max<std::size_t>(1, std::min({block, block_limit, queries}));
        tile = std::clamp<std::size_t>(kTileBytes / bytes, 1, kTileRows);
        const std::size_t chunk_bytes = std::min(kChunkBytes, kTaskBytes / block);
        chunk = std::max<std::size_t>(1, chunk_bytes / bytes / tile) * tile;
        chunks = divide_up(rows, chunk);
    }

    std::size_t blocks() const { return divide_up(queries, block); }
    std::size_t tasks() const { return blocks() * chunks; }

    struct Range {
        std::size_t begin, end;
    };
    Range block_range(std::size_t index) const {
        return {index * block, std::min(queries, (index + 1) * block)};
    }
    Range chunk_range(std::size_t index) const {
        return {index * chunk, std::min(rows, (index + 1) * chunk)};
    }

    // Calls visit(begin, end) for the tiles of a chunk.
    template <class Visit>
    void each_tile(Range chunk_rows, Visit visit) const {
        for (std::size_t begin = chunk_rows.begin; begin < chunk_rows.end; begin += tile)
            visit(begin, std::min(chunk_rows.end, begin + tile));
    }
};

// The nearest of one block of queries, put together by all workers that took a chunk of it.
class SharedBlock {
  public:
    // Adds what one worker found; `chunks_done` of `chunks` are then accounted for. Returns the
    // finished heaps to the worker that completes the block, nothing to the others.
    std::optional<std::vector<TopK>> add(std::vector<TopK> found, std::size_t chunks_done,
                                         std::size_t chunks) {
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
    std::vector<TopK> heaps_;
    std::size_t done_ = 0;
};

// A worker's private part of the block it is at.
struct WorkerBlock {
    std::size_t block = 0;
    std::size_t chunks_done = 0;  // 0: not at any block
    std::vector<TopK> heaps;
    std::vector<Hit> hits;
};

struct Match {
    std::size_t query;
    std::size_t row;
    std::uint32_t distance;
};

// Takes out hits whose rows are removed, and returns how many are left.
std::size_t leave_out(Hit* hits, std::size_t count, const std::uint8_t* removed) {
    return static_cast<std::size_t>(
        std::remove_if(hits, hits + count, [&](const Hit& hit) { return removed[hit.row] != 0; }) -
        hits);
}

// Runs the grid and collects every (query, row) within the radius, in no particular order.
// `first_row(query)`, which must not fall as queries rise, is the first row to compare a query
// with.
template <class FirstRow>
std::vector<std::vector<Match>> collect_matches(const Collection& collection,
                                                const Signatures& queries, std::uint32_t radius,
                                                std::size_t limit, std::size_t threads,
                                                const Checkpoint& checkpoint,
                                                const std::uint8_t* removed, FirstRow first_row) {
    const Grid grid(queries.count, collection, queries.count);
    const Kernels kernels = bits::kernels_for(collection.bytes);
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
                std::size_t count = kernels.filter(queries.row(query), collection.row(from),
                                                   end - from, collection.bytes, radius, buffer);
                if (removed != nullptr)
                    count = leave_out(buffer, count, removed + from);
                if (count == 0)
                    continue;
                if (total.fetch_add(count, std::memory_order_relaxed) + count > limit)
                    throw TooManyResults();
                for (std::size_t hit = 0; hit < count; ++hit)
                    found[worker].push_back({query, from + buffer[hit].row, buffer[hit].distance});
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
        for (std::size_t query = begin; query < end; ++query)
            emit(static_cast<std::size_t>(offsets[query]), grouped.data() + offsets[query],
                 grouped.data() + offsets[query + 1]);
    };
    bits::share_out_runs(queries, kQueriesPerTask, threads, checkpoint, emit_all);
    return offsets;
}

}  // namespace

void scan_nearest(const Collection& collection, const Signatures& queries, std::size_t k,
                  std::size_t threads, const Checkpoint& checkpoint, std::int64_t* ids,
                  std::int32_t* distances, const std::uint8_t* removed) {
    if (k == 0 || queries.count == 0)
        return;
    threads = bits::worthwhile_threads(threads, bytes_to_read(queries.count, collection));
    const std::size_t heaps_that_fit = kBlockHeapBytes / (k * sizeof(Neighbor)) / threads;
    const Grid grid(queries.count, collection, std::max<std::size_t>(1, heaps_that_fit));
    const Kernels kernels = bits::kernels_for(collection.bytes);
    std::vector<SharedBlock> shared(grid.blocks());
    std::vector<WorkerBlock> workers(threads);

    const auto write = [&](std::size_t query, TopK& heap) {
        std::size_t at = query * k;
        for (const Neighbor& neighbor : heap.take_sorted()) {
            ids[at] = neighbor.id;
            distances[at++] = static_cast<std::int32_t>(neighbor.distance);
        }
    };
    const auto hand_in = [&](WorkerBlock& worker) {
        if (worker.chunks_done == 0)
            return;
        auto finished =
            shared[worker.block].add(std::move(worker.heaps), worker.chunks_done, grid.chunks);
        worker.chunks_done = 0;
        if (finished)
            for (std::size_t index = 0; index < finished->size(); ++index)
                write(grid.block_range(worker.block).begin + index, (*finished)[index]);
    };

    bits::share_out(grid.tasks(), threads, checkpoint, [&](std::size_t at, std::size_t task) {
        WorkerBlock& worker = workers[at];
        const std::size_t block = task / grid.chunks;
        const Grid::Range range = grid.block_range(block);
        if (worker.chunks_done == 0 || worker.block != block) {
            hand_in(worker);
            worker.block = block;
            worker.heaps.assign(range.end - range.begin, TopK(k));
            worker.hits.resize(grid.tile);
        }
        Hit* const buffer = worker.hits.data();
        grid.each_tile(
            grid.chunk_range(task % grid.chunks), [&](std::size_t begin, std::size_t end) {
                for (std::size_t query = range.begin; query < range.end; ++query) {
                    TopK& heap = worker.heaps[query - range.begin];
                    const std::int64_t cutoff = heap.cutoff(collection.ascending);
                    if (cutoff < 0)
                        continue;
                    std::size_t count = kernels.filter(queries.row(query), collection.row(begin),
                                                       end - begin, collection.bytes,
                                                       static_cast<std::uint32_t>(cutoff), buffer);
                    if (removed != nullptr)
                        count = leave_out(buffer, count, removed + begin);
                    for (std::size_t hit = 0; hit < count; ++hit)
                        heap.push({buffer[hit].distance, collection.id(begin + buffer[hit].row)});
                }
            });
        ++worker.chunks_done;
    });
    for (WorkerBlock& worker : workers)
        hand_in(worker);
}

Matches scan_within(const Collection& collection, const Signatures& queries, std::uint32_t radius,
                    std::size_t limit, std::size_t threads, const Checkpoint& checkpoint,
                    const std::uint8_t* removed) {
    threads = bits::worthwhile_threads(threads, bytes_to_read(queries.count, collection));
    auto found = collect_matches(collection, queries, radius, limit, threads, checkpoint, removed,
                                 [](std::size_t) { return std::size_t{0}; });
    const std::size_t total = count_matches(found);
    Matches matches;
    matches.ids.resize(total);
    matches.distances.resize(total);
    matches.offsets =
        each_query(std::move(found), queries.count, threads, checkpoint,
                   [&](std::size_t offset, Match* begin, Match* end) {
                       std::sort(begin, end, [&](const Match& a, const Match& b) {
                           return Neighbor{a.distance, collection.id(a.row)} <
                                  Neighbor{b.distance, collection.id(b.row)};
                       });
                       for (const Match* match = begin; match != end; ++match, ++offset) {
                           matches.ids[offset] = collection.id(match->row);
                           matches.distances[offset] = static_cast<std::int32_t>(match->distance);
                       }
                   });
    return matches;
}

Pairs scan_pairs(const Collection& collection, std::uint32_t radius, std::size_t limit,
                 std::size_t threads, const Checkpoint& checkpoint) {
    threads = bits::worthwhile_threads(threads, bytes_to_read(collection.count, collection) / 2);
    auto found = collect_matches(collection, collection, radius, limit, threads, checkpoint,
                                 nullptr, [](std::size_t query) { return query + 1; });

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
