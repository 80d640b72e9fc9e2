#include <algorithm>
#include <optional>

#include "bits/kernels.hpp"
#include "bits/prefetch.hpp"
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

// A histogram of scores. Most of them are the same few, and adding to one place again and again
// waits for itself each time, so there are several.
class Histogram {
  public:
    explicit Histogram(std::size_t bits) : bits_(bits), counts_(kCopies * (bits + 1), 0) {}

    void add(std::uint32_t score) {
        if (score > bits_)
            throw CorruptLists();  // more than all slices together: a row is in a list twice
        ++counts_[kCopies * score + next_++ % kCopies];
        largest_ = std::max(largest_, score);
    }

    std::size_t of(std::size_t score) const {
        std::size_t sum = 0;
        for (std::size_t copy = 0; copy < kCopies; ++copy)
            sum += counts_[kCopies * score + copy];
        return sum;
    }

    // The largest score that at least `wanted` reach, or 1; `above` is how many are above it.
    std::uint32_t reached_by(double wanted, std::size_t& above) const {
        above = 0;
        for (std::uint32_t score = largest_; score > 1; --score) {
            const std::size_t here = of(score);
            if (static_cast<double>(above + here) >= wanted)
                return score;
            above += here;
        }
        return 1;
    }

  private:
    static constexpr std::size_t kCopies = 4;

    std::size_t bits_;
    std::vector<std::uint32_t> counts_;
    std::uint32_t largest_ = 0;
    std::size_t next_ = 0;
};

// A score that at least `wanted` candidates are likely to reach, and not many more: from a sample
// of the tables.
std::uint32_t likely_threshold(std::vector<SegmentScores>& scored, std::size_t wanted,
                               std::size_t bits) {
    constexpr std::size_t kRun = 64, kStep = 32;
    Histogram histogram(bits);
    double sampled = 0, all = 0;
    for (SegmentScores& part : scored) {
        if (!part.dense()) {
            for (const ScoredRow& one : part.list())
                histogram.add(one.score);
            sampled += static_cast<double>(part.list().size());
            all += static_cast<double>(part.list().size());
            continue;
        }
        const ScoreTable& table = part.table();
        const std::size_t step = table.rows() > 64 * kRun * kStep ? kRun * kStep : kRun;
        for (std::size_t begin = 0; begin < table.rows(); begin += step)
            for (std::size_t row = begin; row < std::min(table.rows(), begin + kRun); ++row)
                histogram.add(table.score(row));
        sampled += static_cast<double>(table.rows()) * static_cast<double>(kRun) /
                   static_cast<double>(step);
        all += static_cast<double>(table.rows());
    }
    const double target = all == 0 ? 0 : static_cast<double>(wanted) * sampled / all * 1.3 + 8;
    std::size_t above;
    return histogram.reached_by(target, above);
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

    // Scores all segments; `blocks` has the postings of those where they are few, at `place`.
    void score(const Neighbourhood& near, std::vector<std::optional<PostingBlock>>& blocks,
               std::size_t place, std::size_t threads, const bits::Checkpoint& checkpoint,
               Counters& counters) {
        for (std::size_t number = 0; number < segments_.size(); ++number) {
            scored_.emplace_back();
            if (blocks[number])
                blocks[number]->score(place, scored_.back(), counters);
            else
                score_segment(segments_[number], query_, near, settings_, threads, checkpoint,
                              scored_.back(), counters);
        }
    }

    // Re-ranks the best `rerank` candidates. Afterwards `rest` is the best score among the others,
    // or more, or nothing if there are no others.
    void rerank_best(Counters& counters) {
        const bool exactly_known = std::none_of(scored_.begin(), scored_.end(),
                                                [](const auto& part) { return part.dense(); });
        if (exactly_known)
            choose_listed();
        else
            choose_from_tables();
        rerank(candidates_, counters);
    }

    // Re-ranks all other candidates with a score from `least` up.
    void rerank_rest(std::uint32_t least, Counters& counters) {
        // Those re-ranked before are the best by (score, id), so the others come after the last.
        const Candidate last = candidates_.empty()
                                   ? Candidate{UINT32_MAX, 0, 0, -1}
                                   : *std::max_element(candidates_.begin(), candidates_.end());
        std::vector<Candidate> more;
        collect(least, more);
        std::erase_if(more, [&](const Candidate& one) { return !(last < one); });
        rerank(more, counters);
        rest = least > 1 ? std::optional(least - 1) : std::nullopt;
    }

    std::int64_t count_candidates() {
        std::int64_t total = 0;
        for (std::size_t number = 0; number < segments_.size(); ++number)
            total += scored_[number].candidates(segments_[number]);
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
    static constexpr std::size_t kRowsAhead = 64;

    // Appends candidates with a score from `least` up.
    void collect(std::uint32_t least, std::vector<Candidate>& candidates) {
        const std::size_t bits = query_.slicing.bits();
        for (std::size_t number = 0; number < segments_.size(); ++number) {
            const Segment& segment = segments_[number];
            scored_[number].each(segment, least, [&](std::uint64_t row, std::uint32_t score) {
                if (score > bits)
                    throw CorruptLists();
                candidates.push_back(
                    {score, static_cast<std::uint32_t>(number), row, segment.collection.id(row)});
                return true;
            });
        }
    }

    // All scores are listed, so that the one which the last to be re-ranked has can be counted out.
    void choose_listed() {
        Histogram histogram(query_.slicing.bits());
        for (SegmentScores& part : scored_)
            for (const ScoredRow& one : part.list())
                histogram.add(one.score);
        std::size_t above;
        const std::uint32_t least =
            histogram.reached_by(static_cast<double>(settings_.rerank), above);
        const std::size_t ties = histogram.of(least);
        candidates_.reserve(above + ties);
        if (segments_.size() == 1 && segments_[0].collection.ascending) {
            // Rows are in the order of their ids: of those with the least score, the first ones.
            std::size_t wanted = settings_.rerank - std::min(settings_.rerank, above);
            for (const ScoredRow& one : scored_[0].list()) {
                if (one.score < least || (one.score == least && wanted == 0))
                    continue;
                wanted -= one.score == least ? 1 : 0;
                candidates_.push_back({one.score, 0, one.row, segments_[0].collection.id(one.row)});
            }
            if (above + ties > settings_.rerank)
                rest = least;
            else if (least > 1)
                rest = least - 1;
            return;
        }
        collect(least, candidates_);
        keep_best(least);
    }

    void choose_from_tables() {
        const auto bits = static_cast<std::uint32_t>(query_.slicing.bits());
        std::uint32_t least = likely_threshold(scored_, settings_.rerank, bits);
        while (true) {
            candidates_.clear();
            if (segments_.size() == 1 && segments_[0].collection.ascending && least < UINT8_MAX) {
                if (choose_in_order(least))
                    return;
            } else {
                collect(least, candidates_);
            }
            if (candidates_.size() >= settings_.rerank || least == 1)
                break;
            least = least > 8 ? least - least / 8 : 1;
        }
        keep_best(least);
    }

    // One segment, with ids in the order of rows: where the best above `least` are too few, those
    // with just that score are taken from the first row on. There may be very many of them, as
    // most candidates have no more than one slice near. Returns whether that completed the answer.
    bool choose_in_order(std::uint32_t least) {
        collect(least + 1, candidates_);
        if (candidates_.size() > settings_.rerank) {
            keep_best(least + 1);
            return true;
        }
        bool more = false;
        const auto take = [&](std::uint64_t row, std::uint32_t score) {
            if (score != least)
                return true;
            more = candidates_.size() == settings_.rerank;
            if (!more)
                candidates_.push_back({score, 0, row, segments_[0].collection.id(row)});
            return !more;
        };
        scored_[0].each(segments_[0], least, take);
        if (more)
            rest = least;
        return more;
    }

    // Keeps the best `rerank` of the candidates, which are all that have a score from `least` up.
    void keep_best(std::uint32_t least) {
        if (candidates_.size() <= settings_.rerank) {
            if (least > 1)
                rest = least - 1;
            return;
        }
        Histogram histogram(query_.slicing.bits());
        for (const Candidate& one : candidates_)
            histogram.add(one.score);
        std::size_t above;
        const std::uint32_t cut =
            histogram.reached_by(static_cast<double>(settings_.rerank), above);
        const auto ties = std::partition(candidates_.begin(), candidates_.end(),
                                         [&](const Candidate& one) { return one.score > cut; });
        const auto end = std::partition(ties, candidates_.end(),
                                        [&](const Candidate& one) { return one.score == cut; });
        const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                    settings_.rerank, above + histogram.of(cut)));
        if (last != end)
            std::nth_element(ties, last, end);
        rest = last != end ? cut : cut - 1;
        candidates_.erase(last, candidates_.end());
    }

    void rerank(const std::vector<Candidate>& candidates, Counters& counters) {
        const std::size_t bytes = query_.slicing.bits() / 8;
        const auto row_of = [&](const Candidate& one) {
            return segments_[one.segment].collection.row(one.row);
        };
        const auto ask_for = [&](std::size_t at) __attribute__((always_inline)) {
            if (at < candidates.size())
                bits::prefetch_all(row_of(candidates[at]), bytes);
        };
        for (std::size_t at = 0; at < kRowsAhead; ++at)
            ask_for(at);
        for (std::size_t at = 0; at < candidates.size(); ++at) {
            ask_for(at + kRowsAhead);
            const Candidate& one = candidates[at];
            std::int32_t distance;
            kernels_.paired(query_.signature, row_of(one), 1, bytes, &distance);
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
    std::vector<SegmentScores> scored_;
    std::vector<Candidate> candidates_;
    TopK nearest_;
    std::size_t reranked_ = 0;
    std::vector<Candidate> entered_;  // whatever got among the nearest, if only for a while
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

    // Queries that are answered together.
    std::size_t block_size() const {
        double postings = 0;
        for (const Segment& segment : segments_)
            if (PostingBlock::is_for(segment, slicing_, settings_.expand))
                postings += postings_expected(slicing_, segment.collection.count, settings_.expand);
        return settings_.exact || postings == 0 ? 1 : PostingBlock::queries_at_once(postings);
    }

    // Answers queries from `first` on.
    void search_block(std::size_t first, const Signatures& queries) const {
        std::vector<SlicedQuery> sliced;
        for (std::size_t query = 0; query < queries.count; ++query)
            sliced.emplace_back(slicing_, queries.row(query));
        auto blocks = posting_blocks(sliced, *near_, settings_);
        for (std::size_t query = 0; query < queries.count; ++query) {
            Counters counters;
            one_round(first + query, sliced[query], *near_, optimistic_, settings_, blocks, query,
                      counters);
        }
    }

    void search_exactly(std::size_t index, const std::uint8_t* signature) const {
        const SlicedQuery query(slicing_, signature);
        Counters counters;
        TopSettings now = settings_;
        const bool lists = std::any_of(segments_.begin(), segments_.end(),
                                       [](const Segment& one) { return one.has_lists(); });
        for (now.expand = now.admit = 0; lists && now.expand <= slicing_.widest();
             ++now.expand, ++now.admit) {
            const Neighbourhood near(slicing_, now.expand);
            auto blocks = posting_blocks({&query, 1}, near, now);
            if (one_round(index, query, near, optimistic_distances(slicing_, now.expand), now,
                          blocks, 0, counters))
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
    using Blocks = std::vector<std::optional<PostingBlock>>;

    // For each segment where that is quicker, the postings of all queries.
    Blocks posting_blocks(std::span<const SlicedQuery> queries, const Neighbourhood& near,
                          const TopSettings& now) const {
        Blocks blocks(segments_.size());
        for (std::size_t number = 0; number < segments_.size(); ++number)
            if (PostingBlock::is_for(segments_[number], slicing_, now.expand))
                blocks[number].emplace(segments_[number], queries, near, now);
        return blocks;
    }

    void prepare(std::size_t expand) {
        near_.emplace(slicing_, expand);
        optimistic_ = optimistic_distances(slicing_, expand);
    }

    // Writes the answer, unless it has to be exact and is not; returns whether it did.
    bool one_round(std::size_t index, const SlicedQuery& query, const Neighbourhood& near,
                   const std::vector<std::int32_t>& optimistic, const TopSettings& now,
                   Blocks& blocks, std::size_t place, Counters& counters) const {
        Round round(segments_, query, now, kernels_);
        round.score(near, blocks, place, list_threads_, checkpoint_, counters);
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
    const std::size_t workers = enough ? threads : 1;
    const std::size_t at_once = std::clamp<std::size_t>(
        queries.count / std::max<std::size_t>(1, 4 * workers), 1, top.block_size());
    const std::size_t tasks = (queries.count + at_once - 1) / at_once;
    bits::share_out(tasks, workers, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t first = task * at_once;
        if (settings.exact)
            top.search_exactly(first, queries.row(first));
        else
            top.search_block(first, {queries.row(first), std::min(at_once, queries.count - first),
                                     queries.bytes});
    });
}

}  // namespace lookalike::search
