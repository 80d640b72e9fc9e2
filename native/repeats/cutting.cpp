#include "repeats/cutting.hpp"

#include "text/unicode.hpp"

namespace lookalike::repeats {

namespace {

using text::CharacterClass;

// Characters of a text, forward and backward.
class Characters {
  public:
    explicit Characters(std::string_view text) : text_(text) {}

    Position size() const { return static_cast<Position>(text_.size()); }

    text::Decoded at(Position place) const {
        const auto* const bytes = reinterpret_cast<const unsigned char*>(text_.data());
        return text::decode(bytes + place, bytes + text_.size());
    }
    // The place of the character before `place`, which is not 0.
    Position before(Position place) const {
        Position begin = place - 1;
        while (begin > 0 && place - begin < 4 &&
               (static_cast<unsigned char>(text_[static_cast<std::size_t>(begin)]) & 0xc0) == 0x80)
            --begin;
        // Bytes that are not valid are characters by themselves.
        while (begin + static_cast<Position>(at(begin).length) < place)
            ++begin;
        return begin;
    }
    char32_t code(Position place) const { return at(place).code; }
    bool space(Position place) const { return is_space(code(place)); }
    CharacterClass kind(Position place) const { return text::classify(code(place)); }
    Position behind(Position place) const {
        return place + static_cast<Position>(at(place).length);
    }

  private:
    std::string_view text_;
};

// Whether the characters before `begin` and from `end` on would belong to one word.
bool would_join(const Characters& text, Position begin, Position end) {
    if (begin == 0 || end == text.size())
        return false;
    const CharacterClass left = text.kind(text.before(begin)), right = text.kind(end);
    if (left == CharacterClass::other || right == CharacterClass::other)
        return false;
    return right == CharacterClass::mark || left == CharacterClass::mark ||
           (left == CharacterClass::word && right == CharacterClass::word);
}

bool is_attached(const Characters& text, Position place) {
    const CharacterClass kind = text.kind(place);
    return !text.space(place) && (kind == CharacterClass::other || kind == CharacterClass::mark);
}

// Where a line begins whose words end at `right`, if nothing but marks, such as those of a list, is
// before `left`; otherwise `left`.
Position behind_marks(const Characters& text, Position left, Position right) {
    while (right < text.size() && text.space(right) && !is_break(text.code(right)))
        right = text.behind(right);
    if (right < text.size() && !is_break(text.code(right)))
        return left;
    Position begin = left;
    for (Position at = left; at > 0;) {
        at = text.before(at);
        if (is_break(text.code(at)))
            return begin;
        if (!text.space(at)) {
            if (!is_attached(text, at))
                return left;
            begin = at;
        }
    }
    return begin;
}

Range range_of(const Characters& text, Position begin, Position end) {
    Position left = begin, right = end;
    while (right < text.size() && is_attached(text, right))
        right = text.behind(right);
    while (left > 0 && is_attached(text, text.before(left)))
        left = text.before(left);
    if (left > 0 && !text.space(text.before(left)))
        left = begin;  // it is attached to the word before
    if (right < text.size() && !text.space(right))
        return {left, right};  // up to the next word
    left = behind_marks(text, left, right);
    // The space on both sides, and how many lines end in it.
    Position space_begin = left, space_end = right, line_begin = left;
    std::size_t breaks_before = 0, breaks_behind = 0;
    Position last_break = right;
    while (space_begin > 0 && text.space(text.before(space_begin))) {
        space_begin = text.before(space_begin);
        if (is_break(text.code(space_begin))) {
            if (breaks_before++ == 0)
                line_begin = text.behind(space_begin);
        }
    }
    while (space_end < text.size() && text.space(space_end)) {
        if (is_break(text.code(space_end))) {
            ++breaks_behind;
            last_break = text.behind(space_end);
        }
        space_end = text.behind(space_end);
    }
    if (space_begin == 0 && space_end == text.size())
        return {0, text.size()};
    if (space_end == text.size())
        return {space_begin, right};
    if (breaks_before == 0 && space_begin != 0)  // within a line
        return breaks_behind == 0 ? Range{left, space_end} : Range{space_begin, right};
    if (breaks_behind == 0)
        return {left, space_end};
    if (space_begin != 0 && breaks_before < breaks_behind)
        return {space_begin, right};
    return {breaks_before == 0 ? left : line_begin, last_break};
}

}  // namespace

std::optional<Cut> cut_words(std::string_view text, const Words& words, std::size_t first,
                             std::size_t last) {
    const Characters characters(text);
    for (; last > first; --last) {
        const Position begin = words.begins[first], end = words.ends[last - 1];
        const Range range = range_of(characters, begin, end);
        if (!would_join(characters, range.begin, range.end))
            return Cut{range, last};
        if (!would_join(characters, begin, end))
            return Cut{{begin, end}, last};
    }
    return std::nullopt;
}

Range unit_range(std::string_view text, const std::vector<Position>& begins, std::size_t at,
                 Unit unit) {
    const Characters characters(text);
    Range range{begins[at], at + 1 < begins.size() ? begins[at + 1] : characters.size()};
    if (unit != Unit::sentence || at == 0)
        return range;
    const auto breaks = [&](Position end, Position least, Position& space) {
        std::size_t count = 0;
        while (end > least && characters.space(characters.before(end))) {
            end = characters.before(end);
            count += is_break(characters.code(end));
        }
        space = end;
        return count;
    };
    Position space = 0, before = 0;
    const bool ends_paragraph =
        range.end == characters.size() || breaks(range.end, range.begin, space) > 1;
    if (range.end == characters.size())
        breaks(range.end, range.begin, space);
    if (ends_paragraph && breaks(range.begin, begins[at - 1], before) < 2)
        range.end = space;
    return range;
}

}  // namespace lookalike::repeats
