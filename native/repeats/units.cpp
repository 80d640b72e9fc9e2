#include "repeats/units.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "text/unicode.hpp"

namespace lookalike::repeats {

namespace {

constexpr std::array<std::string_view, 26> kAbbreviations{
    "al", "approx", "ca", "cf",  "dr", "ed", "eg", "eq",   "eqs", "etc", "fig", "ie",  "inc",
    "jr", "ltd",    "mr", "mrs", "ms", "no", "pp", "prof", "ref", "sec", "st",  "viz", "vs"};

struct Character {
    char32_t code;
    std::size_t next;
};

Character character_at(std::string_view text, std::size_t at) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    if (bytes[at] < 0x80)
        return {bytes[at], at + 1};
    const text::Decoded decoded = text::decode(bytes + at, bytes + text.size());
    return {decoded.code, at + decoded.length};
}

bool is_full_width_stop(char32_t code) {
    return code == 0x3002 || code == 0xff01 || code == 0xff1f || code == 0xff61;
}

bool is_stop(char32_t code) {
    return code == '.' || code == '!' || code == '?' || code == 0x2026 || code == 0x0964 ||
           code == 0x061f || is_full_width_stop(code);
}

bool is_closing(char32_t code) {
    return code == '"' || code == '\'' || code == ')' || code == ']' || code == '}' ||
           code == 0x2019 || code == 0x201d || code == 0xbb || code == 0x300d || code == 0x300f ||
           code == 0xff09;
}

bool is_lower_case(char32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 0xdf && code <= 0xff && code != 0xf7) ||
           (code >= 0x3b1 && code <= 0x3c9) || (code >= 0x430 && code <= 0x45f);
}

// Whether a full stop at `at` belongs to an abbreviation or an initial.
bool abbreviates(std::string_view text, std::size_t at) {
    std::size_t begin = at;
    std::string word;
    while (begin > 0) {
        const char letter = text[begin - 1];
        const char lower = static_cast<char>(letter | 0x20);
        if (letter == '.') {  // of e.g. or U.S.
            --begin;
            continue;
        }
        if (lower < 'a' || lower > 'z' || word.size() > 8)
            break;
        word.insert(word.begin(), lower);
        --begin;
    }
    if (begin > 0 && static_cast<unsigned char>(text[begin - 1]) >= 0x80)
        return false;
    return word.size() == 1 ||
           std::find(kAbbreviations.begin(), kAbbreviations.end(), word) != kAbbreviations.end();
}

// Where the space that begins at `at` ends, and how many lines end in it.
std::pair<std::size_t, std::size_t> behind_space(std::string_view text, std::size_t at) {
    std::size_t breaks = 0;
    while (at < text.size()) {
        const Character character = character_at(text, at);
        if (!is_space(character.code))
            break;
        breaks += is_break(character.code);
        at = character.next;
    }
    return {at, breaks};
}

std::vector<Position> lines_of(std::string_view text) {
    std::vector<Position> begins{0};
    for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
        if (at + 1 < text.size())
            begins.push_back(static_cast<Position>(at + 1));
    return begins;
}

// Paragraphs, and with `sentences` these.
std::vector<Position> blocks_of(std::string_view text, bool sentences) {
    std::vector<Position> begins{0};
    std::size_t at = behind_space(text, 0).first;
    bool stopped = false;     // behind a stop and closing marks
    bool full_width = false;  // of those that no space follows
    while (at < text.size()) {
        const Character character = character_at(text, at);
        if (is_space(character.code)) {
            const auto [next, breaks] = behind_space(text, at);
            if (next == text.size())
                break;
            if (breaks > 1 || (stopped && !is_lower_case(character_at(text, next).code)))
                begins.push_back(static_cast<Position>(next));
            stopped = full_width = false;
            at = next;
            continue;
        }
        if (sentences && is_stop(character.code)) {
            stopped = character.code != '.' || !abbreviates(text, at);
            full_width = is_full_width_stop(character.code);
        } else if (!(stopped && is_closing(character.code))) {
            if (full_width)
                begins.push_back(static_cast<Position>(at));
            stopped = full_width = false;
        }
        at = character.next;
    }
    return begins;
}

}  // namespace

bool is_space(char32_t code) {
    return code == ' ' || (code >= 9 && code <= 13) || code == 0x85 || code == 0xa0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_break(char32_t code) {
    return code == '\n' || code == 0x2028 || code == 0x2029;
}

std::vector<Position> units_of(std::string_view text, Unit unit) {
    if (text.empty())
        return {};
    return unit == Unit::line ? lines_of(text) : blocks_of(text, unit == Unit::sentence);
}

}  // namespace lookalike::repeats
