// Block-permuted search (Manku, Jain and Das Sarma; BPHS): signatures within the radius agree in
// some of their blocks, so each table puts another choice of blocks in front, and only the bucket
// of the query's own header is compared.
#pragma once

#include <vector>

#include "tables/sorted_table.hpp"

namespace lookalike::search {

// Everything within `radius` of each query, sorted by (distance, id); with `first`, at most one
// match a query: the first one met, table by table. Complete for radii that the tables guarantee,
// which is the caller's to know. `ids` are those of the collection's rows; null: the rows.
Matches block_within(const std::vector<SortedTable>& tables, const std::int64_t* ids,
                     const Signatures& queries, std::uint32_t radius, bool first, std::size_t limit,
                     std::size_t threads, const bits::Checkpoint& checkpoint);

}  // namespace lookalike::search
