// The stemmer of M. F. Porter, "An algorithm for suffix stripping" (1980): English words that
// differ in their endings become one.
#pragma once

#include <cstddef>

namespace lookalike::words {

// Stems a word of lower-case ASCII letters in place and returns its new length, which is not
// larger. Words of one or two letters stay as they are.
std::size_t stem(char* word, std::size_t length);

}  // namespace lookalike::words
