// Every query against every row, cut into tasks that stay in the caches.
#pragma once

#include <algorithm>
#include <cstddef>

#include "scan/scan.hpp"

namespace lookalike::search {

// A tile of rows stays in the first-level cache while all queries of a block are compared with it.
inline constexpr std::size_t kTileBytes = 16 << 10;
inline constexpr std::size_t kTileRows = 4096;  // bounds the hit buffer for very narrow signatures
inline constexpr std::size_t kBlockQueries = 256;
inline constexpr std::size_t kBlockBytes =
    64 << 10;  // queries of a block stay in the second-level cache
inline constexpr std::size_t kBlockHeapBytes = 64 << 20;

// One task is a chunk of rows against a block of queries: about a millisecond of work, which is
// short enough to interrupt and to balance, and long enough not to notice the taking.
inline constexpr std::size_t kChunkBytes = 1 << 20;
inline constexpr std::size_t kTaskBytes = 64 << 20;

inline std::size_t divide_up(std::size_t a, std::size_t b) {
    return (a + b - 1) / b;
}

inline double bytes_to_read(std::size_t queries, const Signatures& rows) {
    return static_cast<double>(queries) * static_cast<double>(rows.count) *
           static_cast<double>(rows.bytes);
}

// Queries cut into blocks, rows into chunks, chunks into tiles.
struct Grid {
    std::size_t queries, rows;
    std::size_t block, chunk, tile;
    std::size_t chunks;

    Grid(std::size_t query_count, const Signatures& collection, std::size_t block_limit)
        : queries(query_count), rows(collection.count) {
        const std::size_t bytes = collection.bytes;
        block = std::clamp<std::size_t>(kBlockBytes / bytes, 1, kBlockQueries);
        block = std::max<std::size_t>(1, std::min({block, block_limit, queries}));
        tile = std::clamp<std::size_t>(kTileBytes / bytes, 1, kTileRows);
        const std::size_t chunk_bytes = std::min(kChunkBytes, kTaskBytes / block);
        chunk = std::max<std::size_t>(1, chunk_bytes / bytes / tile) * tile;
        chunks = divide_up(rows, chunk);
    }

    std::size_t blocks() const { return divide_up(queries, block); }
    std::size_t tasks() const { return blocks() * chunks; }

    struct Range {
        std::size_t begin, end;
    };
    Range block_range(std::size_t index) const {
        return {index * block, std::min(queries, (index + 1) * block)};
    }
    Range chunk_range(std::size_t index) const {
        return {index * chunk, std::min(rows, (index + 1) * chunk)};
    }

    // Calls visit(begin, end) for the tiles of a chunk.
    template <class Visit>
    void each_tile(Range chunk_rows, Visit visit) const {
        for (std::size_t begin = chunk_rows.begin; begin < chunk_rows.end; begin += tile)
            visit(begin, std::min(chunk_rows.end, begin + tile));
    }
};

}  // namespace lookalike::search
