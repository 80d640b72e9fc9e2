#include <algorithm>
#include <optional>

#include "bits/step_costs.hpp"
#include "bits/top_k.hpp"
#include "slices/query_part.hpp"
#include "slices/round.hpp"
#include "slices/search.hpp"

namespace lookalike::search {

using bits::kUsualCosts;
using bits::TopK;

namespace {

constexpr double kCandidatesAtOnce = 1 << 20;  // to be re-ranked: 16 MB
constexpr double kUninterrupted = 1e8;         // nanoseconds

// What comparing one query with everything costs: the answer must not depend on how many are asked
// at once, so it is taken to be two.
double scan_cost(const std::vector<Segment>& segments, std::size_t bytes) {
    double total = 0;
    for (const Segment& segment : segments)
        total += static_cast<double>(segment.collection.count * bytes);
    return kUsualCosts.scan(total, 2);
}

// What reading all lists up to `expand` bits away costs. The query's own and those one bit away are
// looked up; those farther away are taken to be as long as these, or as the average.
double list_cost(const std::vector<Segment>& segments, const SlicedQuery& query,
                 std::size_t expand) {
    const Slicing& slicing = query.slicing;
    double number = 0, postings = 0;
    for (const Segment& segment : segments)
        std::visit(
            [&](const auto& lists) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(lists)>, std::monostate>)
                    for (std::size_t position = 0; position < slicing.count(); ++position) {
                        const std::size_t width = slicing.width(position);
                        const std::uint32_t value = query.values[position];
                        const auto size = [&](std::uint32_t of) {
                            return static_cast<double>(lists.list(position, of).size);
                        };
                        number += 1;
                        postings += size(value);
                        if (expand == 0)
                            continue;
                        double near = 0;
                        for (std::size_t bit = 0; bit < width; ++bit)
                            near += size(value ^ 1u << bit);
                        const auto bits = static_cast<double>(width);
                        const double length = std::max(
                            near / bits, static_cast<double>(lists.count) /
                                             static_cast<double>(std::uint64_t{1} << width));
                        number += bits;
                        postings += near;
                        for (std::size_t ones = 2; ones <= std::min(expand, width); ++ones) {
                            number += choose(width, ones);
                            postings += choose(width, ones) * length;
                        }
                    }
            },
            segment.lists);
    double rows = 0;
    for (const Segment& segment : segments)
        rows += static_cast<double>(segment.collection.count);
    const auto offsets =
        static_cast<double>(sizeof(std::uint32_t) * slicing.lists_before(slicing.count()));
    const double cost = number * (kUsualCosts.look_up() + 2 * kUsualCosts.missed(offsets)) +
                        postings * kUsualCosts.posting;
    // Many are added up in a table of all rows, which is then read.
    return postings > rows * kTableShare
               ? cost + kUsualCosts.read_byte * static_cast<double>(sizeof(std::uint16_t)) * rows
               : cost;
}

// All that the queries of one call have in common.
class TopSearch {
  public:
    TopSearch(const Slicing& slicing, const std::vector<Segment>& segments,
              const NearestSettings& settings, std::size_t list_threads,
              const bits::Checkpoint& checkpoint, const std::vector<std::size_t>& places,
              const NearestOutput& output)
        : slicing_(slicing),
          segments_(segments),
          settings_(settings),
          reading_(lists_to_read(slicing, segments, settings)),
          list_threads_(list_threads),
          checkpoint_(checkpoint),
          places_(places),
          output_(output) {
        const std::size_t first = settings.exact ? 0 : settings.expand;
        prepare(first);
        for (const Segment& segment : segments)
            alive_ += segment.alive;
    }

    // The number of queries to re-rank together: candidates of a few megabytes, but few enough that
    // an interruption is noticed soon.
    std::size_t group_size() const {
        if (settings_.exact)
            return 1;
        const auto candidates =
            static_cast<double>(std::clamp<std::size_t>(alive_, 1, settings_.rerank));
        const double cost = candidates * kUsualCosts.compare(slicing_.bits() / 8) +
                            postings() * kUsualCosts.posting + lists() * kUsualCosts.look_up();
        return static_cast<std::size_t>(
            std::clamp(std::min(kCandidatesAtOnce / candidates, kUninterrupted / cost), 1.0,
                       static_cast<double>(Reranking::kMostQueries)));
    }

    // How many postings a query reads, if values were equally frequent.
    double postings() const {
        double all = 0;
        for (const Segment& segment : segments_)
            if (segment.has_lists())
                all += postings_expected(slicing_, segment.collection.count, reading_.expand);
        return all;
    }

    // Answers queries from `first` on.
    void search_group(std::size_t first, const Signatures& queries) const {
        Reranking reranking(segments_, queries, settings_.k,
                            queries.count * std::min(settings_.rerank, alive_), settings_.by_score);
        std::vector<Chosen> chosen(queries.count);
        std::size_t at_once = block_size();
        for (std::size_t begin = 0; begin < queries.count;) {
            std::vector<SlicedQuery> sliced;
            for (std::size_t at = begin; at < std::min(begin + at_once, queries.count); ++at)
                sliced.emplace_back(slicing_, queries.row(at));
            const std::size_t wanted = sliced.size();
            auto blocks = posting_blocks(sliced, *near_, reading_);
            for (std::size_t at = 0; at < sliced.size(); ++at)
                choose(sliced[at], blocks, at, begin + at, reranking, chosen[begin + at]);
            begin += sliced.size();
            if (sliced.size() < wanted)
                at_once = sliced.size();  // they have more postings than was to be expected
        }
        reranking.run(list_threads_, checkpoint_);
        for (std::size_t at = 0; at < queries.count; ++at)
            write(first + at, reranking.nearest(at), chosen[at],
                  !settings_.by_score &&
                      is_exact(chosen[at], reranking.nearest(at), optimistic_, settings_),
                  settings_.expand);
    }

    // False if lists would take longer to prove an answer than a scan: then there is none.
    bool search_exactly(std::size_t index, const std::uint8_t* signature) const {
        std::vector<SlicedQuery> sliced{{slicing_, signature}};
        Chosen chosen;
        NearestSettings now = settings_;
        const bool lists = std::any_of(segments_.begin(), segments_.end(),
                                       [](const Segment& one) { return one.has_lists(); });
        for (now.expand = now.admit = 0; lists && now.expand <= slicing_.widest();
             ++now.expand, ++now.admit) {
            const Neighborhood near(slicing_, now.expand);
            const auto optimistic = optimistic_distances(slicing_, now.expand);
            auto blocks = posting_blocks(sliced, near, now);
            Reranking reranking(segments_, {signature, 1, slicing_.bits() / 8}, now.k,
                                std::min(settings_.rerank, alive_));
            const auto& nearest = reranking.nearest(0);
            Round round(segments_, sliced[0], 0, now, now, reranking);
            round.score(near, blocks, 0, list_threads_, checkpoint_, chosen.counters);
            if (now.explain)
                chosen.counters.candidates = round.count_candidates();
            chosen.reranked = round.choose_best(optimistic, chosen.counters);
            reranking.run(list_threads_, checkpoint_);
            chosen.rest = round.rest;
            if (const std::uint32_t least = lowest_doubtful(optimistic, chosen.rest, kth(nearest));
                least != 0 && kth(nearest)) {
                chosen.reranked += round.choose_rest(least, chosen.counters);
                reranking.run(list_threads_, checkpoint_);
                chosen.rest = round.rest;
            }
            if (is_exact(chosen, nearest, optimistic, now)) {
                write(index, reranking.nearest(0), chosen, true, now.expand);
                return true;
            }
            if (list_cost(segments_, sliced[0], now.expand + 1) >
                scan_cost(segments_, slicing_.bits() / 8))
                break;
        }
        write_work(index, chosen, now.expand);
        return false;
    }

  private:
    using Blocks = std::vector<std::optional<PostingBlock>>;

    // For each segment where that is quicker, the postings of as many queries as there is room for;
    // the others are taken off `queries`.
    Blocks posting_blocks(std::vector<SlicedQuery>& queries, const Neighborhood& near,
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

    // How many lists a query reads.
    double lists() const {
        double all = 0;
        for (const Segment& segment : segments_)
            if (segment.has_lists())
                all += static_cast<double>(lists_read(slicing_, *near_, reading_.expand));
        return all;
    }

    // Queries whose postings are read together.
    std::size_t block_size() const { return PostingBlock::queries_at_once(postings(), lists()); }

    // Hands the best candidates of a query on to be re-ranked. It is number `at` in its blocks and
    // `place` in its group.
    void choose(const SlicedQuery& query, Blocks& blocks, std::size_t at, std::size_t place,
                Reranking& reranking, Chosen& chosen) const {
        const bool complete = reading_.expand == settings_.expand;
        if (complete && segments_.size() == 1 && blocks[0] && blocks[0]->can_choose() &&
            !settings_.explain && settings_.cull == Cull::pessimistic) {
            chosen.rest =
                blocks[0]->choose(at, place, settings_.rerank, reranking, chosen.counters);
            chosen.reranked = static_cast<std::size_t>(chosen.counters.reranked);
            return;
        }
        Round round(segments_, query, place, settings_, reading_, reranking);
        round.score(*near_, blocks, at, list_threads_, checkpoint_, chosen.counters);
        if (settings_.explain)
            chosen.counters.candidates = round.count_candidates();
        chosen.reranked = round.choose_best(optimistic_, chosen.counters);
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

    void write(std::size_t query, Nearest& nearest, const Chosen& chosen, bool exact,
               std::size_t expanded) const {
        std::size_t at = places_[query] * settings_.k;
        for (const ScoredNeighbor& one : nearest.take_sorted()) {
            output_.ids[at] = one.id;
            output_.distances[at] =
                settings_.by_score ? -1 : static_cast<std::int32_t>(one.distance);
            output_.scores[at++] = static_cast<std::int32_t>(one.score);
        }
        output_.rest[places_[query]] = chosen.rest ? static_cast<std::int32_t>(*chosen.rest) : -1;
        output_.exact[places_[query]] = exact ? 1 : 0;
        write_work(query, chosen, expanded);
    }

    void write_work(std::size_t query, const Chosen& chosen, std::size_t expanded) const {
        const std::size_t place = places_[query];
        output_.lists[place] = chosen.counters.lists;
        output_.postings[place] = chosen.counters.postings;
        output_.candidates[place] = chosen.counters.candidates;
        output_.reranked[place] = settings_.by_score ? 0 : chosen.counters.reranked;
        output_.expanded[place] = static_cast<std::int64_t>(expanded);
    }

    const Slicing& slicing_;
    const std::vector<Segment>& segments_;
    const NearestSettings& settings_;
    NearestSettings reading_;  // of lists; the rest of the scores comes from signatures
    std::size_t list_threads_;
    const bits::Checkpoint& checkpoint_;
    const std::vector<std::size_t>& places_;  // where the answer of each query belongs
    const NearestOutput& output_;
    std::optional<Neighborhood> near_;
    std::vector<std::int32_t> optimistic_;
    std::size_t alive_ = 0;
};

// Which queries are marked, or are not.
std::vector<std::size_t> places_of(const std::vector<std::uint8_t>& marks, bool marked) {
    std::vector<std::size_t> places;
    for (std::size_t query = 0; query < marks.size(); ++query)
        if ((marks[query] != 0) == marked)
            places.push_back(query);
    return places;
}

// Compares queries with everything. A score is then of all bits.
void scan_part(const Slicing& slicing, const std::vector<Segment>& segments, const QueryPart& part,
               std::size_t k, std::size_t threads, const bits::Checkpoint& checkpoint,
               const NearestOutput& output) {
    std::vector<TopK> nearest(part.queries.count, TopK(k));
    std::int64_t compared = 0;
    for (const Segment& segment : segments) {
        const std::size_t most = std::min(k, segment.alive);
        std::vector<std::int64_t> ids(part.queries.count * most);
        std::vector<std::int32_t> distances(ids.size());
        scan_nearest(segment.collection, part.queries, most, threads, checkpoint, ids.data(),
                     distances.data(), segment.removed);
        for (std::size_t at = 0; at < ids.size(); ++at)
            nearest[at / most].push({static_cast<std::uint32_t>(distances[at]), ids[at]});
        compared += static_cast<std::int64_t>(segment.collection.count);
    }
    for (std::size_t query = 0; query < part.queries.count; ++query) {
        const std::size_t place = part.places[query];
        std::size_t at = place * k;
        for (const bits::Neighbor& one : nearest[query].take_sorted()) {
            output.ids[at] = one.id;
            output.distances[at] = static_cast<std::int32_t>(one.distance);
            output.scores[at++] = static_cast<std::int32_t>(slicing.bits() - one.distance);
        }
        output.rest[place] = -1;
        output.exact[place] = 1;
        output.candidates[place] = output.reranked[place] += compared;
        output.expanded[place] = static_cast<std::int64_t>(slicing.widest());
    }
}

}  // namespace

void slice_nearest(const Slicing& slicing, const std::vector<Segment>& segments,
                   const Signatures& queries, const NearestSettings& asked, std::size_t threads,
                   const bits::Checkpoint& checkpoint, const NearestOutput& output) {
    // A slice that may differ in all its bits makes every signature a candidate.
    NearestSettings settings = asked;
    if (settings.admit >= slicing.narrowest())
        settings.admit = std::max(settings.admit, settings.expand);
    std::vector<std::uint8_t> scanned(queries.count);
    if (settings.or_scan) {
        const double scan = scan_cost(segments, queries.bytes);
        const auto lists = lists_read(slicing, {slicing, settings.expand}, settings.expand);
        const bool never = static_cast<double>(lists) * kUsualCosts.look_up() > scan;
        bits::share_out(queries.count, threads, checkpoint, [&](std::size_t, std::size_t query) {
            scanned[query] =
                never || list_cost(segments, {slicing, queries.row(query)}, settings.expand) > scan;
        });
    }
    const QueryPart part(queries, places_of(scanned, false));
    const std::size_t count = part.queries.count;
    // Threads over queries where there are enough of them, else over the lists of each query.
    const bool enough = count >= threads;
    const TopSearch top(slicing, segments, settings, enough ? 1 : threads, checkpoint, part.places,
                        output);
    const std::size_t workers = enough ? threads : 1;
    const std::size_t fair = workers == 1 ? count : count / (4 * workers);
    const std::size_t at_once = std::clamp<std::size_t>(fair, 1, top.group_size());
    const std::size_t tasks = (count + at_once - 1) / at_once;
    bits::share_out(tasks, workers, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t first = task * at_once;
        if (settings.exact)
            scanned[part.places[first]] = !top.search_exactly(first, part.queries.row(first));
        else
            top.search_group(
                first, {part.queries.row(first), std::min(at_once, count - first), queries.bytes});
    });
    PostingBlock::free_unused(top.postings());
    const QueryPart rest(queries, places_of(scanned, true));
    if (rest.queries.count != 0)
        scan_part(slicing, segments, rest, settings.k, threads, checkpoint, output);
}

}  // namespace lookalike::search
