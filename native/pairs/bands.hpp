// Bands of a signature (Manku's blocks, Broder's "super-shingles"): two signatures become a pair
// where a whole band is equal. With r values a band and b bands, a pair whose values agree with
// probability J is proposed with probability 1 - (1 - J^r)^b.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/threads.hpp"

namespace lookalike::search {

// Keys of bands: that of band i of a row is at keys[i * count + row].
struct BandKeys {
    const std::uint32_t* keys;
    std::size_t count;  // of rows

    std::uint32_t at(std::size_t band, std::size_t row) const { return keys[band * count + row]; }
};

// Writes the keys of `count` rows that begin at row `first` of `all`: hashes of `band_bytes` bytes
// each, so that bands that differ may share one by chance, once in 2^32.
void band_keys(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
               std::size_t bands, std::size_t band_bytes, std::size_t first, std::size_t all,
               std::uint32_t* keys);

// A key that travels to where equal ones meet, with the document that has it.
struct BandEntry {
    std::uint32_t key, band;
    std::int64_t position;
};

// Writes the entries of all bands by bucket: those of bucket i are entries[begins[i]] to
// entries[begins[i + 1]]. Keys are hashes already; bands differ, or all of one key would be near.
constexpr std::uint64_t kBandStep = 0x9E3779B1;
void deal_bands(const BandKeys& keys, std::size_t bands, const std::int64_t* positions,
                std::uint64_t buckets, BandEntry* entries, std::int64_t* begins);

// Rows that share a key: group g has rows[offsets[g]] to rows[offsets[g + 1]], ascending. Rows
// whose key no other row shares are left out.
struct BandGroups {
    std::vector<std::uint32_t> rows;
    std::vector<std::int64_t> offsets;
};
BandGroups band_groups(const std::uint32_t* keys, std::size_t count);

struct RowPairs {
    std::vector<std::int64_t> left, right;
};

// The keys of groups that were too large to pair all their rows, ascending: those of band i are
// keys[offsets[i]] to keys[offsets[i + 1]].
struct LargeKeys {
    const std::uint32_t* keys;
    const std::int64_t* offsets;

    bool has(std::size_t band, std::uint32_t key) const;
};

// The pairs of `groups` groups of one band, left < right, without those that share an earlier band
// (these were pairs there) and those with both rows below `first_new`. Of a group with more than
// `most` rows, each is paired only with the first `kLeaders`, with the first `kLeaders` that are
// not below `first_new`, and with the `kLeaders` that follow it, in the order in which they come;
// those below `first_new` come first. Rows that shared only such large groups before, `large`, may
// not have been a pair there, so a smaller group makes them one, perhaps for the second time.
constexpr std::size_t kLeaders = 16;
RowPairs group_pairs(const BandKeys& keys, const LargeKeys& large, std::size_t band,
                     const std::uint32_t* rows, const std::int64_t* offsets, std::size_t groups,
                     std::size_t most, std::size_t first_new, std::size_t threads,
                     const bits::Checkpoint& checkpoint);

// How many of a row's values, of 1 or 2 bytes, are equal in rows left[i] and right[i].
void equal_values_at(const std::uint8_t* rows, std::size_t row_bytes, std::size_t value_bytes,
                     const std::int64_t* left, const std::int64_t* right, std::size_t count,
                     std::size_t threads, const bits::Checkpoint& checkpoint, std::int32_t* equal);

}  // namespace lookalike::search
