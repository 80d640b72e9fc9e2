#include "pairs/block_pairs.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <span>

#include "bits/bit_field.hpp"
#include "bits/hash.hpp"
#include "bits/kernels.hpp"
#include "bits/pool.hpp"
#include "pairs/found_pairs.hpp"
#include "pairs/keyed.hpp"
#include "pairs/word_pairs.hpp"

namespace lookalike::search {

using bits::Hit;

namespace {

// Blocks of whole bits, as equal as can be.
struct Blocks {
    std::size_t bits, count;
    std::vector<std::size_t> begins;  // of each, and the end of the last

    Blocks(std::size_t all_bits, std::size_t blocks) : bits(all_bits), count(blocks) {
        for (std::size_t block = 0; block <= count; ++block)
            begins.push_back(block * bits / count);
    }

    std::size_t begin(std::size_t block) const { return begins[block]; }
    std::size_t end(std::size_t block) const { return begins[block + 1]; }
    std::size_t width(std::size_t block) const { return end(block) - begin(block); }

    // Bits `from` to `to`, at most 56.
    std::uint64_t word(const std::uint8_t* signature, std::size_t from, std::size_t to) const {
        return bits_from(signature, bits / 8, from) & ((std::uint64_t{1} << (to - from)) - 1);
    }

    // Equal for equal blocks; for blocks of more than 32 bits a hash, which others may share.
    std::uint32_t key(const std::uint8_t* signature, std::size_t block) const {
        const std::size_t from = begin(block), to = end(block);
        if (to - from <= 32)
            return static_cast<std::uint32_t>(word(signature, from, to));
        std::uint64_t hash = 0;
        for (std::size_t at = from; at < to; at += 56)
            hash = bits::fmix64(hash ^ word(signature, at, std::min(to, at + 56)));
        return static_cast<std::uint32_t>(hash);
    }

    bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t block) const {
        for (std::size_t at = begin(block); at < end(block); at += 56)
            if (word(a, at, std::min(end(block), at + 56)) !=
                word(b, at, std::min(end(block), at + 56)))
                return false;
        return true;
    }
};

constexpr std::size_t kPartBits = 8;  // of the key: parts then stay in the second-level cache

// Joins a collection with itself, one block after the other.
class Join {
  public:
    Join(const Signatures& signatures, const std::uint8_t* skipped, const Blocks& blocks,
         std::uint32_t radius, std::size_t limit)
        : signatures_(signatures),
          skipped_(skipped),
          blocks_(blocks),
          radius_(radius),
          kernels_(bits::kernels_for(signatures.bytes)),
          found_(blocks.count, limit) {}

    // Finds the pairs that share this block and none before it; nothing once it is too costly.
    void join(std::size_t block) {
        if (too_costly)
            return;
        if (signatures_.bytes == sizeof(std::uint64_t))
            join_as_words(block);
        else
            join_sorted(block);
    }

    Pairs take_sorted() { return found_.take_sorted(); }

    std::atomic<bool> too_costly{false};  // more than comparing each with each

  private:
    struct Store {
        bits::Room<Keyed> entries, spare;
    };

    bool is_skipped(std::size_t row) const { return skipped_ != nullptr && skipped_[row] != 0; }

    // Counts work; false once it is more than comparing each with each.
    bool may_spend(double comparisons) {
        const auto all = static_cast<double>(signatures_.count);
        if ((spent_ += comparisons) > all * all / 2)
            too_costly = true;
        return !too_costly;
    }

    // 64-bit signatures: they are sorted themselves, and need not be looked up afterwards.
    void join_as_words(std::size_t block) {
        may_spend(4 * static_cast<double>(signatures_.count));
        std::vector<std::uint64_t> earlier;
        for (std::size_t before = 0; before < block; ++before)
            earlier.push_back(WordBlock{blocks_.begin(before), blocks_.end(before)}.mask());
        join_words(
            signatures_, skipped_, {blocks_.begin(block), blocks_.end(block)}, radius_,
            [&](double comparisons) { return may_spend(comparisons); },
            [&](const FoundWords& one) {
                // Reported by the first block that they share, and only by that.
                for (const std::uint64_t mask : earlier)
                    if ((one.flips & mask) == 0)
                        return;
                found_.add(block, one.left, one.right, one.distance);
            });
    }

    void join_sorted(std::size_t block) {
        const std::size_t key_bits = std::min<std::size_t>(32, blocks_.width(block));
        const std::size_t part_bits = std::min(kPartBits, key_bits), rest = key_bits - part_bits;
        bits::Pooled<Store> store;
        Keyed* const entries = store->entries.of(signatures_.count + 1);
        // First by the upper bits of the key into parts, which are then sorted by the others.
        std::vector<std::size_t> ends((std::size_t{1} << part_bits) + 1, 0);
        for (std::size_t row = 0; row < signatures_.count; ++row)
            if (!is_skipped(row))
                ++ends[(blocks_.key(signatures_.row(row), block) >> rest) + 1];
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        for (std::size_t row = 0; row < signatures_.count; ++row) {
            if (is_skipped(row))
                continue;
            const std::uint32_t key = blocks_.key(signatures_.row(row), block);
            entries[ends[key >> rest]++] = {key, static_cast<std::uint32_t>(row)};
        }
        may_spend(8 * static_cast<double>(signatures_.count));
        std::size_t begin = 0;
        for (std::size_t part = 0; part + 1 < ends.size() && !too_costly; ++part) {
            const std::size_t size = ends[part] - begin;  // beginnings have become ends
            join_part({sort_by_key(entries + begin, store->spare.of(size), size, rest), size},
                      block);
            begin = ends[part];
        }
    }

    void join_part(std::span<const Keyed> sorted, std::size_t block) {
        double comparisons = 0;
        each_group(sorted, [&](std::size_t first, std::size_t end) {
            const auto size = static_cast<double>(end - first);
            comparisons += size * (size + 8) / 2;  // gathering costs too
        });
        if (!may_spend(comparisons))
            return;
        std::vector<std::uint8_t> gathered;
        std::vector<Hit> hits;
        each_group(sorted, [&](std::size_t first, std::size_t end) {
            gathered.resize((end - first) * signatures_.bytes);
            hits.resize(end - first);
            gather(sorted, first, end, gathered.data());
            compare(sorted.subspan(first, end - first), gathered.data(), block, hits.data());
        });
    }

    void gather(std::span<const Keyed> entries, std::size_t first, std::size_t end,
                std::uint8_t* to) const {
        constexpr std::size_t kAhead = 16;
        for (std::size_t at = first; at < end; ++at, to += signatures_.bytes) {
            if (at + kAhead < entries.size())
                __builtin_prefetch(signatures_.row(entries[at + kAhead].row));
            std::memcpy(to, signatures_.row(entries[at].row), signatures_.bytes);
        }
    }

    // Compares each with those behind it, all of the same key.
    void compare(std::span<const Keyed> group, const std::uint8_t* gathered, std::size_t block,
                 Hit* hits) {
        const std::size_t bytes = signatures_.bytes;
        for (std::size_t index = 0; index + 1 < group.size(); ++index) {
            const std::uint8_t* const one = gathered + index * bytes;
            const std::size_t near =
                kernels_.filter(one, one + bytes, group.size() - index - 1, bytes, radius_, hits);
            for (std::size_t hit = 0; hit < near; ++hit) {
                const std::size_t other = index + 1 + hits[hit].row;
                const std::uint8_t* const two = gathered + other * bytes;
                // Reported by the first block that they share, and only by that.
                bool before = false;
                for (std::size_t earlier = 0; earlier < block && !before; ++earlier)
                    before = blocks_.equal(one, two, earlier);
                // If only the hashes are equal, their own block will report them.
                if (!before && blocks_.equal(one, two, block))
                    found_.add(block, group[index].row, group[other].row, hits[hit].distance);
            }
        }
    }

    const Signatures& signatures_;
    const std::uint8_t* skipped_;
    const Blocks& blocks_;
    std::uint32_t radius_;
    bits::Kernels kernels_;
    FoundPairs found_;  // by each block
    std::atomic<double> spent_{0};
};

}  // namespace

std::optional<Pairs> block_pairs(const Signatures& signatures, const std::uint8_t* skipped,
                                 std::uint32_t radius, std::size_t limit, std::size_t threads,
                                 const bits::Checkpoint& checkpoint) {
    const Blocks blocks{8 * signatures.bytes, std::size_t{radius} + 1};
    if (signatures.count >> 32 != 0 || blocks.count > blocks.bits)
        return std::nullopt;
    Join join(signatures, skipped, blocks, radius, limit);
    bits::share_out(blocks.count, threads, checkpoint,
                    [&](std::size_t, std::size_t block) { join.join(block); });
    if (join.too_costly)
        return std::nullopt;
    return join.take_sorted();
}

}  // namespace lookalike::search
