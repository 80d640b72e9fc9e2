#include "pairs/drawn_pairs.hpp"

#include <algorithm>
#include <array>
#include <atomic>
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

class DrawnJoin {
  public:
    DrawnJoin(const Signatures& signatures, const std::uint8_t* skipped, const Draws& draws,
              std::size_t key_bits, std::uint32_t radius, double most, std::size_t limit)
        : signatures_(signatures),
          skipped_(skipped),
          draws_(draws),
          key_bits_(key_bits),
          keys_(draws.width / key_bits),
          kernels_(bits::kernels_for(signatures.bytes)),
          radius_(radius),
          most_(most),
          found_(draws.count, limit) {}

    // Finds the pairs that share a key of this draw and none before it.
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
        bits::Room<bits::Hit> hits;
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
        for (std::size_t key = 0; key < keys_ && !too_costly; ++key)
            join_key<kBytes>(*store, draw, key);
    }

    // First by the upper bits of the key into parts, which are then sorted by the others.
    template <std::size_t kBytes>
    void join_key(Store& store, std::size_t draw, std::size_t key) {
        const std::size_t part_bits = std::min(kPartBits, key_bits_), rest = key_bits_ - part_bits;
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
        const std::uint32_t mask = (std::uint32_t{1} << rest) - 1;
        std::vector<std::uint32_t> ends((std::size_t{1} << rest) + 1, 0);
        for (const Entry<kBytes>& entry : part)
            ++ends[(entry.key & mask) + 1];
        double comparisons = 0;
        for (const std::uint32_t size : ends)
            comparisons += static_cast<double>(size) * size / 2;
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
        std::size_t begin = 0;
        for (std::size_t value = 0; value + 1 < ends.size(); ++value) {
            compare(store, gathered, rows, begin, ends[value], draw, key);
            begin = ends[value];
        }
    }

    // Compares each with those behind it, all of the same key.
    void compare(Store& store, const std::uint8_t* gathered, const std::uint32_t* rows,
                 std::size_t begin, std::size_t end, std::size_t draw, std::size_t key) {
        const std::size_t bytes = signatures_.bytes;
        bits::Hit* const hits = store.hits.of(end - begin + kTogether);
        for (std::size_t at = begin; at + 1 < end; ++at) {
            const std::uint8_t* const one = gathered + at * bytes;
            // Some of what follows is compared, too, which is quicker than the rest one by one.
            const std::size_t count = (end - at - 1 + kTogether - 1) / kTogether * kTogether;
            const std::size_t near = kernels_.filter(one, one + bytes, count, bytes, radius_, hits);
            for (const bits::Hit* hit = hits; hit < hits + near; ++hit) {
                const std::size_t other = at + 1 + hit->row;
                if (other < end && !met_before(one, gathered + other * bytes, draw, key))
                    found_.add(draw, rows[at], rows[other], hit->distance);
            }
        }
    }

    // Whether two signatures share an earlier key, which has reported them.
    bool met_before(const std::uint8_t* one, const std::uint8_t* two, std::size_t draw,
                    std::size_t key) const {
        const std::size_t earlier = draw * keys_ + key;
        for (std::size_t before = 0; before < earlier; ++before) {
            const std::int32_t* const bits =
                draws_.bits + before / keys_ * draws_.width + before % keys_ * key_bits_;
            bool equal = true;
            for (std::size_t place = 0; place < key_bits_ && equal; ++place) {
                const auto bit = static_cast<std::size_t>(bits[place]);
                equal = ((one[bit / 8] ^ two[bit / 8]) >> bit % 8 & 1) == 0;
            }
            if (equal)
                return true;
        }
        return false;
    }

    const Signatures& signatures_;
    const std::uint8_t* skipped_;
    const Draws& draws_;
    std::size_t key_bits_, keys_;
    bits::Kernels kernels_;
    std::uint32_t radius_;
    double most_;
    FoundPairs found_;
    std::atomic<double> spent_{0};
};

}  // namespace

std::optional<Pairs> drawn_pairs(const Signatures& signatures, const std::uint8_t* skipped,
                                 const Draws& draws, std::size_t key_bits, std::uint32_t radius,
                                 double most, std::size_t limit, std::size_t threads,
                                 const bits::Checkpoint& checkpoint) {
    if (signatures.count >> 32 != 0)
        return std::nullopt;
    DrawnJoin join(signatures, skipped, draws, key_bits, radius, most, limit);
    bits::share_out(draws.count, threads, checkpoint,
                    [&](std::size_t, std::size_t draw) { join.join(draw); });
    if (join.too_costly)
        return std::nullopt;
    return join.take_sorted();
}

}  // namespace lookalike::search
