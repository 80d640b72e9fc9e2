#include "repeats/cover.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "repeats/cutting.hpp"

namespace lookalike::repeats {

namespace {

constexpr std::size_t kNone = SIZE_MAX;

Unit unit_of(Boundary boundary) {
    if (boundary == Boundary::line)
        return Unit::line;
    return boundary == Boundary::paragraph ? Unit::paragraph : Unit::sentence;
}

// Where the unit that begins at `begin` ends.
Position end_of_unit(std::string_view text, Unit unit, Position begin) {
    const std::vector<Position> begins = units_of(text, unit);
    const auto next = std::upper_bound(begins.begin(), begins.end(), begin);
    return next == begins.end() ? static_cast<Position>(text.size()) : *next;
}

// The words from a position on: as many as a window has, or those of a unit.
class Reading {
  public:
    Reading(const Texts& texts, Position position, const Choice& choice)
        : text_(texts.text_of(position)),
          reader_(texts.text(text_), texts.removed(text_), position - texts.begin(text_)),
          left_(choice.words == 0 ? kNone : choice.words) {
        if (choice.words == 0)
            end_ = end_of_unit(texts.text(text_), choice.unit, position - texts.begin(text_));
    }

    std::size_t text() const { return text_; }
    bool next() { return left_ != 0 && left_-- != 0 && further(); }
    // The word behind the window.
    bool further() { return reader_.next() && (end_ < 0 || reader_.begin() < end_); }
    const WordReader& at() const { return reader_; }

  private:
    std::size_t text_;
    WordReader reader_;
    std::size_t left_;
    Position end_ = -1;
};

bool equal_words(const Texts& texts, Position one, Position other, const Choice& choice) {
    Reading left(texts, one, choice), right(texts, other, choice);
    while (true) {
        const bool more = left.next();
        if (more != right.next())
            return false;
        if (!more)
            return true;
        if (left.at().word() != right.at().word())
            return false;
    }
}

// The positions of one kind of window or unit, ascending.
void add_copies(const Texts& texts, std::span<const Position> places, const Choice& choice,
                Copies& copies, UnitCounts* counts) {
    if (places.size() < 2)
        return;
    const auto add = [&](Position place, Position first) {
        copies.places.push_back(place);
        copies.firsts.push_back(first);
    };
    if (choice.near()) {
        for (std::size_t at = 0; at < places.size(); ++at) {
            const std::size_t end = choice.every ? places.size() : at;
            for (std::size_t one = 0; one < std::min(end, choice.most_places); ++one)
                if (one != at)
                    add(places[at], places[one]);
            if (!choice.every && at < choice.most_places && at + 1 < places.size())
                add(places[at], places[at]);
        }
        return;
    }
    if (choice.words != 0) {
        for (const Position place : places) {
            if (place != places.front() || !choice.every)
                add(place, places.front());
            if (choice.every && place != places.back())
                add(place, places.back());
        }
        return;
    }
    std::vector<std::size_t> ranks;
    for (const Position place : places)
        ranks.push_back(texts.rank_of(place));
    std::int64_t different = 1;
    for (std::size_t at = 1; at < ranks.size(); ++at)
        different += ranks[at] != ranks[at - 1];
    bool found = false;
    for (std::size_t at = 0, first = 0; at < places.size(); ++at) {
        if (ranks[at] != ranks[first])
            first = at;  // of this text
        const bool twice = at != first || (at + 1 < ranks.size() && ranks[at + 1] == ranks[at]);
        const std::size_t kept = different > choice.most_texts ? 0 : first;
        if (different <= choice.most_texts && !twice)
            continue;
        if (at != kept)
            add(places[at], places[kept]);
        else if (choice.every)
            add(places[at], places[kept + 1]);
        else
            continue;
        found = true;
    }
    if (found && counts != nullptr) {
        counts->firsts.push_back(places.front());
        counts->texts.push_back(different);
        counts->places.push_back(static_cast<std::int64_t>(places.size()));
    }
}

// Windows of a text that were compared, one after the other, with the words of another place.
struct Run {
    std::size_t first, last;  // windows
    std::size_t text;
    Position far;                        // number of the first word of a copy elsewhere, or -1
    WordReader own, other;               // behind the last window
    std::vector<Position> begins, ends;  // of the words of a copy that is here
    Position farthest = 0;               // where the copy of a run that follows can begin
    std::size_t words_before = 0, words_behind = 0;  // of runs that it follows, or that follow it

    std::size_t size() const { return begins.size(); }
    std::size_t end() const { return first + size(); }
    bool goes_on(std::size_t window, Position copy) const {
        return last + 1 == window && begin_of(window - first) == copy;
    }
    // Where a word of the copy begins and ends.
    Position begin_of(std::size_t word) const {
        return far < 0 ? begins[word] : far + static_cast<Position>(word);
    }
    Position end_of(std::size_t word) const {
        return far < 0 ? ends[word] : far + static_cast<Position>(word) + 1;
    }
};

// Finds what to remove from one text.
class Coverer {
  public:
    Coverer(const Texts& texts, const Choice& choice, Boundary boundary, std::size_t number,
            WordLister& lister)
        : texts_(texts),
          choice_(choice),
          boundary_(boundary),
          number_(number),
          spliced_(texts.text(number), texts.removed(number)),
          words_(lister.list(spliced_.text())),
          run_of_(words_.size(), kNone),
          first_copy_(words_.size(), false) {}

    // Copies in this text, by place.
    void cover(std::span<const Position> places, std::span<const Position> firsts,
               Removals& removals) {
        std::size_t word = 0;
        for (std::size_t at = 0; at < places.size(); ++at) {
            word = word_at(places[at], word);
            if (places[at] == firsts[at])
                mark_first_copy(word);
            else if (choice_.near())
                add_to_run(word, firsts[at], removals);
            else if (choice_.words != 0)
                cover_window(word, firsts[at], removals);
            else
                cover_unit(word, places[at], firsts[at], removals);
        }
        remove(removals);
    }

    // The copies `begin` to `end`, which are in this text.
    void cover_far(const FarCopies& copies, std::size_t begin, std::size_t end,
                   Removals& removals) {
        const std::int64_t own = copies.own[number_];
        std::size_t word = 0;
        for (std::size_t at = begin; at < end; ++at) {
            word = word_at(copies.places[at], word);
            const auto document = static_cast<std::size_t>(copies.documents[at]);
            if (choice_.words == 0)
                units_.push_back({copies.places[at] - texts_.begin(number_), word, document,
                                  copies.words[at], -1});
            else if (words_.size() - word < choice_.words)
                ++removals.collisions;  // no window begins there
            else if (copies.documents[at] == own && copies.words[at] == static_cast<Position>(word))
                mark_first_copy(word);
            else
                cover_far_window(word, document, copies.words[at], copies.documents[at] == own);
        }
        remove(removals);
    }

  private:
    std::size_t word_at(Position place, std::size_t word) const {
        const Position begin = spliced_.place_of(place - texts_.begin(number_));
        while (word + 1 < words_.size() && words_.begins[word] < begin)
            ++word;
        return word;
    }

    void mark_first_copy(std::size_t word) {
        std::fill_n(first_copy_.begin() + static_cast<std::ptrdiff_t>(word), choice_.words, true);
    }

    void remove(Removals& removals) {
        if (choice_.near())
            cover_passages();
        if (choice_.words == 0)
            remove_units(removals);
        else
            remove_words(removals);
    }

    // A run at `window` with the words of a copy; nothing if they are not the same.
    bool begin_run(std::size_t window, std::size_t text, Position copy) {
        runs_.push_back({window,
                         window,
                         text,
                         -1,
                         WordReader(texts_.text(number_), texts_.removed(number_),
                                    spliced_.original(words_.begins[window])),
                         WordReader(texts_.text(text), texts_.removed(text), copy),
                         {},
                         {}});
        for (std::size_t word = 0; word < choice_.words; ++word)
            if (!agrees(runs_.back())) {
                runs_.pop_back();
                return false;
            }
        return true;
    }

    bool overlaps_copy(const Run& run, std::size_t window, Position copy) const {
        if (run.text != number_)
            return false;
        const Position own = spliced_.original(words_.begins[window]);
        const Position own_end = spliced_.original(words_.ends[window + choice_.words - 1] - 1);
        return copy < own ? run.ends.back() > own : own_end >= copy;
    }

    // A window of a passage and one of its copies.
    void add_to_run(std::size_t window, Position first, Removals& removals) {
        const std::size_t text = texts_.text_of(first);
        const Position copy = first - texts_.begin(text);
        std::erase_if(open_, [&](std::size_t run) {
            if (runs_[run].last + 1 >= window)
                return false;
            end_run(runs_[run]);
            return true;
        });
        for (const std::size_t run : open_) {
            if (runs_[run].text != text || !runs_[run].goes_on(window, copy))
                continue;
            if (agrees(runs_[run]))
                runs_[run].last = window;
            else
                ++removals.collisions;
            return;
        }
        if (!begin_run(window, text, copy))
            ++removals.collisions;
        else if (overlaps_copy(runs_.back(), window, copy))
            runs_.pop_back();
        else
            open_.push_back(runs_.size() - 1);
    }

    // Finds the place up to which the copy of a run that follows may begin.
    void end_run(Run& run) const {
        for (std::size_t word = 0; word <= choice_.gap; ++word) {
            if (!run.other.next()) {
                run.farthest = std::numeric_limits<Position>::max();
                return;
            }
            run.farthest = run.other.begin();
        }
    }

    bool follows(const Run& run, const Run& before) const {
        return run.first > before.first && run.end() > before.end() &&
               run.begins.front() > before.begins.front() && run.ends.back() > before.ends.back() &&
               run.first <= before.end() + choice_.gap && run.begins.front() <= before.farthest;
    }

    // Of runs that follow each other, those that have enough words cover theirs.
    void cover_passages() {
        for (const std::size_t run : open_)
            end_run(runs_[run]);
        std::vector<std::size_t> order(runs_.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t two) {
            return runs_[one].text < runs_[two].text;  // of a text, by where they begin
        });
        std::vector<std::pair<std::size_t, std::size_t>> steps;
        std::vector<std::size_t> near;
        for (std::size_t at = 0; at < order.size(); ++at) {
            Run& run = runs_[order[at]];
            run.words_before = run.words_behind = run.size();
            if (at == 0 || runs_[order[at - 1]].text != run.text)
                near.clear();
            std::erase_if(
                near, [&](std::size_t one) { return runs_[one].end() + choice_.gap < run.first; });
            for (const std::size_t one : near) {
                const Run& before = runs_[one];
                if (!follows(run, before))
                    continue;
                steps.emplace_back(one, order[at]);
                run.words_before =
                    std::max(run.words_before,
                             before.words_before + run.end() - std::max(run.first, before.end()));
            }
            near.push_back(order[at]);
        }
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            Run& run = runs_[step->first];
            const Run& behind = runs_[step->second];
            run.words_behind =
                std::max(run.words_behind,
                         behind.words_behind + std::min(behind.first, run.end()) - run.first);
        }
        for (std::size_t run = 0; run < runs_.size(); ++run) {
            const Run& found = runs_[run];
            if (found.words_before + found.words_behind - found.size() < choice_.least)
                continue;
            for (std::size_t word = found.first; word < found.end(); ++word)
                if (run_of_[word] == kNone)
                    run_of_[word] = run;
        }
    }

    // The run that a window goes on, or none.
    std::size_t run_before(std::size_t window, std::size_t text, Position copy) {
        std::size_t run = kNone;
        for (std::size_t one = active_; one < runs_.size(); ++one)
            if (runs_[one].text == text && runs_[one].goes_on(window, copy))
                run = one;
        if (run == kNone)
            while (active_ < runs_.size() && runs_[active_].last + 1 < window)
                ++active_;
        return run;
    }

    void cover_far_window(std::size_t window, std::size_t document, Position copy, bool is_own) {
        std::size_t run = run_before(window, document, copy);
        if (run == kNone) {
            const WordReader nothing({}, {}, 0);
            runs_.push_back({window, window, document, copy, nothing, nothing, {}, {}});
            run = runs_.size() - 1;
        }
        runs_[run].last = window;
        const auto words = static_cast<Position>(choice_.words);
        const auto own = static_cast<Position>(window);
        if (is_own && copy < own + words && own < copy + words)
            return;  // they overlap
        take(window, run);
    }

    // Lets a run have the words of a window that no other has.
    void take(std::size_t window, std::size_t run) {
        for (std::size_t word = std::max(window, covered_); word < window + choice_.words; ++word)
            run_of_[word] = run;
        covered_ = window + choice_.words;
    }

    void cover_window(std::size_t window, Position first, Removals& removals) {
        const std::size_t text = texts_.text_of(first);
        const Position copy = first - texts_.begin(text);
        std::size_t run = run_before(window, text, copy);
        if (run == kNone) {
            if (!begin_run(window, text, copy)) {
                ++removals.collisions;
                return;
            }
            run = runs_.size() - 1;
        } else if (agrees(runs_[run])) {
            runs_[run].last = window;
        } else {
            ++removals.collisions;
            return;
        }
        if (!overlaps_copy(runs_[run], window, copy))
            take(window, run);
    }

    static bool agrees(Run& run) {
        if (!run.own.next() || !run.other.next() || run.own.word() != run.other.word())
            return false;
        run.begins.push_back(run.other.begin());
        run.ends.push_back(run.other.end());
        return true;
    }

    void cover_unit(std::size_t word, Position place, Position first, Removals& removals) {
        if (!equal_words(texts_, place, first, choice_)) {
            ++removals.collisions;
            return;
        }
        const std::size_t text = texts_.text_of(first);
        const Position begin = first - texts_.begin(text);
        const Position end = end_of_unit(texts_.text(text), choice_.unit, begin);
        units_.push_back({place - texts_.begin(number_), word, text, begin, end});
    }

    void remove_units(Removals& removals) {
        const std::vector<Position> begins = units_of(spliced_.text(), choice_.unit);
        for (const CoveredUnit& unit : units_) {
            const auto at = static_cast<std::size_t>(
                std::lower_bound(begins.begin(), begins.end(), unit.begin) - begins.begin());
            const Range range = unit_range(spliced_.text(), begins, at, choice_.unit);
            std::size_t end = unit.word;
            while (end < words_.size() && words_.begins[end] < range.end)
                ++end;
            add(removals, range, end - unit.word, unit.text, unit.copy_begin, unit.copy_end);
        }
    }

    void remove_words(Removals& removals) {
        std::vector<char> removed(words_.size());
        for (std::size_t word = 0; word < words_.size(); ++word)
            removed[word] = run_of_[word] != kNone;
        std::vector<Position> begins;
        if (boundary_ != Boundary::word) {
            begins = units_of(spliced_.text(), unit_of(boundary_));
            std::size_t word = 0;
            for (std::size_t unit = 0; unit < begins.size(); ++unit) {
                const std::size_t first = word;
                std::size_t count = 0;
                bool needed = false;
                for (; word < words_.size() &&
                       (unit + 1 == begins.size() || words_.begins[word] < begins[unit + 1]);
                     ++word) {
                    count += removed[word] != 0;
                    needed = needed || (removed[word] == 0 && first_copy_[word]);
                }
                const bool whole = 2 * count > word - first && !needed;
                if (whole || boundary_ != Boundary::automatic)
                    std::fill(removed.begin() + static_cast<std::ptrdiff_t>(first),
                              removed.begin() + static_cast<std::ptrdiff_t>(word), whole);
            }
        }
        const bool by_units = boundary_ != Boundary::word && boundary_ != Boundary::automatic;
        for (std::size_t word = 0; word < words_.size();) {
            if (removed[word] == 0) {
                ++word;
                continue;
            }
            const std::size_t first = word;
            while (word < words_.size() && removed[word] != 0)
                ++word;
            if (by_units)
                remove_whole_units(begins, first, word, removals);
            else if (const auto cut = cut_words(spliced_.text(), words_, first, word))
                add_pieces(removals, cut->range, first, cut->last);
        }
    }

    // Words that are those of whole units.
    void remove_whole_units(const std::vector<Position>& begins, std::size_t first,
                            std::size_t last, Removals& removals) {
        const Unit unit = unit_of(boundary_);
        while (first < last) {
            const auto at = static_cast<std::size_t>(
                std::upper_bound(begins.begin(), begins.end(), words_.begins[first]) -
                begins.begin() - 1);
            const Range range = unit_range(spliced_.text(), begins, at, unit);
            std::size_t end = first;
            while (end < last && words_.begins[end] < range.end)
                ++end;
            add_pieces(removals, range, first, end);
            first = end;
        }
    }

    // A range of bytes with these words: a part of it for each run that they are from.
    void add_pieces(Removals& removals, Range range, std::size_t first, std::size_t last) {
        std::size_t run = kNone;
        for (std::size_t word = first; word < last && run == kNone; ++word)
            run = run_of_[word];
        if (run == kNone)
            return;
        std::size_t begin = first;
        Position from = range.begin;
        for (std::size_t word = first; word <= last; ++word) {
            const std::size_t next = word < last && run_of_[word] != kNone ? run_of_[word] : run;
            if (word < last && next == run)
                continue;
            // Words that a unit added to those of the run are not in the copy.
            const Run& copy = runs_[run];
            std::size_t copied = begin, copied_end = word;
            while (run_of_[copied] != run)
                ++copied;
            while (run_of_[copied_end - 1] != run)
                --copied_end;
            const Position to = word < last ? words_.begins[word] : range.end;
            add(removals, {from, to}, word - begin, copy.text, copy.begin_of(copied - copy.first),
                copy.end_of(copied_end - 1 - copy.first));
            begin = word;
            from = to;
            run = next;
        }
    }

    void add(Removals& removals, Range range, std::size_t words, std::size_t copy_text,
             Position copy_begin, Position copy_end) const {
        auto left = static_cast<std::int64_t>(words);
        spliced_.each_part(range, [&](Position begin, Position end) {
            removals.texts.push_back(static_cast<std::int64_t>(number_));
            removals.begins.push_back(begin);
            removals.ends.push_back(end);
            removals.words.push_back(left);
            removals.copy_texts.push_back(static_cast<std::int64_t>(copy_text));
            removals.copy_begins.push_back(copy_begin);
            removals.copy_ends.push_back(copy_end);
            left = 0;  // of a range in several parts, the first has the words
        });
    }

    struct CoveredUnit {
        Position begin;
        std::size_t word, text;
        Position copy_begin, copy_end;
    };

    const Texts& texts_;
    const Choice& choice_;
    Boundary boundary_;
    std::size_t number_;
    Spliced spliced_;
    const Words& words_;
    std::deque<Run> runs_;
    std::vector<std::size_t> open_;  // runs of passages that may go on
    std::size_t active_ = 0;         // runs before this one have ended
    std::size_t covered_ = 0;        // words before this one are decided
    std::vector<std::size_t> run_of_;
    std::vector<bool> first_copy_;
    std::vector<CoveredUnit> units_;
};

}  // namespace

Copies copies_of(const Texts& texts, const Hashed& sorted, const Choice& choice,
                 UnitCounts* counts) {
    Copies copies;
    const std::size_t count = sorted.hashes.size();
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        while (end < count && sorted.hashes[end] == sorted.hashes[begin])
            ++end;
        const std::span<const Position> places(sorted.positions.data() + begin, end - begin);
        if (!choice.compared) {
            add_copies(texts, places, choice, copies, counts);
            continue;
        }
        std::vector<std::vector<Position>> kinds;
        for (const Position place : places) {
            const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
                return equal_words(texts, kind.front(), place, choice);
            });
            if (same == kinds.end())
                kinds.push_back({place});
            else
                same->push_back(place);
        }
        for (const auto& kind : kinds)
            add_copies(texts, kind, choice, copies, counts);
    }
    return copies;
}

void Removals::append(const Removals& more) {
    const auto add = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    add(texts, more.texts);
    add(begins, more.begins);
    add(ends, more.ends);
    add(words, more.words);
    add(copy_texts, more.copy_texts);
    add(copy_begins, more.copy_begins);
    add(copy_ends, more.copy_ends);
    collisions += more.collisions;
}

Removals removals_of(const Texts& texts, Copies copies, const Choice& choice, Boundary boundary,
                     std::size_t threads, const bits::Checkpoint& checkpoint) {
    const std::size_t count = copies.places.size();
    struct Pair {
        Position place, first;
    };
    std::vector<Pair> pairs(count);
    for (std::size_t at = 0; at < count; ++at)
        pairs[at] = {copies.places[at], copies.firsts[at]};
    std::sort(pairs.begin(), pairs.end(), [](const Pair& one, const Pair& two) {
        return one.place != two.place ? one.place < two.place : one.first < two.first;
    });
    std::vector<std::size_t> begins;  // of texts
    for (std::size_t at = 0; at < count; ++at) {
        copies.places[at] = pairs[at].place;
        copies.firsts[at] = pairs[at].first;
        if (at == 0 || texts.rank_of(pairs[at].place) != texts.rank_of(pairs[at - 1].place))
            begins.push_back(at);
    }
    begins.push_back(count);
    pairs = {};
    std::vector<Removals> parts(begins.size() - 1);
    std::vector<WordLister> listers(std::max<std::size_t>(1, threads));
    bits::share_out(parts.size(), threads, checkpoint, [&](std::size_t worker, std::size_t part) {
        const std::size_t begin = begins[part], length = begins[part + 1] - begin;
        Coverer coverer(texts, choice, boundary, texts.text_of(copies.places[begin]),
                        listers[worker]);
        coverer.cover(std::span(copies.places).subspan(begin, length),
                      std::span(copies.firsts).subspan(begin, length), parts[part]);
    });
    Removals all;
    for (const Removals& part : parts)
        all.append(part);
    return all;
}

Removals far_removals_of(const Texts& texts, const FarCopies& copies, const Choice& choice,
                         Boundary boundary, std::size_t threads,
                         const bits::Checkpoint& checkpoint) {
    const std::size_t count = copies.places.size();
    std::vector<std::size_t> begins;  // of texts
    for (std::size_t at = 0; at < count; ++at)
        if (at == 0 || texts.rank_of(copies.places[at]) != texts.rank_of(copies.places[at - 1]))
            begins.push_back(at);
    begins.push_back(count);
    std::vector<Removals> parts(begins.size() - 1);
    std::vector<WordLister> listers(std::max<std::size_t>(1, threads));
    bits::share_out(parts.size(), threads, checkpoint, [&](std::size_t worker, std::size_t part) {
        Coverer coverer(texts, choice, boundary, texts.text_of(copies.places[begins[part]]),
                        listers[worker]);
        coverer.cover_far(copies, begins[part], begins[part + 1], parts[part]);
    });
    Removals all;
    for (const Removals& part : parts)
        all.append(part);
    return all;
}

}  // namespace lookalike::repeats
