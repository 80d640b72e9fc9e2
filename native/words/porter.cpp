#include "words/porter.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace lookalike::words {

namespace {

struct Rule {
    std::string_view suffix, replacement;
};

constexpr Rule kStep2[] = {
    {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
    {"abli", "able"},   {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
    {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
    {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
};
constexpr Rule kStep3[] = {
    {"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
    {"ical", "ic"},  {"ful", ""},   {"ness", ""},
};
constexpr Rule kStep4[] = {
    {"al", ""},  {"ance", ""},  {"ence", ""}, {"er", ""},  {"ic", ""},  {"able", ""}, {"ible", ""},
    {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", ""}, {"ou", ""},   {"ism", ""},
    {"ate", ""}, {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""},
};

class Word {
  public:
    Word(char* letters, std::size_t length) : letters_(letters), length_(length) {}

    std::size_t stemmed() {
        remove_plural();
        remove_past();
        if (ends_with("y") && has_vowel(length_ - 1))
            letters_[length_ - 1] = 'i';
        replace_longest(kStep2, 0);
        replace_longest(kStep3, 0);
        replace_longest(kStep4, 1);
        remove_last_e();
        return length_;
    }

  private:
    bool is_consonant(std::size_t at) const {
        switch (letters_[at]) {
            case 'a':
            case 'e':
            case 'i':
            case 'o':
            case 'u':
                return false;
            case 'y':
                return at == 0 || !is_consonant(at - 1);
            default:
                return true;
        }
    }

    // How often a vowel is followed by a consonant among the first `end` letters.
    std::size_t measure(std::size_t end) const {
        std::size_t count = 0;
        bool vowel = false;
        for (std::size_t at = 0; at < end; ++at) {
            const bool consonant = is_consonant(at);
            count += vowel && consonant;
            vowel = !consonant;
        }
        return count;
    }

    bool has_vowel(std::size_t end) const {
        for (std::size_t at = 0; at < end; ++at)
            if (!is_consonant(at))
                return true;
        return false;
    }

    bool ends_with(std::string_view suffix) const {
        return std::string_view(letters_, length_).ends_with(suffix);
    }

    // Whether the first `end` letters end with consonant, vowel and a consonant other than w, x, y.
    bool ends_short(std::size_t end) const {
        if (end < 3 || !is_consonant(end - 1) || is_consonant(end - 2) || !is_consonant(end - 3))
            return false;
        const char last = letters_[end - 1];
        return last != 'w' && last != 'x' && last != 'y';
    }

    // English words double only these consonants before an ending; ll, ss and zz are kept.
    bool ends_double() const {
        const char last = letters_[length_ - 1];
        return length_ >= 2 && last == letters_[length_ - 2] &&
               std::string_view("bdfgmnprt").find(last) != std::string_view::npos;
    }

    void remove_plural() {
        if (ends_with("sses") || ends_with("ies"))
            length_ -= 2;
        else if (ends_with("s") && !ends_with("ss"))
            --length_;
    }

    void remove_past() {
        if (ends_with("eed")) {
            length_ -= measure(length_ - 3) > 0;
            return;
        }
        const std::size_t suffix = ends_with("ed") ? 2 : ends_with("ing") ? 3 : 0;
        if (suffix == 0 || !has_vowel(length_ - suffix))
            return;
        length_ -= suffix;
        if (ends_with("at") || ends_with("bl") || ends_with("iz")) {
            letters_[length_++] = 'e';
        } else if (ends_double()) {
            --length_;
        } else if (measure(length_) == 1 && ends_short(length_)) {
            letters_[length_++] = 'e';
        }
    }

    // Replaces the longest suffix of the rules, where what is before it measures more than `least`.
    void replace_longest(std::span<const Rule> rules, std::size_t least) {
        const Rule* longest = nullptr;
        for (const Rule& rule : rules)
            if (rule.suffix.back() == letters_[length_ - 1] &&
                (longest == nullptr || rule.suffix.size() > longest->suffix.size()) &&
                ends_with(rule.suffix))
                longest = &rule;
        if (longest == nullptr)
            return;
        const std::size_t rest = length_ - longest->suffix.size();
        if (measure(rest) <= least)
            return;
        if (longest->suffix == "ion" && letters_[rest - 1] != 's' && letters_[rest - 1] != 't')
            return;
        std::copy_n(longest->replacement.data(), longest->replacement.size(), letters_ + rest);
        length_ = rest + longest->replacement.size();
    }

    void remove_last_e() {
        if (ends_with("e")) {
            const std::size_t found = measure(length_ - 1);
            length_ -= found > 1 || (found == 1 && !ends_short(length_ - 1));
        }
        if (ends_with("ll") && measure(length_) > 1)
            --length_;
    }

    char* letters_;
    std::size_t length_;
};

}  // namespace

std::size_t stem(char* word, std::size_t length) {
    return length < 3 ? length : Word(word, length).stemmed();
}

}  // namespace lookalike::words
