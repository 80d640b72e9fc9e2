#include "pairs/equal_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bits/hash.hpp"
#include "bits/pool.hpp"

namespace lookalike::search {

namespace {

struct Hashed {
    std::uint64_t hash, row;

    friend bool operator<(const Hashed& a, const Hashed& b) {
        return a.hash != b.hash ? a.hash < b.hash : a.row < b.row;
    }
};

std::uint64_t hash_of(const Signatures& signatures, std::size_t row) {
    if (signatures.bytes != sizeof(std::uint64_t))
        return bits::xxh64(signatures.row(row), signatures.bytes);
    std::uint64_t word;
    std::memcpy(&word, signatures.row(row), sizeof word);
    return bits::fmix64(word);  // no two become one
}

// Calls take(hash, row) for those whose hash others may have too, and a few more. A table has two
// bits for each value of some bits of the hash, from `shift` on: met once, met again.
template <class HashOf, class Take>
void each_repeated(std::size_t count, std::size_t shift, HashOf hash_at, Take take) {
    constexpr std::size_t kAhead = 16;
    const auto places_bits = std::max<std::size_t>(
        6, std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(count)) + 3, 40));
    const std::size_t table_words = (std::size_t{1} << places_bits) / 32;
    bits::Room<std::uint64_t> table;  // in huge pages, where it is large
    std::uint64_t* const met = table.of(table_words);
    std::fill_n(met, table_words, 0);
    const auto place_of = [&](std::uint64_t hash) {
        return static_cast<std::size_t>(std::rotr(hash, static_cast<int>(shift))) &
               ((std::size_t{1} << places_bits) - 1);
    };
    for (std::size_t at = 0; at < count; ++at) {
        if (at + kAhead < count)
            __builtin_prefetch(&met[place_of(hash_at(at + kAhead)) / 32], 1);
        const std::size_t place = place_of(hash_at(at));
        std::uint64_t& word = met[place / 32];
        const std::uint64_t once = std::uint64_t{1} << 2 * (place % 32);
        word |= once | (word & once) << 1;
    }
    for (std::size_t at = 0; at < count; ++at) {
        if (at + kAhead < count)
            __builtin_prefetch(&met[place_of(hash_at(at + kAhead)) / 32]);
        const std::size_t place = place_of(hash_at(at));
        if (met[place / 32] >> (2 * (place % 32) + 1) & 1)
            take(at);
    }
}

}  // namespace

EqualRows equal_rows(const Signatures& signatures) {
    const bool words = signatures.bytes == sizeof(std::uint64_t);
    std::vector<std::uint64_t> hashes;  // of wide signatures, which take longer to hash
    if (!words) {
        hashes.reserve(signatures.count);
        for (std::size_t row = 0; row < signatures.count; ++row)
            hashes.push_back(hash_of(signatures, row));
    }
    const auto hash_at = [&](std::size_t row) {
        return words ? hash_of(signatures, row) : hashes[row];
    };
    // Twice, with different bits of the hash: the second time hardly any are left that stand alone.
    std::vector<Hashed> likely, repeated;
    each_repeated(signatures.count, 0, hash_at,
                  [&](std::size_t row) { likely.push_back({hash_at(row), row}); });
    each_repeated(
        likely.size(), 32, [&](std::size_t at) { return likely[at].hash; },
        [&](std::size_t at) { repeated.push_back(likely[at]); });
    std::sort(repeated.begin(), repeated.end());

    EqualRows equal;
    equal.offsets.push_back(0);
    const auto differ = [&](const Hashed& a, const Hashed& b) {
        return std::memcmp(signatures.row(a.row), signatures.row(b.row), signatures.bytes);
    };
    for (auto begin = repeated.begin(), end = begin; begin != repeated.end(); begin = end) {
        while (end != repeated.end() && end->hash == begin->hash)
            ++end;
        // Different signatures may share a hash: then they are put in order themselves.
        if (std::any_of(begin, end, [&](const Hashed& one) { return differ(*begin, one) != 0; }))
            std::stable_sort(begin, end,
                             [&](const Hashed& a, const Hashed& b) { return differ(a, b) < 0; });
        for (auto first = begin, last = first; first != end; first = last) {
            while (last != end && differ(*first, *last) == 0)
                ++last;
            if (last - first == 1)
                continue;
            for (auto one = first; one != last; ++one)
                equal.rows.push_back(static_cast<std::int64_t>(one->row));
            equal.offsets.push_back(static_cast<std::int64_t>(equal.rows.size()));
        }
    }
    return equal;
}

}  // namespace lookalike::search
