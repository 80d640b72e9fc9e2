#include "text/unicode.hpp"

#include <algorithm>

namespace lookalike::text {

Decoded decode(const unsigned char* at, const unsigned char* end) {
    const unsigned first = *at;
    if (first < 0x80)
        return {first, 1};
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || static_cast<std::size_t>(end - at) < length)
        return {0xfffd, 1};
    char32_t code = first & (0x7fu >> length);
    for (std::size_t index = 1; index < length; ++index) {
        if ((at[index] & 0xc0) != 0x80)
            return {0xfffd, 1};
        code = code << 6 | (at[index] & 0x3fu);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (overlong || surrogate || code > 0x10ffff)
        return {0xfffd, 1};
    return {code, length};
}

bool has_at_most(std::string_view text, std::size_t characters) {
    constexpr std::size_t kLongest = 4;  // bytes of a character
    if (text.size() <= characters || text.size() > kLongest * characters)
        return text.size() <= characters;
    const auto inside = std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;  // not the first of a character
    });
    return text.size() - static_cast<std::size_t>(inside) <= characters;
}

unsigned char* encode(char32_t code, unsigned char* to) {
    const auto put = [&to](char32_t byte) { *to++ = static_cast<unsigned char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
    return to;
}

}  // namespace lookalike::text
