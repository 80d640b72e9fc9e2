#include "words/index.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "words/bags.hpp"

namespace lookalike::words {

namespace {

constexpr std::uint32_t kWindow = 1 << 14;  // documents whose sums fit into the cache

struct Posting {
    std::uint64_t word;
    std::uint32_t document;
    std::uint8_t count;
};

// Sorts by word, keeping the order of documents: one byte of the 40 bits after the other.
void sort_by_word(std::vector<Posting>& postings) {
    std::vector<Posting> other(postings.size());
    for (unsigned shift = 0; shift < 40; shift += 8) {
        std::array<std::size_t, 257> begins{};
        for (const Posting& one : postings)
            ++begins[(one.word >> shift & 255) + 1];
        for (std::size_t value = 1; value < begins.size(); ++value)
            begins[value] += begins[value - 1];
        for (const Posting& one : postings)
            other[begins[one.word >> shift & 255]++] = one;
        postings.swap(other);
    }
}

// A list of documents that have a word, in one segment.
struct List {
    std::span<const std::uint32_t> documents;
    const std::uint8_t* counts;
    std::uint32_t weight;
    std::size_t at = 0;

    // Goes on to the first document that is not before `document`.
    void advance(std::uint32_t document) {
        std::size_t step = 1, low = at;
        while (at + step < documents.size() && documents[at + step] < document) {
            low = at + step;
            step *= 2;
        }
        const std::size_t high = std::min(documents.size(), at + step + 1);
        const std::uint32_t* const all = documents.data();
        at = static_cast<std::size_t>(std::lower_bound(all + low, all + high, document) - all);
    }
};

List list_of(const Segment& segment, std::uint64_t word) {
    const auto found = std::lower_bound(segment.words.begin(), segment.words.end(), word);
    if (found == segment.words.end() || *found != word)
        return {{}, nullptr, 0};
    const auto place = static_cast<std::size_t>(found - segment.words.begin());
    const auto begin = static_cast<std::size_t>(segment.offsets[place]);
    const auto end = static_cast<std::size_t>(segment.offsets[place + 1]);
    return {segment.documents.subspan(begin, end - begin), segment.counts.data() + begin, 0};
}

// How many of the documents of a list are not removed.
std::size_t count_living(std::span<const std::uint32_t> documents,
                         std::span<const std::uint32_t> removed) {
    const bool few = removed.size() < documents.size();
    const auto some = few ? removed : documents;
    const auto among = few ? documents : removed;
    std::size_t both = 0;
    auto from = among.begin();
    for (const std::uint32_t one : some) {
        from = std::lower_bound(from, among.end(), one);
        if (from == among.end())
            break;
        both += *from == one;
    }
    return documents.size() - both;
}

struct Scored {
    std::uint32_t score;
    std::int64_t number;
    std::uint32_t segment, document;

    // The better of two: a heap then has the worst on top.
    friend bool operator<(const Scored& a, const Scored& b) {
        return a.score != b.score ? a.score > b.score : a.number < b.number;
    }
};

// The best so far. Documents come in ascending order of their numbers, so of two with the same
// score the first is the better one.
class Best {
  public:
    explicit Best(std::size_t k) : k_(k) {}

    // A document needs a larger score than this.
    std::uint32_t threshold() const { return threshold_; }

    void push(const Scored& one) {
        if (heap_.size() == k_) {
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.back() = one;
        } else {
            heap_.push_back(one);
        }
        std::push_heap(heap_.begin(), heap_.end());
        if (heap_.size() == k_)
            threshold_ = heap_.front().score;
    }

    std::vector<Scored> take_sorted() {
        std::sort_heap(heap_.begin(), heap_.end());
        return std::move(heap_);
    }

  private:
    std::size_t k_;
    std::uint32_t threshold_ = 0;
    std::vector<Scored> heap_;
};

// Searches one segment. Lists are sorted by weight. A document that has only words of the first
// lists, whose weights add up to no more than the threshold, is not among the best. So documents
// are taken from the other lists, the essential ones, and looked up in the first ones while they
// can still get there (MaxScore: Turtle and Flood, 1995).
class SegmentSearch {
  public:
    SegmentSearch(const Segment& segment, std::uint32_t number, std::vector<List> lists,
                  float constant, float per_length, Best& best)
        : segment_(segment),
          number_(number),
          lists_(std::move(lists)),
          constant_(constant),
          per_length_(per_length),
          best_(best),
          sums_(kWindow),
          there_(kWindow / 64) {
        std::sort(lists_.begin(), lists_.end(),
                  [](const List& a, const List& b) { return a.weight < b.weight; });
        for (const List& list : lists_)
            most_.push_back((most_.empty() ? 0 : most_.back()) + list.weight);
    }

    void run() {
        while (true) {
            // The first lists whose weights add up to no more than the threshold.
            const auto essential = static_cast<std::size_t>(
                std::upper_bound(most_.begin(), most_.end(), best_.threshold()) - most_.begin());
            std::uint32_t next = UINT32_MAX;
            for (std::size_t place = essential; place < lists_.size(); ++place)
                if (const List& list = lists_[place]; list.at < list.documents.size())
                    next = std::min(next, list.documents[list.at]);
            if (next == UINT32_MAX)
                return;
            const std::uint32_t base = next / kWindow * kWindow;
            for (std::size_t place = essential; place < lists_.size(); ++place)
                add_list(lists_[place], base);
            visit(base, essential);
        }
    }

  private:
    std::uint32_t part(const List& list, std::size_t at) const {
        const auto count = static_cast<float>(list.counts[at]);
        const auto length = static_cast<float>(segment_.lengths[list.documents[at]]);
        const float norm = constant_ + per_length_ * length;
        const auto weight = static_cast<float>(list.weight - 1);
        return 1 + static_cast<std::uint32_t>(weight * count / (count + norm));
    }

    // Thresholds only grow, so an essential list was always one and is not behind.
    void add_list(List& list, std::uint32_t base) {
        for (; list.at < list.documents.size(); ++list.at) {
            const std::uint32_t document = list.documents[list.at] - base;
            if (document >= kWindow)
                break;
            sums_[document] += part(list, list.at);
            there_[document / 64] |= std::uint64_t{1} << document % 64;
        }
    }

    void visit(std::uint32_t base, std::size_t essential) {
        for (std::size_t word = 0; word < there_.size(); ++word) {
            for (std::uint64_t left = std::exchange(there_[word], 0); left != 0; left &= left - 1) {
                const auto at = static_cast<std::uint32_t>(64 * word) +
                                static_cast<std::uint32_t>(std::countr_zero(left));
                score(base + at, std::exchange(sums_[at], 0), essential);
            }
        }
    }

    void score(std::uint32_t document, std::uint32_t sum, std::size_t essential) {
        for (std::size_t place = essential; place-- > 0;) {
            if (sum + most_[place] <= best_.threshold())
                return;
            List& list = lists_[place];
            if (list.at < list.documents.size() && list.documents[list.at] < document)
                list.advance(document);
            if (list.at < list.documents.size() && list.documents[list.at] == document)
                sum += part(list, list.at);
        }
        if (sum > best_.threshold() && !is_removed(document))
            best_.push({sum, segment_.numbers[document], number_, document});
    }

    bool is_removed(std::uint32_t document) const {
        return std::binary_search(segment_.removed.begin(), segment_.removed.end(), document);
    }

    const Segment& segment_;
    std::uint32_t number_;
    std::vector<List> lists_;
    std::vector<std::uint32_t> most_;  // of the weights of a list and all before it
    float constant_, per_length_;
    Best& best_;
    std::vector<std::uint32_t> sums_;
    std::vector<std::uint64_t> there_;  // a bit for each document of the window that has a sum
};

std::span<const std::uint8_t> pieces_in(const Segment& segment, std::uint32_t document) {
    const auto begin = static_cast<std::size_t>(segment.piece_offsets[document]);
    const auto end = static_cast<std::size_t>(segment.piece_offsets[document + 1]);
    return segment.pieces.subspan(begin, end - begin);
}

void append_pieces(BuiltSegment& built, std::span<const std::uint8_t> pieces) {
    built.pieces.insert(built.pieces.end(), pieces.begin(), pieces.end());
    built.piece_offsets.push_back(static_cast<std::int64_t>(built.pieces.size()));
}

// Adds what pieces of words are worth to the scores of the best documents, and sorts these again.
void look_again(std::span<const Segment> segments, const Query& query,
                std::span<const std::int64_t> weights, std::span<Scored> best) {
    Pieces there;
    for (Scored& one : best) {
        there.clear();
        there.read(pieces_in(segments[one.segment], one.document));
        for (std::size_t word = 0; word < query.words.size(); ++word) {
            const auto begin = static_cast<std::size_t>(query.offsets[word]);
            const auto end = static_cast<std::size_t>(query.offsets[word + 1]);
            const auto pieces = query.pieces.subspan(begin, end - begin);
            const auto shared = static_cast<std::uint64_t>(
                std::count_if(pieces.begin(), pieces.end(),
                              [&](std::uint16_t piece) { return there.has(piece); }));
            if (shared != 0)
                one.score += static_cast<std::uint32_t>(static_cast<std::uint64_t>(weights[word]) *
                                                        kPieceShare * shared /
                                                        (kPieceWhole * pieces.size()));
        }
    }
    std::sort(best.begin(), best.end());
}

}  // namespace

BuiltSegment build(std::span<const std::int64_t> numbers, std::span<const std::int64_t> offsets,
                   const std::uint8_t* bags) {
    BuiltSegment built;
    built.numbers.assign(numbers.begin(), numbers.end());
    std::vector<Posting> postings;
    postings.reserve(static_cast<std::size_t>(offsets.back() - offsets.front()) / kEntryBytes);
    for (std::size_t document = 0; document < numbers.size(); ++document) {
        std::uint32_t length = 0;
        const std::span bag(bags + offsets[document], bags + offsets[document + 1]);
        const auto pieces = pieces_of(bag), entries = entries_of(bag);
        append_pieces(built, pieces);
        for (std::size_t at = 0; at < entries.size(); at += kEntryBytes) {
            const std::uint64_t entry = entry_at(entries.data() + at);
            const auto count = static_cast<std::uint8_t>(entry & kMostCount);
            postings.push_back({entry >> 8, static_cast<std::uint32_t>(document), count});
            length += count;
        }
        built.lengths.push_back(length);
    }
    sort_by_word(postings);
    built.documents.reserve(postings.size());
    built.counts.reserve(postings.size());
    for (const Posting& one : postings) {
        if (built.words.empty() || built.words.back() != one.word) {
            built.words.push_back(one.word);
            built.offsets.push_back(built.offsets.back());
        }
        ++built.offsets.back();
        built.documents.push_back(one.document);
        built.counts.push_back(one.count);
    }
    return built;
}

BuiltSegment merge(std::span<const Segment> segments) {
    BuiltSegment merged;
    struct Place {
        std::uint64_t word;
        std::uint32_t segment;
        std::size_t list;
    };
    std::vector<Place> places;
    std::vector<std::vector<std::uint32_t>> moved(segments.size());  // new positions
    constexpr std::uint32_t kGone = UINT32_MAX;
    for (std::uint32_t which = 0; which < segments.size(); ++which) {
        const Segment& segment = segments[which];
        auto removed = segment.removed.begin();
        for (std::uint32_t document = 0; document < segment.numbers.size(); ++document) {
            const bool gone = removed != segment.removed.end() && *removed == document;
            removed += gone;
            moved[which].push_back(gone ? kGone
                                        : static_cast<std::uint32_t>(merged.numbers.size()));
            if (gone)
                continue;
            merged.numbers.push_back(segment.numbers[document]);
            merged.lengths.push_back(segment.lengths[document]);
            append_pieces(merged, pieces_in(segment, document));
        }
        for (std::size_t list = 0; list < segment.words.size(); ++list)
            places.push_back({segment.words[list], which, list});
    }
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
        return a.word != b.word ? a.word < b.word : a.segment < b.segment;
    });
    std::size_t postings = 0;
    for (const Segment& segment : segments)
        postings += segment.documents.size();
    merged.documents.reserve(postings);
    merged.counts.reserve(postings);
    for (const Place& place : places) {
        const Segment& segment = segments[place.segment];
        const auto begin = static_cast<std::size_t>(segment.offsets[place.list]);
        const auto end = static_cast<std::size_t>(segment.offsets[place.list + 1]);
        for (std::size_t at = begin; at < end; ++at) {
            const std::uint32_t document = moved[place.segment][segment.documents[at]];
            if (document == kGone)
                continue;
            if (merged.words.empty() || merged.words.back() != place.word) {
                merged.words.push_back(place.word);
                merged.offsets.push_back(merged.offsets.back());
            }
            ++merged.offsets.back();
            merged.documents.push_back(document);
            merged.counts.push_back(segment.counts[at]);
        }
    }
    return merged;
}

Found search(std::span<const Segment> segments, const Query& query, std::size_t k) {
    const auto words = query.words;
    std::uint64_t living = 0, length = 0;
    for (const Segment& segment : segments) {
        living += segment.numbers.size() - segment.removed.size();
        length += segment.length;
        for (const std::uint32_t document : segment.removed)
            length -= segment.lengths[document];
    }
    Found found;
    std::vector<std::vector<List>> lists(words.size());  // of each word, one in each segment
    for (std::size_t word = 0; word < words.size(); ++word) {
        std::size_t having = 0;
        for (const Segment& segment : segments) {
            lists[word].push_back(list_of(segment, words[word]));
            having += count_living(lists[word].back().documents, segment.removed);
        }
        const double all = static_cast<double>(living), some = static_cast<double>(having);
        const double weight =
            std::max(1.0, std::round(std::log(1 + (all - some + 0.5) / (some + 0.5)) * kUnit));
        found.frequencies.push_back(static_cast<std::int64_t>(having));
        found.weights.push_back(static_cast<std::int64_t>(weight));
        for (List& list : lists[word])
            list.weight = static_cast<std::uint32_t>(weight);
    }
    if (k == 0 || living == 0)
        return found;
    const float mean =
        static_cast<float>(static_cast<double>(length) / static_cast<double>(living));
    const float constant = kK1 * (1 - kB), per_length = length == 0 ? 0 : kK1 * kB / mean;
    Best best(std::max(k, kSecondLook));
    for (std::uint32_t which = 0; which < segments.size(); ++which) {
        std::vector<List> here;
        for (const std::vector<List>& of_word : lists)
            if (!of_word[which].documents.empty())
                here.push_back(of_word[which]);
        SegmentSearch(segments[which], which, std::move(here), constant, per_length, best).run();
    }
    std::vector<Scored> sorted = best.take_sorted();
    look_again(segments, query, found.weights,
               std::span(sorted).first(std::min(sorted.size(), kSecondLook)));
    sorted.resize(std::min(sorted.size(), k));
    for (const Scored& one : sorted) {
        found.numbers.push_back(one.number);
        found.scores.push_back(one.score);
        std::uint64_t has = 0;
        for (std::size_t word = 0; word < words.size(); ++word) {
            const auto& documents = lists[word][one.segment].documents;
            if (std::binary_search(documents.begin(), documents.end(), one.document))
                has |= std::uint64_t{1} << word;
        }
        found.has.push_back(has);
    }
    return found;
}

}  // namespace lookalike::words
