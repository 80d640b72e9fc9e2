// Every query against every row. Single precision says which pairs can be good enough, with more
// than the error it may have; the cosine of these is computed in double precision.

#include <atomic>
#include <numeric>

#include "bits/operation.hpp"
#include "bits/top_k.hpp"
#include "scan/scan.hpp"
#include "sign/loops.hpp"
#include "vectors/cosines.hpp"
#include "vectors/measure.hpp"

namespace lookalike::vectors {

namespace {

using sign::kVectorGroup;
using Heap = bits::TopItems<Similar>;

constexpr std::size_t kBlock = 256;           // queries that are compared with a tile of rows
constexpr std::size_t kTileValues = 1 << 15;  // numbers of a tile: it stays in the cache
constexpr std::size_t kMostRows = 256;        // of a tile
constexpr std::size_t kTilesPerTask = 16;
constexpr float kLeastSquares = 0x1p-60f, kMostSquares = 0x1p100f;  // that a float can tell of
constexpr std::size_t kDirect =
    kVectorGroup - 1;  // so few queries are compared with rows as they are

std::size_t rows_of_tile(std::size_t dimensions) {
    return std::clamp<std::size_t>(kTileValues / dimensions / 8 * 8, 8, kMostRows);
}

// Writes a row of length 1, its values `stride` apart. Zero stays zero.
void write_scaled(const float* row, double squares, std::size_t dimensions, std::size_t stride,
                  float* to) {
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (std::size_t at = 0; at < dimensions; ++at)
        to[at * stride] = static_cast<float>(static_cast<double>(row[at]) * scale);
}

// Rows of length 1, side by side, as the loop that projects wants its matrix.
class Tile {
  public:
    explicit Tile(const Rows& rows)
        : rows_(rows), size_(rows_of_tile(rows.dimensions)), row_(rows.dimensions) {
        values_.resize(rows.dimensions * size_);
    }

    std::size_t size() const { return size_; }
    const float* values() const { return values_.data(); }

    void fill(std::size_t begin, std::size_t end) {
        std::fill(values_.begin(), values_.end(), 0.0f);
        const Loops& loop = loops();
        for (std::size_t place = begin; place < end; ++place) {
            const std::uint8_t* const bytes = rows_.row(place);
            const float* row = reinterpret_cast<const float*>(bytes);
            if (rows_.halves) {
                loop.widen(reinterpret_cast<const std::uint16_t*>(bytes), rows_.dimensions,
                           row_.data());
                row = row_.data();
            }
            write_scaled(row, loop.products(row, row, rows_.dimensions).squares, rows_.dimensions,
                         size_, values_.data() + (place - begin));
        }
    }

  private:
    const Rows& rows_;
    std::size_t size_;
    std::vector<float> row_, values_;
};

// Calls take(worker, query, place, cosine) for every pair whose cosine is at least
// cutoff(worker, query), and for some others, in tasks that are each one worker's.
template <class Cutoff, class Take>
void each_near(const Rows& rows, const std::uint8_t* skip, const Queries& queries, const Work& work,
               Cutoff cutoff, Take take) {
    const std::size_t dimensions = rows.dimensions, tile_rows = rows_of_tile(dimensions);
    std::vector<Measure> measures;
    for (std::size_t query = 0; query < queries.count; ++query)
        measures.emplace_back(rows, queries.values + query * dimensions);
    const auto look_at = [&](std::size_t worker, std::size_t query, std::size_t place) {
        if (skip != nullptr && skip[place] != 0)
            return;
        const double cosine = measures[query](place);
        if (cosine >= cutoff(worker, query))
            take(worker, query, place, cosine);
    };
    const std::size_t per_task = kTilesPerTask * tile_rows;
    const std::size_t groups = (queries.count + kVectorGroup - 1) / kVectorGroup;
    std::vector<float> scaled(groups * kVectorGroup * dimensions);
    for (std::size_t query = 0; query < queries.count; ++query)
        write_scaled(queries.values + query * dimensions, measures[query].squares(), dimensions, 1,
                     scaled.data() + query * dimensions);
    // A sum of d products of rounded numbers is off by some (d + 2) * 2^-24 times the lengths,
    // which are 1 or a little more; four times that, to be safe, and the least normal number.
    const double margin = static_cast<double>(dimensions + 8) * 0x1p-22 + 0x1p-120;
    if (queries.count <= kDirect) {
        const Loops& loop = loops();
        const auto can_be_near = [&](std::size_t worker, std::size_t query, std::size_t place) {
            const std::uint8_t* const row = rows.row(place);
            const float* const asked = scaled.data() + query * dimensions;
            const RoughProducts found =
                rows.halves ? loop.rough_of_halves(
                                  asked, reinterpret_cast<const std::uint16_t*>(row), dimensions)
                            : loop.rough(asked, reinterpret_cast<const float*>(row), dimensions);
            // What is too small or too large for that, or no number, is looked at.
            if (!(found.squares > kLeastSquares && found.squares < kMostSquares))
                return true;
            return !(static_cast<double>(found.both) <
                     (cutoff(worker, query) - margin) *
                         std::sqrt(static_cast<double>(found.squares)));
        };
        bits::share_out_runs(rows.count, per_task, work.threads, work.checkpoint,
                             [&](std::size_t worker, std::size_t begin, std::size_t end) {
                                 for (std::size_t place = begin; place < end; ++place)
                                     for (std::size_t query = 0; query < queries.count; ++query)
                                         if (can_be_near(worker, query, place))
                                             look_at(worker, query, place);
                             });
        return;
    }
    struct State {
        Tile tile;
        std::vector<float> sums;
    };
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    std::vector<State> states(workers,
                              State{Tile(rows), std::vector<float>(kVectorGroup * tile_rows)});
    bits::share_out_runs(
        rows.count, per_task, workers, work.checkpoint,
        [&](std::size_t worker, std::size_t first, std::size_t last) {
            State& state = states[worker];
            for (std::size_t begin = first; begin < last; begin += tile_rows) {
                bits::stop_if_canceled();
                const std::size_t end = std::min(last, begin + tile_rows);
                state.tile.fill(begin, end);
                for (std::size_t group = 0; group < groups; ++group) {
                    sign::loops().project(scaled.data() + group * kVectorGroup * dimensions,
                                          dimensions, state.tile.values(), tile_rows,
                                          state.sums.data());
                    for (std::size_t at = 0; at < kVectorGroup; ++at) {
                        const std::size_t query = group * kVectorGroup + at;
                        if (query >= queries.count)
                            break;
                        const float* const sums = state.sums.data() + at * tile_rows;
                        const auto bound = [&] {
                            return static_cast<float>(cutoff(worker, query) - margin);
                        };
                        if (loops().count_at_least(sums, end - begin, bound()) == 0)
                            continue;
                        for (std::size_t place = begin; place < end; ++place)
                            if (sums[place - begin] >= bound())
                                look_at(worker, query, place);
                    }
                }
            }
        });
}

Queries part_of(const Queries& queries, std::size_t begin, std::size_t dimensions) {
    return {queries.values + begin * dimensions, std::min(kBlock, queries.count - begin)};
}

}  // namespace

void best_of_all(const Rows& rows, const std::uint8_t* skip, const Queries& queries, std::size_t k,
                 const Work& work, std::int64_t* ids, double* cosines) {
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    for (std::size_t begin = 0; begin < queries.count; begin += kBlock) {
        const Queries asked = part_of(queries, begin, rows.dimensions);
        std::vector<std::vector<Heap>> heaps(workers, std::vector<Heap>(asked.count, Heap(k)));
        std::vector<std::vector<double>> cutoffs(workers, std::vector<double>(asked.count, -2));
        each_near(
            rows, skip, asked, work,
            [&](std::size_t worker, std::size_t query) { return cutoffs[worker][query]; },
            [&](std::size_t worker, std::size_t query, std::size_t place, double cosine) {
                Heap& heap = heaps[worker][query];
                heap.push({cosine, rows.id(place)});
                if (heap.size() == k)
                    cutoffs[worker][query] = heap.worst().cosine;
            });
        for (std::size_t query = 0; query < asked.count; ++query) {
            for (std::size_t worker = 1; worker < workers; ++worker)
                heaps[0][query].push_all(heaps[worker][query]);
            std::size_t at = (begin + query) * k;
            for (const Similar& one : heaps[0][query].take_sorted()) {
                ids[at] = one.id;
                cosines[at++] = one.cosine;
            }
        }
    }
}

Matches at_least(const Rows& rows, const std::uint8_t* skip, const Queries& queries, double least,
                 std::size_t limit, const Work& work) {
    struct Found {
        std::size_t query;
        Similar one;
    };
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    std::atomic<std::size_t> total{0};
    Matches matches;
    matches.offsets.assign(queries.count + 1, 0);
    for (std::size_t begin = 0; begin < queries.count; begin += kBlock) {
        std::vector<std::vector<Found>> parts(workers);
        each_near(
            rows, skip, part_of(queries, begin, rows.dimensions), work,
            [&](std::size_t, std::size_t) { return least; },
            [&](std::size_t worker, std::size_t query, std::size_t place, double cosine) {
                if (total.fetch_add(1, std::memory_order_relaxed) >= limit)
                    throw search::TooManyResults();
                parts[worker].push_back({begin + query, {cosine, rows.id(place)}});
            });
        std::vector<Found> all;
        for (const std::vector<Found>& part : parts)
            all.insert(all.end(), part.begin(), part.end());
        std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
            return a.query != b.query ? a.query < b.query : a.one < b.one;
        });
        for (const Found& found : all) {
            ++matches.offsets[found.query + 1];
            matches.ids.push_back(found.one.id);
            matches.cosines.push_back(found.one.cosine);
        }
    }
    std::partial_sum(matches.offsets.begin(), matches.offsets.end(), matches.offsets.begin());
    return matches;
}

}  // namespace lookalike::vectors
