#include "vectors/sketches.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "bits/operation.hpp"
#include "bits/top_k.hpp"
#include "vectors/measure.hpp"

namespace lookalike::vectors {

namespace {

using Heap = bits::TopItems<Similar>;

constexpr double kLargest = 127;     // value of a sketch
constexpr std::uint8_t kZero = 128;  // as which zero is held
constexpr std::size_t kRowsPerTask = 1024;
constexpr std::size_t kBlocksAtOnce = 64;
constexpr std::size_t kNearGroups = 64;  // that an exact search reads first, nearest first
constexpr std::size_t kTasksPerThread = 4;
constexpr std::size_t kQueriesTogether = 256;
constexpr float kAll = -std::numeric_limits<float>::infinity();

struct Sketched {
    float scale;
    double error;  // the distance of the sketch, times its scale, from the vector of length 1
};

// A zero vector has a sketch of zeros, and no error.
Sketched write_sketch(const float* row, std::size_t dimensions, double squares,
                      std::uint8_t* codes) {
    double most = 0;
    for (std::size_t at = 0; at < dimensions; ++at)
        most = std::max(most, std::abs(static_cast<double>(row[at])));
    std::fill(codes, codes + kSketchStep * sketch_steps(dimensions), kZero);
    if (!(most > 0) || !std::isfinite(squares))  // only a damaged file has others
        return {0, 0};
    const double step = most / kLargest;
    double wrong = 0;
    for (std::size_t at = 0; at < dimensions; ++at) {
        const double value = static_cast<double>(row[at]) / step;
        const double rounded = std::nearbyint(value);
        codes[at] = static_cast<std::uint8_t>(rounded + kZero);
        wrong += (value - rounded) * (value - rounded);
    }
    const double length = std::sqrt(squares);
    return {static_cast<float>(step / length), std::sqrt(wrong) * step / length};
}

// A query as a sketch.
class Asked {
  public:
    Asked(const Rows& rows, const float* query)
        : measure_(rows, query), codes_(kSketchStep * sketch_steps(rows.dimensions)) {
        std::vector<std::uint8_t> codes(codes_.size());
        sketched_ = write_sketch(query, rows.dimensions, measure_.squares(), codes.data());
        for (std::size_t at = 0; at < codes.size(); ++at)
            codes_[at] = static_cast<std::int8_t>(codes[at] - kZero);
    }

    const Measure& measure() const { return measure_; }
    const std::int8_t* values() const { return codes_.data(); }

    // A product of sketches that is less belongs to a row whose cosine is less than that. Products
    // lack the scale of the query. Whole numbers, scales and products are rounded to floats.
    float least_product(double cosine, double error) const {
        if (!(sketched_.scale > 0))
            return kAll;
        constexpr double kRounding = 1e-5;
        const double least = cosine - error - sketched_.error * (1 + error) - kRounding;
        return static_cast<float>(least / static_cast<double>(sketched_.scale));
    }

  private:
    Measure measure_;
    std::vector<std::int8_t> codes_;
    Sketched sketched_;
};

// Products of a range of sketches with some queries, in arrays that are used again.
class ProductRuns {
  public:
    // Calls take(query, hits, number, first row) for those that are at least(query), a part of the
    // range at a time: `at_once` blocks, at most kBlocksAtOnce. There are kSketchQueries queries,
    // or one.
    template <class Least, class Take>
    void each(const Sketches& sketches, std::size_t begin, std::size_t end,
              const std::int8_t* const* queries, std::size_t count, Least least, Take take,
              std::size_t at_once = kBlocksAtOnce) {
        sums_.resize(kSketchQueries * kBlocksAtOnce * kSketchRows);
        hits_.resize(kBlocksAtOnce * kSketchRows);
        const Loops& loop = loops();
        const std::size_t last = (end + kSketchRows - 1) / kSketchRows;
        for (std::size_t block = begin / kSketchRows; block < last; block += at_once) {
            const std::size_t blocks = std::min(at_once, last - block);
            loop.sketch_products(sketches.blocks + block * sketches.block_bytes(), blocks,
                                 sketches.steps, queries, count, sums_.data());
            const std::size_t from = std::max(begin, block * kSketchRows);
            const std::size_t to = std::min(end, (block + blocks) * kSketchRows);
            const std::size_t before = from - block * kSketchRows;
            for (std::size_t query = 0; query < count; ++query) {
                const std::size_t near =
                    loop.sketch_hits(sums_.data() + query * blocks * kSketchRows + before,
                                     sketches.scales + from, to - from, least(query), hits_.data());
                if (near != 0)
                    take(query, hits_.data(), near, from);
            }
        }
    }

  private:
    std::vector<std::int32_t> sums_;
    std::vector<SketchHit> hits_;
};

// Larger products come first, then lower numbers.
struct Ranked {
    float product;
    std::uint32_t number;

    friend bool operator<(const Ranked& a, const Ranked& b) {
        return a.product != b.product ? a.product > b.product : a.number < b.number;
    }
};

// The groups in the order of their centers, as far as that is asked for.
class Order {
  public:
    // Finds and sorts the first groups for a query.
    void rank(const SketchGroups& groups, const Asked& asked, ProductRuns& products,
              std::size_t count) {
        all_.clear();
        total_ = groups.centers.count;
        wanted_ = std::min(count, total_);
        const std::int8_t* const values = asked.values();
        float cutoff = kAll;
        products.each(
            groups.centers, 0, total_, &values, 1, [&](std::size_t) { return cutoff; },
            [&](std::size_t, const SketchHit* hits, std::size_t number, std::size_t first) {
                for (const SketchHit* hit = hits; hit < hits + number; ++hit)
                    all_.push_back({hit->product, static_cast<std::uint32_t>(first + hit->row)});
                if (all_.size() >= wanted_ + kSpare) {
                    keep_wanted();
                    cutoff = all_.back().product;
                }
            },
            kBlocks);
        if (all_.size() > wanted_)
            keep_wanted();
        std::sort(all_.begin(), all_.end());
    }

    // How many are ranked, and how many there are. All of them begin with those that are ranked.
    std::size_t ranked() const { return all_.size(); }
    std::size_t size() const { return total_; }
    std::size_t operator[](std::size_t rank) const { return all_[rank].number; }

  private:
    static constexpr std::size_t kBlocks = 8;  // after which far groups are left out
    static constexpr std::size_t kSpare = 64;  // groups that are held beside those that are wanted

    // The last of those that are kept is the worst of them.
    void keep_wanted() {
        const auto last = all_.begin() + static_cast<std::ptrdiff_t>(wanted_) - 1;
        std::nth_element(all_.begin(), last, all_.end());
        all_.resize(wanted_);
    }

    std::vector<Ranked> all_;
    std::size_t total_ = 0, wanted_ = 0;
};

struct Extent {
    std::size_t begin, end;
};

Extent extent_of(const SketchGroups& groups, std::size_t group) {
    return {static_cast<std::size_t>(groups.offsets[group]),
            static_cast<std::size_t>(groups.offsets[group + 1])};
}

bool is_left_out(const std::uint8_t* skip, std::size_t place) {
    return skip != nullptr && skip[place] != 0;
}

// The candidates of one query after the other.
class Proposer {
  public:
    Proposer(const SketchGroups& groups, const std::uint8_t* skip, const SketchEffort& effort,
             std::size_t least)
        : groups_(groups), skip_(skip), effort_(effort), least_(least) {}

    // Those with the largest products, in no order.
    std::vector<Ranked>& propose(const Asked& asked) {
        kept_.clear();
        groups_read = rows_read = 0;
        float cutoff = kAll;
        order_.rank(groups_, asked, products_, std::max<std::size_t>(1, effort_.probe));
        const std::int8_t* const values = asked.values();
        for (std::size_t rank = 0; rank < order_.size(); ++rank) {
            if (rank >= effort_.probe) {
                if (kept_.size() >= least_)
                    break;
                if (rank >= order_.ranked())
                    order_.rank(groups_, asked, products_, order_.size());
            }
            const Extent rows = extent_of(groups_, order_[rank]);
            if (rank + 1 < order_.ranked())
                prefetch(extent_of(groups_, order_[rank + 1]));
            ++groups_read;
            rows_read += rows.end - rows.begin;
            products_.each(
                groups_.rows, rows.begin, rows.end, &values, 1, [&](std::size_t) { return cutoff; },
                [&](std::size_t, const SketchHit* hits, std::size_t count, std::size_t first) {
                    for (const SketchHit* hit = hits; hit < hits + count; ++hit) {
                        const std::uint32_t place = groups_.places[first + hit->row];
                        if (!is_left_out(skip_, place))
                            kept_.push_back({hit->product, place});
                    }
                });
            if (kept_.size() >= 2 * effort_.candidates) {
                shrink();
                cutoff = kept_[effort_.candidates - 1].product;
            }
        }
        if (kept_.size() > effort_.candidates)
            shrink();
        return kept_;
    }

    std::size_t groups_read = 0, rows_read = 0;

  private:
    // The start of a group: what follows is read in order, which the processor notices.
    void prefetch(Extent rows) const {
        const std::size_t bytes = groups_.rows.block_bytes();
        if (rows.begin < rows.end)
            bits::prefetch_all(groups_.rows.blocks + rows.begin / kSketchRows * bytes,
                               std::min<std::size_t>(bytes, 512));
    }

    // The last of those that stay is the worst of them.
    void shrink() {
        const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(effort_.candidates) - 1;
        std::nth_element(kept_.begin(), last, kept_.end());
        kept_.resize(effort_.candidates);
    }

    const SketchGroups& groups_;
    const std::uint8_t* skip_;
    SketchEffort effort_;
    std::size_t least_;
    Order order_;
    ProductRuns products_;
    std::vector<Ranked> kept_;
};

void write_answer(const std::vector<Similar>& sorted, std::size_t k, std::int64_t* ids,
                  double* cosines) {
    for (std::size_t rank = 0; rank < std::min(k, sorted.size()); ++rank) {
        ids[rank] = sorted[rank].id;
        cosines[rank] = sorted[rank].cosine;
    }
}

}  // namespace

double sketch_rows(const Rows& rows, std::size_t first, const Work& work, std::uint8_t* codes,
                   float* scales) {
    const std::size_t bytes = kSketchStep * sketch_steps(rows.dimensions);
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    std::vector<double> errors(workers, 0.0);
    std::vector<std::vector<float>> wide(workers, std::vector<float>(rows.dimensions));
    bits::share_out_runs(
        rows.count - first, kRowsPerTask, workers, work.checkpoint,
        [&](std::size_t worker, std::size_t begin, std::size_t end) {
            const Loops& loop = loops();
            for (std::size_t at = begin; at < end; ++at) {
                const std::uint8_t* const bytes_of_row = rows.row(first + at);
                const float* row = reinterpret_cast<const float*>(bytes_of_row);
                if (rows.halves) {
                    loop.widen(reinterpret_cast<const std::uint16_t*>(bytes_of_row),
                               rows.dimensions, wide[worker].data());
                    row = wide[worker].data();
                }
                const double squares = loop.products(row, row, rows.dimensions).squares;
                const Sketched one =
                    write_sketch(row, rows.dimensions, squares, codes + at * bytes);
                scales[at] = one.scale;
                errors[worker] = std::max(errors[worker], one.error);
            }
        });
    return *std::max_element(errors.begin(), errors.end());
}

void nearest_sketches(const Sketches& among, const std::uint8_t* codes, std::size_t count,
                      const Work& work, std::int64_t* nearest, float* products) {
    const std::size_t width = kSketchStep * among.steps;
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    std::vector<ProductRuns> found(workers);
    bits::share_out_runs(
        count, kRowsPerTask / 16, workers, work.checkpoint,
        [&](std::size_t worker, std::size_t first, std::size_t last) {
            std::vector<std::int8_t> values(kSketchQueries * width);
            const std::int8_t* queries[kSketchQueries];
            for (std::size_t query = 0; query < kSketchQueries; ++query)
                queries[query] = values.data() + query * width;
            for (std::size_t begin = first; begin < last; begin += kSketchQueries) {
                const std::size_t some = std::min(kSketchQueries, last - begin);
                for (std::size_t at = 0; at < some * width; ++at)
                    values[at] = static_cast<std::int8_t>(codes[begin * width + at] - kZero);
                Ranked best[kSketchQueries];
                std::fill(best, best + kSketchQueries, Ranked{kAll, UINT32_MAX});
                found[worker].each(
                    among, 0, among.count, queries, kSketchQueries,
                    [&](std::size_t query) { return best[query].product; },
                    [&](std::size_t query, const SketchHit* hits, std::size_t number,
                        std::size_t from) {
                        for (const SketchHit* hit = hits; hit < hits + number; ++hit) {
                            const Ranked one{hit->product,
                                             static_cast<std::uint32_t>(from + hit->row)};
                            best[query] = std::min(best[query], one);
                        }
                    });
                for (std::size_t query = 0; query < some; ++query) {
                    nearest[begin + query] = best[query].number;
                    products[begin + query] = best[query].product;
                }
            }
        });
}

void candidates_of_groups(const Rows& rows, const SketchGroups& groups, const Queries& queries,
                          const std::uint8_t* skip, const SketchEffort& effort, const Work& work,
                          std::int64_t* places) {
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    std::vector<Proposer> proposers(workers, Proposer(groups, skip, effort, 1));
    bits::share_out(queries.count, workers, work.checkpoint,
                    [&](std::size_t worker, std::size_t query) {
                        const Asked asked(rows, queries.values + query * rows.dimensions);
                        std::vector<Ranked>& found = proposers[worker].propose(asked);
                        std::sort(found.begin(), found.end());
                        std::int64_t* to = places + query * effort.candidates;
                        for (const Ranked& one : found)
                            *to++ = one.number;
                    });
}

void best_of_groups(const Rows& rows, const SketchGroups& groups, const std::uint8_t* skip,
                    const Queries& queries, std::size_t k, const SketchEffort& effort,
                    const Work& work, std::int64_t* ids, double* cosines, const SketchWork& done) {
    constexpr std::size_t kAhead = 8;
    const std::size_t workers = std::max<std::size_t>(1, std::min(work.threads, queries.count));
    std::vector<Proposer> proposers(workers, Proposer(groups, skip, effort, k));
    std::vector<std::vector<Similar>> found(workers);
    bits::share_out(
        queries.count, workers, work.checkpoint, [&](std::size_t worker, std::size_t query) {
            const Asked asked(rows, queries.values + query * rows.dimensions);
            const Measure& measure = asked.measure();
            const std::vector<Ranked>& proposed = proposers[worker].propose(asked);
            std::vector<Similar>& own = found[worker];
            own.clear();
            for (std::size_t at = 0; at < std::min(kAhead, proposed.size()); ++at)
                measure.prefetch(proposed[at].number);
            for (std::size_t at = 0; at < proposed.size(); ++at) {
                if (at + kAhead < proposed.size())
                    measure.prefetch(proposed[at + kAhead].number);
                const std::size_t place = proposed[at].number;
                own.push_back({measure(place), rows.id(place)});
            }
            for (std::size_t place = groups.covered(); place < rows.count; ++place)
                if (!is_left_out(skip, place))
                    own.push_back({measure(place), rows.id(place)});
            const auto best = static_cast<std::ptrdiff_t>(std::min(k, own.size()));
            std::partial_sort(own.begin(), own.begin() + best, own.end());
            write_answer(own, k, ids + query * k, cosines + query * k);
            done.groups[query] = static_cast<std::int64_t>(proposers[worker].groups_read);
            done.rows[query] = static_cast<std::int64_t>(proposers[worker].rows_read + rows.count -
                                                         groups.covered());
            done.cosines[query] = static_cast<std::int64_t>(own.size());
        });
}

namespace {

// What an exact search has found of a query.
struct Found {
    Heap heap;
    std::vector<std::uint8_t> was_read;  // groups
    std::int64_t cosines = 0;
    double floor = -2;  // k rows are at least so similar, wherever they were found
    std::size_t k;

    explicit Found(std::size_t wanted) : heap(wanted), k(wanted) {}

    double cutoff() const {
        return heap.size() == k ? std::max(floor, heap.worst().cosine) : floor;
    }
};

// Looks at the rows that sketches do not rule out.
class Prover {
  public:
    Prover(const Rows& rows, const SketchGroups& groups, const std::uint8_t* skip)
        : rows_(rows), groups_(groups), skip_(skip) {}

    void look_at(const Asked& asked, std::size_t place, Found& found) const {
        if (is_left_out(skip_, place))
            return;
        const double cosine = asked.measure()(place);
        ++found.cosines;
        if (cosine >= found.cutoff())
            found.heap.push({cosine, rows_.id(place)});
    }

    // One query, or kSketchQueries; `found` of null is left out.
    void read(Extent extent, const Asked* const* asked, Found* const* found, std::size_t count,
              ProductRuns& products) const {
        const std::int8_t* values[kSketchQueries];
        for (std::size_t query = 0; query < count; ++query)
            values[query] = asked[query]->values();
        const auto least = [&](std::size_t query) {
            return found[query] == nullptr
                       ? std::numeric_limits<float>::infinity()
                       : asked[query]->least_product(found[query]->cutoff(), groups_.error);
        };
        products.each(
            groups_.rows, extent.begin, extent.end, values, count, least,
            [&](std::size_t query, const SketchHit* hits, std::size_t number, std::size_t first) {
                for (const SketchHit* hit = hits; hit < hits + number; ++hit)
                    if (found[query] != nullptr && hit->product >= least(query))
                        look_at(*asked[query], groups_.places[first + hit->row], *found[query]);
            });
    }

  private:
    const Rows& rows_;
    const SketchGroups& groups_;
    const std::uint8_t* skip_;
};

}  // namespace

void best_by_sketches(const Rows& rows, const SketchGroups& groups, const std::uint8_t* skip,
                      const Queries& queries, std::size_t k, const Work& work, std::int64_t* ids,
                      double* cosines, const SketchWork& done) {
    const std::size_t workers = std::max<std::size_t>(1, work.threads);
    const Prover prover(rows, groups, skip);
    std::vector<ProductRuns> products(workers);
    std::vector<Order> orders(workers);
    for (std::size_t start = 0; start < queries.count; start += kQueriesTogether) {
        const std::size_t some = std::min(kQueriesTogether, queries.count - start);
        std::vector<Asked> asked;
        for (std::size_t query = start; query < start + some; ++query)
            asked.emplace_back(rows, queries.values + query * rows.dimensions);
        std::vector<Found> found(some, Found(k));
        // First, each query reads the groups that are nearest to it, and rows without sketches.
        bits::share_out(some, workers, work.checkpoint, [&](std::size_t worker, std::size_t query) {
            Order& order = orders[worker];
            order.rank(groups, asked[query], products[worker], kNearGroups);
            Found& own = found[query];
            own.was_read.assign(order.size(), 0);
            const Asked* const one = &asked[query];
            Found* const to = &own;
            for (std::size_t rank = 0; rank < order.ranked(); ++rank) {
                own.was_read[order[rank]] = 1;
                prover.read(extent_of(groups, order[rank]), &one, &to, 1, products[worker]);
            }
            for (std::size_t place = groups.covered(); place < rows.count; ++place)
                prover.look_at(asked[query], place, own);
            own.floor = own.cutoff();
        });
        // Then some queries read the others together, perhaps in several parts.
        const std::size_t quads = (some + kSketchQueries - 1) / kSketchQueries;
        const std::size_t parts =
            workers == 1 || quads >= kTasksPerThread * workers ? 1 : kTasksPerThread * workers;
        std::vector<std::mutex> locks(some);
        bits::share_out(
            quads * parts, workers, work.checkpoint, [&](std::size_t worker, std::size_t task) {
                const std::size_t first = task / parts * kSketchQueries, part = task % parts;
                const std::size_t count = std::min(kSketchQueries, some - first);
                const std::size_t width = count == 1 ? 1 : kSketchQueries;
                const Asked* own[kSketchQueries];
                std::vector<Found> more(count, Found(k));
                for (std::size_t query = 0; query < width; ++query) {
                    own[query] = &asked[first + std::min(query, count - 1)];
                    if (query < count)
                        more[query].floor = found[first + query].floor;
                }
                const std::size_t all = groups.centers.count;
                for (std::size_t group = all * part / parts; group < all * (part + 1) / parts;
                     ++group) {
                    bits::stop_if_canceled();
                    Found* to[kSketchQueries] = {};
                    bool is_wanted = false;
                    for (std::size_t query = 0; query < count; ++query)
                        if (found[first + query].was_read[group] == 0) {
                            to[query] = &more[query];
                            is_wanted = true;
                        }
                    if (is_wanted)
                        prover.read(extent_of(groups, group), own, to, width, products[worker]);
                }
                for (std::size_t query = 0; query < count; ++query) {
                    const std::scoped_lock lock(locks[first + query]);
                    found[first + query].heap.push_all(more[query].heap);
                    found[first + query].cosines += more[query].cosines;
                }
            });
        for (std::size_t query = 0; query < some; ++query) {
            const std::size_t at = start + query;
            write_answer(found[query].heap.take_sorted(), k, ids + at * k, cosines + at * k);
            done.groups[at] = static_cast<std::int64_t>(groups.centers.count);
            done.rows[at] = static_cast<std::int64_t>(rows.count);
            done.cosines[at] = found[query].cosines;
        }
    }
}

}  // namespace lookalike::vectors
