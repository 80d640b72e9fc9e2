// Inverted signature slice lists: for each position and value of a slice, the rows that have it.
//
// Per position one array of offsets, one per value, and one array of rows; both used as they are
// whether they were built just now or mapped from a file. Nothing in a file is trusted: what is
// read is checked against the number of rows on the way.
#pragma once

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
    const Row* offsets;  // lists_before(position) + value: where the list begins
    const Row* rows;     // position * count + offset
    std::size_t count;   // signatures
    const std::uint16_t* sketches = nullptr;  // of each row of `rows`, or there are none

    struct List {
        const Row* begin;
        std::size_t size;
    };

    const Row* offset_of(std::size_t position, std::uint32_t value) const {
        return offsets + slicing.lists_before(position) + value;
    }

    List list(std::size_t position, std::uint32_t value) const {
        const Row* const offset = offset_of(position, value);
        const std::size_t begin = offset[0];
        const bool last = value + 1 == std::uint32_t{1} << slicing.width(position);
        const std::size_t end = last ? count : offset[1];
        if (begin > end || end > count)
            throw CorruptLists();
        return {rows + position * count + begin, end - begin};
    }

    const std::uint16_t* sketches_of(const List& list) const {
        return sketches + (list.begin - rows);
    }
};

// Counting sort in two passes, positions in parallel; rows ascend within each list.
// `offsets` has lists_before(count of positions) places, `rows` positions * signatures.count, and
// so has `sketches` unless it is null.
template <class Row>
void build_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, Row* offsets, Row* rows,
                 std::uint16_t* sketches);

// The same in pieces, for lists that do not fit into memory. First where each list begins:
template <class Row>
void count_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, Row* offsets);

// then the lists from number `first` to `end`, numbered by position and value. `rows`, and
// `sketches` unless it is null, have `room` places, one for each of their postings.
template <class Row>
void fill_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                const bits::Checkpoint& checkpoint, const Row* offsets, std::size_t first,
                std::size_t end, Row* rows, std::size_t room, std::uint16_t* sketches);

// The lists of parts laid end to end: rows of the second part follow those of the first.
template <class Row>
void merge_lists(const Slicing& slicing, const std::vector<SliceLists<Row>>& parts,
                 std::size_t threads, const bits::Checkpoint& checkpoint, Row* offsets, Row* rows,
                 std::uint16_t* sketches);

}  // namespace lookalike::search
