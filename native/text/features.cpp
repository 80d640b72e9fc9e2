#include "text/features.hpp"

#include <utility>

#include "bits/hash.hpp"
#include "text/each_word.hpp"
#include "text/unicode.hpp"

namespace lookalike::text {

namespace {

// Windows of up to this many bytes are hashed by code for their length.
constexpr std::size_t kLongestKnown = 10;

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

// to[i] = XXH64 of the n bytes at `at` + i. Where the compiler knows n, it takes half the time.
void hash_windows(const unsigned char* at, std::size_t count, std::size_t ngram,
                  std::uint64_t* to) {
    const auto fill = [=](auto hash) {
        for (std::size_t index = 0; index < count; ++index)
            to[index] = hash(at + index);
    };
    const auto fill_if = [&]<std::size_t kLength>() {
        if (ngram == kLength)
            fill([](const unsigned char* from) { return bits::xxh64_of_length<kLength>(from); });
        return ngram == kLength;
    };
    const bool filled = [&]<std::size_t... kLengths>(std::index_sequence<kLengths...>) {
        return (fill_if.template operator()<kLengths + 1>() || ...);
    }(std::make_index_sequence<kLongestKnown>{});
    if (!filled)
        fill([ngram](const unsigned char* from) { return bits::xxh64(from, ngram); });
}

// Appends the hashes of all n-grams of characters.
void append_windows(std::string_view text, std::size_t ngram,
                    std::vector<std::uint64_t>& features) {
    // A window from `from` to `at`, always n characters wide once it is full.
    const auto* from = reinterpret_cast<const unsigned char*>(text.data());
    const auto* at = from;
    const auto* const end = from + text.size();
    const auto* looked_at = from;  // where the last run of ASCII ended
    std::size_t inside = 0;
    while (at < end) {
        if (from >= looked_at && *from < 0x80) {
            looked_at = end_of_ascii(from, end);
            const auto run = static_cast<std::size_t>(looked_at - from);
            if (run >= ngram) {
                const std::size_t before = features.size(), windows = run - ngram + 1;
                features.resize(before + windows);
                hash_windows(from, windows, ngram, features.data() + before);
                from += windows;
                at = looked_at;
                inside = ngram;
                continue;
            }
        }
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
            if (*at < 0x80) {
                *to++ = static_cast<unsigned char>(lower(*at++));
                continue;
            }
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
