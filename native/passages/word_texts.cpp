#include "passages/word_texts.hpp"

#include <algorithm>
#include <stdexcept>

#include "bits/hash.hpp"
#include "passages/placed_words.hpp"

namespace lookalike::passages {

// Where a word is, or the free place where it belongs. At least half of the places are free.
std::size_t Vocabulary::place(std::string_view word, std::uint64_t hash) const {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].word != kUnknown &&
           (slots_[at].hash != hash || spelt(slots_[at].word) != word))
        at = (at + 1) & (slots_.size() - 1);
    return at;
}

Word Vocabulary::number(std::string_view word) {
    if (2 * size() >= slots_.size())
        grow();
    const std::uint64_t hash = bits::xxh64(word.data(), word.size());
    Slot& slot = slots_[place(word, hash)];
    if (slot.word == kUnknown) {
        if (size() + 1 >= kUnknown)
            throw std::length_error("more different words than can be numbered");
        slot = {hash, static_cast<Word>(size())};
        letters_.append(word);
        ends_.push_back(letters_.size());
    }
    return slot.word;
}

Word Vocabulary::find(std::string_view word) const {
    if (slots_.empty())
        return kUnknown;
    return slots_[place(word, bits::xxh64(word.data(), word.size()))].word;
}

void Vocabulary::grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
        if (slot.word != kUnknown) {  // all are different, so the first free place is theirs
            std::size_t at = slot.hash & (slots_.size() - 1);
            while (slots_[at].word != kUnknown)
                at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
}

std::size_t WordTexts::text_of(std::size_t place) const {
    return static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), place) -
                                    begins.begin()) -
           1;
}

void WordTexts::add(std::string_view text, Vocabulary& vocabulary) {
    std::vector<unsigned char> room;
    each_placed_word(text, room, [&](std::string_view word, std::size_t, std::size_t) {
        words.push_back(vocabulary.number(word));
    });
    begins.push_back(words.size());
}

void WordTexts::add_known(std::string_view text, const Vocabulary& vocabulary) {
    std::vector<unsigned char> room;
    each_placed_word(text, room, [&](std::string_view word, std::size_t, std::size_t) {
        words.push_back(vocabulary.find(word));
    });
    begins.push_back(words.size());
}

}  // namespace lookalike::passages
