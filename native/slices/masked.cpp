#include "slices/masked.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <numeric>

#include "bits/kernels.hpp"
#include "bits/top_k.hpp"
#include "slices/query_part.hpp"
#include "slices/scoring/thresholds.hpp"

namespace lookalike::search {

using bits::Neighbor;

namespace {

constexpr std::size_t kRowsAhead = 8;    // of a list, which are verified one by one
constexpr std::size_t kTileRows = 1024;  // of a segment without lists
constexpr std::uint32_t kMaskedAt = 16;  // signatures with slices have fewer than 2^16 bits

// Both distances as one number that is ordered as they are.
std::uint32_t both(std::uint32_t masked, std::uint32_t unmasked) {
    return masked << kMaskedAt | unmasked;
}
std::int32_t masked_of(std::uint32_t both) {
    return static_cast<std::int32_t>(both >> kMaskedAt);
}
std::int32_t unmasked_of(std::uint32_t both) {
    return static_cast<std::int32_t>(both & ((1u << kMaskedAt) - 1));
}

// A slice of a query, of which some bits count.
struct CountedSlice {
    std::size_t position, width, counted;
    std::uint32_t value, mask;
    int threshold = -1;  // the most counted bits that may differ; -1: it is not looked at

    // The number of values that differ from it in exactly `ones` counted bits.
    double variants(std::size_t ones) const {
        return choose(counted, ones) * static_cast<double>(std::uint64_t{1} << (width - counted));
    }

    // Calls take(value) for each of them.
    template <class Take>
    void each_variant(std::size_t ones, Take take) const {
        const std::uint32_t free = ~mask & low_bits(width);
        const Variants flips(counted, ones);
        for (std::size_t at = ones == 0 ? 0 : flips.ends[ones - 1]; at < flips.ends[ones]; ++at) {
            const std::uint32_t flipped = value ^ spread(flips.values[at]);
            std::uint32_t other = 0;
            do {  // through all subsets of the bits that do not count
                take(flipped ^ other);
                other = (other - free) & free;
            } while (other != 0);
        }
    }

  private:
    // The lowest bits, moved to where bits count.
    std::uint32_t spread(std::uint32_t bits) const {
        std::uint32_t result = 0;
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1, bits >>= 1)
            if ((bits & 1) != 0)
                result |= rest & -rest;
        return result;
    }
};

// One query, searched for within a radius, segment by segment.
class MaskedSearch {
  public:
    MaskedSearch(const Slicing& slicing, const MaskedQueries& queries, std::size_t query,
                 std::size_t together)
        : slicing_(slicing),
          query_(queries.row(query)),
          mask_(queries.mask(query)),
          bytes_(queries.bytes),
          together_(together),
          kernels_(bits::kernels_for(queries.bytes)) {
        for (std::size_t position = 0; position < slicing.count(); ++position) {
            const std::uint32_t mask = slicing.value(mask_, position);
            if (mask != 0)
                slices_.push_back({position, slicing.width(position),
                                   static_cast<std::size_t>(std::popcount(mask)),
                                   slicing.value(query_, position), mask});
        }
    }

    // Calls take(both distances, id) for all that is within the radius, if that costs no more than
    // `most`, from which it is taken off; false, and nothing is found, if it would.
    template <class Take>
    bool search(const Segment& segment, std::uint32_t radius, double& most, WithinWork& work,
                Take take) {
        return std::visit(
            [&](const auto& lists) {
                if constexpr (std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
                    return compare_all(segment, radius, most, work, take);
                else
                    return read(lists, segment, radius, most, work, take);
            },
            segment.lists);
    }

    double scan_cost(const Segment& segment, std::uint32_t radius) const {
        return ListCosts(slicing_, segment.collection.count, radius, false, together_).scan();
    }

  private:
    template <class Take>
    bool compare_all(const Segment& segment, std::uint32_t radius, double& most, WithinWork& work,
                     Take take) const {
        const Collection& rows = segment.collection;
        const double cost = scan_cost(segment, radius);
        if (cost > most)
            return false;
        most -= cost;
        bits::Hit hits[kTileRows];
        for (std::size_t begin = 0; begin < rows.count; begin += kTileRows) {
            const std::size_t tile = std::min(kTileRows, rows.count - begin);
            const std::size_t found =
                kernels_.masked_filter(query_, mask_, rows.row(begin), tile, bytes_, radius, hits);
            for (std::size_t at = 0; at < found; ++at)
                take_row(segment, begin + hits[at].row, hits[at].distance, take);
        }
        work.verified += static_cast<std::int64_t>(rows.count);
        return true;
    }

    // Raises thresholds, radius + 1 times in all, each time where that costs least, and reads the
    // lists of the values within them: whatever is near enough has a slice within its threshold.
    template <class Row, class Take>
    bool read(const SliceLists<Row>& lists, const Segment& segment, std::uint32_t radius,
              double& most, WithinWork& work, Take take) {
        const ListCosts costs(slicing_, segment.collection.count, radius, false, together_);
        const auto step = [&](const CountedSlice& slice, std::size_t ones, double length) {
            if (ones > slice.counted)
                return std::numeric_limits<double>::infinity();
            const double number = slice.variants(ones);
            return costs.lists(number, number * std::max(costs.average(slice.width), length));
        };
        std::vector<double> next;
        for (CountedSlice& slice : slices_) {
            slice.threshold = -1;
            next.push_back(step(slice, 0, 0));
        }
        std::vector<std::pair<std::size_t, typename SliceLists<Row>::List>> probes;
        WithinWork taken;
        double total = 0;
        for (std::size_t raised = 0; raised <= radius; ++raised) {
            const auto cheapest = std::min_element(next.begin(), next.end());
            if (cheapest == next.end() || total + *cheapest > most)
                return false;
            const auto at = static_cast<std::size_t>(cheapest - next.begin());
            CountedSlice& slice = slices_[at];
            const auto ones = static_cast<std::size_t>(++slice.threshold);
            std::size_t entries = 0;
            slice.each_variant(ones, [&](std::uint32_t value) {
                const auto list = lists.list(slice.position, value);
                ++taken.lists;
                entries += list.size;
                if (list.size != 0)
                    probes.push_back({at, list});
            });
            const double number = slice.variants(ones), rows = static_cast<double>(entries);
            total += costs.lists(number, rows);
            taken.postings += static_cast<std::int64_t>(entries);
            *cheapest = step(slice, ones + 1, rows / number);
        }
        if (total > most)
            return false;
        most -= total;
        for (const auto& [slice, list] : probes)
            verify(slice, list.begin, list.size, segment, radius, take);
        work.lists += taken.lists;
        work.postings += taken.postings;
        work.verified += taken.postings;
        return true;
    }

    template <class Row, class Take>
    void verify(std::size_t slice, const Row* list, std::size_t size, const Segment& segment,
                std::uint32_t radius, Take take) const {
        const Collection& rows = segment.collection;
        for (std::size_t index = 0; index < size; ++index) {
            const std::size_t row = list[index];
            if (row >= rows.count)
                throw CorruptLists();
            if (index + kRowsAhead < size && list[index + kRowsAhead] < rows.count)
                __builtin_prefetch(rows.row(list[index + kRowsAhead]));
            bits::Hit hit;
            if (kernels_.masked_filter(query_, mask_, rows.row(row), 1, bytes_, radius, &hit) !=
                    0 &&
                !found_before(rows.row(row), slice))
                take_row(segment, row, hit.distance, take);
        }
    }

    // Whether an earlier slice brings in the same row.
    bool found_before(const std::uint8_t* row, std::size_t slice) const {
        for (std::size_t earlier = 0; earlier < slice; ++earlier) {
            const CountedSlice& one = slices_[earlier];
            const std::uint32_t flips = (slicing_.value(row, one.position) ^ one.value) & one.mask;
            if (std::popcount(flips) <= one.threshold)
                return true;
        }
        return false;
    }

    template <class Take>
    void take_row(const Segment& segment, std::size_t row, std::uint32_t distance,
                  Take take) const {
        if (segment.is_removed(row))
            return;
        std::int32_t unmasked;
        kernels_.paired(query_, segment.collection.row(row), 1, bytes_, &unmasked);
        take(both(distance, static_cast<std::uint32_t>(unmasked)), segment.collection.id(row));
    }

    const Slicing& slicing_;
    const std::uint8_t *query_, *mask_;
    std::size_t bytes_, together_;
    bits::Kernels kernels_;
    std::vector<CountedSlice> slices_;
};

// Some of the queries of a call, with their masks.
struct MaskedPart {
    QueryPart signatures, masks;

    MaskedPart(const MaskedQueries& all, const std::vector<std::size_t>& chosen)
        : signatures(all, chosen), masks({all.masks, all.count, all.bytes}, chosen) {}

    MaskedQueries queries() const { return {signatures.queries, masks.queries.data}; }
};

std::vector<std::size_t> marked(const std::vector<std::uint8_t>& marks) {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < marks.size(); ++place)
        if (marks[place] != 0)
            places.push_back(place);
    return places;
}

}  // namespace

Matches slice_within_masked(const Slicing& slicing, const std::vector<Segment>& segments,
                            const MaskedQueries& queries, std::uint32_t radius, std::size_t limit,
                            std::size_t threads, const bits::Checkpoint& checkpoint,
                            std::vector<WithinWork>& work) {
    work.assign(queries.count, {});
    std::vector<std::vector<Neighbor>> found(queries.count);
    std::atomic<std::size_t> total{0};
    const auto add = [&](std::size_t query, std::uint32_t distances, std::int64_t id) {
        if (total.fetch_add(1, std::memory_order_relaxed) >= limit)
            throw TooManyResults();
        found[query].push_back({distances, id});
    };
    for (const Segment& segment : segments) {
        std::vector<std::uint8_t> left(queries.count);
        bits::share_out(queries.count, threads, checkpoint, [&](std::size_t, std::size_t query) {
            MaskedSearch search(slicing, queries, query, queries.count);
            double most = segment.has_lists() ? search.scan_cost(segment, radius) : 0;
            left[query] = !search.search(
                segment, radius, most, work[query],
                [&](std::uint32_t distances, std::int64_t id) { add(query, distances, id); });
        });
        // Those for which a scan is the shorter way share the reading of it.
        const MaskedPart part(queries, marked(left));
        const std::vector<std::size_t>& places = part.signatures.places;
        if (places.empty())
            continue;
        const Matches matches =
            scan_within_masked(segment.collection, part.queries(), radius, limit - total, threads,
                               checkpoint, segment.removed);
        for (std::size_t at = 0; at < places.size(); ++at) {
            for (auto match = static_cast<std::size_t>(matches.offsets[at]);
                 match < static_cast<std::size_t>(matches.offsets[at + 1]); ++match)
                add(places[at],
                    both(static_cast<std::uint32_t>(matches.distances[match]),
                         static_cast<std::uint32_t>(matches.unmasked[match])),
                    matches.ids[match]);
            work[places[at]].verified += static_cast<std::int64_t>(segment.collection.count);
        }
    }
    Matches matches;
    matches.offsets.push_back(0);
    for (std::vector<Neighbor>& one : found) {
        std::sort(one.begin(), one.end());
        for (const Neighbor& neighbor : one) {
            matches.ids.push_back(neighbor.id);
            matches.distances.push_back(masked_of(neighbor.distance));
            matches.unmasked.push_back(unmasked_of(neighbor.distance));
        }
        matches.offsets.push_back(static_cast<std::int64_t>(matches.ids.size()));
        one = {};
    }
    return matches;
}

void slice_nearest_masked(const Slicing& slicing, const std::vector<Segment>& segments,
                          const MaskedQueries& queries, std::size_t k, std::size_t threads,
                          const bits::Checkpoint& checkpoint, const MaskedOutput& output,
                          std::vector<WithinWork>& work) {
    work.assign(queries.count, {});
    std::size_t alive = 0;
    for (const Segment& segment : segments)
        alive += segment.alive;
    const auto write = [&](std::size_t query, std::vector<Neighbor>& nearest) {
        std::sort(nearest.begin(), nearest.end());
        for (std::size_t at = 0; at < std::min(k, nearest.size()); ++at) {
            output.ids[query * k + at] = nearest[at].id;
            output.distances[query * k + at] = masked_of(nearest[at].distance);
            output.unmasked[query * k + at] = unmasked_of(nearest[at].distance);
        }
    };
    // By lists within a growing radius, until there are k, or as much was spent as a scan takes.
    std::vector<std::uint8_t> left(queries.count);
    bits::share_out(queries.count, threads, checkpoint, [&](std::size_t, std::size_t query) {
        MaskedSearch search(slicing, queries, query, queries.count);
        std::vector<Neighbor> nearest;
        double most = 0;
        for (const Segment& segment : segments)
            most += segment.has_lists() ? search.scan_cost(segment, 0) : 0;
        const auto search_all = [&](std::uint32_t radius) {
            nearest.clear();
            return std::all_of(segments.begin(), segments.end(), [&](const Segment& segment) {
                return search.search(segment, radius, most, work[query],
                                     [&](std::uint32_t distances, std::int64_t id) {
                                         nearest.push_back({distances, id});
                                     });
            });
        };
        for (std::uint32_t radius = 0; radius <= slicing.bits(); radius = 2 * radius + 1) {
            if (!search_all(radius))
                break;
            if (nearest.size() >= std::min(k, alive)) {
                write(query, nearest);
                return;
            }
        }
        left[query] = 1;
    });
    const MaskedPart part(queries, marked(left));
    const std::vector<std::size_t>& places = part.signatures.places;
    if (places.empty())
        return;
    std::vector<std::vector<Neighbor>> nearest(places.size());
    for (const Segment& segment : segments) {
        const std::size_t most = std::min(k, segment.alive);
        std::vector<std::int64_t> ids(places.size() * most);
        std::vector<std::int32_t> distances(ids.size()), unmasked(ids.size());
        scan_nearest_masked(segment.collection, part.queries(), most, threads, checkpoint,
                            ids.data(), distances.data(), unmasked.data(), segment.removed);
        for (std::size_t at = 0; at < ids.size(); ++at)
            nearest[at / most].push_back({both(static_cast<std::uint32_t>(distances[at]),
                                               static_cast<std::uint32_t>(unmasked[at])),
                                          ids[at]});
        for (const std::size_t place : places)
            work[place].verified += static_cast<std::int64_t>(segment.collection.count);
    }
    for (std::size_t at = 0; at < places.size(); ++at)
        write(places[at], nearest[at]);
}

}  // namespace lookalike::search
