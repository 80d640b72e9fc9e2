// One query at one expansion: which candidates are best by score, to be re-ranked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "slices/rerank.hpp"
#include "slices/scoring/scores.hpp"

namespace lookalike::search {

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
// of the tables, of scores up to 255.
inline std::uint32_t likely_threshold(std::vector<SegmentScores>& scored, std::size_t wanted) {
    constexpr std::size_t kRun = 64, kSampled = 8 << 10, kMostApart = 32;
    std::vector<std::uint8_t> sample;  // of candidates; the others count, too
    double all = 0, sampled = 0;
    for (SegmentScores& part : scored) {
        if (!part.dense()) {
            for (const ScoredRow& one : part.list())
                sample.push_back(static_cast<std::uint8_t>(std::min(one.score, 255u)));
            all += static_cast<double>(part.list().size());
            sampled += static_cast<double>(part.list().size());
            continue;
        }
        const ScoreTable& table = part.table();
        const std::size_t step =
            kRun * std::clamp<std::size_t>(table.rows() / kSampled, 1, kMostApart);
        for (std::size_t begin = 0; begin < table.rows(); begin += step) {
            const std::size_t end = std::min(table.rows(), begin + kRun);
            table.copy_candidates(begin, end, sample);
            sampled += static_cast<double>(end - begin);
        }
        all += static_cast<double>(table.rows());
    }
    if (sample.empty())
        return 1;
    const double target = static_cast<double>(wanted) * sampled / all * 1.3 + 8;
    // The largest score that `target` rows of the sample reach, by halves; 1 if fewer do.
    std::uint32_t least = 1;
    for (std::uint32_t step = 128; step != 0; step /= 2)
        if (least + step <= UINT8_MAX &&
            static_cast<double>(score_loops().count_from(
                sample.data(), sample.size(), static_cast<std::uint8_t>(least + step))) >= target)
            least += step;
    return least;
}

// One query at one expansion: the scored segments, and what was chosen of them.
class Round {
  public:
    // `place` is the number of the query among those that are re-ranked together.
    // `reading` says which lists are read: see `lists_to_read`.
    Round(const std::vector<Segment>& segments, const SlicedQuery& query, std::size_t place,
          const NearestSettings& settings, const NearestSettings& reading, Reranking& reranking)
        : segments_(segments),
          query_(query),
          place_(place),
          settings_(settings),
          reading_(reading),
          reranking_(reranking) {}

    // Scores all segments; `blocks` has the postings of those where they are few, at `place`.
    void score(const Neighborhood& near, std::vector<std::optional<PostingBlock>>& blocks,
               std::size_t place, std::size_t threads, const bits::Checkpoint& checkpoint,
               Counters& counters) {
        threads_ = threads;
        checkpoint_ = &checkpoint;
        for (std::size_t number = 0; number < segments_.size(); ++number) {
            scored_.emplace_back();
            const Segment& segment = segments_[number];
            if (blocks[number])
                blocks[number]->score(place, scored_.back(), counters);
            else
                score_segment(segment, query_, near, segment.has_lists() ? reading_ : settings_,
                              threads, checkpoint, scored_.back(), counters);
            if (segment.has_lists() && reading_.expand < settings_.expand)
                score_rest(segment, query_, near, settings_, threads, checkpoint, scored_.back(),
                           counters);
        }
    }

    // Hands the best `rerank` candidates on to be re-ranked, and returns how many that are.
    // Afterwards `rest` is the best score among the others, or more, or nothing if there are none.
    std::size_t choose_best(const std::vector<std::int32_t>& optimistic, Counters& counters) {
        if (settings_.cull != Cull::pessimistic) {
            choose_culled(optimistic);
            return hand_on(candidates_, counters);
        }
        const bool exactly_known = std::none_of(scored_.begin(), scored_.end(),
                                                [](const auto& part) { return part.dense(); });
        if (exactly_known)
            choose_listed();
        else
            choose_from_tables();
        return hand_on(candidates_, counters);
    }

    // Hands on all other candidates with a score from `least` up.
    std::size_t choose_rest(std::uint32_t least, Counters& counters) {
        // Those chosen before are the best by (score, id), so the others come after the last.
        const Candidate last = candidates_.empty()
                                   ? Candidate{UINT32_MAX, 0, 0, -1}
                                   : *std::max_element(candidates_.begin(), candidates_.end());
        std::vector<Candidate> more;
        collect(least, more);
        std::erase_if(more, [&](const Candidate& one) { return !(last < one); });
        rest = least > 1 ? std::optional(least - 1) : std::nullopt;
        return hand_on(more, counters);
    }

    std::int64_t count_candidates() {
        std::int64_t total = 0;
        for (std::size_t number = 0; number < segments_.size(); ++number)
            total += scored_[number].candidates(segments_[number]);
        return total;
    }

    std::optional<std::uint32_t> rest;

  private:
    static constexpr std::size_t kSweptApart = 1 << 20;  // scores that are worth a thread

    // Those with more than a score, and of those with just that the first ones.
    struct Swept {
        std::vector<Candidate> above, ties;
    };

    // Goes through the scores of a segment from `least` up; of those with just that score, more
    // than `most_ties` need not be kept. Shared among threads, in the order of rows.
    std::vector<Swept> sweep(std::size_t number, std::uint32_t least, std::size_t most_ties) {
        const Segment& segment = segments_[number];
        SegmentScores& scores = scored_[number];
        const std::size_t bits = query_.slicing.bits();
        const std::size_t parts =
            scores.dense()
                ? std::clamp<std::size_t>(scores.table().rows() / kSweptApart, 1, threads_)
                : 1;
        std::vector<Swept> swept(parts);
        const auto go_through = [&](std::size_t, std::size_t part) {
            Swept own;
            std::uint32_t wanted = least;
            scores.each(
                segment, wanted,
                [&](std::uint64_t row, std::uint32_t score) {
                    if (score > bits)
                        throw CorruptLists();
                    const Candidate one{score, static_cast<std::uint32_t>(number), row,
                                        segment.collection.id(row)};
                    if (score > least)
                        own.above.push_back(one);
                    else if (own.ties.size() < most_ties)
                        own.ties.push_back(one);
                    else
                        wanted = least + 1;  // there are more than enough
                },
                part, parts);
            swept[part] = std::move(own);
        };
        if (parts == 1)
            go_through(0, 0);
        else
            bits::share_out(parts, parts, *checkpoint_, go_through);
        return swept;
    }

    // Appends `more`; the first ones stay where they are.
    static void append(std::vector<Candidate>& candidates, std::vector<Candidate>&& more) {
        if (candidates.empty())
            candidates = std::move(more);
        else
            candidates.insert(candidates.end(), more.begin(), more.end());
    }

    // Appends candidates with a score from `least` up.
    void collect(std::uint32_t least, std::vector<Candidate>& candidates) {
        for (std::size_t number = 0; number < segments_.size(); ++number)
            for (Swept& part : sweep(number, least, SIZE_MAX)) {
                append(candidates, std::move(part.above));
                append(candidates, std::move(part.ties));
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
        std::uint32_t least = likely_threshold(scored_, settings_.rerank);
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
        std::vector<Candidate> ties;
        for (Swept& part : sweep(0, least, settings_.rerank + 1)) {
            append(candidates_, std::move(part.above));
            append(ties, std::move(part.ties));
        }
        if (candidates_.size() > settings_.rerank) {
            keep_best(least + 1);
            return true;
        }
        const std::size_t missing = settings_.rerank - candidates_.size();
        const bool more = ties.size() > missing;
        candidates_.insert(candidates_.end(), ties.begin(),
                           more ? ties.begin() + static_cast<std::ptrdiff_t>(missing) : ties.end());
        if (more)
            rest = least;
        return more;
    }

    // Calls visit(segment, row, score) for all candidates.
    template <class Visit>
    void each_candidate(Visit visit) {
        const std::uint32_t least = 1;
        for (std::size_t number = 0; number < segments_.size(); ++number)
            scored_[number].each(
                segments_[number], least,
                [&](std::uint64_t row, std::uint32_t score) { visit(number, row, score); });
    }

    // Chooses by what scores allow, which is not in the order of scores.
    void choose_culled(const std::vector<std::int32_t>& optimistic) {
        const std::size_t bits = query_.slicing.bits();
        Histogram histogram(bits);
        each_candidate(
            [&](std::size_t, std::uint64_t, std::uint32_t score) { histogram.add(score); });
        std::vector<std::uint32_t> scores;  // that there are, best first
        for (std::size_t score = bits; score > 0; --score)
            if (histogram.of(score) != 0)
                scores.push_back(static_cast<std::uint32_t>(score));
        std::vector<std::uint8_t> kept(bits + 1);
        std::uint32_t last = 0;  // a score of which some are kept, by id
        std::size_t last_kept = 0;
        if (settings_.cull == Cull::both) {
            std::size_t above = 0;
            auto kth = static_cast<std::int64_t>(bits);  // what the k-th is at most away
            for (const std::uint32_t score : scores)
                if ((above += histogram.of(score)) >= settings_.k) {
                    kth -= score;
                    break;
                }
            for (const std::uint32_t score : scores)
                kept[score] = optimistic[score] <= kth;
        } else {
            std::stable_sort(scores.begin(), scores.end(), [&](std::uint32_t a, std::uint32_t b) {
                return optimistic[a] < optimistic[b];
            });
            std::size_t room = settings_.rerank;
            for (const std::uint32_t score : scores) {
                const std::size_t here = histogram.of(score);
                if (here > room) {
                    rest = std::max(rest.value_or(0), score);
                    if (room != 0) {
                        last = score;
                        last_kept = room;
                    }
                    room = 0;
                    continue;
                }
                kept[score] = 1;
                room -= here;
            }
        }
        std::vector<Candidate> ties;
        each_candidate([&](std::size_t number, std::uint64_t row, std::uint32_t score) {
            if (kept[score] == 0 && score != last)
                return;
            (score == last ? ties : candidates_)
                .push_back({score, static_cast<std::uint32_t>(number), row,
                            segments_[number].collection.id(row)});
        });
        if (last_kept != 0) {
            const auto end = ties.begin() + static_cast<std::ptrdiff_t>(last_kept);
            std::nth_element(ties.begin(), end, ties.end());
            candidates_.insert(candidates_.end(), ties.begin(), end);
        }
        if (candidates_.size() > settings_.rerank)
            keep_best(1);
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

    std::size_t hand_on(const std::vector<Candidate>& candidates, Counters& counters) {
        for (const Candidate& one : candidates)
            reranking_.adder(place_, one.segment).add(one.row, one.score);
        counters.reranked += static_cast<std::int64_t>(candidates.size());
        return candidates.size();
    }

    const std::vector<Segment>& segments_;
    const SlicedQuery& query_;
    std::size_t place_;
    const NearestSettings& settings_;
    const NearestSettings& reading_;
    Reranking& reranking_;
    std::size_t threads_ = 1;
    const bits::Checkpoint* checkpoint_ = nullptr;
    std::vector<SegmentScores> scored_;
    std::vector<Candidate> candidates_;
};

}  // namespace lookalike::search
