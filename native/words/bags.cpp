#include "words/bags.hpp"

#include <algorithm>

#include "bits/hash.hpp"
#include "bits/operation.hpp"
#include "text/features.hpp"
#include "words/porter.hpp"

namespace lookalike::words {

namespace {

constexpr std::uint64_t kHashMask = (std::uint64_t{1} << 40) - 1;
constexpr std::size_t kLongestStemmed = 64;  // English words are shorter
constexpr std::size_t kMostStems = 1 << 16;
constexpr std::size_t kTextsPerRun = 64;

std::uint64_t hash_of_stem(const unsigned char* word, std::size_t length) {
    char letters[kLongestStemmed];
    std::copy_n(word, length, letters);
    return bits::xxh64(letters, stem(letters, length));
}

std::uint64_t hash_of(const unsigned char* word, std::size_t length, bool stems,
                      BagScratch& scratch) {
    const std::uint64_t own =
        length < text::kReadable ? bits::xxh64_short(word, length) : bits::xxh64(word, length);
    const auto is_letter = [](unsigned char byte) { return byte >= 'a' && byte <= 'z'; };
    if (!stems || length > kLongestStemmed || !std::all_of(word, word + length, is_letter))
        return own & kHashMask;
    if (const std::uint64_t* known = scratch.stems.find(own))
        return *known;
    if (scratch.stems.size() >= kMostStems)
        scratch.stems.clear();
    return scratch.stems[own] = hash_of_stem(word, length) & kHashMask;
}

}  // namespace

void append_bag(std::string_view text, bool stems, BagScratch& scratch,
                std::vector<std::uint8_t>& bag) {
    std::vector<std::uint64_t>& hashes = scratch.hashes;
    hashes.clear();
    text::each_word(text, {}, scratch, [&](const unsigned char* word, std::size_t length) {
        hashes.push_back(hash_of(word, length, stems, scratch));
    });
    std::sort(hashes.begin(), hashes.end());
    for (std::size_t begin = 0, end; begin < hashes.size(); begin = end) {
        for (end = begin + 1; end < hashes.size() && hashes[end] == hashes[begin];)
            ++end;
        const std::uint64_t entry =
            hashes[begin] << 8 | std::min<std::uint64_t>(end - begin, kMostCount);
        for (std::size_t byte = 0; byte < kEntryBytes; ++byte)
            bag.push_back(static_cast<std::uint8_t>(entry >> 8 * byte));
    }
}

Bags bags_of(const std::vector<std::string_view>& texts, bool stems, std::size_t threads,
             const bits::Checkpoint& checkpoint) {
    const std::size_t runs = (texts.size() + kTextsPerRun - 1) / kTextsPerRun;
    std::vector<Bags> parts(runs);
    std::vector<BagScratch> scratches(std::max<std::size_t>(1, std::min(threads, runs)));
    bits::share_out_runs(
        texts.size(), kTextsPerRun, scratches.size(), checkpoint,
        [&](std::size_t worker, std::size_t begin, std::size_t end) {
            Bags& part = parts[begin / kTextsPerRun];
            for (std::size_t text = begin; text < end; ++text) {
                bits::stop_if_canceled();  // texts may be long
                append_bag(texts[text], stems, scratches[worker], part.bytes);
                part.offsets.push_back(static_cast<std::int64_t>(part.bytes.size()));
            }
        });
    Bags all;
    for (const Bags& part : parts) {
        const auto before = static_cast<std::int64_t>(all.bytes.size());
        for (std::size_t at = 1; at < part.offsets.size(); ++at)
            all.offsets.push_back(before + part.offsets[at]);
        all.bytes.insert(all.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    return all;
}

bool is_bag(const std::uint8_t* bag, std::size_t bytes) {
    if (bytes % kEntryBytes != 0)
        return false;
    std::uint64_t smallest = 0;  // the hash that an entry needs to have at least
    for (std::size_t at = 0; at < bytes; at += kEntryBytes) {
        const std::uint64_t entry = entry_at(bag + at);
        if ((entry & kMostCount) == 0 || entry >> 8 < smallest)
            return false;
        smallest = (entry >> 8) + 1;
    }
    return true;
}

QueryWords query_words(std::string_view text, bool stems) {
    QueryWords found;
    BagScratch scratch;
    text::HashMap<text::Nothing> known;
    text::each_word(text, {}, scratch, [&](const unsigned char* word, std::size_t length) {
        const std::uint64_t hash = hash_of(word, length, stems, scratch);
        if (known.find(hash))
            return;
        known[hash];
        found.words.emplace_back(reinterpret_cast<const char*>(word), length);
        found.hashes.push_back(hash);
    });
    return found;
}

}  // namespace lookalike::words
