// Inverted signature slice lists: for each position and value of a slice, the rows that have it.
//
// Per position one array of offsets, one per value, and one array of rows; both used as they are
// whether they were built just now or mapped from a file. Nothing in a file is trusted: what is
// read is checked against the number of rows on the way.
//
// Slices may be so wide that most values do not occur. Then an offset stands for all values with
// the same highest bits, and rows, in the order of their values, have these values beside them.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "bits/threads.hpp"
#include "scan/scan.hpp"
#include "slices/slicing.hpp"

namespace lookalike::search {

struct CorruptLists : std::runtime_error {
    CorruptLists() : std::runtime_error("slice lists point outside of the collection") {}
};

// Row is uint32_t for fewer than 2^32 signatures, else uint64_t.
template <class Row>
struct SliceLists {
    Slicing slicing;
    const Row* offsets;  // lists_before(position) + told bits of a value: where lists begin
    const Row* rows;     // position * count + offset
    std::size_t count;   // signatures
    const std::uint16_t* sketches = nullptr;  // of each row of `rows`, or there are none
    const std::uint32_t* values = nullptr;    // of each row of `rows`, unless all bits are told

    struct List {
        const Row* begin;
        std::size_t size;
    };

    const Row* offset_of(std::size_t position, std::uint32_t value) const {
        return offsets + slicing.lists_before(position) + (value >> slicing.untold(position));
    }

    List list(std::size_t position, std::uint32_t value) const {
        const Row* const offset = offset_of(position, value);
        const std::size_t begin = offset[0];
        const bool last = offset + 1 == offsets + slicing.lists_before(position + 1);
        const std::size_t end = last ? count : offset[1];
        if (begin > end || end > count)
            throw CorruptLists();
        const Row* const from = rows + position * count;
        if (slicing.untold(position) == 0)
            return {from + begin, end - begin};
        const std::uint32_t* const own = values + position * count;
        const auto [first, behind] = std::equal_range(own + begin, own + end, value);
        return {from + (first - own), static_cast<std::size_t>(behind - first)};
    }

    // Where the values are that are searched for this one.
    const std::uint32_t* values_near(std::size_t position, std::uint32_t value) const {
        return values + position * count + *offset_of(position, value);
    }

    const std::uint16_t* sketches_of(const List& list) const {
        return sketches + (list.begin - rows);
    }
};

// Counting sort in two passes, positions in parallel; rows ascend within each list.
// `offsets` has lists_before(count of positions) places, `rows` positions * signatures.count, and
// so have `sketches` and `values` unless they are null.
template <class Row>
void build_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, Row* offsets, Row* rows,
                 std::uint16_t* sketches, std::uint32_t* values);

// The same in pieces, for lists that do not fit into memory. First where each list begins:
template <class Row>
void count_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, Row* offsets);

// then the lists from number `first` to `end`, numbered by position and told bits of the value.
// `rows`, and `sketches` and `values` unless they are null, have `room` places, one for each of
// their postings.
template <class Row>
void fill_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                const bits::Checkpoint& checkpoint, const Row* offsets, std::size_t first,
                std::size_t end, Row* rows, std::size_t room, std::uint16_t* sketches,
                std::uint32_t* values);

// The lists of parts laid end to end: rows of the second part follow those of the first. All bits
// of values are told.
template <class Row>
void merge_lists(const Slicing& slicing, const std::vector<SliceLists<Row>>& parts,
                 std::size_t threads, const bits::Checkpoint& checkpoint, Row* offsets, Row* rows,
                 std::uint16_t* sketches);

}  // namespace lookalike::search
