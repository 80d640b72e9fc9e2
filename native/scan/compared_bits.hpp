// Which bits a scan compares, and what decides between rows that are equally near.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/kernels.hpp"
#include "bits/top_k.hpp"
#include "scan/scan.hpp"

namespace lookalike::search {

// How rows are compared with queries all of whose bits count.
struct AllBits {
    using Item = bits::Neighbor;
    static constexpr bool kTiesById = true;

    const Collection& collection;
    const Signatures& queries;
    bits::Kernels kernels = bits::kernels_for(collection.bytes);

    std::size_t filter(std::size_t query, std::size_t from, std::size_t count, std::uint32_t cutoff,
                       bits::Hit* hits) const {
        return kernels.filter(queries.row(query), collection.row(from), count, collection.bytes,
                              cutoff, hits);
    }
    Item item(std::size_t, std::size_t row, std::uint32_t distance) const {
        return {distance, collection.id(row)};
    }
    std::uint32_t tie(std::size_t, std::size_t) const { return 0; }
};

// The same where only some bits count, and ties are broken by all of them. Those are looked at only
// in rows that are near enough.
struct CountedBits {
    struct Item {
        std::uint32_t distance, unmasked;
        std::int64_t id;

        friend bool operator<(const Item& a, const Item& b) {
            return a.distance != b.distance
                       ? a.distance < b.distance
                       : bits::Neighbor{a.unmasked, a.id} < bits::Neighbor{b.unmasked, b.id};
        }
    };
    static constexpr bool kTiesById = false;

    const Collection& collection;
    const MaskedQueries& queries;
    bits::Kernels kernels = bits::kernels_for(collection.bytes);

    std::size_t filter(std::size_t query, std::size_t from, std::size_t count, std::uint32_t cutoff,
                       bits::Hit* hits) const {
        return kernels.masked_filter(queries.row(query), queries.mask(query), collection.row(from),
                                     count, collection.bytes, cutoff, hits);
    }
    Item item(std::size_t query, std::size_t row, std::uint32_t distance) const {
        return {distance, tie(query, row), collection.id(row)};
    }
    std::uint32_t tie(std::size_t query, std::size_t row) const {
        std::int32_t unmasked;
        kernels.paired(queries.row(query), collection.row(row), 1, collection.bytes, &unmasked);
        return static_cast<std::uint32_t>(unmasked);
    }
};

}  // namespace lookalike::search
