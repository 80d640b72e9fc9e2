#include <vector>

#include "vectors/cosines.hpp"
#include "vectors/measure.hpp"

namespace lookalike::vectors {

namespace {

// Rows are scattered in memory: this number of them is prefetched ahead of the comparison.
constexpr std::size_t kAhead = 8;
constexpr std::size_t kPairsPerTask = 4096;

}  // namespace

void best_candidates(const Rows& rows, const Queries& queries, const std::int64_t* candidates,
                     std::size_t per_query, std::size_t k, const Work& work, std::int64_t* ids,
                     double* cosines) {
    const std::size_t threads = bits::worthwhile_threads(
        work.threads, static_cast<double>(queries.count * per_query * rows.row_bytes()));
    std::vector<std::vector<Similar>> found(std::max<std::size_t>(1, threads));
    bits::share_out(
        queries.count, threads, work.checkpoint, [&](std::size_t worker, std::size_t query) {
            const Measure measure(rows, queries.values + query * rows.dimensions);
            const std::int64_t* const places = candidates + query * per_query;
            std::vector<Similar>& own = found[worker];
            own.clear();
            for (std::size_t at = 0; at < per_query; ++at) {
                if (at + kAhead < per_query && places[at + kAhead] >= 0)
                    measure.prefetch(static_cast<std::size_t>(places[at + kAhead]));
                if (places[at] < 0)
                    continue;
                const auto place = static_cast<std::size_t>(places[at]);
                own.push_back({measure(place), rows.id(place)});
            }
            const std::size_t best = std::min(k, own.size());
            std::partial_sort(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(best),
                              own.end());
            for (std::size_t rank = 0; rank < best; ++rank) {
                ids[query * k + rank] = own[rank].id;
                cosines[query * k + rank] = own[rank].cosine;
            }
        });
}

void cosines_of_pairs(const Rows& rows, const Queries& queries, const std::int64_t* asked,
                      const std::int64_t* places, std::size_t count, const Work& work,
                      double* cosines) {
    bits::share_out_runs(
        count, kPairsPerTask, work.threads, work.checkpoint,
        [&](std::size_t, std::size_t begin, std::size_t end) {
            for (std::size_t at = begin; at < end;) {
                const auto query = static_cast<std::size_t>(asked[at]);
                const Measure measure(rows, queries.values + query * rows.dimensions);
                for (; at < end && static_cast<std::size_t>(asked[at]) == query; ++at) {
                    if (at + kAhead < end)
                        measure.prefetch(static_cast<std::size_t>(places[at + kAhead]));
                    cosines[at] = measure(static_cast<std::size_t>(places[at]));
                }
            }
        });
}

}  // namespace lookalike::vectors
