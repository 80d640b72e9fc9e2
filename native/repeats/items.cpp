#include "repeats/items.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "bits/hash.hpp"

namespace lookalike::repeats {

namespace {

constexpr std::uint64_t kBase = 0x9fb21c651e98df25u;  // odd; otherwise arbitrary
constexpr std::size_t kTextsAtATime = 32;

// Calls on_window(where it begins, hash) for each window.
template <class OnWindow>
void each_window(std::span<const std::uint64_t> text, std::size_t words, OnWindow on_window) {
    if (text.size() < words)
        return;
    std::uint64_t sum = 0, leaving = 1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        sum = sum * kBase + text[at];
        if (at < words)
            leaving *= kBase;
        else
            sum -= text[at - words] * leaving;
        if (at + 1 >= words)
            on_window(at + 1 - words, bits::fmix64(sum));
    }
}

// How many different windows of `piece` words the left side of runs has.
std::size_t windows_in(std::vector<passages::Run> runs, std::size_t piece) {
    std::sort(runs.begin(), runs.end(),
              [](const auto& one, const auto& two) { return one.left < two.left; });
    std::size_t count = 0, next = 0;  // windows before `next` are counted
    for (const passages::Run& run : runs) {
        const std::size_t end = run.left_end() + 1 - piece, begin = std::max(run.left, next);
        if (end > begin) {
            count += end - begin;
            next = end;
        }
    }
    return count;
}

}  // namespace

void Hits::append(const Hits& more) {
    const auto add = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    const std::int64_t before = offsets.back();
    for (std::size_t at = 1; at < more.offsets.size(); ++at)
        offsets.push_back(before + more.offsets[at]);
    add(texts, more.texts);
    add(items, more.items);
    add(longest, more.longest);
    add(shares, more.shares);
    add(begins, more.begins);
    add(ends, more.ends);
}

void Items::Table::build() {
    filter.assign(std::bit_ceil(std::max<std::size_t>(64, 16 * places.size())) / 64, 0);
    const auto bits =
        static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(2, places.size())));
    shift = 64 - bits;
    begins.assign((std::size_t{1} << bits) + 1, 0);
    for (const Place& place : places) {
        const std::size_t bit = place.hash & (64 * filter.size() - 1);
        filter[bit / 64] |= std::uint64_t{1} << bit % 64;
        ++begins[(place.hash >> shift) + 1];
    }
    for (std::size_t at = 1; at < begins.size(); ++at)
        begins[at] += begins[at - 1];
    // Places of one bucket, which are few, are sorted by hash, then by item and word.
    std::vector<Place> sorted(places.size());
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (const Place& place : places)
        sorted[next[place.hash >> shift]++] = place;
    places = std::move(sorted);
    for (std::size_t bucket = 0; bucket + 1 < begins.size(); ++bucket)
        if (begins[bucket + 1] - begins[bucket] > 1)
            std::sort(places.begin() + begins[bucket], places.begin() + begins[bucket + 1],
                      [](const Place& one, const Place& two) {
                          if (one.hash != two.hash)
                              return one.hash < two.hash;
                          return one.item != two.item ? one.item < two.item : one.word < two.word;
                      });
}

std::span<const Items::Place> Items::Table::find(std::uint64_t hash) const {
    const std::size_t bucket = hash >> shift;
    std::size_t begin = begins[bucket];
    while (begin < begins[bucket + 1] && places[begin].hash < hash)
        ++begin;
    std::size_t end = begin;
    while (end < begins[bucket + 1] && places[end].hash == hash)
        ++end;
    return std::span(places).subspan(begin, end - begin);
}

Items::Items(std::span<const std::string_view> texts, const ItemRule& rule)
    : rule_(rule), texts_(texts) {
    tables_.resize(2);
    tables_[0].words = rule.words;
    tables_[1].words = std::min(rule.fewest, rule.words);
    WordLister lister;
    for (std::size_t item = 0; item < texts.size(); ++item) {
        const Words& list = lister.list(texts[item]);
        const bool whole = list.size() < rule.words;
        if (list.size() < tables_[1].words) {
            ++skipped_;
            continue;
        }
        each_window(list.hashes, tables_[whole].words, [&](std::size_t at, std::uint64_t hash) {
            // A short item is looked for as a whole, so its beginning is enough.
            if (!whole || at == 0)
                tables_[whole].places.push_back(
                    {hash, static_cast<std::uint32_t>(item), static_cast<std::uint32_t>(at)});
        });
    }
    for (Table& table : tables_)
        table.build();
}

Hits Items::find(std::span<const std::string_view> texts, std::size_t threads,
                 const bits::Checkpoint& checkpoint) const {
    struct Worker {
        WordLister lister;
        std::vector<Seed> seeds;
    };
    const std::size_t runs = (texts.size() + kTextsAtATime - 1) / kTextsAtATime;
    std::vector<Hits> parts(runs);
    std::vector<Worker> workers(std::max<std::size_t>(1, threads));
    bits::share_out(runs, threads, checkpoint, [&](std::size_t worker, std::size_t run) {
        auto& [lister, seeds] = workers[worker];
        const std::size_t begin = run * kTextsAtATime;
        for (std::size_t number = begin; number < std::min(texts.size(), begin + kTextsAtATime);
             ++number) {
            const Words& words = lister.list(texts[number]);
            seeds.clear();
            for (const Table& table : tables_) {
                if (table.places.empty())
                    continue;
                each_window(words.hashes, table.words, [&](std::size_t at, std::uint64_t hash) {
                    if (!table.may_have(hash))
                        return;
                    for (const Place& place : table.find(hash))
                        seeds.push_back({place.item, {place.word, at}});
                });
            }
            if (!seeds.empty())
                add_hits(texts[number], number, words, seeds, parts[run]);
        }
    });
    Hits all;
    for (const Hits& part : parts)
        all.append(part);
    return all;
}

void Items::add_hits(std::string_view text, std::size_t number, const Words& words,
                     std::vector<Seed>& seeds, Hits& hits) const {
    std::stable_sort(seeds.begin(), seeds.end(),
                     [](const Seed& one, const Seed& two) { return one.item < two.item; });
    passages::Vocabulary vocabulary;  // numbers are compared, which are equal where words are
    passages::WordTexts own;
    own.add(text, vocabulary);
    for (std::size_t begin = 0, end = 0; begin < seeds.size(); begin = end) {
        const std::uint32_t item = seeds[begin].item;
        std::vector<passages::Seed> some;
        for (; end < seeds.size() && seeds[end].item == item; ++end)
            some.push_back(seeds[end].at);
        passages::WordTexts item_words;
        item_words.add_known(texts_[item], vocabulary);
        const std::span<const passages::Word> wanted = item_words.text(0);
        const std::size_t piece = std::min(rule_.words, wanted.size());
        const auto runs = passages::runs_of(wanted, own.text(0), some, piece);
        if (runs.empty())
            continue;
        std::size_t longest = 0;
        for (const passages::Run& run : runs)
            longest = std::max(longest, run.length);
        std::vector<Range> ranges;
        const auto add = [&](std::size_t first, std::size_t last) {
            ranges.push_back({words.begins[first], words.ends[last - 1]});
        };
        const auto count = static_cast<double>(wanted.size());
        double share =
            static_cast<double>(windows_in(runs, piece)) / (count - static_cast<double>(piece) + 1);
        if (rule_.rule == Rule::near) {
            const auto least = static_cast<std::size_t>(std::ceil(rule_.share * count - 1e-9));
            std::size_t most = 0;
            for (const passages::Passage& passage :
                 passages::passages_of(runs, {piece, rule_.gap, std::max<std::size_t>(1, least)})) {
                add(passage.runs.front().right, passage.runs.back().right_end());
                most = std::max(most, passage.words);
            }
            share = static_cast<double>(most) / count;
        } else {
            if (rule_.rule == Rule::run)
                share = static_cast<double>(longest) / count;
            for (const passages::Run& run : runs)
                add(run.right, run.right_end());
        }
        if (ranges.empty() || (rule_.rule != Rule::ngram && share < rule_.share - 1e-9))
            continue;
        std::sort(ranges.begin(), ranges.end(),
                  [](const Range& one, const Range& two) { return one.begin < two.begin; });
        for (const Range& range : ranges) {
            const bool goes_on = hits.begins.size() > static_cast<std::size_t>(hits.offsets.back());
            if (goes_on && range.begin <= hits.ends.back()) {
                hits.ends.back() = std::max(hits.ends.back(), range.end);
                continue;
            }
            hits.begins.push_back(range.begin);
            hits.ends.push_back(range.end);
        }
        hits.texts.push_back(static_cast<std::int64_t>(number));
        hits.items.push_back(item);
        hits.longest.push_back(static_cast<std::int64_t>(longest));
        hits.shares.push_back(share);
        hits.offsets.push_back(static_cast<std::int64_t>(hits.begins.size()));
    }
}

}  // namespace lookalike::repeats
