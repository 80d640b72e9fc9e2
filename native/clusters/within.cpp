#include <atomic>
#include <vector>

#include "clusters/groups.hpp"
#include "clusters/visits.hpp"
#include "scan/task_matches.hpp"

namespace lookalike::search {

Matches within_in_groups(const Groups& groups, const Signatures& queries, std::uint32_t radius,
                         std::size_t limit, std::size_t threads, const bits::Checkpoint& checkpoint,
                         const GroupWork& work) {
    const bits::Kernels kernels = bits::kernels_for(groups.rows.bytes);
    const std::size_t bytes = groups.rows.bytes, tile = tile_rows(bytes);
    const std::size_t block = queries_together(groups.count());
    std::atomic<std::size_t> total{0};
    std::vector<TaskMatches> found((queries.count + block - 1) / block, TaskMatches(total, limit));
    Visits visits(groups.count());
    for (std::size_t begin = 0; begin < queries.count; begin += block) {
        const Signatures asked{queries.row(begin), std::min(block, queries.count - begin), bytes};
        std::vector<std::vector<Visit>> wanted(threads);
        each_from_centers(
            groups, asked, threads, checkpoint,
            [&](std::size_t worker, std::size_t query, const std::int32_t* far) {
                for (std::size_t group = 0; group < groups.count(); ++group) {
                    if (groups.least(group, far[group]) > radius)
                        continue;
                    const Groups::Range rows = groups.within(group, far[group], radius);
                    ++work.groups[begin + query];
                    work.compared[begin + query] += rows.end - rows.begin;
                    wanted[worker].push_back({static_cast<std::uint32_t>(group),
                                              static_cast<std::uint32_t>(query), rows});
                }
            });
        visits.clear();
        for (const std::vector<Visit>& each : wanted)
            visits.add(each);
        const std::size_t workers =
            bits::worthwhile_threads(threads, visits.rows() * static_cast<double>(bytes));
        std::vector<TaskMatches> parts(workers, TaskMatches(total, limit));
        std::vector<std::vector<bits::Hit>> hits(workers);
        visits.run(groups, workers, checkpoint,
                   [&](std::size_t worker, std::size_t query, std::size_t row, std::size_t count) {
                       hits[worker].resize(tile);
                       bits::Hit* const near = hits[worker].data();
                       std::size_t size = kernels.filter(asked.row(query), groups.rows.row(row),
                                                         count, bytes, radius, near);
                       if (groups.removed != nullptr)
                           size = leave_out(near, size, groups.removed + row);
                       for (const bits::Hit* hit = near; hit < near + size; ++hit)
                           parts[worker].add(query, hit->distance, groups.rows.id(row + hit->row));
                   });
        TaskMatches& all = found[begin / block];
        for (TaskMatches& part : parts)
            all.take_in(part);
        all.sort();
    }
    return put_together(queries.count, block, found, total);
}

}  // namespace lookalike::search
