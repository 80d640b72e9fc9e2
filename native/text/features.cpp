#include "text/features.hpp"

#include "bits/hash.hpp"
#include "text/each_word.hpp"
#include "text/unicode.hpp"

namespace lookalike::text {

namespace {

// Appends the hashes of all n-grams of `words`, each step adding one word and taking one away.
void append_shingles(const std::vector<std::uint64_t>& words, std::size_t ngram,
                     std::vector<std::uint64_t>& features) {
    if (words.empty())
        return;
    const std::size_t first = std::min(ngram, words.size());
    std::uint64_t sum = 0, leaving = 1;
    for (std::size_t index = 0; index < first; ++index) {
        sum = sum * kShingleBase + words[index];
        if (index > 0)
            leaving *= kShingleBase;
    }
    features.push_back(bits::fmix64(sum));
    for (std::size_t index = first; index < words.size(); ++index) {
        sum = (sum - words[index - ngram] * leaving) * kShingleBase + words[index];
        features.push_back(bits::fmix64(sum));
    }
}

// The same for n-grams of several lengths: each word ends one of each.
void append_shingles(const std::vector<std::uint64_t>& words,
                     const std::vector<std::size_t>& ngrams, Scratch& scratch,
                     std::vector<std::uint64_t>& features) {
    if (words.size() < ngrams.front())
        return append_shingles(words, ngrams.front(), features);
    scratch.sums.assign(ngrams.size(), 0);
    scratch.leaving.assign(ngrams.size(), kShingleBase);
    for (std::size_t which = 0; which < ngrams.size(); ++which)
        for (std::size_t step = 1; step < ngrams[which]; ++step)
            scratch.leaving[which] *= kShingleBase;
    for (std::size_t index = 0; index < words.size(); ++index)
        for (std::size_t which = 0; which < ngrams.size(); ++which) {
            const std::size_t ngram = ngrams[which];
            std::uint64_t& sum = scratch.sums[which];
            sum = sum * kShingleBase + words[index];
            if (index >= ngram)
                sum -= words[index - ngram] * scratch.leaving[which];
            if (index + 1 >= ngram)
                features.push_back(ngram == 1 ? words[index] : bits::fmix64(sum));
        }
}

void append_words(std::string_view text, const FeatureOptions& options, const Stems& stems,
                  Scratch& scratch, std::vector<std::uint64_t>& words) {
    const bool filtered = options.stopwords.size() != 0;
    each_word(text, {options.lowercase, options.min_length}, scratch,
              [&](const unsigned char* word, std::size_t length) {
                  std::uint64_t hash = length < kReadable ? bits::xxh64_short(word, length)
                                                          : bits::xxh64(word, length);
                  if (filtered && options.stopwords.find(hash))
                      return;
                  if (options.stem)
                      if (const std::uint64_t* stem = stems.find(hash))
                          hash = *stem;
                  words.push_back(hash);
              });
}

// Appends the hashes of all n-grams of characters.
void append_windows(std::string_view text, std::size_t ngram,
                    std::vector<std::uint64_t>& features) {
    // A window from `from` to `at`, always n characters wide once it is full.
    const auto* from = reinterpret_cast<const unsigned char*>(text.data());
    const auto* at = from;
    const auto* const end = from + text.size();
    std::size_t inside = 0;
    while (at < end) {
        at += decode(at, end).length;
        if (++inside < ngram)
            continue;
        features.push_back(bits::xxh64(from, static_cast<std::size_t>(at - from)));
        from += decode(from, end).length;
    }
    if (inside != 0 && inside < ngram)
        features.push_back(bits::xxh64(from, static_cast<std::size_t>(at - from)));
}

// The same for n-grams of several lengths: each character ends one of each.
void append_windows(std::string_view text, const std::vector<std::size_t>& ngrams, Scratch& scratch,
                    std::vector<std::uint64_t>& features) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(text.data());
    const auto* at = begin;
    const auto* const end = begin + text.size();
    scratch.begins.assign(ngrams.size(), begin);
    std::size_t inside = 0;
    while (at < end) {
        at += decode(at, end).length;
        ++inside;
        for (std::size_t which = 0; which < ngrams.size() && inside >= ngrams[which]; ++which) {
            const unsigned char*& from = scratch.begins[which];
            features.push_back(bits::xxh64(from, static_cast<std::size_t>(at - from)));
            from += decode(from, end).length;
        }
    }
    if (inside < ngrams.front())
        append_windows(text, ngrams.front(), features);
}

void append_characters(std::string_view text, const FeatureOptions& options, Scratch& scratch,
                       std::vector<std::uint64_t>& features) {
    if (options.lowercase) {
        scratch.word.resize(3 * text.size() + 4);  // an invalid byte becomes U+FFFD, three bytes
        unsigned char* to = scratch.word.data();
        const auto* at = reinterpret_cast<const unsigned char*>(text.data());
        for (const auto* const end = at + text.size(); at < end;) {
            const Decoded decoded = decode(at, end);
            to = encode(lower(decoded.code), to);
            at += decoded.length;
        }
        text = {reinterpret_cast<const char*>(scratch.word.data()),
                static_cast<std::size_t>(to - scratch.word.data())};
    }
    if (options.ngrams.size() == 1)
        append_windows(text, options.ngrams.front(), features);
    else
        append_windows(text, options.ngrams, scratch, features);
}

}  // namespace

void extract(std::string_view text, const FeatureOptions& options, const Stems& stems,
             Scratch& scratch, std::vector<std::uint64_t>& features) {
    if (options.characters)
        return append_characters(text, options, scratch, features);
    const bool several = options.ngrams.size() > 1;
    if (!several && options.ngrams.front() == 1)
        return append_words(text, options, stems, scratch, features);
    scratch.hashes.clear();
    append_words(text, options, stems, scratch, scratch.hashes);
    if (several)
        append_shingles(scratch.hashes, options.ngrams, scratch, features);
    else
        append_shingles(scratch.hashes, options.ngrams.front(), features);
}

void collect_unknown(std::string_view text, const FeatureOptions& options, const Stems& stems,
                     Scratch& scratch, HashMap<std::string>& unknown) {
    each_word(text, {options.lowercase, options.min_length}, scratch,
              [&](const unsigned char* word, std::size_t length) {
                  const std::uint64_t hash = bits::xxh64(word, length);
                  if (!options.stopwords.find(hash) && !stems.find(hash))
                      unknown[hash].assign(reinterpret_cast<const char*>(word), length);
              });
}

}  // namespace lookalike::text
