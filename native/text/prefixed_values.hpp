// How long are values that each come after their length, as Parquet has them in a dictionary?
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lookalike::text {

// The bytes of the longest; none if the data end within a value. Lengths are little-endian, in four
// bytes, of any alignment.
inline std::optional<std::size_t> longest_prefixed(std::string_view data) {
    std::size_t longest = 0;
    while (!data.empty()) {
        if (data.size() < 4)
            return std::nullopt;
        std::size_t length = 0;
        for (std::size_t byte = 0; byte < 4; ++byte)
            length |= static_cast<std::size_t>(static_cast<unsigned char>(data[byte]))
                      << (8 * byte);
        data.remove_prefix(4);
        if (length > data.size())
            return std::nullopt;
        longest = std::max(longest, length);
        data.remove_prefix(length);
    }
    return longest;
}

}  // namespace lookalike::text
