// Rows of 32-bit values that come and go while they are searched: which of them have a whole band
// of values in common with a query, and how many values in all?
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <vector>

#include "bands/lists.hpp"
#include "bands/slots.hpp"
#include "bits/threads.hpp"

namespace lookalike::search {

struct BandShape {
    std::size_t values;       // of a row
    std::size_t bands;        // from its first value on
    std::size_t band_values;  // of a band
};

// Those of query i are at offsets[i] to offsets[i + 1]: most equal values first, then by row.
struct BandMatches {
    std::vector<std::int64_t> offsets, rows;
    std::vector<std::int32_t> equal;
};

// May be used by many threads at once; a thread that changes it waits for those that read, and they
// wait for it. Rows are numbered in the order in which they came. A band is looked up by a hash,
// and what is found is compared value by value: hashes are never taken for values. Values that are
// 2^32 - 1 mean nothing, unless `empty_counts`: a band with one is in no table, and equals no
// other.
class BandTable {
  public:
    // `seed` is of the hashes: it changes where things lie, and no answer.
    BandTable(BandShape shape, bool empty_counts, std::uint64_t seed);

    const BandShape& shape() const { return shape_; }
    std::size_t size() const;  // removed rows included
    std::size_t removed() const;
    std::size_t memory_bytes() const;

    // Returns the number of the first of them.
    std::size_t insert(const std::uint32_t* rows, std::size_t count);

    // Takes rows out of all answers, each once; their memory is kept. Throws out_of_range, and
    // removes none, if one was removed before or has never been.
    void remove(const std::int64_t* rows, std::size_t count);

    // The values of rows, removed ones included. Throws out_of_range if one has never been.
    void copy(const std::int64_t* rows, std::size_t count, std::uint32_t* values) const;

    // The rows that share one of the first `bands` bands with a query and have at least `least`
    // values in common with it. Throws TooManyResults if there are more than `limit` in all.
    BandMatches query(const std::uint32_t* queries, std::size_t count, std::size_t bands,
                      std::size_t least, std::size_t limit, std::size_t threads,
                      const bits::Checkpoint& checkpoint) const;

  private:
    struct Found {
        std::uint32_t row;
        std::int32_t equal;
    };
    class Searcher;

    std::uint32_t* row(std::size_t number) const {
        return chunks_[number >> chunk_bits_].get() +
               (number & ((std::size_t{1} << chunk_bits_) - 1)) * shape_.values;
    }
    bool has(const std::uint32_t* row, std::size_t band) const;
    std::uint32_t key(const std::uint32_t* row, std::size_t band) const;
    bool is_removed(std::uint32_t row) const { return removed_[row / 64] >> (row % 64) & 1; }
    void reserve(std::size_t rows);
    void insert_block(const std::uint32_t* rows, std::size_t count, std::size_t first,
                      std::vector<std::uint32_t>& keys);
    void check(const std::int64_t* rows, std::size_t count) const;

    struct Free {
        void operator()(std::uint32_t* values) const { std::free(values); }
    };

    mutable std::shared_mutex mutex_;
    BandShape shape_;
    bool empty_counts_;
    std::vector<std::uint64_t> factors_;  // one for each value of a band, and one to begin with
    // Rows do not move when there are more of them, except in the first chunk while it grows.
    std::vector<std::unique_ptr<std::uint32_t, Free>> chunks_;
    std::size_t chunk_bits_ = 0;  // a chunk has two to the power of it rows
    std::size_t capacity_ = 0, count_ = 0, removed_count_ = 0;
    std::vector<std::uint64_t> removed_;  // a bit a row
    std::vector<KeySlots> slots_;         // one for each band
    RowLists lists_;
    bool broken_ = false;  // memory ran out while rows were inserted
};

}  // namespace lookalike::search
