#include <algorithm>
#include <optional>

#include "bits/kernels.hpp"
#include "bits/top_k.hpp"
#include "search/score_loops.hpp"
#include "search/slice_scores.hpp"
#include "search/slice_search.hpp"

namespace lookalike::search {

using bits::Kernels;
using bits::Neighbor;
using bits::TopK;

namespace {

// Rough costs in nanoseconds, for choosing between ways to the same answer.
constexpr double kListCost = 6;
constexpr double kPostingCost = 1.5;
constexpr double kScannedByteCost = 0.08;

struct Candidate {
    std::uint32_t score;
    std::uint32_t segment;
    std::uint64_t row;
    std::int64_t id;

    // Better first.
    friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score > b.score : a.id < b.id;
    }
};

// Appends candidates with a score from `least` to `most`.
void collect(const Segment& segment, std::size_t number, ScoredSegment& scored, std::uint32_t least,
             std::uint32_t most, std::vector<Candidate>& candidates) {
    const std::size_t bits = 8 * segment.collection.bytes;
    const auto add = [&](std::uint64_t row) {
        const std::uint32_t score = scored->table[row];
        if (score > bits)
            throw CorruptLists();
        if (score >= least && score <= most && !segment.is_removed(row))
            candidates.push_back(
                {score, static_cast<std::uint32_t>(number), row, segment.collection.id(row)});
    };
    if (!scored->dense) {
        for (std::size_t at = 0; at < scored->touched_count; ++at)
            add(scored->touched[at]);
        return;
    }
    constexpr std::size_t kRows = 1 << 16;
    scored->places.resize(kRows);
    for (std::size_t begin = 0; begin < scored.rows(); begin += kRows) {
        const std::size_t count = std::min(kRows, scored.rows() - begin);
        const std::size_t found = score_loops().collect(
            scored->table.data() + begin, count, static_cast<std::uint16_t>(std::max(1u, least)),
            scored->places.data(), kRows);
        for (std::size_t index = 0; index < found; ++index)
            add(begin + scored->places[index]);
    }
}

// A score that at least `wanted` candidates are likely to reach, and not many more: from a sample
// of the tables where they are large.
std::uint32_t likely_threshold(std::vector<ScoredSegment>& scored, std::size_t wanted,
                               std::size_t bits) {
    constexpr std::size_t kRun = 64, kStep = 16;
    std::vector<std::uint32_t> histogram(bits + 1, 0);
    const auto count = [&](std::uint16_t score) {
        if (score > bits)
            throw CorruptLists();  // more than all slices together: a row is in a list twice
        ++histogram[score];
    };
    double sampled = 0, all = 0;
    for (ScoredSegment& part : scored) {
        if (!part->dense) {
            for (std::size_t at = 0; at < part->touched_count; ++at)
                count(part->table[part->touched[at]]);
            sampled += static_cast<double>(part->touched_count);
            all += static_cast<double>(part->touched_count);
            continue;
        }
        const std::size_t step = part.rows() > 64 * kRun * kStep ? kRun * kStep : kRun;
        for (std::size_t begin = 0; begin < part.rows(); begin += step)
            for (std::size_t row = begin; row < std::min(part.rows(), begin + kRun); ++row)
                count(part->table[row]);
        sampled += static_cast<double>(part.rows()) * static_cast<double>(kRun) /
                   static_cast<double>(step);
        all += static_cast<double>(part.rows());
    }
    const double target = all == 0 ? 0 : static_cast<double>(wanted) * sampled / all * 1.3 + 8;
    double found = 0;
    for (std::size_t score = bits; score > 1; --score) {
        found += histogram[score];
        if (found >= target)
            return static_cast<std::uint32_t>(score);
    }
    return 1;
}

// One query at one expansion: the scored segments, and what has been re-ranked of them so far.
class Round {
  public:
    Round(const std::vector<Segment>& segments, const SlicedQuery& query,
          const TopSettings& settings, const Kernels& kernels)
        : segments_(segments),
          query_(query),
          settings_(settings),
          kernels_(kernels),
          nearest_(settings.k) {}

    void score(const Neighbourhood& near, std::size_t threads, const bits::Checkpoint& checkpoint,
               Counters& counters) {
        for (const Segment& segment : segments_) {
            scored_.emplace_back(segment.collection.count);
            score_segment(segment, query_, near, settings_, threads, checkpoint, scored_.back(),
                          counters);
        }
    }

    // Re-ranks the best `rerank` candidates. Afterwards `rest` is the best score among the others,
    // or nothing if there are no others.
    void rerank_best(Counters& counters) {
        const auto bits = static_cast<std::uint32_t>(query_.slicing.bits());
        std::uint32_t least = likely_threshold(scored_, settings_.rerank, bits);
        while (true) {
            candidates_.clear();
            for (std::size_t number = 0; number < segments_.size(); ++number)
                collect(segments_[number], number, scored_[number], least, bits, candidates_);
            if (candidates_.size() >= settings_.rerank || least == 1)
                break;
            least = least > 8 ? least / 2 : 1;
        }
        if (candidates_.size() > settings_.rerank) {
            const auto cut = candidates_.begin() + static_cast<std::ptrdiff_t>(settings_.rerank);
            std::nth_element(candidates_.begin(), cut, candidates_.end());
            rest = cut->score;
            for (auto at = cut; at != candidates_.end(); ++at)
                rest = std::max(*rest, at->score);
            candidates_.erase(cut, candidates_.end());
        } else if (least > 1) {
            rest = least - 1;
        }
        rerank(candidates_, counters);
    }

    // Re-ranks all other candidates with a score from `least` up.
    void rerank_rest(std::uint32_t least, Counters& counters) {
        std::vector<Candidate> more;
        for (std::size_t number = 0; number < segments_.size(); ++number)
            collect(segments_[number], number, scored_[number], least, *rest, more);
        // Those re-ranked before are the best by (score, id), so the others come after the last.
        const Candidate last = candidates_.empty()
                                   ? Candidate{UINT32_MAX, 0, 0, -1}
                                   : *std::max_element(candidates_.begin(), candidates_.end());
        std::erase_if(more, [&](const Candidate& one) { return !(last < one); });
        rerank(more, counters);
        rest = least > 1 ? std::optional(least - 1) : std::nullopt;
    }

    std::int64_t count_candidates() {
        std::int64_t total = 0;
        for (ScoredSegment& part : scored_)
            total += static_cast<std::int64_t>(
                part->dense ? score_loops().count_nonzero(part->table.data(), part.rows())
                            : part->touched_count);
        return total;
    }

    // The k-th distance so far, or nothing if there are fewer than k.
    std::optional<std::int64_t> kth() const {
        const std::int64_t cutoff = nearest_.cutoff(false);
        return cutoff == UINT32_MAX ? std::nullopt : std::optional(cutoff);
    }

    std::optional<std::uint32_t> rest;
    TopK& nearest() { return nearest_; }
    std::size_t reranked() const { return reranked_; }
    std::uint32_t score_of(std::int64_t id) const {
        const auto found = std::find_if(entered_.begin(), entered_.end(),
                                        [&](const Candidate& one) { return one.id == id; });
        return found == entered_.end() ? 0 : found->score;
    }

  private:
    static constexpr std::size_t kRowsAtOnce = 64;

    // Reads a byte of each cache line of the next rows. Loads that do not depend on each other are
    // in flight together; asked for one row at a time, each would be waited for.
    void bring_in(const std::vector<Candidate>& candidates, std::size_t begin, std::size_t bytes) {
        const std::size_t end = std::min(candidates.size(), begin + kRowsAtOnce);
        std::uint32_t sum = 0;
        for (std::size_t at = begin; at < end; ++at) {
            const std::uint8_t* const row =
                segments_[candidates[at].segment].collection.row(candidates[at].row);
            for (std::size_t byte = 0; byte < bytes; byte += 64)
                sum += row[byte];
            sum += row[bytes - 1];
        }
        touched_ = sum;
    }

    void rerank(const std::vector<Candidate>& candidates, Counters& counters) {
        const std::size_t bytes = query_.slicing.bits() / 8;
        for (std::size_t at = 0; at < candidates.size(); ++at) {
            if (at % kRowsAtOnce == 0)
                bring_in(candidates, at, bytes);
            const Candidate& one = candidates[at];
            std::int32_t distance;
            kernels_.distances(query_.signature, segments_[one.segment].collection.row(one.row), 1,
                               bytes, &distance);
            const auto far = static_cast<std::uint32_t>(distance);
            if (static_cast<std::int64_t>(far) <= nearest_.cutoff(false)) {
                nearest_.push({far, one.id});
                entered_.push_back(one);
            }
        }
        counters.reranked += static_cast<std::int64_t>(candidates.size());
        reranked_ += candidates.size();
    }

    const std::vector<Segment>& segments_;
    const SlicedQuery& query_;
    const TopSettings& settings_;
    const Kernels& kernels_;
    std::vector<ScoredSegment> scored_;
    std::vector<Candidate> candidates_;
    TopK nearest_;
    std::size_t reranked_ = 0;
    volatile std::uint32_t touched_ = 0;  // so that the reading is not left out
    std::vector<Candidate> entered_;      // whatever got among the nearest, if only for a while
};

double scan_cost(const std::vector<Segment>& segments, std::size_t bytes) {
    double total = 0;
    for (const Segment& segment : segments)
        total += static_cast<double>(segment.collection.count) * static_cast<double>(bytes);
    return total * kScannedByteCost;
}

double list_cost(const std::vector<Segment>& segments, const Slicing& slicing, std::size_t expand) {
    double total = 0;
    for (const Segment& segment : segments) {
        if (!segment.has_lists())
            continue;
        total += postings_expected(slicing, segment.collection.count, expand) * kPostingCost;
        for (std::size_t position = 0; position < slicing.count(); ++position)
            for (std::size_t ones = 0; ones <= std::min(expand, slicing.width(position)); ++ones)
                total += choose(slicing.width(position), ones) * kListCost;
    }
    return total;
}

// All that the queries of one call have in common.
class TopSearch {
  public:
    TopSearch(const Slicing& slicing, const std::vector<Segment>& segments,
              const TopSettings& settings, std::size_t list_threads,
              const bits::Checkpoint& checkpoint, const TopOutput& output)
        : slicing_(slicing),
          segments_(segments),
          settings_(settings),
          list_threads_(list_threads),
          checkpoint_(checkpoint),
          output_(output),
          kernels_(bits::kernels_for(slicing.bits() / 8)) {
        const std::size_t first = settings.exact ? 0 : settings.expand;
        prepare(first);
        for (const Segment& segment : segments)
            alive_ += segment.alive;
    }

    void search(std::size_t index, const std::uint8_t* signature) const {
        const SlicedQuery query(slicing_, signature);
        Counters counters;
        if (!settings_.exact) {
            one_round(index, query, *near_, optimistic_, settings_, counters);
            return;
        }
        TopSettings now = settings_;
        const bool lists = std::any_of(segments_.begin(), segments_.end(),
                                       [](const Segment& one) { return one.has_lists(); });
        for (now.expand = now.admit = 0; lists && now.expand <= slicing_.widest();
             ++now.expand, ++now.admit) {
            const Neighbourhood near(slicing_, now.expand);
            if (one_round(index, query, near, optimistic_distances(slicing_, now.expand), now,
                          counters))
                return;
            if (list_cost(segments_, slicing_, now.expand + 1) >
                scan_cost(segments_, slicing_.bits() / 8))
                break;
        }
        TopK nearest = scan(signature);
        write(
            index, nearest.take_sorted(), [](std::int64_t) { return 0u; }, std::nullopt, true,
            counters, now.expand);
    }

  private:
    void prepare(std::size_t expand) {
        near_.emplace(slicing_, expand);
        optimistic_ = optimistic_distances(slicing_, expand);
    }

    // Writes the answer, unless it has to be exact and is not; returns whether it did.
    bool one_round(std::size_t index, const SlicedQuery& query, const Neighbourhood& near,
                   const std::vector<std::int32_t>& optimistic, const TopSettings& now,
                   Counters& counters) const {
        Round round(segments_, query, now, kernels_);
        round.score(near, list_threads_, checkpoint_, counters);
        if (now.explain)
            counters.candidates = round.count_candidates();
        round.rerank_best(counters);
        const auto farther = [&](std::int64_t least) {
            const auto kth = round.kth();
            return kth && least > *kth;
        };
        // The lowest score whose signatures may be near enough; scores need not be in order of
        // that.
        const auto doubtful = [&]() -> std::uint32_t {
            for (std::uint32_t score = 1; round.rest && score <= *round.rest; ++score)
                if (!farther(optimistic[score]))
                    return score;
            return 0;
        };
        if (now.exact && round.kth() && doubtful() != 0)
            round.rerank_rest(doubtful(), counters);
        const std::size_t admit = std::min(now.admit, now.expand);
        const bool nothing_left = round.reranked() == alive_;
        const bool exact =
            nothing_left || (doubtful() == 0 && farther(least_unseen(slicing_, admit)));
        if (now.exact && !exact)
            return false;
        write(
            index, round.nearest().take_sorted(),
            [&](std::int64_t id) { return round.score_of(id); }, round.rest, exact, counters,
            now.expand);
        return true;
    }

    TopK scan(const std::uint8_t* signature) const {
        TopK nearest(settings_.k);
        const std::size_t bytes = slicing_.bits() / 8;
        std::vector<bits::Hit> hits(1024);
        for (const Segment& segment : segments_) {
            const Collection& rows = segment.collection;
            for (std::size_t begin = 0; begin < rows.count; begin += hits.size()) {
                const std::size_t found = kernels_.filter_from_memory(
                    signature, rows.row(begin), std::min(hits.size(), rows.count - begin), bytes,
                    static_cast<std::uint32_t>(nearest.cutoff(false)), hits.data());
                for (std::size_t hit = 0; hit < found; ++hit)
                    if (!segment.is_removed(begin + hits[hit].row))
                        nearest.push({hits[hit].distance, rows.id(begin + hits[hit].row)});
            }
        }
        return nearest;
    }

    template <class ScoreOf>
    void write(std::size_t query, const std::vector<Neighbor>& found, ScoreOf score_of,
               std::optional<std::uint32_t> rest, bool exact, const Counters& counters,
               std::size_t expanded) const {
        for (std::size_t index = 0; index < found.size(); ++index) {
            const std::size_t at = query * settings_.k + index;
            output_.ids[at] = found[index].id;
            output_.distances[at] = static_cast<std::int32_t>(found[index].distance);
            output_.scores[at] = static_cast<std::int32_t>(score_of(found[index].id));
        }
        output_.rest[query] = rest ? static_cast<std::int32_t>(*rest) : -1;
        output_.exact[query] = exact ? 1 : 0;
        output_.lists[query] = counters.lists;
        output_.postings[query] = counters.postings;
        output_.candidates[query] = counters.candidates;
        output_.reranked[query] = counters.reranked;
        output_.expanded[query] = static_cast<std::int64_t>(expanded);
    }

    const Slicing& slicing_;
    const std::vector<Segment>& segments_;
    const TopSettings& settings_;
    std::size_t list_threads_;
    const bits::Checkpoint& checkpoint_;
    const TopOutput& output_;
    Kernels kernels_;
    std::optional<Neighbourhood> near_;
    std::vector<std::int32_t> optimistic_;
    std::size_t alive_ = 0;
};

}  // namespace

void slice_top(const Slicing& slicing, const std::vector<Segment>& segments,
               const Signatures& queries, const TopSettings& settings, std::size_t threads,
               const bits::Checkpoint& checkpoint, const TopOutput& output) {
    // Threads over queries where there are enough of them, else over the lists of each query.
    const bool enough = queries.count >= threads;
    const TopSearch top(slicing, segments, settings, enough ? 1 : threads, checkpoint, output);
    bits::share_out(queries.count, enough ? threads : 1, checkpoint,
                    [&](std::size_t, std::size_t query) { top.search(query, queries.row(query)); });
}

}  // namespace lookalike::search