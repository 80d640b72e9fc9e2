#include "text/decoded_size.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lookalike::text {

namespace {

// The characters of one string, and the bytes that the widest of them needs.
class StringSize {
  public:
    void add(unsigned char byte) {
        characters_ += (byte & 0xC0) != 0x80;
        width_ = std::max(width_, byte >= 0xF0 ? 4u : byte >= 0xC4 ? 2u : 1u);
    }

    void add_escape(unsigned width) {
        ++characters_;
        width_ = std::max(width_, width);
    }

    std::uint64_t bytes() const { return characters_ * width_; }

  private:
    std::uint64_t characters_ = 0;
    unsigned width_ = 1;
};

// The bytes for the character that \uXXXX stands for. Halves of surrogate pairs count four each.
unsigned escaped_width(std::string_view digits) {
    if (digits.size() >= 2 && digits[0] == '0' && digits[1] == '0')
        return 1;
    return !digits.empty() && (digits[0] == 'd' || digits[0] == 'D') ? 4 : 2;
}

// Adds the string that begins behind a quote, and returns where it ends: behind the other quote.
std::size_t add_json_string(std::string_view bytes, std::size_t at, DecodedSize& size) {
    StringSize string;
    while (at < bytes.size() && bytes[at] != '"') {
        if (bytes[at] != '\\') {
            string.add(static_cast<unsigned char>(bytes[at++]));
            continue;
        }
        const bool unicode = at + 1 < bytes.size() && bytes[at + 1] == 'u';
        string.add_escape(unicode ? escaped_width(bytes.substr(at + 2, 2)) : 1);
        at += unicode ? 6 : 2;
    }
    ++size.values;
    size.string_bytes += string.bytes();
    return std::min(at + 1, bytes.size());
}

bool between_values(char byte) {
    return byte == ',' || byte == ':' || byte == ']' || byte == '}' || byte == ' ' ||
           byte == '\n' || byte == '\r' || byte == '\t';
}

// What a byte of MessagePack begins: how long its length field, its fixed part and its content are.
struct Token {
    std::size_t length_field = 0;  // bytes that give the number of elements, or of bytes
    std::uint64_t length = 0;      // where there is no such field
    bool string = false;
    bool map = false;
    bool list = false;
    std::size_t skipped = 0;  // further bytes of the header: numbers, types of extensions
    bool valid = true;
};

Token token_of(unsigned char byte) {
    Token token;
    const auto sized = [&](unsigned power) { token.length_field = std::size_t{1} << power; };
    if (byte <= 0x7F || byte >= 0xE0) {
    } else if (byte <= 0x8F) {
        token.map = true;
        token.length = byte & 0x0F;
    } else if (byte <= 0x9F) {
        token.list = true;
        token.length = byte & 0x0F;
    } else if (byte <= 0xBF) {
        token.string = true;
        token.length = byte & 0x1F;
    } else if (byte == 0xC1) {
        token.valid = false;
    } else if (byte >= 0xC4 && byte <= 0xC6) {  // bytes
        sized(byte - 0xC4u);
    } else if (byte >= 0xC7 && byte <= 0xC9) {  // extensions
        sized(byte - 0xC7u);
        token.skipped = 1;
    } else if (byte == 0xCA || byte == 0xCB) {
        token.skipped = byte == 0xCA ? 4 : 8;
    } else if (byte >= 0xCC && byte <= 0xD3) {
        token.skipped = std::size_t{1} << ((byte - 0xCCu) % 4);
    } else if (byte >= 0xD4 && byte <= 0xD8) {
        token.skipped = 1 + (std::size_t{1} << (byte - 0xD4u));
    } else if (byte >= 0xD9 && byte <= 0xDB) {
        token.string = true;
        sized(byte - 0xD9u);
    } else if (byte == 0xDC || byte == 0xDD) {
        token.list = true;
        sized(byte - 0xDCu + 1);
    } else if (byte == 0xDE || byte == 0xDF) {
        token.map = true;
        sized(byte - 0xDEu + 1);
    }  // what is left are null, false and true
    return token;
}

// A list or a map that is being read.
struct Open {
    std::uint64_t left;  // values still to come; of a map, keys and values
    bool map;
};

}  // namespace

DecodedSize decoded_json(std::string_view bytes) {
    DecodedSize size;
    std::size_t at = 0;
    std::int64_t depth = 0;
    bool in_object = false;  // whether the outermost value is an object
    bool in_list = false;    // whether, at depth 2, a list of it is being read
    std::uint64_t items = 0;
    while (at < bytes.size()) {
        const char byte = bytes[at++];
        if (between_values(byte)) {
            depth -= byte == ']' || byte == '}';
            continue;
        }
        if (depth == 2 && in_list)
            size.longest_list = std::max(size.longest_list, ++items);
        if (byte == '"') {
            at = add_json_string(bytes, at, size);
            continue;
        }
        ++size.values;
        if (byte == '[' || byte == '{') {
            if (++depth == 1)
                in_object = byte == '{';
            if (depth == 2) {
                in_list = in_object && byte == '[';
                items = 0;
            }
            continue;
        }
        while (at < bytes.size() && !between_values(bytes[at]) && bytes[at] != '"' &&
               bytes[at] != '[' && bytes[at] != '{')
            ++at;
    }
    return size;
}

std::optional<DecodedSize> decoded_messagepack(std::string_view bytes, std::size_t deepest) {
    DecodedSize size;
    std::vector<Open> open = {{1, false}};
    std::size_t at = 0;
    while (!open.empty()) {
        if (open.back().left == 0) {
            open.pop_back();
            continue;
        }
        if (at == bytes.size())
            return std::nullopt;
        const bool key = open.back().map && open.back().left % 2 == 0;
        --open.back().left;
        const Token token = token_of(static_cast<unsigned char>(bytes[at++]));
        if (!token.valid || (key && !token.string))
            return std::nullopt;
        std::uint64_t length = token.length;
        if (bytes.size() - at < token.length_field + token.skipped)
            return std::nullopt;
        for (std::size_t index = 0; index < token.length_field; ++index)
            length = length << 8 | static_cast<unsigned char>(bytes[at++]);
        at += token.skipped;
        // Every element takes a byte at least, so that no list is made longer than what came.
        if ((token.map ? 2 * length : length) > bytes.size() - at)
            return std::nullopt;
        ++size.values;
        if (token.list || token.map) {
            if (open.size() > deepest)
                return std::nullopt;
            // The outermost map lies on the mark of the one value that there is.
            if (token.list && open.size() == 2 && open.back().map)
                size.longest_list = std::max(size.longest_list, length);
            open.push_back({token.map ? 2 * length : length, token.map});
            continue;
        }
        if (token.string) {
            StringSize string;
            for (const char byte : bytes.substr(at, length))
                string.add(static_cast<unsigned char>(byte));
            size.string_bytes += string.bytes();
        } else {
            size.string_bytes += length;
        }
        at += length;
    }
    if (at != bytes.size())
        return std::nullopt;
    return size;
}

}  // namespace lookalike::text
