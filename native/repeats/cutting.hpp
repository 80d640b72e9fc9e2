// Where to cut words and units out of a text: the rest stays readable, and no two words become one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "repeats/texts.hpp"
#include "repeats/units.hpp"

namespace lookalike::repeats {

// A range of bytes, and the word behind the last one that is in it.
struct Cut {
    Range range;
    std::size_t last;
};

// The range of the words `first` to `last`, which is not included, with punctuation and space.
//
// Punctuation that is attached to the words goes with them, and so does the space behind them. At
// the end of a line or a text, the space before them does instead, and the end of the line stays.
// Of whole lines, the ends of lines behind or before them go, where fewer are. If two words would
// become one, the last words stay. Nothing may be left to cut.
std::optional<Cut> cut_words(std::string_view text, const Words& words, std::size_t first,
                             std::size_t last);

// The range of a unit, of which `begins` has all. A sentence that ends a paragraph, and does not
// begin it, leaves the space behind it there.
Range unit_range(std::string_view text, const std::vector<Position>& begins, std::size_t at,
                 Unit unit);

}  // namespace lookalike::repeats
