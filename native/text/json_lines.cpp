#include "text/json_lines.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "text/unicode.hpp"

namespace lookalike::text {

namespace {

using Bytes = const unsigned char*;

constexpr int kDeepest = 64;
constexpr std::size_t kMostDigits = 18;  // of a number that is the same in every reader

bool is_digit(unsigned char byte) {
    return byte >= '0' && byte <= '9';
}

// The first byte that ends a run of plain characters: a quote, a backslash, a control character or
// one beyond ASCII.
Bytes end_of_plain(Bytes at, Bytes end) {
    constexpr std::uint64_t kOnes = 0x0101010101010101u;
    constexpr std::uint64_t kHigh = 0x8080808080808080u;
    if constexpr (std::endian::native == std::endian::little) {
        for (; end - at >= 8; at += 8) {
            std::uint64_t word;
            std::memcpy(&word, at, 8);
            // A zero byte borrows; so the lowest mark of these is true, whatever stands above it.
            const auto zero = [](std::uint64_t bytes) { return (bytes - kOnes) & ~bytes; };
            const std::uint64_t marks = (zero(word ^ kOnes * '"') | zero(word ^ kOnes * '\\') |
                                         ((word - kOnes * 0x20) & ~word) | word) &
                                        kHigh;
            if (marks != 0)
                return at + std::countr_zero(marks) / 8;
        }
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20 && *at < 0x80)
        ++at;
    return at;
}

struct Escape {
    char32_t code;
    std::size_t length;  // 0: not valid, or not plain
};

// The four digits at `at`, or -1.
std::int32_t hexadecimal(Bytes at, Bytes end) {
    if (end - at < 4)
        return -1;
    std::int32_t value = 0;
    for (int index = 0; index < 4; ++index) {
        const unsigned char byte = at[index];
        const unsigned char letter = byte | 0x20;
        if (is_digit(byte))
            value = value << 4 | (byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (letter - 'a' + 10);
        else
            return -1;
    }
    return value;
}

// What begins with the backslash at `at`.
Escape read_escape(Bytes at, Bytes end) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (end - at < 2)
        return {0, 0};
    const std::size_t place = kLetters.find(static_cast<char>(at[1]));
    if (place != kLetters.npos)
        return {static_cast<unsigned char>(kMeanings[place]), 2};
    if (at[1] != 'u')
        return {0, 0};
    const std::int32_t high = hexadecimal(at + 2, end);
    if (high <= 0 || (high >= 0xdc00 && high < 0xe000))
        return {0, 0};
    if (high < 0xd800 || high >= 0xe000)
        return {static_cast<char32_t>(high), 6};
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u')
        return {0, 0};
    const std::int32_t low = hexadecimal(at + 8, end);
    if (low < 0xdc00 || low >= 0xe000)
        return {0, 0};
    return {static_cast<char32_t>(0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00)), 12};
}

std::size_t encoded_length(char32_t code) {
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

// A value as it stands in the line, without quotes, and how long it is as text.
struct Found {
    Bytes begin = nullptr;  // null: there is none
    std::size_t raw = 0;
    std::size_t length = 0;
    bool seen = false;
};

// Reads one line. Each function returns false where something is not plain, and then all stops.
class Line {
  public:
    Line(Bytes begin, Bytes end, const std::vector<std::string>& keys, Found* found)
        : at_(begin), end_(end), keys_(keys), found_(found) {}

    bool read() {
        skip_spaces();
        if (!take('{') || !members(0))
            return false;
        skip_spaces();
        return at_ == end_;
    }

  private:
    Bytes at_, end_;
    const std::vector<std::string>& keys_;
    Found* found_;

    bool take(unsigned char byte) {
        if (at_ == end_ || *at_ != byte)
            return false;
        ++at_;
        return true;
    }

    void skip_spaces() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t'))
            ++at_;
    }

    // The rest of an object, behind its brace; at depth 0 it is the line's own.
    bool members(int depth) {
        skip_spaces();
        if (take('}'))
            return true;
        do {
            skip_spaces();
            Found key;
            if (!take('"') || !string(key))
                return false;
            if (depth == 0 && key.raw != key.length)
                return false;
            Found* const place = depth == 0 ? wanted(key) : nullptr;
            skip_spaces();
            if (!take(':'))
                return false;
            skip_spaces();
            if (place != nullptr ? !wanted_value(*place) : !value(depth + 1))
                return false;
            skip_spaces();
        } while (take(','));
        return take('}');
    }

    Found* wanted(const Found& key) {
        for (std::size_t index = 0; index < keys_.size(); ++index)
            if (keys_[index].size() == key.raw &&
                std::memcmp(keys_[index].data(), key.begin, key.raw) == 0)
                return found_ + index;
        return nullptr;
    }

    bool wanted_value(Found& place) {
        if (place.seen)  // parsers differ about which of two values counts
            return false;
        place.seen = true;
        if (take('"'))
            return string(place);
        const Bytes begin = at_;
        if (literal("null"))
            return true;
        place.begin = begin;
        if (!plain_integer() && !literal("true") && !literal("false"))
            return false;
        place.raw = place.length = static_cast<std::size_t>(at_ - begin);
        return true;
    }

    bool value(int depth) {
        if (at_ == end_ || depth > kDeepest)
            return false;
        Found ignored;
        switch (*at_) {
            case '"':
                ++at_;
                return string(ignored);
            case '{':
                ++at_;
                return members(depth);
            case '[':
                ++at_;
                return elements(depth);
            case 't':
                return literal("true");
            case 'f':
                return literal("false");
            case 'n':
                return literal("null");
            default:
                return number();
        }
    }

    bool elements(int depth) {
        skip_spaces();
        if (take(']'))
            return true;
        do {
            skip_spaces();
            if (!value(depth + 1))
                return false;
            skip_spaces();
        } while (take(','));
        return take(']');
    }

    bool literal(std::string_view word) {
        if (static_cast<std::size_t>(end_ - at_) < word.size() ||
            std::memcmp(at_, word.data(), word.size()) != 0)
            return false;
        at_ += word.size();
        return true;
    }

    std::size_t digits() {
        const Bytes begin = at_;
        while (at_ < end_ && is_digit(*at_))
            ++at_;
        return static_cast<std::size_t>(at_ - begin);
    }

    // 0, or digits of which the first is not 0.
    bool whole_part() {
        if (take('0'))
            return at_ == end_ || !is_digit(*at_);
        const std::size_t count = digits();
        return count > 0 && count <= kMostDigits;
    }

    bool number() {
        take('-');
        if (!whole_part())
            return false;
        if (take('.') && digits() == 0)
            return false;
        if (take('e') || take('E')) {
            if (!take('-'))
                take('+');
            const std::size_t count = digits();
            return count > 0 && count <= 2;  // far from what a double cannot hold
        }
        return true;
    }

    // A number that is written in one way only.
    bool plain_integer() {
        const bool negative = take('-');
        if (at_ == end_ || !is_digit(*at_) || (negative && *at_ == '0'))
            return false;
        return whole_part() && (at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E'));
    }

    // The rest of a string, behind its first quote.
    bool string(Found& found) {
        found.begin = at_;
        std::size_t shorter = 0;
        for (;;) {
            at_ = end_of_plain(at_, end_);
            if (at_ == end_)
                return false;
            if (*at_ == '"') {
                found.raw = static_cast<std::size_t>(at_ - found.begin);
                found.length = found.raw - shorter;
                ++at_;
                return true;
            }
            if (*at_ == '\\') {
                const Escape escape = read_escape(at_, end_);
                if (escape.length == 0)
                    return false;
                shorter += escape.length - encoded_length(escape.code);
                at_ += escape.length;
            } else {
                while (at_ < end_ && *at_ >= 0x80) {
                    const std::size_t length = decode(at_, end_).length;
                    if (length == 1)
                        return false;
                    at_ += length;
                }
                if (at_ < end_ && *at_ < 0x20)
                    return false;
            }
        }
    }
};

// Writes a value as text. It has been validated.
void copy_value(const Found& found, unsigned char* to) {
    if (found.begin == nullptr)
        return;
    Bytes at = found.begin;
    const Bytes end = at + found.raw;
    if (found.raw == found.length) {
        std::memcpy(to, at, found.raw);
        return;
    }
    while (at < end) {
        const auto left = static_cast<std::size_t>(end - at);
        const auto* const next = static_cast<Bytes>(std::memchr(at, '\\', left));
        const auto plain = next == nullptr ? left : static_cast<std::size_t>(next - at);
        std::memcpy(to, at, plain);
        at += plain;
        to += plain;
        if (next != nullptr) {
            const Escape escape = read_escape(at, end);
            to = encode(escape.code, to);
            at += escape.length;
        }
    }
}

}  // namespace

std::vector<std::int64_t> line_ends(std::string_view text) {
    std::vector<std::int64_t> ends;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        const void* const next = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
        at = next == nullptr ? end : static_cast<const char*>(next) + 1;
        ends.push_back(at - text.data());
    }
    return ends;
}

std::optional<std::vector<JsonColumn>> json_values(std::string_view text, const std::int64_t* ends,
                                                   std::size_t lines,
                                                   const std::vector<std::string>& keys,
                                                   std::size_t threads,
                                                   const bits::Checkpoint& checkpoint) {
    constexpr std::size_t kLinesPerTask = 256;
    const auto* const data = reinterpret_cast<Bytes>(text.data());
    std::vector<Found> found(lines * keys.size());
    std::atomic<bool> plain = true;
    const auto find = [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end && plain; ++at) {
            const Bytes line = data + (at == 0 ? 0 : ends[at - 1]);
            if (!Line(line, data + ends[at], keys, found.data() + at * keys.size()).read())
                plain = false;
        }
    };
    bits::share_out_runs(lines, kLinesPerTask, threads, checkpoint, find);
    if (!plain)
        return std::nullopt;

    std::vector<JsonColumn> columns(keys.size());
    for (std::size_t which = 0; which < keys.size(); ++which) {
        JsonColumn& column = columns[which];
        column.offsets.resize(lines + 1);
        column.present.resize(lines);
        std::int64_t size = 0;
        for (std::size_t at = 0; at < lines; ++at) {
            const Found& value = found[at * keys.size() + which];
            column.present[at] = value.begin != nullptr;
            column.missing += value.begin == nullptr;
            size += static_cast<std::int64_t>(value.length);
            column.offsets[at + 1] = size;
        }
        column.bytes.reset(new char[static_cast<std::size_t>(size)]);  // not cleared
    }
    const auto copy = [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; ++at)
            for (std::size_t which = 0; which < keys.size(); ++which)
                copy_value(found[at * keys.size() + which],
                           reinterpret_cast<unsigned char*>(columns[which].bytes.get()) +
                               columns[which].offsets[at]);
    };
    bits::share_out_runs(lines, kLinesPerTask, threads, checkpoint, copy);
    return columns;
}

}  // namespace lookalike::text
