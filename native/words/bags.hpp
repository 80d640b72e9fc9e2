// The words of texts, without their order: what a keyword index holds of a document.
//
// The first words of a document count twice, because they often say what it is about. The parts of
// a compound ("TopSig", "utf8") count beside it. Characters of scripts without spaces are words of
// their own in a document, and so are two that follow each other; a query is made of the pairs.
//
// Pieces of words are four characters that follow each other in a word with a space before and
// after it. A document that has no word of a query may have a similar one ("denoiser", "noise").
//
// A bag begins with the number of bytes of its pieces, two bytes, and these pieces. Then come
// entries of 6 bytes, ascending: the hash of a word (40 bits) times 256 plus how often it occurs,
// at most 255. All numbers are little-endian. A bag of no words is empty.
//
// Pieces are numbers below 2^14, ascending. Each is written as its distance from the one before,
// less 1, in one or two bytes: the lower 7 bits, plus 128 if there are more, and the upper 7 bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bits/threads.hpp"
#include "text/each_word.hpp"
#include "text/hash_map.hpp"

namespace lookalike::words {

constexpr std::size_t kEntryBytes = 6;
constexpr std::uint64_t kMostCount = 255;
constexpr std::size_t kHeaderBytes = 2;
constexpr std::size_t kPieceBits = 14;
constexpr std::size_t kMostPieces = 1024;  // of a document: the first different ones
constexpr std::size_t kLead = 15;          // the first words of a document, which count twice

// English words by their stems; words as they are written; or runs of three characters of words.
enum class WordKind : std::uint8_t { porter, plain, trigram };

// A set of pieces.
class Pieces {
  public:
    Pieces() : words_((std::size_t{1} << kPieceBits) / 64) {}

    bool has(std::size_t piece) const { return words_[piece / 64] >> piece % 64 & 1; }
    void add(std::size_t piece) {
        count_ += !has(piece);
        words_[piece / 64] |= std::uint64_t{1} << piece % 64;
    }
    // Adds pieces in their order, until there are `most`. They are counted only if need be.
    void add(std::span<const std::uint16_t> pieces, std::size_t most) {
        if (this->most() + pieces.size() <= most) {
            for (const std::size_t piece : pieces)
                words_[piece / 64] |= std::uint64_t{1} << piece % 64;
            uncounted_ += pieces.size();
            return;
        }
        for (const std::size_t piece : pieces)
            if (count() < most)
                add(piece);
    }
    std::size_t count() {
        if (uncounted_ != 0) {
            count_ = 0;
            for (const std::uint64_t word : words_)
                count_ += static_cast<std::size_t>(std::popcount(word));
            uncounted_ = 0;
        }
        return count_;
    }
    // As many as there may be at most.
    std::size_t most() const { return count_ + uncounted_; }
    void clear() {
        std::fill(words_.begin(), words_.end(), 0);
        count_ = uncounted_ = 0;
    }

    // Adds pieces as a bag has them. Bytes that are not pieces are safe, and add some others.
    void read(std::span<const std::uint8_t> bytes);

    // Calls on_piece(piece) for each, ascending.
    template <class OnPiece>
    void each(OnPiece on_piece) const {
        for (std::size_t word = 0; word < words_.size(); ++word)
            for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
                on_piece(64 * word + static_cast<std::size_t>(std::countr_zero(left)));
    }

  private:
    std::vector<std::uint64_t> words_;
    std::size_t count_ = 0, uncounted_ = 0;
};

// A word of at most 16 bytes as it was written, and what it adds to a bag: most words of a document
// were in one before. `parts` of a compound and pieces are in lists that all known words share.
struct KnownWord {
    std::uint64_t first, second;  // its bytes, followed by zeros
    std::uint64_t hash;
    std::uint32_t parts, part_count;
    std::uint32_t pieces, piece_count;
    std::uint64_t text;   // the last text that had it
    std::uint32_t place;  // of its entry there
};

struct BagScratch : text::WordScratch {
    // Of the text: hashes times 2^24, plus how often each occurs. A hash may be there repeatedly.
    std::vector<std::uint64_t> entries, sorted;
    std::vector<unsigned char> lowered;
    std::vector<unsigned char> run;  // characters of a script without spaces
    std::vector<std::size_t> ends;   // of the characters of a run or a word
    Pieces pieces;
    std::uint64_t texts = 0;
    text::HashMap<KnownWord> known;
    std::vector<std::uint64_t> parts;  // hashes
    std::vector<std::uint16_t> known_pieces;
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
bool is_bag(std::span<const std::uint8_t> bag);

// The two parts of a bag.
std::span<const std::uint8_t> pieces_of(std::span<const std::uint8_t> bag);
std::span<const std::uint8_t> entries_of(std::span<const std::uint8_t> bag);

// The different words of a query as they are written, lower-case, and their hashes, each once.
// The pieces of word i are at offsets[i] to offsets[i + 1], ascending.
struct QueryWords {
    std::vector<std::string> words;
    std::vector<std::uint64_t> hashes;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint16_t> pieces;
};
QueryWords query_words(std::string_view text, WordKind kind);

}  // namespace lookalike::words
