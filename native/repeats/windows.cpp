#include "repeats/windows.hpp"

#include <algorithm>

#include "bits/hash.hpp"
#include "passages/windows.hpp"

namespace lookalike::repeats {

namespace {

constexpr std::uint64_t kBase = 0x9fb21c651e98df25u;  // odd; otherwise arbitrary
constexpr std::size_t kTextsAtATime = 64;

std::uint64_t lower_bits(std::size_t bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// The hash of each window of `words`, by where it begins.
void hash_windows(std::span<const std::uint64_t> text, std::size_t words,
                  std::vector<std::uint64_t>& hashes) {
    hashes.clear();
    if (text.size() < words)
        return;
    std::uint64_t sum = 0, leaving = 1;
    for (std::size_t at = 0; at < words; ++at) {
        sum = sum * kBase + text[at];
        leaving *= kBase;
    }
    hashes.resize(text.size() - words + 1);
    hashes[0] = bits::fmix64(sum);
    for (std::size_t at = words; at < text.size(); ++at) {
        sum = sum * kBase + text[at] - text[at - words] * leaving;
        hashes[at - words + 1] = bits::fmix64(sum);
    }
}

// What one thread needs to hash texts.
struct Worker {
    WordLister lister;
    std::vector<std::uint64_t> pieces, windows;
};

// Which sampled piece is the anchor of each window of a text.
class AnchorOfWindows {
  public:
    AnchorOfWindows(std::span<const std::uint64_t> pieces, std::size_t window)
        : pieces_(pieces), window_(window), places_(passages::sampled(pieces, window)) {}

    // The number of the anchor of a window, among those of the text; windows have to ascend.
    std::size_t number(std::size_t at) {
        while (places_[first_] < at)
            ++first_;
        // Of the places in this window, the least; of equals the last.
        std::size_t best = first_;
        for (std::size_t other = first_ + 1;
             other < places_.size() && places_[other] < at + window_; ++other)
            if (pieces_[places_[other]] <= pieces_[places_[best]])
                best = other;
        return best;
    }
    std::uint64_t hash(std::size_t at) { return pieces_[places_[number(at)]]; }

  private:
    std::span<const std::uint64_t> pieces_;
    std::size_t window_;
    std::vector<std::size_t> places_;
    std::size_t first_ = 0;
};

void keep_different(std::vector<std::uint64_t>& hashes) {
    std::sort(hashes.begin(), hashes.end());
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

// Runs make(worker, number, part) for texts in runs, and appends the parts in order.
template <class Part, class Make, class Append>
void in_order(std::size_t begin, std::size_t end, std::size_t threads,
              const bits::Checkpoint& checkpoint, Make make, Append append) {
    const std::size_t runs = (end - begin + kTextsAtATime - 1) / kTextsAtATime;
    std::vector<Part> parts(runs);
    std::vector<Worker> workers(std::max<std::size_t>(1, threads));
    bits::share_out(runs, threads, checkpoint, [&](std::size_t worker, std::size_t run) {
        const std::size_t from = begin + run * kTextsAtATime;
        for (std::size_t number = from; number < std::min(end, from + kTextsAtATime); ++number)
            make(workers[worker], number, parts[run]);
    });
    for (const Part& part : parts)
        append(part);
}

// The same for hashes with positions.
template <class Make>
Hashed hashed_in_order(std::size_t begin, std::size_t end, std::size_t threads,
                       const bits::Checkpoint& checkpoint, Make make) {
    Hashed all;
    in_order<Hashed>(begin, end, threads, checkpoint, make, [&](const Hashed& part) {
        all.hashes.insert(all.hashes.end(), part.hashes.begin(), part.hashes.end());
        all.positions.insert(all.positions.end(), part.positions.begin(), part.positions.end());
    });
    return all;
}

// A few bits for each hash of a set, so that most others need not be looked for.
class Filter {
  public:
    explicit Filter(std::span<const std::uint64_t> wanted) : wanted_(wanted) {
        std::size_t size = 64;
        while (size < 16 * wanted.size())
            size *= 2;
        bits_.resize(size / 64);
        for (const std::uint64_t hash : wanted)
            bits_[place(hash) / 64] |= std::uint64_t{1} << place(hash) % 64;
    }

    bool has(std::uint64_t hash) const {
        const std::size_t at = place(hash);
        return (bits_[at / 64] >> at % 64 & 1) != 0 &&
               std::binary_search(wanted_.begin(), wanted_.end(), hash);
    }

  private:
    std::size_t place(std::uint64_t hash) const { return hash & (64 * bits_.size() - 1); }

    std::span<const std::uint64_t> wanted_;
    std::vector<std::uint64_t> bits_;
};

}  // namespace

Anchors anchors_of(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                   std::size_t threads, const bits::Checkpoint& checkpoint) {
    const auto sampling = passages::Sampling::for_runs(words);
    Anchors all;
    in_order<Anchors>(
        begin, end, threads, checkpoint,
        [&](Worker& worker, std::size_t number, Anchors& part) {
            const Spliced spliced(texts.text(number), texts.removed(number));
            hash_windows(worker.lister.list(spliced.text()).hashes, sampling.words, worker.pieces);
            const auto places = passages::sampled(worker.pieces, sampling.window);
            for (const std::size_t place : places)
                part.hashes.push_back(worker.pieces[place]);
            part.counts.push_back(static_cast<std::int64_t>(places.size()));
        },
        [&](const Anchors& part) {
            all.hashes.insert(all.hashes.end(), part.hashes.begin(), part.hashes.end());
            all.counts.insert(all.counts.end(), part.counts.begin(), part.counts.end());
        });
    return all;
}

void mark_repeated(std::span<const std::uint64_t> hashes, std::size_t part, std::size_t part_bits,
                   std::uint8_t* flags, std::size_t threads, const bits::Checkpoint& checkpoint) {
    constexpr std::size_t kBucketBits = 8;
    struct Entry {
        std::uint64_t hash;
        std::size_t place;
    };
    std::vector<std::vector<Entry>> buckets(std::size_t{1} << kBucketBits);
    for (std::size_t place = 0; place < hashes.size(); ++place) {
        const std::uint64_t hash = hashes[place];
        if (part_bits == 0 || hash >> (64 - part_bits) == part)
            buckets[hash >> (64 - part_bits - kBucketBits) & (buckets.size() - 1)].push_back(
                {hash, place});
    }
    bits::share_out(buckets.size(), threads, checkpoint, [&](std::size_t, std::size_t number) {
        auto& bucket = buckets[number];
        std::sort(bucket.begin(), bucket.end(),
                  [](const Entry& one, const Entry& two) { return one.hash < two.hash; });
        for (std::size_t at = 1; at < bucket.size(); ++at)
            if (bucket[at].hash == bucket[at - 1].hash)
                flags[bucket[at].place] = flags[bucket[at - 1].place] = 1;
        bucket = {};
    });
}

Hashed flagged_windows(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                       std::span<const std::uint8_t> flags, std::span<const std::int64_t> counts,
                       std::size_t hash_bits, std::size_t threads,
                       const bits::Checkpoint& checkpoint) {
    const auto sampling = passages::Sampling::for_runs(words);
    const std::uint64_t mask = lower_bits(hash_bits);
    std::vector<std::size_t> firsts{0};  // anchors of each text
    for (const std::int64_t count : counts)
        firsts.push_back(firsts.back() + static_cast<std::size_t>(count));
    return hashed_in_order(
        begin, end, threads, checkpoint, [&](Worker& worker, std::size_t number, Hashed& part) {
            const auto own = flags.subspan(firsts[number - begin],
                                           firsts[number - begin + 1] - firsts[number - begin]);
            if (std::find(own.begin(), own.end(), 1) == own.end())
                return;
            const Spliced spliced(texts.text(number), texts.removed(number));
            const Words& list = worker.lister.list(spliced.text());
            hash_windows(list.hashes, sampling.words, worker.pieces);
            hash_windows(list.hashes, words, worker.windows);
            AnchorOfWindows anchors(worker.pieces, sampling.window);
            for (std::size_t at = 0; at < worker.windows.size(); ++at) {
                if (own[anchors.number(at)] == 0)
                    continue;
                part.hashes.push_back(worker.windows[at] & mask);
                part.positions.push_back(texts.begin(number) + spliced.original(list.begins[at]));
            }
        });
}

Joining joining_windows(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                        std::size_t hash_bits, std::size_t threads,
                        const bits::Checkpoint& checkpoint) {
    const auto sampling = passages::Sampling::for_runs(words);
    const std::uint64_t mask = lower_bits(hash_bits);
    Joining all;
    in_order<Joining>(
        begin, end, threads, checkpoint,
        [&](Worker& worker, std::size_t number, Joining& part) {
            const auto removed = texts.removed(number);
            if (removed.empty())
                return;
            const Spliced spliced(texts.text(number), removed);
            const Words& list = worker.lister.list(spliced.text());
            hash_windows(list.hashes, sampling.words, worker.pieces);
            hash_windows(list.hashes, words, worker.windows);
            AnchorOfWindows anchors(worker.pieces, sampling.window);
            std::size_t next = 0;  // the first range behind the beginning of a window
            for (std::size_t at = 0; at < worker.windows.size(); ++at) {
                const Position from = spliced.original(list.begins[at]);
                while (next < removed.size() && removed[next].begin < from)
                    ++next;
                if (next == removed.size() ||
                    removed[next].begin >= spliced.original(list.ends[at + words - 1] - 1))
                    continue;
                part.hashes.push_back(worker.windows[at] & mask);
                part.anchors.push_back(anchors.hash(at));
            }
        },
        [&](const Joining& part) {
            all.hashes.insert(all.hashes.end(), part.hashes.begin(), part.hashes.end());
            all.anchors.insert(all.anchors.end(), part.anchors.begin(), part.anchors.end());
        });
    keep_different(all.hashes);
    keep_different(all.anchors);
    return all;
}

void mark_texts(std::span<const std::uint64_t> anchors, std::span<const std::int64_t> counts,
                std::span<const std::uint64_t> wanted, std::uint8_t* flags) {
    const Filter filter(wanted);
    std::size_t at = 0;
    for (std::size_t text = 0; text < counts.size(); ++text) {
        const std::size_t end = at + static_cast<std::size_t>(counts[text]);
        for (; at < end && flags[text] == 0; ++at)
            flags[text] = filter.has(anchors[at]);
        at = end;
    }
}

Hashed wanted_windows(const Texts& texts, std::size_t begin, std::size_t end, std::size_t words,
                      std::span<const std::uint64_t> wanted, std::span<const std::uint8_t> flags,
                      std::size_t hash_bits, std::size_t threads,
                      const bits::Checkpoint& checkpoint) {
    const std::uint64_t mask = lower_bits(hash_bits);
    const Filter filter(wanted);
    return hashed_in_order(
        begin, end, threads, checkpoint, [&](Worker& worker, std::size_t number, Hashed& part) {
            if (flags[number - begin] == 0)
                return;
            const Spliced spliced(texts.text(number), texts.removed(number));
            const Words& list = worker.lister.list(spliced.text());
            hash_windows(list.hashes, words, worker.windows);
            for (std::size_t at = 0; at < worker.windows.size(); ++at) {
                const std::uint64_t hash = worker.windows[at] & mask;
                if (!filter.has(hash))
                    continue;
                part.hashes.push_back(hash);
                part.positions.push_back(texts.begin(number) + spliced.original(list.begins[at]));
            }
        });
}

Hashed hashed_units(const Texts& texts, std::size_t begin, std::size_t end, Unit unit,
                    std::size_t words, std::size_t hash_bits, std::size_t threads,
                    const bits::Checkpoint& checkpoint) {
    const std::uint64_t mask = lower_bits(hash_bits);
    return hashed_in_order(
        begin, end, threads, checkpoint, [&](Worker& worker, std::size_t number, Hashed& part) {
            const std::string_view text = texts.text(number);
            const Words& list = worker.lister.list(text);
            const std::vector<Position> begins = units_of(text, unit);
            std::size_t word = 0;
            for (std::size_t at = 0; at < begins.size(); ++at) {
                const Position last =
                    at + 1 < begins.size() ? begins[at + 1] : static_cast<Position>(text.size());
                std::uint64_t sum = 0;
                const std::size_t first = word;
                for (; word < list.size() && list.begins[word] < last; ++word)
                    sum = sum * kBase + list.hashes[word];
                if (word == first || word - first < words)
                    continue;
                part.hashes.push_back(bits::fmix64(sum) & mask);
                part.positions.push_back(texts.begin(number) + begins[at]);
            }
        });
}

void sort_hashed(Hashed& hashed, std::size_t threads, const bits::Checkpoint& checkpoint) {
    constexpr std::size_t kBucketBits = 8;
    struct Entry {
        std::uint64_t hash;
        Position position;
    };
    const std::size_t count = hashed.hashes.size();
    std::uint64_t every = 0;
    for (const std::uint64_t hash : hashed.hashes)
        every |= hash;
    std::size_t width = 0;
    while (width < 64 && every >> width != 0)
        ++width;
    const std::size_t shift = width > kBucketBits ? width - kBucketBits : 0;
    std::vector<std::size_t> begins((std::size_t{1} << kBucketBits) + 1);
    for (const std::uint64_t hash : hashed.hashes)
        ++begins[(hash >> shift) + 1];
    for (std::size_t at = 1; at < begins.size(); ++at)
        begins[at] += begins[at - 1];
    std::vector<Entry> entries(count);
    std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
    for (std::size_t at = 0; at < count; ++at)
        entries[next[hashed.hashes[at] >> shift]++] = {hashed.hashes[at], hashed.positions[at]};
    bits::share_out(begins.size() - 1, threads, checkpoint, [&](std::size_t, std::size_t bucket) {
        std::sort(entries.begin() + static_cast<std::ptrdiff_t>(begins[bucket]),
                  entries.begin() + static_cast<std::ptrdiff_t>(begins[bucket + 1]),
                  [](const Entry& one, const Entry& two) {
                      return one.hash != two.hash ? one.hash < two.hash
                                                  : one.position < two.position;
                  });
        for (std::size_t at = begins[bucket]; at < begins[bucket + 1]; ++at) {
            hashed.hashes[at] = entries[at].hash;
            hashed.positions[at] = entries[at].position;
        }
    });
}

std::vector<std::int64_t> divide(Hashed& hashed, std::size_t part_bits, std::size_t hash_bits) {
    const std::size_t shift = hash_bits > part_bits ? hash_bits - part_bits : 0;
    const auto part_of = [&](std::uint64_t hash) { return part_bits == 0 ? 0 : hash >> shift; };
    std::vector<std::int64_t> begins((std::size_t{1} << part_bits) + 1);
    for (const std::uint64_t hash : hashed.hashes)
        ++begins[part_of(hash) + 1];
    for (std::size_t at = 1; at < begins.size(); ++at)
        begins[at] += begins[at - 1];
    if (part_bits == 0)
        return begins;
    Hashed divided{std::vector<std::uint64_t>(hashed.hashes.size()),
                   std::vector<Position>(hashed.hashes.size())};
    std::vector<std::int64_t> next(begins.begin(), begins.end() - 1);
    for (std::size_t at = 0; at < hashed.hashes.size(); ++at) {
        const auto to = static_cast<std::size_t>(next[part_of(hashed.hashes[at])]++);
        divided.hashes[to] = hashed.hashes[at];
        divided.positions[to] = hashed.positions[at];
    }
    hashed = std::move(divided);
    return begins;
}

}  // namespace lookalike::repeats
