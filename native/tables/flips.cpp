#include "tables/flips.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "scan/task_matches.hpp"
#include "tables/bucket_scan.hpp"
#include "tables/flip_ranking.hpp"
#include "tables/probe_stream.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kQueriesPerTask = 512;
constexpr std::size_t kQueriesPerBlock = 32;
constexpr std::size_t kLikeliest = 3;
constexpr std::size_t kPairsPerTask = 16;

// Calls take(flips) for every set of up to `most` out of `bits` bits, in no particular order.
template <class Take>
void each_set(std::size_t bits, std::size_t most, std::uint64_t flips, std::size_t from,
              const Take& take) {
    for (std::size_t bit = from; most != 0 && bit < bits; ++bit) {
        take(flips | std::uint64_t{1} << bit);
        each_set(bits, most - 1, flips | std::uint64_t{1} << bit, bit + 1, take);
    }
}

// Everything that a worker needs to answer the queries of one task.
class FlipTask {
  public:
    FlipTask(const SortedTable& table, const std::int64_t* ids, const Signatures& queries,
             const FlipWeights& weights, const FlipCosts& costs, const FlipSettings& settings,
             TaskMatches& matches)
        : table_(table),
          ids_(ids),
          queries_(queries),
          settings_(settings),
          bits_(table.header.bits()),
          most_(std::min<std::size_t>(settings.radius, bits_)),
          all_(count_sets(bits_, most_, settings.flips + 1)),
          wanted_(std::min(settings.flips, all_)),
          few_(wanted_ <= Candidates::kMostSets),
          sets_(weights.sets),
          ranking_(weights, costs, bits_),
          matches_(matches),
          scan_(queries.bytes, settings.radius) {
        if (few_ && sets_ == nullptr)
            chooser_.emplace(weights, costs, bits_, most_, wanted_);
    }

    void run(std::size_t begin, std::size_t end) {
        begin_ = begin;
        ranking_.check(begin, end);
        if (settings_.first)
            done_.assign(end - begin, 0);
        if (few_ && queries_.bytes == 8)
            run_by_blocks(begin, end);
        else
            run_one_by_one(begin, end);
    }

  private:
    // Queries of 64 bits and few flips: rank, choose and ask for offsets, some queries together;
    // then ask for buckets, then compare.
    void run_by_blocks(std::size_t begin, std::size_t end) {
        const FlipLoops& loops = flip_loops();
        const std::size_t probes_per_query = wanted_ + 1;
        const std::size_t in_block = kQueriesPerBlock;
        probes_.resize(in_block * probes_per_query);
        spare_.resize(probes_.size());
        hits_ = std::make_unique_for_overwrite<FlipHit[]>(probes_.size() * FlipLoops::kMostHits);
        std::uint64_t queries[kQueriesPerBlock];
        const Sorted64 sorted{reinterpret_cast<const std::uint64_t*>(table_.signatures.data),
                              table_.offsets, table_.signatures.count};
        flips_.resize(in_block * wanted_);
        // With `first`, the query's own header, then the likeliest sets, then the others, of those
        // queries only that have no match yet. Where hardly any query of the block before had one,
        // all at once: the same matches, as they come in the order of probes.
        const std::size_t some = std::min<std::size_t>(1 + kLikeliest, probes_per_query);
        const std::vector<std::size_t> at_once{0, probes_per_query};
        const std::vector<std::size_t> one_by_one{0, 1, some, probes_per_query};
        std::size_t found_before = settings_.first ? in_block : 0;
        for (std::size_t block = begin; block < end; block += in_block) {
            const std::size_t count = std::min(in_block, end - block);
            std::memcpy(queries, queries_.row(block), count * 8);
            const std::vector<std::size_t>& steps =
                found_before < in_block / 8 ? at_once : one_by_one;
            bool chosen = sets_ != nullptr;
            for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
                if (!chosen && steps[step + 1] > 1) {
                    chooser_->choose(block, count, [&](std::size_t query) {
                        return flips_.data() + query * wanted_;
                    });
                    chosen = true;
                }
                std::size_t probes = 0;
                for (std::size_t query = 0; query < count; ++query)
                    if (!settings_.first || !done_[block - begin_ + query])
                        probes = add_probes(block, query, steps[step], steps[step + 1], probes);
                report(loops, sorted, queries, block, probes);
            }
            if (settings_.first)
                found_before = static_cast<std::size_t>(
                    std::count(done_.data() + (block - begin_),
                               done_.data() + (block - begin_) + count, std::uint8_t{1}));
        }
    }

    // Adds a query's probes from `from` to `to`, the first of which is its own header.
    std::size_t add_probes(std::size_t block, std::size_t query, std::size_t from, std::size_t to,
                           std::size_t probes) {
        const auto header =
            static_cast<std::uint32_t>(table_.header.value(queries_.row(block + query)));
        const std::uint32_t* const flips = sets_ != nullptr
                                               ? sets_ + (block + query) * settings_.flips
                                               : flips_.data() + query * wanted_;
        for (std::size_t set = from; set < to; ++set) {
            const std::uint32_t wanted = set == 0 ? header : header ^ flips[set - 1];
            __builtin_prefetch(table_.offsets + wanted);
            __builtin_prefetch(table_.offsets + wanted + 1);
            probes_[probes++] = {wanted, static_cast<std::uint32_t>(query)};
        }
        return probes;
    }

    void report(const FlipLoops& loops, const Sorted64& sorted, const std::uint64_t* queries,
                std::size_t block, std::size_t probes) {
        const std::size_t found = loops.probe(sorted, queries, settings_.radius, probes_.data(),
                                              probes, spare_.data(), hits_.get());
        for (std::size_t hit = 0; hit < found; ++hit) {
            const FlipHit& one = hits_[hit];
            const std::size_t query = block - begin_ + one.query;
            if (one.distance == FlipHit::kCorrupt)
                throw CorruptTable();
            if (one.distance == FlipHit::kLarge)
                compare(table_.bucket(table_.header.value(table_.signatures.row(one.place))),
                        query);
            else
                take(query, one.place, one.distance);
        }
    }

    // Any width and any number of flips: a stream of look-ups.
    void run_one_by_one(std::size_t begin, std::size_t end) {
        ProbeStream stream(32, [&](const SortedTable&, SortedTable::Range bucket,
                                   std::size_t query) { compare(bucket, query); });
        constexpr std::size_t together = FlipLoops::kChosenTogether;
        flips_.resize(few_ ? together * wanted_ : 0);
        for (std::size_t row = begin; row < end; ++row) {
            const std::size_t query = row - begin;
            const std::uint64_t header = table_.header.value(queries_.row(row));
            const auto push = [&](std::uint64_t flips) {
                stream.push(table_, header ^ flips, query);
            };
            push(0);
            if (sets_ != nullptr) {
                for (std::size_t set = 0; set < wanted_; ++set)
                    push(sets_[row * settings_.flips + set]);
            } else if (few_) {
                if (query % together == 0)
                    chooser_->choose(row, std::min(together, end - row), [&](std::size_t next) {
                        return flips_.data() + next * wanted_;
                    });
                for (std::size_t set = 0; set < wanted_; ++set)
                    push(flips_[query % together * wanted_ + set]);
            } else if (wanted_ == all_ && !settings_.first) {
                each_set(bits_, most_, 0, 0, push);
            } else {
                std::uint64_t left = wanted_;
                vosh_.each(ranking_.of(row), most_, [&](std::uint64_t flips) {
                    if (left-- == 0 || (settings_.first && done_[query]))
                        return false;
                    push(flips);
                    return true;
                });
            }
        }
        stream.drain();
    }

    void compare(SortedTable::Range bucket, std::size_t query) {
        if (settings_.first && done_[query])
            return;
        scan_.scan(table_, bucket, queries_.row(begin_ + query),
                   [&](std::size_t place, std::uint32_t distance) {
                       take(query, place, distance);
                       return !settings_.first;
                   });
    }

    void take(std::size_t query, std::size_t place, std::uint32_t distance) {
        if (settings_.first) {
            if (done_[query])
                return;
            done_[query] = 1;
        }
        if (settings_.differences) {
            const Header& header = table_.header;
            matches_.add(query, distance,
                         static_cast<std::int64_t>(header.value(queries_.row(begin_ + query)) ^
                                                   header.value(table_.signatures.row(place))));
            return;
        }
        const std::size_t row = table_.row(place);
        matches_.add(query, distance, ids_ ? ids_[row] : static_cast<std::int64_t>(row));
    }

    const SortedTable& table_;
    const std::int64_t* ids_;
    const Signatures& queries_;
    const FlipSettings& settings_;
    std::size_t bits_, most_;
    std::uint64_t all_, wanted_;
    bool few_;
    const std::uint32_t* sets_;
    Ranking ranking_;
    TaskMatches& matches_;
    BucketScan scan_;
    std::optional<Chooser> chooser_;
    Vosh vosh_;
    std::size_t begin_ = 0;
    std::vector<std::uint8_t> done_;
    std::vector<std::uint32_t> flips_;
    std::vector<FlipProbe> probes_;
    std::vector<FlipHit> spare_;
    std::unique_ptr<FlipHit[]> hits_;
};

}  // namespace

Matches flip_within(const SortedTable& table, const std::int64_t* ids, const Signatures& queries,
                    const FlipWeights& weights, const FlipCosts& costs,
                    const FlipSettings& settings, std::size_t limit, std::size_t threads,
                    const bits::Checkpoint& checkpoint) {
    return gather_matches(
        queries.count, kQueriesPerTask, limit, threads, checkpoint,
        [&](std::size_t, std::size_t begin, std::size_t end, TaskMatches& matches) {
            FlipTask(table, ids, queries, weights, costs, settings, matches).run(begin, end);
        });
}

void flip_choices(std::size_t queries, const FlipWeights& weights, const std::uint32_t* places,
                  const FlipCosts& costs, std::size_t bits, std::size_t most, std::size_t wanted,
                  std::size_t threads, const bits::Checkpoint& checkpoint, std::uint32_t* sets) {
    const Chooser chooser(weights, costs, bits, most, wanted);
    const auto choose = [&](std::size_t, std::size_t begin, std::size_t end) {
        Ranking(weights, costs, bits).check(begin, end);
        chooser.choose(begin, end - begin, [&](std::size_t query) {
            return sets + (places ? places[begin + query] : begin + query) * wanted;
        });
    };
    bits::share_out_runs(queries, kQueriesPerTask, threads, checkpoint, choose);
}

void flip_attempts(std::size_t count, const FlipWeights& weights, const FlipCosts& costs,
                   std::size_t bits, std::size_t most, const std::uint64_t* differences,
                   std::size_t threads, const bits::Checkpoint& checkpoint,
                   std::int64_t* attempts) {
    const auto attempt = [&](std::size_t, std::size_t begin, std::size_t end) {
        Ranking ranking(weights, costs, bits);
        Vosh vosh;
        ranking.check(begin, end);
        for (std::size_t pair = begin; pair < end; ++pair) {
            attempts[pair] = 0;
            if (differences[pair] == 0)
                continue;
            std::int64_t tried = 0;
            attempts[pair] = -1;
            vosh.each(ranking.of(pair), most, [&](std::uint64_t flips) {
                ++tried;
                if (flips != differences[pair])
                    return true;
                attempts[pair] = tried;
                return false;
            });
        }
    };
    bits::share_out_runs(count, kPairsPerTask, threads, checkpoint, attempt);
}

}  // namespace lookalike::search
