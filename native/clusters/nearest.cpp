#include <atomic>
#include <vector>

#include "bits/top_k.hpp"
#include "clusters/groups.hpp"
#include "clusters/loops.hpp"
#include "clusters/visits.hpp"

namespace lookalike::search {

namespace {

using bits::Hit;
using bits::TopK;

// Groups are read in rounds, up to these ranks and then to eight times more each: what is found in
// one says which groups and rows the next may leave out. The nearest group alone gives a cut-off
// that keeps most of what follows out of the heaps.
constexpr std::size_t kFirstRound = 1, kSecondRound = 64, kGrowth = 8;

constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

struct Probe {
    std::uint32_t distance;
    std::uint32_t group;

    friend bool operator<(const Probe& a, const Probe& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.group < b.group;
    }
};

// What one query reads, nearest first, and the least distance that anything else can have.
struct Probes {
    std::vector<Probe> groups;
    std::int64_t others = kNothing;
};

// Chooses the groups of a query.
class Chooser {
  public:
    Chooser(const Groups& groups, std::size_t probe, std::size_t k)
        : groups_(groups),
          loops_(bits::chosen<ChoiceLoops>()),
          probe_(std::min(probe, groups.count())),
          k_(k),
          places_(groups.count()) {}

    // Takes the distances to all centers, and spoils them.
    Probes choose(std::int32_t* distances) {
        Probes chosen;
        take(distances, probe_, chosen.groups);
        std::int64_t rows = 0;
        for (const Probe& probe : chosen.groups)
            rows += groups_.size(probe.group);
        if (rows < static_cast<std::int64_t>(k_) && chosen.groups.size() < groups_.count()) {
            take(distances, groups_.count(), chosen.groups);
            std::size_t wanted = 0;
            for (rows = 0; wanted < chosen.groups.size() &&
                           (wanted < probe_ || rows < static_cast<std::int64_t>(k_));
                 ++wanted)
                rows += groups_.size(chosen.groups[wanted].group);
            chosen.groups.resize(wanted);
        }
        if (chosen.groups.size() < groups_.count()) {
            for (const Probe& probe : chosen.groups)
                distances[probe.group] = kChosen;
            chosen.others =
                loops_.least_bound(distances, groups_.nearest, groups_.farthest, groups_.count());
        }
        return chosen;
    }

  private:
    // Farther than any group that is left.
    static constexpr std::int32_t kChosen = std::numeric_limits<std::int32_t>::max();

    // The `wanted` nearest, in order. The distance of the last of them is found by halves, since
    // counting is quicker than sorting.
    void take(const std::int32_t* distances, std::size_t wanted, std::vector<Probe>& taken) {
        const std::size_t count = groups_.count();
        std::int32_t least = 0, most = static_cast<std::int32_t>(8 * groups_.centers.bytes);
        while (least < most) {
            const std::int32_t middle = least + (most - least) / 2;
            if (loops_.count_at_most(distances, count, middle) >= wanted)
                most = middle;
            else
                least = middle + 1;
        }
        const std::size_t found = loops_.places_at_most(distances, count, most, places_.data());
        taken.clear();
        taken.reserve(found);
        for (std::size_t at = 0; at < found; ++at)
            taken.push_back({static_cast<std::uint32_t>(distances[places_[at]]), places_[at]});
        std::sort(taken.begin(), taken.end());
        taken.resize(wanted);
    }

    const Groups& groups_;
    const ChoiceLoops& loops_;
    std::size_t probe_, k_;
    std::vector<std::uint32_t> places_;
};

// The nearest so far of a block of queries. The first worker's heaps have all that was found before
// this round; a distance beyond which one worker has k rows is too far for all of them.
class SharedHeaps {
  public:
    SharedHeaps(std::size_t queries, std::size_t k, std::size_t threads)
        : k_(k), heaps_(threads), cutoffs_(queries) {
        heaps_[0].assign(queries, TopK(k));
        for (auto& cutoff : cutoffs_)
            cutoff.store(UINT32_MAX, std::memory_order_relaxed);
    }

    std::uint32_t cutoff(std::size_t query) const {
        return cutoffs_[query].load(std::memory_order_relaxed);
    }

    void push(std::size_t worker, std::size_t query, const bits::Neighbor& found) {
        std::vector<TopK>& own = heaps_[worker];
        if (own.empty())
            own.assign(cutoffs_.size(), TopK(k_));
        own[query].push(found);
        const auto reached = static_cast<std::uint32_t>(own[query].cutoff(false));
        std::uint32_t least = cutoff(query);
        while (reached < least &&
               !cutoffs_[query].compare_exchange_weak(least, reached, std::memory_order_relaxed)) {
        }
    }

    void end_round() {
        for (std::size_t worker = 1; worker < heaps_.size(); ++worker) {
            for (std::size_t query = 0; query < heaps_[worker].size(); ++query)
                heaps_[0][query].push_all(heaps_[worker][query]);
            heaps_[worker].clear();
        }
        for (std::size_t query = 0; query < cutoffs_.size(); ++query)
            cutoffs_[query].store(static_cast<std::uint32_t>(heaps_[0][query].cutoff(false)),
                                  std::memory_order_relaxed);
    }

    bool is_full(std::size_t query) const { return heaps_[0][query].size() == k_; }
    TopK& heap(std::size_t query) { return heaps_[0][query]; }

  private:
    std::size_t k_;
    std::vector<std::vector<TopK>> heaps_;
    std::vector<std::atomic<std::uint32_t>> cutoffs_;
};

}  // namespace

void nearest_in_groups(const Groups& groups, const Signatures& queries, std::size_t k,
                       std::size_t probe, std::size_t threads, const bits::Checkpoint& checkpoint,
                       std::int64_t* ids, std::int32_t* distances, std::uint8_t* proven,
                       const GroupWork& work) {
    const bits::Kernels kernels = bits::kernels_for(groups.rows.bytes);
    const std::size_t bytes = groups.rows.bytes, tile = tile_rows(bytes);
    const std::size_t block =
        std::min(queries_together(std::min(probe, groups.count())),
                 std::max<std::size_t>(1, kBlockHeapBytes / (k * sizeof(bits::Neighbor))));
    Visits visits(groups.count());
    for (std::size_t begin = 0; begin < queries.count; begin += block) {
        const Signatures asked{queries.row(begin), std::min(block, queries.count - begin), bytes};
        std::vector<Probes> probes(asked.count);
        std::vector<Chooser> choosers(threads, Chooser(groups, probe, k));
        each_from_centers(groups, asked, threads, checkpoint,
                          [&](std::size_t worker, std::size_t query, std::int32_t* far) {
                              probes[query] = choosers[worker].choose(far);
                          });
        std::size_t most = 0;
        for (const Probes& each : probes)
            most = std::max(most, each.groups.size());

        SharedHeaps heaps(asked.count, k, threads);
        std::vector<std::vector<Hit>> hits(threads);
        std::size_t from = 0;
        for (std::size_t to = kFirstRound; from < most;
             from = to, to = to == kFirstRound ? kSecondRound : kGrowth * to) {
            visits.clear();
            for (std::size_t query = 0; query < asked.count; ++query) {
                const std::vector<Probe>& own = probes[query].groups;
                const std::int64_t cutoff = heaps.cutoff(query);
                for (std::size_t rank = from; rank < std::min(to, own.size()); ++rank) {
                    const Probe& near = own[rank];
                    if (groups.least(near.group, near.distance) > cutoff)
                        continue;
                    const Groups::Range rows = groups.within(near.group, near.distance, cutoff);
                    ++work.groups[begin + query];
                    work.compared[begin + query] += rows.end - rows.begin;
                    visits.add({near.group, static_cast<std::uint32_t>(query), rows});
                }
            }
            const std::size_t workers =
                bits::worthwhile_threads(threads, visits.rows() * static_cast<double>(bytes));
            visits.run(
                groups, workers, checkpoint,
                [&](std::size_t worker, std::size_t query, std::size_t row, std::size_t count) {
                    hits[worker].resize(tile);
                    Hit* const found = hits[worker].data();
                    std::size_t near = kernels.filter(asked.row(query), groups.rows.row(row), count,
                                                      bytes, heaps.cutoff(query), found);
                    if (groups.removed != nullptr)
                        near = leave_out(found, near, groups.removed + row);
                    for (const Hit* hit = found; hit < found + near; ++hit)
                        if (hit->distance <= heaps.cutoff(query))
                            heaps.push(worker, query,
                                       {hit->distance, groups.rows.id(row + hit->row)});
                });
            heaps.end_round();
        }
        for (std::size_t query = 0; query < asked.count; ++query) {
            // What is as far as the last may have a lower id, and belongs there then.
            const bool rest = probes[query].others == kNothing;
            proven[begin + query] =
                rest || (heaps.is_full(query) && heaps.cutoff(query) < probes[query].others);
            std::size_t at = (begin + query) * k;
            for (const bits::Neighbor& one : heaps.heap(query).take_sorted()) {
                ids[at] = one.id;
                distances[at++] = static_cast<std::int32_t>(one.distance);
            }
        }
    }
}

}  // namespace lookalike::search
