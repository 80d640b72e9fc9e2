#include "pairs/word_pairs.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "bits/pool.hpp"
#include "slices/scoring/loops.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kRowsPerPartBits = 13;  // parts of this number of rows stay in the cache
constexpr std::size_t kMostPartBits = 11, kMostRestBits = 11;

// 12 bytes: a row and its word, in two halves that need no padding.
struct Entry {
    std::uint32_t low, high, row;

    Entry(std::uint64_t word, std::size_t number)
        : low(static_cast<std::uint32_t>(word)),
          high(static_cast<std::uint32_t>(word >> 32)),
          row(static_cast<std::uint32_t>(number)) {}
    std::uint64_t word() const { return std::uint64_t{high} << 32 | low; }
};

struct Store {
    bits::Room<Entry> entries;
    bits::Room<std::uint64_t> words;
    bits::Room<std::uint32_t> rows;
};

std::uint64_t word_of(const Signatures& signatures, std::size_t row) {
    std::uint64_t word;
    std::memcpy(&word, signatures.data + row * sizeof word, sizeof word);
    return word;
}

}  // namespace

void join_words(const Signatures& signatures, const std::uint8_t* skipped, WordBlock block,
                std::uint32_t radius, const std::function<bool(double)>& may_compare,
                const std::function<void(const FoundWords&)>& found) {
    // The key is the lower bits of the block, as many as tell most rows apart: the upper ones of
    // them say which part a row is in, and parts are sorted by the rest.
    const std::size_t width = block.to - block.from;
    const auto size_bits = static_cast<std::size_t>(std::bit_width(signatures.count));
    const std::size_t part_bits =
        std::min({size_bits - std::min(size_bits, kRowsPerPartBits), kMostPartBits, width});
    const std::size_t rest_bits = std::min(width - part_bits, kMostRestBits);
    const std::uint64_t part_mask = (std::uint64_t{1} << part_bits) - 1;
    const std::uint64_t rest_mask = (std::uint64_t{1} << rest_bits) - 1;
    const auto part_of = [&](std::uint64_t word) {
        return word >> block.from >> rest_bits & part_mask;
    };
    const auto rest_of = [&](std::uint64_t word) { return word >> block.from & rest_mask; };
    const auto is_there = [&](std::size_t row) { return skipped == nullptr || skipped[row] == 0; };

    std::vector<std::size_t> ends(part_mask + 2, 0);
    for (std::size_t row = 0; row < signatures.count; ++row)
        ends[part_of(word_of(signatures, row)) + 1] += is_there(row) ? 1 : 0;
    const std::size_t largest = *std::max_element(ends.begin(), ends.end());
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    bits::Pooled<Store> store;
    Entry* const entries = store->entries.of(ends.back());
    for (std::size_t row = 0; row < signatures.count; ++row) {
        if (!is_there(row))
            continue;
        const std::uint64_t word = word_of(signatures, row);
        std::size_t& place = ends[part_of(word)];
        // The next cache line of the part, which is far away by now.
        __builtin_prefetch(entries + place + 64 / sizeof(Entry), 1);
        entries[place++] = {word, row};
    }

    std::uint64_t* const words = store->words.of(largest);
    std::uint32_t* const rows = store->rows.of(largest);
    std::vector<std::uint32_t> groups(rest_mask + 2);
    std::vector<WordPair> pairs;
    const std::uint64_t mask = block.mask();
    for (std::size_t part = 0, begin = 0; part <= part_mask; begin = ends[part++]) {
        const std::size_t size = ends[part] - begin;  // beginnings have become ends
        std::fill(groups.begin(), groups.end(), 0);
        for (std::size_t at = 0; at < size; ++at)
            ++groups[rest_of(entries[begin + at].word()) + 1];
        double comparisons = 0;
        for (const std::uint32_t group : groups)
            comparisons += static_cast<double>(group) * (group + 8.0) / 2;
        if (!may_compare(comparisons))
            return;
        std::partial_sum(groups.begin(), groups.end(), groups.begin());
        for (std::size_t at = 0; at < size; ++at) {
            const Entry& entry = entries[begin + at];
            const std::uint32_t place = groups[rest_of(entry.word())]++;
            words[place] = entry.word();
            rows[place] = entry.row;
        }
        const auto near_words = score_loops().near_words;
        for (std::size_t group = 0, from = 0; group <= rest_mask; from = groups[group++]) {
            const std::size_t count = groups[group] - from;
            if (pairs.size() < 2 * count)
                pairs.resize(2 * count);
            for (std::size_t first = 0; first + 1 < count;) {
                const std::size_t near =
                    near_words(words + from, count, radius, first, pairs.data(), pairs.size());
                for (std::size_t at = 0; at < near; ++at) {
                    const auto [left, right, distance] = pairs[at];
                    const std::uint64_t flips = words[from + left] ^ words[from + right];
                    if ((flips & mask) == 0)  // the key need not be all of the block
                        found({rows[from + left], rows[from + right], flips, distance});
                }
            }
        }
    }
}

}  // namespace lookalike::search
