// Texts in a fixed order, each perhaps without some ranges of bytes, and their words with the
// places of these in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/each_word.hpp"

namespace lookalike::repeats {

using Position = std::int64_t;

// Bytes from `begin` up to `end`.
struct Range {
    Position begin, end;
};

// The words of a text: those of text/features.hpp, lower-cased.
struct Words {
    std::vector<std::uint64_t> hashes;
    std::vector<Position> begins, ends;

    std::size_t size() const { return hashes.size(); }
    void clear() {
        hashes.clear();
        begins.clear();
        ends.clear();
    }
};

// Reads the words of a text with their places; one thread uses it.
class WordLister {
  public:
    // The words of a text; they are valid until the next call.
    const Words& list(std::string_view text);

  private:
    void list_any_script(std::string_view text, std::size_t begin, std::size_t end);

    text::WordScratch scratch_;
    Words words_;
};

// A text without its removed ranges, and where its bytes were.
class Spliced {
  public:
    // `removed` is ascending, and no two ranges meet.
    Spliced(std::string_view text, std::span<const Range> removed);

    std::string_view text() const { return text_; }
    // Where the byte at `place` was; `place` is less than the size.
    Position original(Position place) const;
    // Where a byte that was not removed is now.
    Position place_of(Position original) const;
    // Calls on_part(begin, end) with the ranges of the original text that make up a range.
    template <class OnPart>
    void each_part(Range range, OnPart on_part) const {
        for (std::size_t at = 0; at < places_.size(); ++at) {
            const Position end =
                at + 1 < places_.size() ? places_[at + 1] : static_cast<Position>(text_.size());
            const Position from = std::max(range.begin, places_[at]);
            const Position to = std::min(range.end, end);
            if (from < to)
                on_part(from + shifts_[at], to + shifts_[at]);
        }
    }

  private:
    std::string_view text_;
    std::string joined_;
    std::vector<Position> places_, shifts_;  // of parts: where they begin, and what is added
};

// Reads words one by one from a place on.
class WordReader {
  public:
    WordReader(std::string_view text, std::span<const Range> removed, Position from);

    // Reads the next word; false if there is none.
    bool next();
    std::string_view word() const { return word_; }
    Position begin() const { return begin_; }
    Position end() const { return end_; }

  private:
    std::string_view text_;
    std::span<const Range> removed_;
    std::size_t next_removed_ = 0;
    Position at_, begin_ = 0, end_ = 0;
    std::string word_;
};

// Texts, the order in which copies count, and what was removed from them. A position is a byte: the
// texts are thought of one behind the other, in that order.
class Texts {
  public:
    // `order` lists the numbers of texts, the first one first.
    Texts(std::span<const std::string_view> texts, std::vector<std::int64_t> order);

    // Texts begin without ranges; `offsets` says where those of each text are.
    void set_removed(std::vector<std::int64_t> offsets, std::vector<Range> ranges);

    std::size_t size() const { return texts_.size(); }
    std::string_view text(std::size_t number) const { return texts_[number]; }
    std::span<const Range> removed(std::size_t number) const {
        if (offsets_.empty())
            return {};
        const auto begin = static_cast<std::size_t>(offsets_[number]);
        return std::span(ranges_).subspan(begin,
                                          static_cast<std::size_t>(offsets_[number + 1]) - begin);
    }
    Position begin(std::size_t number) const { return begins_[number]; }
    std::size_t rank_of(Position position) const;
    std::size_t text_of(Position position) const {
        return static_cast<std::size_t>(order_[rank_of(position)]);
    }
    Position total() const { return bases_.back(); }

  private:
    std::span<const std::string_view> texts_;
    std::vector<std::int64_t> order_;
    std::vector<Position> bases_;   // by rank, and where the last one ends
    std::vector<Position> begins_;  // by number
    std::vector<std::int64_t> offsets_;
    std::vector<Range> ranges_;
};

}  // namespace lookalike::repeats
