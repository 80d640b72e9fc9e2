#include <algorithm>
#include <optional>

#include "bits/kernels.hpp"
#include "bits/step_costs.hpp"
#include "bits/top_k.hpp"
#include "slices/round.hpp"
#include "slices/search.hpp"

namespace lookalike::search {

using bits::Kernels;
using bits::kUsualCosts;
using bits::TopK;

namespace {

constexpr double kCandidatesAtOnce = 1 << 20;  // to be re-ranked: 16 MB
constexpr double kUninterrupted = 1e8;         // nanoseconds

double scan_cost(const std::vector<Segment>& segments, std::size_t bytes) {
    double total = 0;
    for (const Segment& segment : segments)
        total += static_cast<double>(segment.collection.count);
    return total * kUsualCosts.scan(bytes);
}

double list_cost(const std::vector<Segment>& segments, const Slicing& slicing, std::size_t expand) {
    double total = 0;
    for (const Segment& segment : segments) {
        if (!segment.has_lists())
            continue;
        total += postings_expected(slicing, segment.collection.count, expand) * kUsualCosts.posting;
        for (std::size_t position = 0; position < slicing.count(); ++position)
            total += lists_near(slicing.width(position), expand) * kUsualCosts.look_up();
    }
    return total;
}

// All that the queries of one call have in common.
class TopSearch {
  public:
    TopSearch(const Slicing& slicing, const std::vector<Segment>& segments,
              const NearestSettings& settings, std::size_t list_threads,
              const bits::Checkpoint& checkpoint, const NearestOutput& output)
        : slicing_(slicing),
          segments_(segments),
          settings_(settings),
          list_threads_(list_threads),
          checkpoint_(checkpoint),
          output_(output) {
        const std::size_t first = settings.exact ? 0 : settings.expand;
        prepare(first);
        for (const Segment& segment : segments)
            alive_ += segment.alive;
    }

    // How many queries should be re-ranked together: as many as candidates of a few megabytes are
    // of, but not so many that nobody could interrupt for long.
    std::size_t group_size() const {
        if (settings_.exact)
            return 1;
        const auto candidates =
            static_cast<double>(std::clamp<std::size_t>(alive_, 1, settings_.rerank));
        const double cost = candidates * kUsualCosts.compare(slicing_.bits() / 8) +
                            list_cost(segments_, slicing_, settings_.expand);
        return static_cast<std::size_t>(
            std::clamp(std::min(kCandidatesAtOnce / candidates, kUninterrupted / cost), 1.0,
                       static_cast<double>(Reranking::kMostQueries)));
    }

    // How many postings a query reads, if values were equally frequent.
    double postings() const {
        double all = 0;
        for (const Segment& segment : segments_)
            if (segment.has_lists())
                all += postings_expected(slicing_, segment.collection.count, settings_.expand);
        return all;
    }

    // Answers queries from `first` on.
    void search_group(std::size_t first, const Signatures& queries) const {
        Reranking reranking(segments_, queries, settings_.k,
                            queries.count * std::min(settings_.rerank, alive_));
        std::vector<Chosen> chosen(queries.count);
        std::size_t at_once = block_size();
        for (std::size_t begin = 0; begin < queries.count;) {
            std::vector<SlicedQuery> sliced;
            for (std::size_t at = begin; at < std::min(begin + at_once, queries.count); ++at)
                sliced.emplace_back(slicing_, queries.row(at));
            const std::size_t wanted = sliced.size();
            auto blocks = posting_blocks(sliced, *near_, settings_);
            for (std::size_t at = 0; at < sliced.size(); ++at)
                choose(sliced[at], blocks, at, begin + at, reranking, chosen[begin + at]);
            begin += sliced.size();
            if (sliced.size() < wanted)
                at_once = sliced.size();  // they have more postings than was to be expected
        }
        reranking.run();
        for (std::size_t at = 0; at < queries.count; ++at)
            write(first + at, reranking.nearest(at), chosen[at],
                  is_exact(chosen[at], reranking.nearest(at), optimistic_, settings_),
                  settings_.expand);
    }

    void search_exactly(std::size_t index, const std::uint8_t* signature) const {
        std::vector<SlicedQuery> sliced{{slicing_, signature}};
        Chosen chosen;
        NearestSettings now = settings_;
        const bool lists = std::any_of(segments_.begin(), segments_.end(),
                                       [](const Segment& one) { return one.has_lists(); });
        for (now.expand = now.admit = 0; lists && now.expand <= slicing_.widest();
             ++now.expand, ++now.admit) {
            const Neighbourhood near(slicing_, now.expand);
            const auto optimistic = optimistic_distances(slicing_, now.expand);
            auto blocks = posting_blocks(sliced, near, now);
            Reranking reranking(segments_, {signature, 1, slicing_.bits() / 8}, now.k,
                                std::min(settings_.rerank, alive_));
            const auto& nearest = reranking.nearest(0);
            Round round(segments_, sliced[0], 0, now, reranking);
            round.score(near, blocks, 0, list_threads_, checkpoint_, chosen.counters);
            if (now.explain)
                chosen.counters.candidates = round.count_candidates();
            chosen.reranked = round.choose_best(chosen.counters);
            reranking.run();
            chosen.rest = round.rest;
            if (const std::uint32_t least = lowest_doubtful(optimistic, chosen.rest, kth(nearest));
                least != 0 && kth(nearest)) {
                chosen.reranked += round.choose_rest(least, chosen.counters);
                reranking.run();
                chosen.rest = round.rest;
            }
            if (is_exact(chosen, nearest, optimistic, now)) {
                write(index, reranking.nearest(0), chosen, true, now.expand);
                return;
            }
            if (list_cost(segments_, slicing_, now.expand + 1) >
                scan_cost(segments_, slicing_.bits() / 8))
                break;
        }
        chosen.rest = std::nullopt;
        auto nearest = scan(signature);
        write(index, nearest, chosen, true, now.expand);
    }

  private:
    using Blocks = std::vector<std::optional<PostingBlock>>;

    // For each segment where that is quicker, the postings of as many queries as there is room for;
    // the others are taken off `queries`.
    Blocks posting_blocks(std::vector<SlicedQuery>& queries, const Neighbourhood& near,
                          const NearestSettings& now) const {
        Blocks blocks(segments_.size());
        std::size_t room = queries.size();
        for (std::size_t number = 0; number < segments_.size(); ++number)
            if (PostingBlock::is_for(segments_[number], near, now.expand, queries.size())) {
                blocks[number].emplace(segments_[number], queries, near, now);
                if (blocks[number]->room_for() == 0)
                    blocks[number].reset();  // the first one has too many: it gets a table
                room = std::min(room, blocks[number] ? blocks[number]->room_for() : 1);
            }
        while (queries.size() > room)
            queries.pop_back();
        for (std::optional<PostingBlock>& block : blocks)
            if (block)
                block->read(room);
        return blocks;
    }

    void prepare(std::size_t expand) {
        near_.emplace(slicing_, expand);
        optimistic_ = optimistic_distances(slicing_, expand);
    }

    // What was chosen of the candidates of a query.
    struct Chosen {
        Counters counters;
        std::size_t reranked = 0;           // by the last round
        std::optional<std::uint32_t> rest;  // the best score of the others, or more
    };

    // Queries whose postings are read together.
    std::size_t block_size() const {
        double lists = 0;
        for (const Segment& segment : segments_)
            if (segment.has_lists())
                lists += static_cast<double>(lists_read(slicing_, *near_, settings_.expand));
        return PostingBlock::queries_at_once(postings(), lists);
    }

    // Hands the best candidates of a query on to be re-ranked. It is number `at` in its blocks and
    // `place` in its group.
    void choose(const SlicedQuery& query, Blocks& blocks, std::size_t at, std::size_t place,
                Reranking& reranking, Chosen& chosen) const {
        if (segments_.size() == 1 && blocks[0] && blocks[0]->can_choose() && !settings_.explain) {
            chosen.rest =
                blocks[0]->choose(at, place, settings_.rerank, reranking, chosen.counters);
            chosen.reranked = static_cast<std::size_t>(chosen.counters.reranked);
            return;
        }
        Round round(segments_, query, place, settings_, reranking);
        round.score(*near_, blocks, at, list_threads_, checkpoint_, chosen.counters);
        if (settings_.explain)
            chosen.counters.candidates = round.count_candidates();
        chosen.reranked = round.choose_best(chosen.counters);
        chosen.rest = round.rest;
    }

    using Nearest = bits::TopItems<ScoredNeighbor>;

    // The k-th distance so far, or nothing if there are fewer than k.
    static std::optional<std::int64_t> kth(const Nearest& nearest) {
        const std::int64_t cutoff = nearest.cutoff(false);
        return cutoff == UINT32_MAX ? std::nullopt : std::optional(cutoff);
    }

    // Whether no other signature can be among the k nearest.
    bool is_exact(const Chosen& chosen, const Nearest& nearest,
                  const std::vector<std::int32_t>& optimistic, const NearestSettings& now) const {
        return chosen.reranked == alive_ ||
               nothing_is_nearer(slicing_, optimistic, std::min(now.admit, now.expand), chosen.rest,
                                 kth(nearest));
    }

    Nearest scan(const std::uint8_t* signature) const {
        Nearest nearest(settings_.k);
        const Kernels kernels = bits::kernels_for(slicing_.bits() / 8);
        const std::size_t bytes = slicing_.bits() / 8;
        std::vector<bits::Hit> hits(1024);
        for (const Segment& segment : segments_) {
            const Collection& rows = segment.collection;
            for (std::size_t begin = 0; begin < rows.count; begin += hits.size()) {
                const std::size_t found = kernels.filter(
                    signature, rows.row(begin), std::min(hits.size(), rows.count - begin), bytes,
                    static_cast<std::uint32_t>(nearest.cutoff(false)), hits.data());
                for (std::size_t hit = 0; hit < found; ++hit)
                    if (!segment.is_removed(begin + hits[hit].row))
                        nearest.push({{hits[hit].distance, rows.id(begin + hits[hit].row)}, 0});
            }
        }
        return nearest;
    }

    void write(std::size_t query, Nearest& nearest, const Chosen& chosen, bool exact,
               std::size_t expanded) const {
        std::size_t at = query * settings_.k;
        for (const ScoredNeighbor& one : nearest.take_sorted()) {
            output_.ids[at] = one.id;
            output_.distances[at] = static_cast<std::int32_t>(one.distance);
            output_.scores[at++] = static_cast<std::int32_t>(one.score);
        }
        output_.rest[query] = chosen.rest ? static_cast<std::int32_t>(*chosen.rest) : -1;
        output_.exact[query] = exact ? 1 : 0;
        output_.lists[query] = chosen.counters.lists;
        output_.postings[query] = chosen.counters.postings;
        output_.candidates[query] = chosen.counters.candidates;
        output_.reranked[query] = chosen.counters.reranked;
        output_.expanded[query] = static_cast<std::int64_t>(expanded);
    }

    const Slicing& slicing_;
    const std::vector<Segment>& segments_;
    const NearestSettings& settings_;
    std::size_t list_threads_;
    const bits::Checkpoint& checkpoint_;
    const NearestOutput& output_;
    std::optional<Neighbourhood> near_;
    std::vector<std::int32_t> optimistic_;
    std::size_t alive_ = 0;
};

}  // namespace

void slice_nearest(const Slicing& slicing, const std::vector<Segment>& segments,
                   const Signatures& queries, const NearestSettings& settings, std::size_t threads,
                   const bits::Checkpoint& checkpoint, const NearestOutput& output) {
    // Threads over queries where there are enough of them, else over the lists of each query.
    const bool enough = queries.count >= threads;
    const TopSearch top(slicing, segments, settings, enough ? 1 : threads, checkpoint, output);
    const std::size_t workers = enough ? threads : 1;
    const std::size_t fair = workers == 1 ? queries.count : queries.count / (4 * workers);
    const std::size_t at_once = std::clamp<std::size_t>(fair, 1, top.group_size());
    const std::size_t tasks = (queries.count + at_once - 1) / at_once;
    bits::share_out(tasks, workers, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t first = task * at_once;
        if (settings.exact)
            top.search_exactly(first, queries.row(first));
        else
            top.search_group(first, {queries.row(first), std::min(at_once, queries.count - first),
                                     queries.bytes});
    });
    PostingBlock::free_unused(top.postings());
}

std::int64_t least_unseen(const Slicing& slicing, std::size_t admit) {
    std::int64_t least = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position) {
        if (admit >= slicing.width(position))
            return INT64_MAX;  // every signature is seen at this position
        least += static_cast<std::int64_t>(admit) + 1;
    }
    return least;
}

std::uint32_t lowest_doubtful(const std::vector<std::int32_t>& optimistic,
                              std::optional<std::uint32_t> rest, std::optional<std::int64_t> kth) {
    for (std::uint32_t score = 1; rest && score <= *rest; ++score)
        if (!kth || optimistic[score] <= *kth)
            return score;
    return 0;
}

bool nothing_is_nearer(const Slicing& slicing, const std::vector<std::int32_t>& optimistic,
                       std::size_t admit, std::optional<std::uint32_t> rest,
                       std::optional<std::int64_t> kth) {
    return kth && least_unseen(slicing, admit) > *kth &&
           lowest_doubtful(optimistic, rest, kth) == 0;
}

std::vector<std::int32_t> optimistic_distances(const Slicing& slicing, std::size_t expand) {
    const std::size_t bits = slicing.bits(), widest = slicing.widest();
    std::size_t wide = 0;
    while (wide < slicing.count() && slicing.width(wide) == widest)
        ++wide;
    const std::size_t narrow = slicing.count() - wide;
    const std::size_t narrow_width = widest - 1;
    const auto unseen = [&](std::size_t count, std::size_t width) {
        return count * std::min(expand + 1, width);
    };
    // With `a` wide and `b` narrow slices seen, a score S leaves their width less S, and each slice
    // that was not seen has at least one bit more than was looked for.
    std::vector<std::int32_t> least(bits + 1, static_cast<std::int32_t>(bits));
    for (std::size_t a = 0; a <= wide; ++a)
        for (std::size_t b = 0; b <= narrow; ++b) {
            const std::size_t seen = a * widest + b * narrow_width;
            const std::size_t total =
                seen + unseen(wide - a, widest) + unseen(narrow - b, narrow_width);
            least[seen] = std::min(least[seen], static_cast<std::int32_t>(total));
        }
    for (std::size_t score = bits; score-- > 0;)
        least[score] = std::min(least[score], least[score + 1]);
    for (std::size_t score = 0; score <= bits; ++score)
        least[score] = std::max(0, least[score] - static_cast<std::int32_t>(score));
    return least;
}

}  // namespace lookalike::search
