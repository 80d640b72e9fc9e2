#include "pairs/drawn_pairs.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "bits/kernels.hpp"
#include "bits/pool.hpp"
#include "bits/step_costs.hpp"
#include "pairs/found_pairs.hpp"

namespace lookalike::search {

namespace {

// The bits of a draw, in its order, as a word: looked up by the bytes that have some of them.
class DrawnWord {
  public:
    DrawnWord(const Draws& draws, std::size_t draw) {
        for (std::size_t place = 0; place < draws.width; ++place) {
            const auto bit = static_cast<std::size_t>(draws.bit(draw, place));
            Byte& byte = of(bit / 8);
            for (std::size_t value = 0; value < byte.words.size(); ++value)
                byte.words[value] |= std::uint64_t{value >> bit % 8 & 1} << place;
        }
    }

    std::uint64_t operator()(const std::uint8_t* signature) const {
        std::uint64_t word = 0;
        for (const Byte& byte : bytes_)
            word |= byte.words[signature[byte.place]];
        return word;
    }

  private:
    struct Byte {
        std::size_t place;
        std::array<std::uint64_t, 256> words;
    };

    Byte& of(std::size_t place) {
        for (Byte& byte : bytes_)
            if (byte.place == place)
                return byte;
        return bytes_.emplace_back(Byte{place, {}});
    }

    std::vector<Byte> bytes_;
};

// Which bits make a key: masks of as many words as a signature has, the last one filled up.
class Keys {
  public:
    Keys(const Draws& draws, std::size_t key_bits, std::size_t near_bits, std::size_t bytes)
        : words_((bytes + 7) / 8), each_(draws.width / key_bits) {
        same_.resize(draws.count * each_ * words_);
        near_.resize(same_.size());
        for (std::size_t number = 0; number < draws.count * each_; ++number)
            for (std::size_t place = 0; place < key_bits; ++place) {
                const auto bit = static_cast<std::size_t>(
                    draws.bit(number / each_, number % each_ * key_bits + place));
                std::vector<std::uint64_t>& masks = place < near_bits ? near_ : same_;
                masks[number * words_ + bit / 64] |= std::uint64_t{1} << bit % 64;
            }
    }

    std::size_t of_a_draw() const { return each_; }

    // Whether two signatures meet in one of the first keys, `first` of them.
    bool meet(const std::uint8_t* one, const std::uint8_t* two, std::size_t bytes,
              std::size_t first, std::vector<std::uint64_t>& differing) const {
        differing.assign(words_, 0);
        for (std::size_t at = 0; at < bytes; at += 8) {
            std::uint64_t left = 0, right = 0;
            std::memcpy(&left, one + at, std::min<std::size_t>(8, bytes - at));
            std::memcpy(&right, two + at, std::min<std::size_t>(8, bytes - at));
            differing[at / 8] = left ^ right;
        }
        const std::uint64_t* same = same_.data();
        for (std::size_t number = 0; number < first; ++number, same += words_) {
            std::uint64_t unlike = 0;
            for (std::size_t word = 0; word < words_; ++word)
                unlike |= differing[word] & same[word];
            if (unlike == 0 && at_most_one(differing, near_.data() + number * words_))
                return true;
        }
        return false;
    }

  private:
    bool at_most_one(const std::vector<std::uint64_t>& differing, const std::uint64_t* near) const {
        int ones = 0;
        for (std::size_t word = 0; word < words_; ++word)
            ones += std::popcount(differing[word] & near[word]);
        return ones <= 1;
    }

    std::size_t words_, each_;
    std::vector<std::uint64_t> same_, near_;
};

class DrawnJoin {
  public:
    DrawnJoin(const Signatures& signatures, const std::uint8_t* skipped, const Draws& draws,
              std::size_t key_bits, std::size_t near_bits, std::uint32_t radius, double most,
              std::size_t limit)
        : signatures_(signatures),
          skipped_(skipped),
          draws_(draws),
          key_bits_(key_bits),
          near_bits_(near_bits),
          keys_(draws, key_bits, near_bits, signatures.bytes),
          kernels_(bits::kernels_for(signatures.bytes)),
          radius_(radius),
          most_(most),
          found_(draws.count, limit) {}

    // Finds the pairs that meet in a key of this draw and in none before it.
    void join(std::size_t draw) {
        if (signatures_.bytes == 8)
            join_draw<8>(draw);
        else if (signatures_.bytes == 16)
            join_draw<16>(draw);
        else
            join_draw<0>(draw);
    }

    Pairs take_sorted() { return found_.take_sorted(); }

    std::atomic<bool> too_costly{false};

  private:
    static constexpr std::size_t kTogether = 8;  // rows that every kernel compares at a time
    static constexpr std::size_t kRun = 1024;    // rows that they are compared with at a time
    static constexpr std::size_t kPartBits = 8;  // parts then stay in the second-level cache

    // What is sorted. Short signatures go with their row, so that all is read in order; others are
    // fetched when they are compared.
    template <std::size_t kBytes>
    struct Entry {
        std::uint32_t key, row;
        std::array<std::uint8_t, kBytes> signature;
    };

    struct Store {
        bits::Room<std::uint64_t> words;
        bits::Room<std::uint8_t> entries, gathered;
        bits::Room<std::uint32_t> rows;
        bits::Room<bits::Crossing> hits;
        std::vector<std::uint64_t> differing;
    };

    // Rows of a part by their key, and which key of which draw that is.
    struct Sorted {
        const std::uint8_t* signatures;
        const std::uint32_t* rows;
        std::size_t draw, key;
    };

    struct Range {
        std::size_t begin, end;
    };

    bool may_spend(double nanoseconds) {
        if ((spent_ += nanoseconds) > most_)
            too_costly = true;
        return !too_costly;
    }

    template <std::size_t kBytes>
    void join_draw(std::size_t draw) {
        bits::Pooled<Store> store;
        std::uint64_t* const words = store->words.of(signatures_.count + 1);
        const DrawnWord word(draws_, draw);
        for (std::size_t row = 0; row < signatures_.count; ++row)
            words[row] = word(signatures_.row(row));
        for (std::size_t key = 0; key < keys_.of_a_draw() && !too_costly; ++key)
            join_key<kBytes>(*store, draw, key);
    }

    // First by upper bits of the key, all of which must be the same, into parts, which are then
    // sorted by the others.
    template <std::size_t kBytes>
    void join_key(Store& store, std::size_t draw, std::size_t key) {
        const std::size_t part_bits = std::min(kPartBits, key_bits_ - near_bits_);
        const std::size_t rest = key_bits_ - part_bits;
        const std::size_t shift = key * key_bits_;
        const std::uint64_t mask = ~std::uint64_t{0} >> (64 - key_bits_);
        const std::uint64_t* const words = store.words.of(signatures_.count + 1);
        auto* const entries = reinterpret_cast<Entry<kBytes>*>(
            store.entries.of((signatures_.count + 1) * sizeof(Entry<kBytes>)));
        std::vector<std::size_t> ends((std::size_t{1} << part_bits) + 1, 0);
        for (std::size_t row = 0; row < signatures_.count; ++row)
            if (skipped_ == nullptr || skipped_[row] == 0)
                ++ends[((words[row] >> shift & mask) >> rest) + 1];
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        for (std::size_t row = 0; row < signatures_.count; ++row) {
            if (skipped_ != nullptr && skipped_[row] != 0)
                continue;
            const auto value = static_cast<std::uint32_t>(words[row] >> shift & mask);
            Entry<kBytes>& entry = entries[ends[value >> rest]++];
            entry.key = value;
            entry.row = static_cast<std::uint32_t>(row);
            if constexpr (kBytes != 0)
                std::memcpy(entry.signature.data(), signatures_.data + row * kBytes, kBytes);
        }
        may_spend((bits::kUsualCosts.entry + bits::kUsualCosts.compare(signatures_.bytes)) *
                  static_cast<double>(signatures_.count));
        std::size_t begin = 0;
        for (std::size_t part = 0; part + 1 < ends.size() && !too_costly; ++part) {
            // Beginnings have become ends.
            join_part<kBytes>(store, {entries + begin, ends[part] - begin}, rest, draw, key);
            begin = ends[part];
        }
    }

    template <std::size_t kBytes>
    void join_part(Store& store, std::span<const Entry<kBytes>> part, std::size_t rest,
                   std::size_t draw, std::size_t key) {
        if (part.size() < 2)
            return;
        const std::uint32_t mask = (std::uint32_t{1} << rest) - 1;
        std::vector<std::uint32_t> ends((std::size_t{1} << rest) + 1, 0);
        for (const Entry<kBytes>& entry : part)
            ++ends[(entry.key & mask) + 1];
        double comparisons = 0;
        for (std::size_t value = 0; value <= mask; ++value) {
            const double size = ends[value + 1];
            if (size == 0)
                continue;
            comparisons += size * size / 2;
            each_near(value, [&](std::size_t other) { comparisons += size * ends[other + 1]; });
        }
        if (!may_spend(comparisons *
                       bits::kUsualCosts.scan(static_cast<double>(signatures_.bytes), 1)))
            return;
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        const std::size_t bytes = kBytes == 0 ? signatures_.bytes : kBytes;
        std::uint8_t* const gathered = store.gathered.of((part.size() + kTogether) * bytes);
        std::uint32_t* const rows = store.rows.of(part.size() + 1);
        constexpr std::size_t kAhead = 16;
        for (std::size_t at = 0; at < part.size(); ++at) {
            const Entry<kBytes>& entry = part[at];
            const std::size_t place = ends[entry.key & mask]++;
            rows[place] = entry.row;
            if constexpr (kBytes != 0) {
                std::memcpy(gathered + place * kBytes, entry.signature.data(), kBytes);
            } else {
                if (at + kAhead < part.size())
                    __builtin_prefetch(signatures_.row(part[at + kAhead].row));
                std::memcpy(gathered + place * bytes, signatures_.row(entry.row), bytes);
            }
        }
        std::memset(gathered + part.size() * bytes, 0, kTogether * bytes);
        const Sorted sorted{gathered, rows, draw, key};
        const auto range = [&](std::size_t value) {
            return Range{value == 0 ? 0 : ends[value - 1], ends[value]};
        };
        for (std::size_t value = 0; value <= mask; ++value) {
            const Range those = range(value);
            if (those.begin == those.end)
                continue;
            compare(store, sorted, those, those);
            each_near(value,
                      [&](std::size_t other) { compare(store, sorted, those, range(other)); });
        }
    }

    // Hands over larger values that differ from this one in a single bit, of those that may differ.
    template <class Visit>
    void each_near(std::size_t value, const Visit& visit) const {
        for (std::size_t bit = 0; bit < near_bits_; ++bit)
            if ((value >> bit & 1) == 0)
                visit(value | std::size_t{1} << bit);
    }

    // Compares each of a range with those behind it in another, or in the same.
    void compare(Store& store, const Sorted& sorted, Range those, Range others) {
        // Several short ones at a time, which costs more comparisons within a range, but less.
        const std::size_t together = signatures_.bytes <= 16 ? 16 : 1;
        for (std::size_t at = those.begin; at < those.end; at += together) {
            const Range asking{at, std::min(at + together, those.end)};
            const std::size_t first =
                std::max(asking.end - asking.begin == 1 ? at + 1 : at, others.begin);
            for (std::size_t from = first; from < others.end; from += kRun)
                compare_run(store, sorted, asking, {from, std::min(from + kRun, others.end)});
        }
    }

    void compare_run(Store& store, const Sorted& sorted, Range asking, Range others) {
        const std::size_t bytes = signatures_.bytes, asked = asking.end - asking.begin;
        // Some of what follows is compared, too, which is quicker than the rest one by one.
        const std::size_t count =
            (others.end - others.begin + kTogether - 1) / kTogether * kTogether;
        bits::Crossing* const hits = store.hits.of(asked * count);
        const std::uint8_t* const ones = sorted.signatures + asking.begin * bytes;
        const std::uint8_t* const twos = sorted.signatures + others.begin * bytes;
        const std::size_t near = kernels_.crossed(ones, asked, twos, count, bytes, radius_, hits);
        const std::size_t earlier = sorted.draw * keys_.of_a_draw() + sorted.key;
        for (const bits::Crossing* hit = hits; hit < hits + near; ++hit) {
            const std::size_t one = asking.begin + hit->query, two = others.begin + hit->row;
            if (one < two && two < others.end &&
                !keys_.meet(ones + hit->query * bytes, twos + hit->row * bytes, bytes, earlier,
                            store.differing))
                found_.add(sorted.draw, sorted.rows[one], sorted.rows[two], hit->distance);
        }
    }

    const Signatures& signatures_;
    const std::uint8_t* skipped_;
    const Draws& draws_;
    std::size_t key_bits_, near_bits_;
    Keys keys_;
    bits::Kernels kernels_;
    std::uint32_t radius_;
    double most_;
    FoundPairs found_;
    std::atomic<double> spent_{0};
};

}  // namespace

std::optional<Pairs> drawn_pairs(const Signatures& signatures, const std::uint8_t* skipped,
                                 const Draws& draws, std::size_t key_bits, std::size_t near_bits,
                                 std::uint32_t radius, double most, std::size_t limit,
                                 std::size_t threads, const bits::Checkpoint& checkpoint) {
    if (signatures.count >> 32 != 0)
        return std::nullopt;
    DrawnJoin join(signatures, skipped, draws, key_bits, near_bits, radius, most, limit);
    bits::share_out(draws.count, threads, checkpoint,
                    [&](std::size_t, std::size_t draw) { join.join(draw); });
    if (join.too_costly)
        return std::nullopt;
    return join.take_sorted();
}

}  // namespace lookalike::search
