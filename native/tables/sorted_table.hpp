// Sorted tables: signatures in the order of some of their bits, the header, with a table of where
// each header begins in place of a binary search. Blocks (Manku's tables) have several of them over
// one collection, flips have one.
//
// Signatures are kept as they are and not permuted: the order alone makes bits leading. So
// distances need no permutation of the query, and a match can be compared with the headers of other
// tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bits/bit_field.hpp"
#include "scan/scan.hpp"

namespace lookalike::search {

struct CorruptTable : std::runtime_error {
    CorruptTable() : std::runtime_error("a table points outside of its signatures") {}
};

// The bits that a table is looked up by: runs of consecutive bits of a signature, put together to a
// number, the first run in its upper bits.
class Header {
  public:
    static constexpr std::size_t kMostBits = 32;

    struct Run {
        std::size_t from, width;
    };

    Header(std::size_t signature_bytes, std::vector<Run> runs);

    std::size_t bits() const { return bits_; }
    std::size_t buckets() const { return std::size_t{1} << bits_; }

    std::uint64_t value(const std::uint8_t* signature) const {
        std::uint64_t value = 0;
        for (const Run& run : runs_)
            value = value << run.width | (bits_from(signature, bytes_, run.from) &
                                          ((std::uint64_t{1} << run.width) - 1));
        return value;
    }

    // For signatures of 64 bits: those of the header, at their places.
    std::uint64_t mask() const { return mask_; }

  private:
    std::size_t bytes_;
    std::vector<Run> runs_;
    std::size_t bits_ = 0;
    std::uint64_t mask_ = 0;
};

// Signatures by (header, words of the signature, row), with where each header begins. A compressed
// table has only the rows in that order, and the signatures are those of the collection.
struct SortedTable {
    Header header;
    Signatures signatures;         // in that order
    const std::uint32_t* rows;     // the row of the collection that each one is; null: its place
    const std::uint32_t* offsets;  // header.buckets() + 1

    bool compressed = false;

    // The signature at a place of the order.
    const std::uint8_t* at(std::size_t place) const {
        return signatures.row(compressed ? row(place) : place);
    }

    std::size_t row(std::size_t place) const {
        if (rows == nullptr)
            return place;
        if (rows[place] >= signatures.count)
            throw CorruptTable();
        return rows[place];
    }

    struct Range {
        std::size_t begin, end;
    };
    Range bucket(std::uint64_t value) const {
        const std::size_t begin = offsets[value], end = offsets[value + 1];
        if (begin > end || end > signatures.count)
            throw CorruptTable();  // from a damaged file
        return {begin, end};
    }
};

// Sorts signatures into a table whose arrays have room for them; count < 2^32. Where `sorted` is
// null only the rows are written.
void build_table(const Header& header, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, std::uint8_t* sorted, std::uint32_t* rows,
                 std::uint32_t* offsets);

// Fills in the offsets of signatures that are sorted already; false if they are not.
bool find_offsets(const Header& header, const Signatures& sorted, std::size_t threads,
                  const bits::Checkpoint& checkpoint, std::uint32_t* offsets);

// Puts signatures in the order of the uppermost bits of their first word, equal ones as they came:
// not quite sorted, but neighbors are looked up near each other. Also writes the row of each, and
// the place that each row went to. count < 2^32.
void order_by_prefix(const Signatures& signatures, std::uint8_t* ordered, std::uint32_t* rows,
                     std::uint32_t* places);

// The order inside of a bucket: words of 8 bytes as little-endian numbers, the first counts most.
inline std::uint64_t signature_word(const std::uint8_t* signature, std::size_t bytes,
                                    std::size_t word) {
    std::uint64_t value = 0;
    const std::size_t left = bytes - 8 * word;
    std::memcpy(&value, signature + 8 * word, left < 8 ? left : 8);
    return value;
}

inline int compare_signatures(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
    for (std::size_t word = 0; 8 * word < bytes; ++word) {
        const std::uint64_t left = signature_word(a, bytes, word);
        const std::uint64_t right = signature_word(b, bytes, word);
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

}  // namespace lookalike::search
