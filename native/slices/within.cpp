#include <algorithm>
#include <span>

#include "bits/kernels.hpp"
#include "bits/prefetch.hpp"
#include "scan/task_matches.hpp"
#include "slices/score_loops.hpp"
#include "slices/search.hpp"
#include "slices/thresholds.hpp"

namespace lookalike::search {

using bits::Hit;
using bits::Kernels;

namespace {

constexpr std::size_t kQueriesPerTask = 64;
constexpr std::size_t kAhead = 48;
constexpr std::size_t kRowsAhead = 8;        // of a list, which are verified one by one
constexpr std::size_t kSketchesAhead = 256;  // of a list; behind them the processor fetches ahead

// A list to be read for a query: all rows there are candidates.
struct Probe {
    std::uint64_t key;  // position and value: probes of the same list come together when sorted
    std::uint32_t query;
    std::uint32_t position;
    std::uint32_t value;
};

// A query cut into slices, one value a position.
using Values = std::span<const std::uint32_t>;

// How many bits may differ in each slice; -1: the slice is not looked at.
using Thresholds = std::span<std::int8_t>;

// Raises thresholds, radius + 1 times in all, by the lengths of the lists that are read first.
// Returns the cost.
template <class Row>
double share_out_thresholds(const SliceLists<Row>& lists, Values values, std::uint32_t radius,
                            const ListCosts& costs, Thresholds thresholds, std::span<double> next) {
    std::fill(thresholds.begin(), thresholds.end(), std::int8_t{-1});
    for (std::size_t position = 0; position < values.size(); ++position)
        next[position] = costs.one(lists.list(position, values[position]).size);
    return take_cheapest(std::size_t{radius} + 1, next,
                         [&](std::size_t position, std::size_t) -> std::size_t {
                             const auto ones = static_cast<std::size_t>(++thresholds[position]) + 1;
                             next[position] = costs.step(lists.slicing.width(position), ones);
                             return 1;
                         });
}

// Queries that are answered together, with what was worked out for each.
struct Task {
    std::size_t positions;
    const Signatures& queries;
    std::vector<std::uint32_t> values;
    std::vector<std::int8_t> thresholds;

    Values values_of(std::size_t query) const {
        return {values.data() + query * positions, positions};
    }
    Thresholds thresholds_of(std::size_t query) {
        return {thresholds.data() + query * positions, positions};
    }
};

// Answers the queries of one task in one segment.
class SegmentWithin {
  public:
    SegmentWithin(const Slicing& slicing, const Segment& segment, std::uint32_t radius)
        : slicing_(slicing),
          segment_(segment),
          rows_(segment.collection),
          radius_(radius),
          kernels_(bits::kernels_for(segment.collection.bytes)) {}

    template <class Take>
    void search(const Signatures& queries, WithinWork* work, Take take) {
        std::visit(
            [&](const auto& lists) {
                if constexpr (std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
                    for (std::size_t query = 0; query < queries.count; ++query)
                        scan(queries, query, work[query], take);
                else
                    probe(lists, queries, work, take);
            },
            segment_.lists);
    }

  private:
    template <class Row, class Take>
    void probe(const SliceLists<Row>& lists, const Signatures& queries, WithinWork* work,
               Take take) {
        const ListCosts costs(rows_.count, rows_.bytes, radius_, lists.sketches != nullptr);
        const std::size_t positions = slicing_.count();
        Task task{positions, queries, std::vector<std::uint32_t>(queries.count * positions),
                  std::vector<std::int8_t>(queries.count * positions)};
        std::vector<double> next(positions);
        std::vector<Probe> probes;
        probes.reserve(queries.count * (radius_ + 1));
        for (std::size_t query = 0; query < queries.count; ++query)
            for (std::size_t position = 0; position < positions; ++position) {
                const std::uint32_t value = slicing_.value(queries.row(query), position);
                task.values[query * positions + position] = value;
                __builtin_prefetch(lists.offset_of(position, value));
            }
        for (std::size_t query = 0; query < queries.count; ++query) {
            const double cost = share_out_thresholds(lists, task.values_of(query), radius_, costs,
                                                     task.thresholds_of(query), next);
            if (cost > costs.scan())
                scan(queries, query, work[query], take);
            else
                add_probes(task.values_of(query), task.thresholds_of(query), query, probes);
        }
        std::sort(probes.begin(), probes.end(), [](const Probe& a, const Probe& b) {
            return a.key != b.key ? a.key < b.key : a.query < b.query;
        });
        if (lists.sketches != nullptr)
            read_sketches(lists, task, probes, work, take);
        else
            read(lists, task, probes, work, take);
    }

    void add_probes(Values values, Thresholds thresholds, std::size_t query,
                    std::vector<Probe>& probes) {
        for (std::size_t position = 0; position < values.size(); ++position) {
            if (thresholds[position] < 0)
                continue;
            for (const std::uint32_t flips : variants(position, thresholds[position])) {
                const std::uint32_t value = values[position] ^ flips;
                probes.push_back({slicing_.lists_before(position) + value,
                                  static_cast<std::uint32_t>(query),
                                  static_cast<std::uint32_t>(position), value});
            }
        }
    }

    const std::vector<std::uint32_t>& variants(std::size_t position, std::int8_t most) {
        const std::size_t width = slicing_.width(position), ones = static_cast<std::size_t>(most);
        auto& known = variants_[width == slicing_.widest() ? 0 : 1];
        if (known.size() <= ones)
            known.resize(ones + 1);
        if (known[ones].empty())
            known[ones] = Variants(width, ones).values;
        return known[ones];
    }

    // Calls visit(probe, list) for each probe, some lists behind ask(list), which asks for what is
    // in it, and half as many behind ask_rows(list), which reads that to ask for what it points to.
    // All are inlined: GCC leaves out calls of functions that only prefetch.
    template <class Row, class Ask, class AskRows, class Visit>
    static void each_list(const SliceLists<Row>& lists, const std::vector<Probe>& probes, Ask ask,
                          AskRows ask_rows, Visit visit) {
        typename SliceLists<Row>::List pending[2 * kAhead] = {};
        const auto look_up = [&](std::size_t at) __attribute__((always_inline)) {
            if (at + kAhead < probes.size())
                __builtin_prefetch(
                    lists.offset_of(probes[at + kAhead].position, probes[at + kAhead].value));
            if (at >= probes.size())
                return;
            const auto list = lists.list(probes[at].position, probes[at].value);
            if (list.size != 0)
                ask(list);
            pending[at % (2 * kAhead)] = list;
        };
        for (std::size_t at = 0; at < kAhead; ++at)
            look_up(at);
        for (std::size_t at = 0; at < probes.size(); ++at) {
            look_up(at + kAhead);
            if (at + kAhead / 2 < probes.size())
                ask_rows(pending[(at + kAhead / 2) % (2 * kAhead)]);
            visit(probes[at], pending[at % (2 * kAhead)]);
        }
    }

    // Reads each list once, for all queries that probe it.
    template <class Row, class Take>
    void read(const SliceLists<Row>& lists, Task& task, const std::vector<Probe>& probes,
              WithinWork* work, Take take) {
        using List = typename SliceLists<Row>::List;
        each_list(
            lists, probes,
            [](const List& list) __attribute__((always_inline)) { __builtin_prefetch(list.begin); },
            [&](const List& list) __attribute__((always_inline)) {
                for (std::size_t index = 0; index < std::min(list.size, kRowsAhead); ++index)
                    if (list.begin[index] < rows_.count)
                        __builtin_prefetch(rows_.row(list.begin[index]));
            },
            [&](const Probe& probe, const List& list) __attribute__((always_inline)) {
                count_work(work[probe.query], list.size, list.size);
                verify(list, task, probe, take);
            });
    }

    static void count_work(WithinWork& work, std::size_t postings, std::size_t verified) {
        ++work.lists;
        work.postings += static_cast<std::int64_t>(postings);
        work.verified += static_cast<std::int64_t>(verified);
    }

    // The same by sketches: only rows that are still near enough with those bits are looked at.
    // Sketches, postings and signatures are three passes, each asking for what the next one needs.
    template <class Row, class Take>
    void read_sketches(const SliceLists<Row>& lists, Task& task, const std::vector<Probe>& probes,
                       WithinWork* work, Take take) {
        using List = typename SliceLists<Row>::List;
        struct Near {
            const Row* posting;
            const Probe* probe;
            std::size_t row;
        };
        std::vector<Near> near;
        std::vector<std::uint32_t> places;
        const auto near_sketches = score_loops().near_sketches;
        each_list(
            lists, probes,
            [&](const List& list) __attribute__((always_inline)) {
                bits::prefetch_all(
                    reinterpret_cast<const std::uint8_t*>(lists.sketches_of(list)),
                    sizeof(std::uint16_t) * std::min<std::size_t>(list.size, kSketchesAhead));
            },
            [](const List&) {},
            [&](const Probe& probe, const List& list) __attribute__((always_inline)) {
                if (places.size() < list.size)
                    places.resize(list.size);
                const std::uint8_t* const query = task.queries.row(probe.query);
                const auto differing = static_cast<std::uint32_t>(
                    __builtin_popcount(probe.value ^ task.values_of(probe.query)[probe.position]));
                const std::size_t found = near_sketches(
                    lists.sketches_of(list), list.size, slicing_.sketch(query, probe.position),
                    static_cast<std::uint16_t>(radius_ - differing), places.data());
                for (std::size_t index = 0; index < found; ++index) {
                    near.push_back({list.begin + places[index], &probe, 0});
                    __builtin_prefetch(near.back().posting);
                }
                count_work(work[probe.query], list.size, found);
            });
        for (Near& one : near) {
            one.row = *one.posting;
            if (one.row >= rows_.count)
                throw CorruptLists();
            __builtin_prefetch(rows_.row(one.row));
        }
        for (const Near& one : near)
            verify_row(one.row, task, *one.probe, take);
    }

    template <class List, class Take>
    void verify(const List& list, Task& task, const Probe& probe, Take take) {
        for (std::size_t index = 0; index < list.size; ++index) {
            const std::size_t row = list.begin[index];
            if (row >= rows_.count)
                throw CorruptLists();
            if (index + kRowsAhead < list.size && list.begin[index + kRowsAhead] < rows_.count)
                __builtin_prefetch(rows_.row(list.begin[index + kRowsAhead]));
            verify_row(row, task, probe, take);
        }
    }

    template <class Take>
    void verify_row(std::size_t row, Task& task, const Probe& probe, Take take) {
        std::int32_t distance;
        kernels_.paired(task.queries.row(probe.query), rows_.row(row), 1, rows_.bytes, &distance);
        if (static_cast<std::uint32_t>(distance) <= radius_ && !segment_.is_removed(row) &&
            !found_before(row, probe.position, task.thresholds_of(probe.query),
                          task.values_of(probe.query)))
            take(probe.query, static_cast<std::uint32_t>(distance), rows_.id(row));
    }

    // Whether an earlier position brings in the same row, and reports it.
    bool found_before(std::size_t row, std::size_t position, Thresholds thresholds,
                      Values values) const {
        for (std::size_t earlier = 0; earlier < position; ++earlier) {
            const std::uint32_t flips = slicing_.value(rows_.row(row), earlier) ^ values[earlier];
            if (__builtin_popcount(flips) <= thresholds[earlier])
                return true;
        }
        return false;
    }

    template <class Take>
    void scan(const Signatures& queries, std::size_t query, WithinWork& work, Take take) {
        hits_.resize(1024);
        for (std::size_t begin = 0; begin < rows_.count; begin += hits_.size()) {
            const std::size_t count = std::min(hits_.size(), rows_.count - begin);
            const std::size_t found = kernels_.filter(queries.row(query), rows_.row(begin), count,
                                                      rows_.bytes, radius_, hits_.data());
            for (std::size_t hit = 0; hit < found; ++hit)
                if (!segment_.is_removed(begin + hits_[hit].row))
                    take(static_cast<std::uint32_t>(query), hits_[hit].distance,
                         rows_.id(begin + hits_[hit].row));
        }
        work.verified += static_cast<std::int64_t>(rows_.count);
    }

    const Slicing& slicing_;
    const Segment& segment_;
    const Collection& rows_;
    std::uint32_t radius_;
    Kernels kernels_;
    std::vector<Hit> hits_;
    std::vector<std::vector<std::uint32_t>> variants_[2];  // by number of ones, for both widths
};

}  // namespace

Matches slice_within(const Slicing& slicing, const std::vector<Segment>& segments,
                     const Signatures& queries, std::uint32_t radius, std::size_t limit,
                     std::size_t threads, const bits::Checkpoint& checkpoint,
                     std::vector<WithinWork>& work) {
    work.assign(queries.count, {});
    return gather_matches(
        queries.count, kQueriesPerTask, limit, threads, checkpoint,
        [&](std::size_t, std::size_t begin, std::size_t end, TaskMatches& matches) {
            const Signatures part{queries.row(begin), end - begin, queries.bytes};
            for (const Segment& segment : segments)
                SegmentWithin(slicing, segment, radius)
                    .search(part, work.data() + begin,
                            [&](std::uint32_t query, std::uint32_t distance, std::int64_t id) {
                                matches.add(query, distance, id);
                            });
        });
}

}  // namespace lookalike::search
