#include "tables/flips.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "tables/bucket_scan.hpp"
#include "tables/probe_stream.hpp"
#include "tables/table_matches.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kQueriesPerTask = 512;
constexpr std::size_t kQueriesPerBlock = 32;
constexpr std::size_t kLikeliest = 3;
constexpr std::size_t kPairsPerTask = 16;

// Ranks the bits of a query's header, or, without weights, all bits alike.
class Ranking {
  public:
    Ranking(const FlipWeights& weights, const FlipCosts& costs, std::size_t bits,
            std::size_t needed)
        : loops_(flip_loops()),
          weights_(weights),
          costs_(costs),
          bits_(bits),
          needed_(needed),
          before_(weights.from + bits >= Header::kMostBits) {
        all_alike_.count = static_cast<std::uint32_t>(std::min(bits, needed));
        std::fill(std::begin(all_alike_.costs), std::end(all_alike_.costs), 0);
        std::fill(std::begin(all_alike_.bits), std::end(all_alike_.bits), 0);
        for (std::size_t bit = 0; bit < all_alike_.count; ++bit)
            all_alike_.bits[bit] = std::uint64_t{1} << bit;
    }

    // Throws NotFinite if one of the weights of these queries is not.
    void check(std::size_t begin, std::size_t end) const {
        if (weights_.floats == nullptr)
            return;
        for (std::size_t row = begin; row < end; ++row)
            if (!loops_.all_finite(weights_.floats + row * weights_.stride, weights_.stride))
                throw NotFinite(row);
    }

    const RankedBits& of(std::size_t query) {
        if (!weights_.given())
            return all_alike_;
        const std::size_t at = query * weights_.stride + weights_.from;
        if (bits_ > Header::kMostBits)
            rank_many(at);
        else if (weights_.floats != nullptr)
            loops_.rank_floats(weights_.floats + at, bits_, needed_, before_, costs_, ranked_);
        else
            loops_.rank_units(weights_.units + at, bits_, needed_, before_, costs_, ranked_);
        return ranked_;
    }

  private:
    // The same for more bits than a header has.
    void rank_many(std::size_t at) {
        std::vector<std::pair<std::size_t, std::size_t>> bits(bits_);
        for (std::size_t bit = 0; bit < bits_; ++bit) {
            const float weight = weights_.floats
                                     ? weights_.floats[at + bit]
                                     : (static_cast<float>(weights_.units[at + bit]) + 0.5f) / 1024;
            constexpr float last = static_cast<float>(FlipCosts::kSteps - 1);
            bits[bit] = {static_cast<std::size_t>(std::min(std::abs(weight) * costs_.scale, last)),
                         bit};
        }
        std::sort(bits.begin(), bits.end());
        ranked_ = all_alike_;
        for (std::size_t rank = 0; rank < ranked_.count; ++rank) {
            ranked_.costs[rank] = costs_.costs[bits[rank].first];
            ranked_.bits[rank] = std::uint64_t{1} << bits[rank].second;
        }
    }

    const FlipLoops& loops_;
    const FlipWeights& weights_;
    const FlipCosts& costs_;
    std::size_t bits_, needed_;
    bool before_;  // so many weights that those in front of the header can be read along
    RankedBits ranked_, all_alike_;
};

// Chooses the likeliest sets of queries, at most Candidates::kMostSets of each.
class Chooser {
  public:
    Chooser(const FlipWeights& weights, const FlipCosts& costs, std::size_t bits, std::size_t most,
            std::size_t wanted)
        : loops_(flip_loops()),
          weights_(weights),
          costs_(costs),
          bits_(bits),
          candidates_(candidates_for(wanted, bits, std::min(most, bits))) {
        if (weights.given())
            return;
        // All bits are alike, so candidates are in order.
        for (std::size_t place = 0; place < candidates_.wanted; ++place) {
            std::uint32_t set = 0;
            for (std::size_t member = 0; member < candidates_.members; ++member) {
                const std::uint8_t rank = candidates_.ranks[place * candidates_.members + member];
                set |= rank < RankedBits::kMost ? std::uint32_t{1} << rank : 0;
            }
            alike_.push_back(set);
        }
    }

    // Writes those of `count` queries to places(0), places(1) and so on.
    template <class Places>
    void choose(std::size_t first, std::size_t count, const Places& places) const {
        constexpr std::size_t together = FlipLoops::kChosenTogether;
        std::uint32_t* flips[together];
        for (std::size_t begin = 0; begin < count; begin += together) {
            const std::size_t some = std::min(together, count - begin);
            for (std::size_t query = 0; query < some; ++query)
                flips[query] = places(begin + query);
            const std::size_t at = (first + begin) * weights_.stride + weights_.from;
            if (weights_.floats != nullptr)
                loops_.choose_floats(candidates_, weights_.floats + at, weights_.stride, bits_,
                                     costs_, some, flips);
            else if (weights_.units != nullptr)
                loops_.choose_units(candidates_, weights_.units + at, weights_.stride, bits_,
                                    costs_, some, flips);
            else
                for (std::size_t query = 0; query < some; ++query)
                    std::copy(alike_.begin(), alike_.end(), flips[query]);
        }
    }

  private:
    const FlipLoops& loops_;
    const FlipWeights& weights_;
    const FlipCosts& costs_;
    std::size_t bits_;
    const Candidates& candidates_;
    std::vector<std::uint32_t> alike_;
};

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
          ranking_(weights, costs, bits_, bits_),
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
                vosh_.each(ranking_.of(row), most_, [&](std::uint64_t flips, std::uint32_t) {
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

void flip_sets(std::size_t queries, const FlipWeights& weights, const FlipCosts& costs,
               std::size_t bits, std::size_t most, std::size_t wanted, std::size_t threads,
               const bits::Checkpoint& checkpoint, std::uint64_t* sets) {
    const std::size_t tasks = (queries + kQueriesPerTask - 1) / kQueriesPerTask;
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        Ranking ranking(weights, costs, bits, bits);
        Vosh vosh;
        const std::size_t begin = task * kQueriesPerTask;
        const std::size_t end = std::min(queries, begin + kQueriesPerTask);
        ranking.check(begin, end);
        for (std::size_t query = begin; query < end; ++query) {
            std::uint64_t* next = sets + query * wanted;
            std::uint64_t* const stop = next + wanted;
            vosh.each(ranking.of(query), most, [&](std::uint64_t flips, std::uint32_t) {
                if (next == stop)
                    return false;
                *next++ = flips;
                return true;
            });
        }
    });
}

void flip_choices(std::size_t queries, const FlipWeights& weights, const std::uint32_t* places,
                  const FlipCosts& costs, std::size_t bits, std::size_t most, std::size_t wanted,
                  std::size_t threads, const bits::Checkpoint& checkpoint, std::uint32_t* sets) {
    const std::size_t tasks = (queries + kQueriesPerTask - 1) / kQueriesPerTask;
    const Chooser chooser(weights, costs, bits, most, wanted);
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t begin = task * kQueriesPerTask;
        const std::size_t end = std::min(queries, begin + kQueriesPerTask);
        Ranking(weights, costs, bits, bits).check(begin, end);
        chooser.choose(begin, end - begin, [&](std::size_t query) {
            return sets + (places ? places[begin + query] : begin + query) * wanted;
        });
    });
}

void flip_attempts(std::size_t count, const FlipWeights& weights, const FlipCosts& costs,
                   std::size_t bits, std::size_t most, const std::uint64_t* differences,
                   std::size_t threads, const bits::Checkpoint& checkpoint,
                   std::int64_t* attempts) {
    const std::size_t tasks = (count + kPairsPerTask - 1) / kPairsPerTask;
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        Ranking ranking(weights, costs, bits, bits);
        Vosh vosh;
        const std::size_t begin = task * kPairsPerTask;
        const std::size_t end = std::min(count, begin + kPairsPerTask);
        ranking.check(begin, end);
        for (std::size_t pair = begin; pair < end; ++pair) {
            attempts[pair] = 0;
            if (differences[pair] == 0)
                continue;
            std::int64_t tried = 0;
            attempts[pair] = -1;
            vosh.each(ranking.of(pair), most, [&](std::uint64_t flips, std::uint32_t) {
                ++tried;
                if (flips != differences[pair])
                    return true;
                attempts[pair] = tried;
                return false;
            });
        }
    });
}

}  // namespace lookalike::search
