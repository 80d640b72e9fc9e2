#include "search/blocks.hpp"

#include <algorithm>

#include "search/bucket_scan.hpp"
#include "search/probe_stream.hpp"
#include "search/table_matches.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kQueriesPerTask = 256;
constexpr std::size_t kBytesInFlight = 8 << 10;

// How many look-ups to keep in flight: fewer where each brings a whole kilobyte.
std::size_t look_ahead(const std::vector<SortedTable>& tables) {
    std::size_t least = 64;
    for (const SortedTable& table : tables) {
        const std::size_t bucket =
            table.signatures.count * table.signatures.bytes / table.header.buckets() + 1;
        least = std::min(least, std::max<std::size_t>(4, kBytesInFlight / bucket));
    }
    return least;
}

// Whether a table before this one has the match in the query's bucket, and reports it.
bool found_before(const std::vector<SortedTable>& tables, std::size_t table,
                  const std::uint8_t* query, const std::uint8_t* match, std::size_t bytes) {
    if (bytes == 8) {
        std::uint64_t one, two;
        std::memcpy(&one, query, 8);
        std::memcpy(&two, match, 8);
        for (std::size_t earlier = 0; earlier < table; ++earlier)
            if (((one ^ two) & tables[earlier].header.mask()) == 0)
                return true;
        return false;
    }
    for (std::size_t earlier = 0; earlier < table; ++earlier)
        if (tables[earlier].header.value(query) == tables[earlier].header.value(match))
            return true;
    return false;
}

}  // namespace

Matches block_within(const std::vector<SortedTable>& tables, const std::int64_t* ids,
                     const Signatures& queries, std::uint32_t radius, bool first, std::size_t limit,
                     std::size_t threads, const bits::Checkpoint& checkpoint) {
    const std::size_t ahead = look_ahead(tables);
    return gather_matches(
        queries.count, kQueriesPerTask, limit, threads, checkpoint,
        [&](std::size_t, std::size_t begin, std::size_t end, TaskMatches& matches) {
            BucketScan scan(queries.bytes, radius);
            std::vector<std::uint8_t> done(first ? end - begin : 0, 0);
            ProbeStream stream(ahead, [&](const SortedTable& table, SortedTable::Range bucket,
                                          std::size_t query) {
                if (first && done[query])
                    return;
                const std::size_t number = static_cast<std::size_t>(&table - tables.data());
                const std::uint8_t* const asked = queries.row(begin + query);
                scan.scan(table, bucket, asked, [&](std::size_t place, std::uint32_t distance) {
                    if (!first &&
                        found_before(tables, number, asked, table.at(place), queries.bytes))
                        return true;
                    const std::size_t row = table.row(place);
                    matches.add(query, distance, ids ? ids[row] : static_cast<std::int64_t>(row));
                    if (first)
                        done[query] = 1;
                    return !first;
                });
            });
            if (!first)
                for (std::size_t query = 0; query < end - begin; ++query)
                    for (const SortedTable& table : tables)
                        stream.push(table, table.header.value(queries.row(begin + query)), query);
            else
                // Table by table, so that a query's match is known before its next table's turn.
                for (const SortedTable& table : tables)
                    for (std::size_t query = 0; query < end - begin; ++query)
                        if (!done[query])
                            stream.push(table, table.header.value(queries.row(begin + query)),
                                        query);
            stream.drain();
        });
}

}  // namespace lookalike::search
