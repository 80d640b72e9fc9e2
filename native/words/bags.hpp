// The words of texts, without their order: what a keyword index holds of a document.
//
// The first words of a document count twice, because they often say what it is about. The parts of
// a compound ("TopSig", "utf8") count beside it. Characters of scripts without spaces are words of
// their own in a document, and so are two that follow each other; a query is made of the pairs.
//
// A bag is a row of 6-byte entries, ascending: the hash of a word (40 bits) times 256 plus how
// often it occurs, at most 255, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bits/threads.hpp"
#include "text/each_word.hpp"
#include "text/hash_map.hpp"

namespace lookalike::words {

constexpr std::size_t kEntryBytes = 6;
constexpr std::uint64_t kMostCount = 255;
constexpr std::size_t kLead = 15;  // the first words of a document, which count twice

// English words by their stems; words as they are written; or runs of three characters of words.
enum class WordKind : std::uint8_t { porter, plain, trigram };

struct BagScratch : text::WordScratch {
    std::vector<std::uint64_t> hashes;
    std::vector<unsigned char> lowered;
    std::vector<unsigned char> run;      // characters of a script without spaces
    std::vector<std::size_t> ends;       // of the characters of a run or a word
    text::HashMap<std::uint64_t> stems;  // hash of a word to hash of its stem, for frequent words
};

inline std::uint64_t entry_at(const std::uint8_t* from) {
    std::uint64_t entry = 0;
    for (std::size_t byte = 0; byte < kEntryBytes; ++byte)
        entry |= static_cast<std::uint64_t>(from[byte]) << 8 * byte;
    return entry;
}

// Appends the bag of a text.
void append_bag(std::string_view text, WordKind kind, BagScratch& scratch,
                std::vector<std::uint8_t>& bag);

// The bags of texts, one behind the other: bag i is at offsets[i] to offsets[i + 1].
struct Bags {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint8_t> bytes;
};
Bags bags_of(const std::vector<std::string_view>& texts, WordKind kind, std::size_t threads,
             const bits::Checkpoint& checkpoint);

// Whether the bytes are a bag.
bool is_bag(const std::uint8_t* bag, std::size_t bytes);

// The different words of a query as they are written, lower-case, and their hashes, each once.
struct QueryWords {
    std::vector<std::string> words;
    std::vector<std::uint64_t> hashes;
};
QueryWords query_words(std::string_view text, WordKind kind);

}  // namespace lookalike::words
