#include <algorithm>
#include <atomic>
#include <optional>
#include <span>

#include "bits/kernels.hpp"
#include "bits/operation.hpp"
#include "bits/prefetch.hpp"
#include "scan/task_matches.hpp"
#include "slices/query_part.hpp"
#include "slices/scoring/loops.hpp"
#include "slices/scoring/thresholds.hpp"
#include "slices/search.hpp"

namespace lookalike::search {

using bits::Kernels;

namespace {

constexpr std::size_t kQueriesPerTask = 64;
constexpr std::size_t kProbesBetweenChecks = 4096;
constexpr std::size_t kProbesAtOnce = 1 << 13;  // to be put in order: they stay in the cache
constexpr std::size_t kAhead = 48;
constexpr std::size_t kRowsAhead = 8;        // of a list, which are verified one by one
constexpr std::size_t kSketchesAhead = 256;  // of a list; behind them the processor fetches ahead

// Queries that are answered together, with what was worked out for each.
struct Task {
    std::size_t positions;
    const Signatures& queries;
    std::vector<std::uint32_t> values;    // of each slice of each query
    std::vector<std::int8_t> thresholds;  // how many bits may differ; -1: it is not looked at

    std::span<const std::uint32_t> values_of(std::size_t query) const {
        return {values.data() + query * positions, positions};
    }
    std::span<std::int8_t> thresholds_of(std::size_t query) {
        return {thresholds.data() + query * positions, positions};
    }
};

// Answers the queries of one task in one segment.
class SegmentWithin {
  public:
    // Of `together` queries in all.
    SegmentWithin(const Slicing& slicing, const Segment& segment, std::uint32_t radius,
                  std::size_t together)
        : slicing_(slicing),
          segment_(segment),
          rows_(segment.collection),
          radius_(radius),
          together_(together),
          kernels_(bits::kernels_for(segment.collection.bytes)) {}

    // Calls take(query, distance, id) for all that lists bring in. Queries for which a scan is the
    // shorter way are left out, and added to `scanned`.
    template <class Take>
    void search(const Signatures& queries, WithinWork* work, std::vector<std::size_t>& scanned,
                Take take) {
        std::visit(
            [&](const auto& lists) {
                if constexpr (std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
                    for (std::size_t query = 0; query < queries.count; ++query)
                        scanned.push_back(query);
                else
                    probe(lists, queries, work, scanned, take);
            },
            segment_.lists);
    }

  private:
    // A list to be read for a query: all rows there are candidates.
    template <class Row>
    struct Probe {
        typename SliceLists<Row>::List list;
        std::uint32_t query;
        std::uint16_t position;
        std::uint16_t differing;  // bits of the slice
    };

    template <class Row, class Take>
    void probe(const SliceLists<Row>& lists, const Signatures& queries, WithinWork* work,
               std::vector<std::size_t>& scanned, Take take) {
        const ListCosts costs(slicing_, rows_.count, radius_, lists.sketches != nullptr, together_);
        const std::size_t positions = slicing_.count();
        Task task{positions, queries, std::vector<std::uint32_t>(queries.count * positions),
                  std::vector<std::int8_t>(queries.count * positions)};
        std::vector<double> next(positions);
        std::vector<Probe<Row>> probes;
        probes.reserve(std::min(queries.count * (radius_ + 1), kProbesAtOnce));
        for (std::size_t query = 0; query < queries.count; ++query)
            for (std::size_t position = 0; position < positions; ++position) {
                const std::uint32_t value = slicing_.value(queries.row(query), position);
                task.values[query * positions + position] = value;
                __builtin_prefetch(lists.offset_of(position, value));
            }
        for (std::size_t query = 0; query < queries.count; ++query) {
            if (!add_probes(lists, costs, task, query, next, probes, work[query]))
                scanned.push_back(query);
            if (probes.size() >= kProbesAtOnce || query + 1 == queries.count) {
                read(lists, task, probes, work, take);
                probes.clear();
            }
        }
    }

    // Raises thresholds, radius + 1 times in all, each time where that costs least, and adds the
    // lists that are to be read then. What a list costs is known by its length; those a bit
    // farther away are taken to be as long as those before, or as the average. False, and nothing
    // is added, as soon as that is more than a scan.
    template <class Row>
    bool add_probes(const SliceLists<Row>& lists, const ListCosts& costs, Task& task,
                    std::size_t query, std::span<double> next, std::vector<Probe<Row>>& probes,
                    WithinWork& work) {
        const auto values = task.values_of(query);
        const auto thresholds = task.thresholds_of(query);
        const std::size_t before = probes.size();
        std::fill(thresholds.begin(), thresholds.end(), std::int8_t{-1});
        for (std::size_t position = 0; position < values.size(); ++position)
            next[position] = costs.lists(1, lists.list(position, values[position]).size);
        WithinWork taken;
        double total = 0;
        for (std::size_t raised = 0; raised <= radius_; ++raised) {
            const auto cheapest = std::min_element(next.begin(), next.end());
            if (total + *cheapest > costs.scan()) {
                probes.resize(before);
                return false;
            }
            const auto position = static_cast<std::size_t>(cheapest - next.begin());
            const auto ones = static_cast<std::size_t>(++thresholds[position]);
            const std::span<const std::uint32_t> near = variants(position, ones);
            std::size_t entries = 0;
            double compared = 0;
            for (const std::uint32_t flips : near)
                __builtin_prefetch(lists.offset_of(position, values[position] ^ flips));
            for (const std::uint32_t flips : near) {
                const auto list = lists.list(position, values[position] ^ flips);
                entries += list.size;
                compared += static_cast<double>(list.size) *
                            near_share(lists, list, task.queries.row(query), position, ones, costs);
                if (list.size != 0)
                    probes.push_back({list, static_cast<std::uint32_t>(query),
                                      static_cast<std::uint16_t>(position),
                                      static_cast<std::uint16_t>(ones)});
            }
            const auto read = static_cast<double>(near.size()), rows = static_cast<double>(entries);
            total += costs.lists(read, rows, compared);
            *cheapest = costs.step(slicing_.width(position), ones + 1, rows / read);
            taken.lists += static_cast<std::int64_t>(near.size());
            taken.postings += static_cast<std::int64_t>(entries);
        }
        if (total > costs.scan()) {
            probes.resize(before);
            return false;
        }
        work.lists += taken.lists;
        work.postings += taken.postings;
        return true;
    }

    // Which share of a list is to be compared. Where sketches are near by more than chance, lists
    // are long, too: of those, a few sketches are looked at.
    template <class Row>
    double near_share(const SliceLists<Row>& lists, const typename SliceLists<Row>::List& list,
                      const std::uint8_t* query, std::size_t position, std::size_t ones,
                      const ListCosts& costs) const {
        constexpr std::size_t kFew = 64;
        if (lists.sketches == nullptr || list.size < kFew ||
            static_cast<double>(list.size) < 4 * costs.average(slicing_.width(position)))
            return costs.compared();
        std::uint32_t places[kFew];
        const std::size_t found = score_loops().near_sketches(
            lists.sketches_of(list), kFew, slicing_.sketch(query, position),
            static_cast<std::uint16_t>(radius_ - ones), places);
        return static_cast<double>(found) / kFew;
    }

    // Values that differ in exactly `ones` bits.
    std::span<const std::uint32_t> variants(std::size_t position, std::size_t ones) {
        const std::size_t width = slicing_.width(position);
        auto& known = variants_[width];
        if (!known || known->ends.size() <= ones)
            known.emplace(width, ones);
        const std::size_t begin = ones == 0 ? 0 : known->ends[ones - 1];
        return {known->values.data() + begin, known->ends[ones] - begin};
    }

    // Reads lists in the order they lie in, so that one comes from memory once for all queries.
    template <class Row, class Take>
    void read(const SliceLists<Row>& lists, Task& task, std::vector<Probe<Row>>& probes,
              WithinWork* work, Take take) {
        std::sort(probes.begin(), probes.end(), [](const Probe<Row>& a, const Probe<Row>& b) {
            return a.list.begin != b.list.begin ? a.list.begin < b.list.begin : a.query < b.query;
        });
        if (lists.sketches != nullptr)
            read_sketches(lists, task, probes, work, take);
        else
            read_rows(task, probes, work, take);
    }

    template <class Row, class Take>
    void read_rows(Task& task, const std::vector<Probe<Row>>& probes, WithinWork* work, Take take) {
        const auto ask = [&](std::size_t at) __attribute__((always_inline)) {
            if (at < probes.size())
                __builtin_prefetch(probes[at].list.begin);
        };
        const auto ask_rows = [&](std::size_t at) __attribute__((always_inline)) {
            if (at >= probes.size())
                return;
            const auto& list = probes[at].list;
            for (std::size_t index = 0; index < std::min(list.size, kRowsAhead); ++index)
                if (list.begin[index] < rows_.count)
                    __builtin_prefetch(rows_.row(list.begin[index]));
        };
        for (std::size_t at = 0; at < kAhead; ++at)
            ask(at);
        for (std::size_t at = 0; at < kAhead / 2; ++at)
            ask_rows(at);
        for (std::size_t at = 0; at < probes.size(); ++at) {
            if (at % kProbesBetweenChecks == 0)
                bits::stop_if_canceled();
            ask(at + kAhead);
            ask_rows(at + kAhead / 2);
            const Probe<Row>& probe = probes[at];
            work[probe.query].verified += static_cast<std::int64_t>(probe.list.size);
            verify(probe, task, take);
        }
    }

    // The same by sketches: only rows that are still near enough with those bits are looked at.
    // Sketches, postings and signatures are three passes, each asking for what the next one needs.
    template <class Row, class Take>
    void read_sketches(const SliceLists<Row>& lists, Task& task,
                       const std::vector<Probe<Row>>& probes, WithinWork* work, Take take) {
        struct Near {
            const Row* posting;
            const Probe<Row>* probe;
            std::size_t row;
        };
        std::vector<Near> near;
        std::vector<std::uint32_t> places;
        const auto ask = [&](std::size_t at) __attribute__((always_inline)) {
            if (at < probes.size())
                bits::prefetch_all(
                    reinterpret_cast<const std::uint8_t*>(lists.sketches_of(probes[at].list)),
                    sizeof(std::uint16_t) * std::min(probes[at].list.size, kSketchesAhead));
        };
        const auto near_sketches = score_loops().near_sketches;
        for (std::size_t at = 0; at < kAhead; ++at)
            ask(at);
        for (std::size_t at = 0; at < probes.size(); ++at) {
            if (at % kProbesBetweenChecks == 0)
                bits::stop_if_canceled();
            ask(at + kAhead);
            const Probe<Row>& probe = probes[at];
            if (places.size() < probe.list.size)
                places.resize(probe.list.size);
            const std::size_t found =
                near_sketches(lists.sketches_of(probe.list), probe.list.size,
                              slicing_.sketch(task.queries.row(probe.query), probe.position),
                              static_cast<std::uint16_t>(radius_ - probe.differing), places.data());
            for (std::size_t index = 0; index < found; ++index) {
                near.push_back({probe.list.begin + places[index], &probe, 0});
                __builtin_prefetch(near.back().posting);
            }
            work[probe.query].verified += static_cast<std::int64_t>(found);
        }
        for (Near& one : near) {
            one.row = *one.posting;
            if (one.row >= rows_.count)
                throw CorruptLists();
            __builtin_prefetch(rows_.row(one.row));
        }
        for (const Near& one : near)
            verify_row(one.row, task, *one.probe, take);
    }

    template <class Row, class Take>
    void verify(const Probe<Row>& probe, Task& task, Take take) {
        const auto& list = probe.list;
        for (std::size_t index = 0; index < list.size; ++index) {
            const std::size_t row = list.begin[index];
            if (row >= rows_.count)
                throw CorruptLists();
            if (index + kRowsAhead < list.size && list.begin[index + kRowsAhead] < rows_.count)
                __builtin_prefetch(rows_.row(list.begin[index + kRowsAhead]));
            verify_row(row, task, probe, take);
        }
    }

    template <class Row, class Take>
    void verify_row(std::size_t row, Task& task, const Probe<Row>& probe, Take take) {
        std::int32_t distance;
        kernels_.paired(task.queries.row(probe.query), rows_.row(row), 1, rows_.bytes, &distance);
        if (static_cast<std::uint32_t>(distance) <= radius_ && !segment_.is_removed(row) &&
            !found_before(row, probe, task))
            take(probe.query, static_cast<std::uint32_t>(distance), rows_.id(row));
    }

    // Whether an earlier position brings in the same row, and reports it.
    template <class Row>
    bool found_before(std::size_t row, const Probe<Row>& probe, Task& task) const {
        const auto values = task.values_of(probe.query);
        const auto thresholds = task.thresholds_of(probe.query);
        for (std::size_t earlier = 0; earlier < probe.position; ++earlier) {
            const std::uint32_t flips = slicing_.value(rows_.row(row), earlier) ^ values[earlier];
            if (__builtin_popcount(flips) <= thresholds[earlier])
                return true;
        }
        return false;
    }

    const Slicing& slicing_;
    const Segment& segment_;
    const Collection& rows_;
    std::uint32_t radius_;
    std::size_t together_;
    Kernels kernels_;
    std::optional<Variants> variants_[Slicing::kMostSliceBits + 1];  // for each width
};

}  // namespace

Matches slice_within(const Slicing& slicing, const std::vector<Segment>& segments,
                     const Signatures& queries, std::uint32_t radius, std::size_t limit,
                     std::size_t threads, const bits::Checkpoint& checkpoint,
                     std::vector<WithinWork>& work) {
    work.assign(queries.count, {});
    const std::size_t per_task = queries_per_task(queries.count, kQueriesPerTask, threads);
    const std::size_t tasks = (queries.count + per_task - 1) / per_task;
    std::atomic<std::size_t> total{0};
    std::vector<TaskMatches> found(tasks, TaskMatches(total, limit));
    for (const Segment& segment : segments) {
        std::vector<std::vector<std::size_t>> left(tasks);
        bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
            const std::size_t begin = task * per_task;
            const Signatures part{queries.row(begin), std::min(per_task, queries.count - begin),
                                  queries.bytes};
            SegmentWithin(slicing, segment, radius, queries.count)
                .search(part, work.data() + begin, left[task],
                        [&](std::uint32_t query, std::uint32_t distance, std::int64_t id) {
                            found[task].add(query, distance, id);
                        });
        });
        // Those for which a scan is the shorter way share the reading of it.
        std::vector<std::size_t> scanned;
        for (std::size_t task = 0; task < tasks; ++task)
            for (const std::size_t query : left[task]) {
                scanned.push_back(task * per_task + query);
                work[scanned.back()].verified +=
                    static_cast<std::int64_t>(segment.collection.count);
            }
        if (scanned.empty())
            continue;
        const QueryPart part(queries, std::move(scanned));
        const Matches matches = scan_within(segment.collection, part.queries, radius, limit - total,
                                            threads, checkpoint, segment.removed);
        for (std::size_t at = 0; at < part.places.size(); ++at)
            for (auto match = static_cast<std::size_t>(matches.offsets[at]);
                 match < static_cast<std::size_t>(matches.offsets[at + 1]); ++match)
                found[part.places[at] / per_task].add(
                    part.places[at] % per_task,
                    static_cast<std::uint32_t>(matches.distances[match]), matches.ids[match]);
    }
    bits::share_out(tasks, threads, checkpoint,
                    [&](std::size_t, std::size_t task) { found[task].sort(); });
    return put_together(queries.count, per_task, found, total);
}

}  // namespace lookalike::search
