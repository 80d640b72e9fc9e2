#include "repeats/texts.hpp"

#include <algorithm>

#include "bits/hash.hpp"
#include "text/unicode.hpp"

namespace lookalike::repeats {

namespace {

using text::CharacterClass;

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

text::Decoded decoded_at(std::string_view text, std::size_t at) {
    const unsigned char* const bytes = bytes_of(text);
    if (bytes[at] < 0x80)
        return {bytes[at], 1};
    return text::decode(bytes + at, bytes + text.size());
}

}  // namespace

const Words& WordLister::list(std::string_view text) {
    words_.clear();
    scratch_.word.resize(2 * text.size() + text::kMaskBytes + text::kReadable);
    unsigned char* const room = scratch_.word.data();
    const auto in_word = [](unsigned char byte) { return text::kAsciiSame[byte] != 0; };
    const unsigned char* const begin = bytes_of(text);
    const unsigned char* const end = begin + text.size();
    // As in text::each_word: a text can be cut at an ASCII character that belongs to no word.
    for (const unsigned char* at = begin; at < end;) {
        const unsigned char* other = text::end_of_ascii(at, end);
        const unsigned char* cut = other;
        while (other != end && cut > at && in_word(cut[-1]))
            --cut;
        if (cut > at) {
            const Position shift = at - begin;
            text::each_ascii_word(at, cut, true, room, scratch_.masks,
                                  [&](const unsigned char* word, std::size_t length) {
                                      words_.hashes.push_back(length < 16
                                                                  ? bits::xxh64_short(word, length)
                                                                  : bits::xxh64(word, length));
                                      const Position place = word - room + shift;
                                      words_.begins.push_back(place);
                                      words_.ends.push_back(place + static_cast<Position>(length));
                                  });
        }
        while (other < end && (*other >= 0x80 || in_word(*other)))
            ++other;
        if (other > cut)
            list_any_script(text, static_cast<std::size_t>(cut - begin),
                            static_cast<std::size_t>(other - begin));
        at = other;
    }
    return words_;
}

void WordLister::list_any_script(std::string_view text, std::size_t begin, std::size_t end) {
    WordReader reader(text.substr(0, end), {}, static_cast<Position>(begin));
    while (reader.next()) {
        words_.hashes.push_back(bits::xxh64(reader.word().data(), reader.word().size()));
        words_.begins.push_back(reader.begin());
        words_.ends.push_back(reader.end());
    }
}

Spliced::Spliced(std::string_view text, std::span<const Range> removed) : text_(text) {
    if (removed.empty()) {
        places_.push_back(0);
        shifts_.push_back(0);
        return;
    }
    Position at = 0;
    const auto add = [&](Position begin, Position end) {
        if (begin == end)
            return;
        places_.push_back(static_cast<Position>(joined_.size()));
        shifts_.push_back(begin - static_cast<Position>(joined_.size()));
        joined_.append(
            text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    };
    for (const Range& range : removed) {
        add(at, range.begin);
        at = range.end;
    }
    add(at, static_cast<Position>(text.size()));
    text_ = joined_;
}

Position Spliced::original(Position place) const {
    const auto after = std::upper_bound(places_.begin(), places_.end(), place);
    return place + shifts_[static_cast<std::size_t>(after - places_.begin()) - 1];
}

Position Spliced::place_of(Position original) const {
    std::size_t low = 0, high = places_.size();
    while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        if (places_[middle] + shifts_[middle] <= original)
            low = middle;
        else
            high = middle;
    }
    return original - shifts_[low];
}

WordReader::WordReader(std::string_view text, std::span<const Range> removed, Position from)
    : text_(text), removed_(removed), at_(from) {
    while (next_removed_ < removed_.size() && removed_[next_removed_].end <= from)
        ++next_removed_;
}

bool WordReader::next() {
    word_.clear();
    bool inside = false, alone = false;
    const auto size = static_cast<Position>(text_.size());
    while (true) {
        while (next_removed_ < removed_.size() && at_ >= removed_[next_removed_].begin)
            at_ = removed_[next_removed_++].end;
        if (at_ >= size)
            return inside;
        const text::Decoded decoded = decoded_at(text_, static_cast<std::size_t>(at_));
        const CharacterClass kind = text::classify(decoded.code);
        if (kind == CharacterClass::other) {
            if (inside)
                return true;
        } else if (kind != CharacterClass::mark) {
            if (inside && (alone || kind == CharacterClass::alone))
                return true;
            if (!inside)
                begin_ = at_;
            inside = true;
            alone = kind == CharacterClass::alone;
        }
        at_ += static_cast<Position>(decoded.length);
        if (!inside)
            continue;
        unsigned char room[4];
        const char32_t code =
            kind == CharacterClass::mark ? decoded.code : text::lower(decoded.code);
        word_.append(reinterpret_cast<const char*>(room),
                     static_cast<std::size_t>(text::encode(code, room) - room));
        end_ = at_;
    }
}

Texts::Texts(std::span<const std::string_view> texts, std::vector<std::int64_t> order)
    : texts_(texts), order_(std::move(order)), bases_{0}, begins_(texts.size()) {
    for (const std::int64_t number : order_) {
        begins_[static_cast<std::size_t>(number)] = bases_.back();
        bases_.push_back(bases_.back() +
                         static_cast<Position>(texts_[static_cast<std::size_t>(number)].size()));
    }
}

void Texts::set_removed(std::vector<std::int64_t> offsets, std::vector<Range> ranges) {
    offsets_ = std::move(offsets);
    ranges_ = std::move(ranges);
}

std::size_t Texts::rank_of(Position position) const {
    // Behind empty texts, which begin at the same position.
    return static_cast<std::size_t>(std::upper_bound(bases_.begin(), bases_.end(), position) -
                                    bases_.begin()) -
           1;
}

}  // namespace lookalike::repeats
