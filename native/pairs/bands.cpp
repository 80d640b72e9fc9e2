#include "pairs/bands.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "bits/hash.hpp"
#include "pairs/keyed.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kPairsPerTask = 4096;

// Calls pair(one, two) for the pairs of a group, positions ascending; from `fresh` on, its members
// are new.
template <class Pair>
void each_pair(std::size_t size, std::size_t most, std::size_t fresh, Pair pair) {
    for (std::size_t one = 0; one + 1 < size; ++one) {
        const bool leads = one < kLeaders || (one >= fresh && one < fresh + kLeaders);
        const bool all = size <= most || leads;
        const std::size_t end = all ? size : std::min(size, one + 1 + kLeaders);
        for (std::size_t two = one + 1; two < end; ++two)
            pair(one, two);
    }
}

template <class Value>
std::int32_t count_equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t values) {
    std::int32_t equal = 0;
    for (std::size_t index = 0; index < values; ++index) {
        Value x, y;
        std::memcpy(&x, a + index * sizeof(Value), sizeof(Value));
        std::memcpy(&y, b + index * sizeof(Value), sizeof(Value));
        equal += x == y ? 1 : 0;
    }
    return equal;
}

}  // namespace

void band_keys(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
               std::size_t bands, std::size_t band_bytes, std::size_t first, std::size_t all,
               std::uint32_t* keys) {
    for (std::size_t row = 0; row < count; ++row)
        for (std::size_t band = 0; band < bands; ++band)
            keys[band * all + first + row] = static_cast<std::uint32_t>(
                bits::xxh64(rows + row * row_bytes + band * band_bytes, band_bytes));
}

void deal_bands(const BandKeys& keys, std::size_t bands, const std::int64_t* positions,
                std::uint64_t buckets, BandEntry* entries, std::int64_t* begins) {
    const auto each = [&](const auto& visit) {
        for (std::size_t band = 0; band < bands; ++band)
            for (std::size_t row = 0; row < keys.count; ++row)
                visit((keys.at(band, row) + band * kBandStep) % buckets, band, row);
    };
    std::vector<std::int64_t> next(buckets + 1, 0);
    each([&](std::uint64_t bucket, std::size_t, std::size_t) { ++next[bucket + 1]; });
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::copy(next.begin(), next.end(), begins);
    each([&](std::uint64_t bucket, std::size_t band, std::size_t row) {
        entries[next[bucket]++] = {keys.at(band, row), static_cast<std::uint32_t>(band),
                                   positions[row]};
    });
}

BandGroups band_groups(const std::uint32_t* keys, std::size_t count) {
    // Most keys have one row only. Two bitmaps over the upper bits of keys, with some 16 bits a
    // row, tell which may have more; only those are sorted.
    const int bits = std::clamp(static_cast<int>(std::bit_width(count)) + 4, 16, 32);
    const auto slot = [&](std::size_t row) { return std::uint64_t{keys[row]} >> (32 - bits); };
    std::vector<std::uint64_t> seen((std::size_t{1} << bits) / 64), repeated(seen.size());
    for (std::size_t row = 0; row < count; ++row) {
        const std::uint64_t at = slot(row), bit = std::uint64_t{1} << (at % 64);
        repeated[at / 64] |= seen[at / 64] & bit;
        seen[at / 64] |= bit;
    }
    std::vector<Keyed> entries;
    for (std::size_t row = 0; row < count; ++row)
        if (repeated[slot(row) / 64] >> (slot(row) % 64) & 1)
            entries.push_back({keys[row], static_cast<std::uint32_t>(row)});
    std::vector<Keyed> spare(entries.size());
    const std::span<const Keyed> sorted(
        sort_by_key(entries.data(), spare.data(), entries.size(), 32), entries.size());
    BandGroups groups;
    groups.offsets.push_back(0);
    each_group(sorted, [&](std::size_t first, std::size_t end) {
        for (std::size_t index = first; index < end; ++index)
            groups.rows.push_back(sorted[index].row);
        groups.offsets.push_back(static_cast<std::int64_t>(groups.rows.size()));
    });
    return groups;
}

bool LargeKeys::has(std::size_t band, std::uint32_t key) const {
    return std::binary_search(keys + offsets[band], keys + offsets[band + 1], key);
}

RowPairs group_pairs(const BandKeys& keys, const LargeKeys& large, std::size_t band,
                     const std::uint32_t* rows, const std::int64_t* offsets, std::size_t groups,
                     std::size_t most, std::size_t first_new, std::size_t threads,
                     const bits::Checkpoint& checkpoint) {
    constexpr std::size_t kGroupsPerTask = 256;
    const std::size_t tasks = (groups + kGroupsPerTask - 1) / kGroupsPerTask;
    std::vector<RowPairs> found(tasks);
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        RowPairs& pairs = found[task];
        const std::size_t end = std::min(groups, (task + 1) * kGroupsPerTask);
        for (std::size_t group = task * kGroupsPerTask; group < end; ++group) {
            const std::uint32_t* const members = rows + offsets[group];
            const auto size = static_cast<std::size_t>(offsets[group + 1] - offsets[group]);
            const auto fresh = static_cast<std::size_t>(
                std::find_if(members, members + size,
                             [&](std::uint32_t row) { return row >= first_new; }) -
                members);
            each_pair(size, most, fresh, [&](std::size_t one, std::size_t two) {
                const auto [left, right] = std::minmax(members[one], members[two]);
                if (right < first_new)
                    return;
                for (std::size_t earlier = 0; earlier < band; ++earlier)
                    if (const std::uint32_t key = keys.at(earlier, left);
                        key == keys.at(earlier, right) && (size > most || !large.has(earlier, key)))
                        return;
                pairs.left.push_back(left);
                pairs.right.push_back(right);
            });
        }
    });
    RowPairs all;
    for (RowPairs& part : found) {
        all.left.insert(all.left.end(), part.left.begin(), part.left.end());
        all.right.insert(all.right.end(), part.right.begin(), part.right.end());
        part = {};
    }
    return all;
}

void equal_values_at(const std::uint8_t* rows, std::size_t row_bytes, std::size_t value_bytes,
                     const std::int64_t* left, const std::int64_t* right, std::size_t count,
                     std::size_t threads, const bits::Checkpoint& checkpoint, std::int32_t* equal) {
    const auto row = [&](std::int64_t at) {
        return rows + static_cast<std::size_t>(at) * row_bytes;
    };
    const std::size_t values = row_bytes / value_bytes;
    const auto compare = [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t pair = begin; pair < end; ++pair) {
            const std::uint8_t *const a = row(left[pair]), *const b = row(right[pair]);
            equal[pair] = value_bytes == 2 ? count_equal<std::uint16_t>(a, b, values)
                                           : count_equal<std::uint8_t>(a, b, values);
        }
    };
    bits::share_out_runs(count, kPairsPerTask, threads, checkpoint, compare);
}

}  // namespace lookalike::search
