// Values out of JSON Lines: what some keys of the object on each line have, as text.
//
// Strict, and deliberately narrow: whatever it takes, every JSON parser takes (RFC 8259, UTF-8) and
// reads in the same way. What is not plain is left to a full parser: lines that are blank or no
// objects, keys with escapes, deep nesting, the escape \u0000, numbers of more than 18 digits, and
// where a value is wanted, a second one of the same key, fractions, objects and lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bits/threads.hpp"

namespace lookalike::text {

// Strings one after the other, as Arrow has them. Null and missing values are empty strings, and
// `present` is 0 there.
struct JsonColumn {
    std::unique_ptr<char[]> bytes;
    std::vector<std::int64_t> offsets;
    std::vector<std::uint8_t> present;
    std::size_t missing = 0;
};

// Where each line ends: behind its newline, or at the end of the text.
std::vector<std::int64_t> line_ends(std::string_view text);

// The values of `keys`, a column each; nothing if any line is not plain. Line i begins where line
// i - 1 ends. Two passes: find and validate, then copy.
std::optional<std::vector<JsonColumn>> json_values(std::string_view text, const std::int64_t* ends,
                                                   std::size_t lines,
                                                   const std::vector<std::string>& keys,
                                                   std::size_t threads,
                                                   const bits::Checkpoint& checkpoint);

}  // namespace lookalike::text
