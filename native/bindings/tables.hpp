// Sorted tables across the border.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "tables/sorted_table.hpp"

namespace lookalike::bindings {

using Runs = std::vector<std::pair<std::size_t, std::size_t>>;
using NumberArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline search::Header header(std::size_t bytes, const Runs& runs) {
    std::vector<search::Header::Run> parts;
    std::size_t bits = 0;
    for (const auto& [from, width] : runs) {
        bits += width;
        expect(width <= search::Header::kMostBits && bits <= search::Header::kMostBits &&
                   from <= 8 * bytes && width <= 8 * bytes - from,
               "a header that does not lie in the signature, or has too many bits");
        parts.push_back({from, width});
    }
    return {bytes, std::move(parts)};
}

// A table as Python holds it, with what it points into.
struct BoundTable {
    search::SortedTable table;
    SignatureArray signatures;
    std::optional<NumberArray> rows;
    NumberArray offsets;

    BoundTable(const SignatureArray& sorted, const Runs& runs,
               const std::optional<NumberArray>& row_numbers, const NumberArray& bucket_offsets,
               bool compressed)
        : table{header(sorted.shape(1), runs), bindings::signatures(sorted),
                row_numbers ? row_numbers->data() : nullptr, bucket_offsets.data(), compressed},
          signatures(sorted),
          rows(row_numbers),
          offsets(bucket_offsets) {
        expect(sorted.shape(0) >> 32 == 0, "more rows than a table can have");
        expect(sorted.shape(1) != 8 || reinterpret_cast<std::uintptr_t>(sorted.data()) % 8 == 0,
               "words that are not aligned");
        // These come from files, which may be damaged; their values are checked as they are read.
        if (offsets.size() != table.header.buckets() + 1 ||
            (rows && rows->size() != sorted.shape(0)))
            throw search::CorruptTable();
    }
};

}  // namespace lookalike::bindings
