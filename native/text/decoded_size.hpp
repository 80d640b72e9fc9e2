// What JSON or MessagePack will hold once it is decoded: counted in one pass, without decoding it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lookalike::text {

struct DecodedSize {
    // Strings (keys included), numbers, constants, lists and objects. Never fewer than a decoder
    // makes, also of bytes that turn out to be malformed.
    std::uint64_t values = 0;
    // Bytes of the strings in memory, where one character of four bytes makes all of them as wide.
    std::uint64_t string_bytes = 0;
    // Items of the longest list that is a value of the outermost object.
    std::uint64_t longest_list = 0;
};

// Does not validate: a decoder does.
DecodedSize decoded_json(std::string_view bytes);

// Nothing if the bytes are not one whole value, a key is not a string, or lists and maps are nested
// deeper than `deepest`. A length that claims more elements than there are bytes is such a case.
std::optional<DecodedSize> decoded_messagepack(std::string_view bytes, std::size_t deepest);

}  // namespace lookalike::text
