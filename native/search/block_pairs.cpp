#include "search/block_pairs.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "bits/kernels.hpp"
#include "bits/mix.hpp"
#include "search/bit_field.hpp"
#include "search/keyed.hpp"

namespace lookalike::search {

using bits::Hit;

namespace {

// Blocks of whole bits, as equal as can be.
struct Blocks {
    std::size_t bits, count;

    std::size_t begin(std::size_t block) const { return block * bits / count; }
    std::size_t end(std::size_t block) const { return (block + 1) * bits / count; }
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

struct Found {
    std::uint32_t left, right, distance;
};

}  // namespace

std::optional<Pairs> block_pairs(const Signatures& signatures, std::uint32_t radius,
                                 std::size_t limit, std::size_t threads,
                                 const bits::Checkpoint& checkpoint) {
    const Blocks blocks{8 * signatures.bytes, std::size_t{radius} + 1};
    if (signatures.count >> 32 != 0 || blocks.count > blocks.bits)
        return std::nullopt;
    const bits::Kernels kernels = bits::kernels_for(signatures.bytes);
    const double all =
        static_cast<double>(signatures.count) * static_cast<double>(signatures.count) / 2;
    std::atomic<double> spent{0};
    std::atomic<bool> too_costly{false};
    std::atomic<std::size_t> total{0};
    std::vector<std::vector<Found>> found(blocks.count);

    bits::share_out(blocks.count, threads, checkpoint, [&](std::size_t, std::size_t block) {
        if (too_costly)
            return;
        std::vector<Keyed> entries(signatures.count), spare;
        for (std::size_t row = 0; row < signatures.count; ++row)
            entries[row] = {blocks.key(signatures.row(row), block),
                            static_cast<std::uint32_t>(row)};
        sort_by_key(entries, spare, std::min<std::size_t>(32, blocks.width(block)));
        double comparisons = 8 * static_cast<double>(signatures.count);  // the sorting
        each_group(entries, [&](std::size_t first, std::size_t end) {
            const auto size = static_cast<double>(end - first);
            comparisons += size * (size + 8) / 2;  // gathering costs too
        });
        if ((spent += comparisons) > all) {
            too_costly = true;
            return;
        }
        std::vector<std::uint8_t> gathered;
        std::vector<Hit> hits;
        each_group(entries, [&](std::size_t first, std::size_t end) {
            const std::size_t size = end - first;
            gathered.resize(size * signatures.bytes);
            hits.resize(size);
            for (std::size_t index = 0; index < size; ++index) {
                if (first + index + 16 < entries.size())
                    __builtin_prefetch(signatures.row(entries[first + index + 16].row));
                const std::uint8_t* const from = signatures.row(entries[first + index].row);
                if (signatures.bytes == 8)  // a copy of fixed length needs no call
                    std::memcpy(gathered.data() + index * 8, from, 8);
                else
                    std::memcpy(gathered.data() + index * signatures.bytes, from, signatures.bytes);
            }
            for (std::size_t index = 0; index + 1 < size; ++index) {
                const std::uint8_t* const one = gathered.data() + index * signatures.bytes;
                const std::size_t near =
                    kernels.filter(one, one + signatures.bytes, size - index - 1, signatures.bytes,
                                   radius, hits.data());
                for (std::size_t hit = 0; hit < near; ++hit) {
                    const std::size_t other = index + 1 + hits[hit].row;
                    const std::uint8_t* const two = gathered.data() + other * signatures.bytes;
                    // Reported by the first block that they share, and only by that.
                    bool before = false;
                    for (std::size_t earlier = 0; earlier < block && !before; ++earlier)
                        before = blocks.equal(one, two, earlier);
                    if (before)
                        continue;
                    if (!blocks.equal(one, two, block))
                        continue;  // only the hashes are equal; their own block will report them
                    found[block].push_back({entries[first + index].row, entries[first + other].row,
                                            hits[hit].distance});
                    if (total.fetch_add(1, std::memory_order_relaxed) >= limit)
                        throw TooManyResults();
                }
            }
        });
    });
    if (too_costly)
        return std::nullopt;

    std::vector<Found> sorted;
    sorted.reserve(total);
    for (auto& part : found) {
        sorted.insert(sorted.end(), part.begin(), part.end());
        part = {};
    }
    std::sort(sorted.begin(), sorted.end(), [](const Found& a, const Found& b) {
        return a.left != b.left ? a.left < b.left : a.right < b.right;
    });
    Pairs pairs;
    for (const Found& one : sorted) {
        pairs.left.push_back(one.left);
        pairs.right.push_back(one.right);
        pairs.distances.push_back(static_cast<std::int32_t>(one.distance));
    }
    return pairs;
}

}  // namespace lookalike::search
