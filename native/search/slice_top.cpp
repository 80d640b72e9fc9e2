#include <algorithm>
#include <optional>

#include "bits/kernels.hpp"
#include "bits/top_k.hpp"
#include "search/slice_round.hpp"
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
