// Texts as sequences of numbers, equal where their lower-cased words are: two words of one number
// have the same bytes, whatever their hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lookalike::passages {

using Word = std::uint32_t;

constexpr Word kUnknown = UINT32_MAX;

class Vocabulary {
  public:
    // The number of a word, which is given one if it has none.
    Word number(std::string_view word);
    // The same, or kUnknown.
    Word find(std::string_view word) const;
    std::size_t size() const { return ends_.size() - 1; }

  private:
    std::size_t place(std::string_view word, std::uint64_t hash) const;
    std::string_view spelt(Word word) const {
        return std::string_view(letters_).substr(ends_[word], ends_[word + 1] - ends_[word]);
    }
    void grow();

    struct Slot {
        std::uint64_t hash = 0;
        Word word = kUnknown;
    };
    std::vector<Slot> slots_;
    std::string letters_;
    std::vector<std::size_t> ends_{0};
};

struct WordTexts {
    std::vector<Word> words;
    std::vector<std::size_t> begins{0};  // of each text, and where the last one ends

    std::size_t size() const { return begins.size() - 1; }
    std::span<const Word> text(std::size_t number) const {
        return std::span(words).subspan(begins[number], begins[number + 1] - begins[number]);
    }
    std::size_t text_of(std::size_t place) const;

    void add(std::string_view text, Vocabulary& vocabulary);
    // The same with words that the vocabulary does not know all alike.
    void add_known(std::string_view text, const Vocabulary& vocabulary);
};

}  // namespace lookalike::passages
