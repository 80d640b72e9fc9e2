// Parts of a text: lines, paragraphs and sentences.
#pragma once

#include <string_view>
#include <vector>

#include "repeats/texts.hpp"

namespace lookalike::repeats {

enum class Unit { line, sentence, paragraph };

// Where the units of a text begin, the first at 0; each goes on to where the next begins, so the
// space behind it belongs to it. An empty text has none.
//
// A line ends with a line feed. A paragraph ends with blank lines. A sentence ends with its
// paragraph. It also ends with a full stop, question or exclamation mark, quotation marks and
// brackets that follow it, and space, if no lower-case letter is next. A full stop behind a single
// letter or a common abbreviation does not end it.
std::vector<Position> units_of(std::string_view text, Unit unit);

// Whether a character is space, and whether it is a line feed or another end of a line.
bool is_space(char32_t code);
bool is_break(char32_t code);

}  // namespace lookalike::repeats
