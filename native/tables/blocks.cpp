#include "tables/blocks.hpp"

#include <algorithm>
#include <memory>

#include "scan/task_matches.hpp"
#include "tables/bucket_scan.hpp"
#include "tables/flip_loops.hpp"
#include "tables/probe_stream.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kQueriesPerTask = 512;
constexpr std::size_t kQueriesPerBlock = 64;
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

// Answers the queries of one task.
class BlockTask {
  public:
    BlockTask(const std::vector<SortedTable>& tables, const std::int64_t* ids,
              const Signatures& queries, std::uint32_t radius, bool first, TaskMatches& matches)
        : tables_(tables),
          ids_(ids),
          queries_(queries),
          radius_(radius),
          first_(first),
          matches_(matches),
          scan_(queries.bytes, radius) {}

    void run(std::size_t begin, std::size_t end) {
        begin_ = begin;
        done_.assign(first_ ? end - begin : 0, 0);
        if (has_short_buckets())
            run_by_blocks(begin, end);
        else
            run_one_by_one(begin, end);
    }

  private:
    // Whether most buckets are so short that looking at them one by one costs more than comparing.
    bool has_short_buckets() const {
        if (queries_.bytes != 8)
            return false;
        for (const SortedTable& table : tables_)
            if (table.compressed ||
                table.signatures.count / table.header.buckets() > FlipLoops::kMostHits / 2)
                return false;
        return true;
    }

    // Some queries together: ask for their offsets in all tables, then look them up table by table.
    void run_by_blocks(std::size_t begin, std::size_t end) {
        const FlipLoops& loops = flip_loops();
        std::uint64_t queries[kQueriesPerBlock];
        FlipProbe probes[kQueriesPerBlock];
        FlipHit spare[kQueriesPerBlock];
        const auto hits =
            std::make_unique_for_overwrite<FlipHit[]>(kQueriesPerBlock * FlipLoops::kMostHits);
        std::vector<std::uint32_t> headers(tables_.size() * kQueriesPerBlock);
        for (std::size_t block = begin; block < end; block += kQueriesPerBlock) {
            const std::size_t count = std::min(kQueriesPerBlock, end - block);
            std::memcpy(queries, queries_.row(block), count * 8);
            for (std::size_t number = 0; number < tables_.size(); ++number)
                for (std::size_t query = 0; query < count; ++query) {
                    const SortedTable& table = tables_[number];
                    const std::uint64_t header = table.header.value(queries_.row(block + query));
                    headers[number * kQueriesPerBlock + query] = static_cast<std::uint32_t>(header);
                    __builtin_prefetch(table.offsets + header);
                }
            for (std::size_t number = 0; number < tables_.size(); ++number) {
                const SortedTable& table = tables_[number];
                std::size_t asked = 0;
                for (std::size_t query = 0; query < count; ++query)
                    if (!first_ || !done_[block - begin_ + query])
                        probes[asked++] = {headers[number * kQueriesPerBlock + query],
                                           static_cast<std::uint32_t>(query)};
                const Sorted64 sorted{reinterpret_cast<const std::uint64_t*>(table.signatures.data),
                                      table.offsets, table.signatures.count};
                const std::size_t found =
                    loops.probe(sorted, queries, radius_, probes, asked, spare, hits.get());
                for (std::size_t hit = 0; hit < found; ++hit)
                    report(number, block - begin_, hits[hit]);
            }
        }
    }

    void report(std::size_t number, std::size_t first_query, const FlipHit& hit) {
        if (hit.distance == FlipHit::kCorrupt)
            throw CorruptTable();
        const std::size_t query = first_query + hit.query;
        const SortedTable& table = tables_[number];
        if (hit.distance == FlipHit::kLarge)
            compare(table, table.bucket(table.header.value(table.at(hit.place))), query);
        else
            take(table, number, query, hit.place, hit.distance);
    }

    void run_one_by_one(std::size_t begin, std::size_t end) {
        ProbeStream stream(look_ahead(tables_),
                           [&](const SortedTable& table, SortedTable::Range bucket,
                               std::size_t query) { compare(table, bucket, query); });
        const auto push = [&](const SortedTable& table, std::size_t row) {
            if (!first_ || !done_[row - begin])
                stream.push(table, table.header.value(queries_.row(row)), row - begin);
        };
        if (!first_)
            for (std::size_t row = begin; row < end; ++row)
                for (const SortedTable& table : tables_)
                    push(table, row);
        else
            // Table by table, so that a query's match is known before its next table's turn.
            for (const SortedTable& table : tables_)
                for (std::size_t row = begin; row < end; ++row)
                    push(table, row);
        stream.drain();
    }

    void compare(const SortedTable& table, SortedTable::Range bucket, std::size_t query) {
        if (first_ && done_[query])
            return;
        const std::size_t number = static_cast<std::size_t>(&table - tables_.data());
        scan_.scan(table, bucket, queries_.row(begin_ + query),
                   [&](std::size_t place, std::uint32_t distance) {
                       take(table, number, query, place, distance);
                       return !first_;
                   });
    }

    void take(const SortedTable& table, std::size_t number, std::size_t query, std::size_t place,
              std::uint32_t distance) {
        if (first_) {
            if (done_[query])
                return;
            done_[query] = 1;
        } else if (found_before(tables_, number, queries_.row(begin_ + query), table.at(place),
                                queries_.bytes)) {
            return;
        }
        const std::size_t row = table.row(place);
        matches_.add(query, distance, ids_ ? ids_[row] : static_cast<std::int64_t>(row));
    }

    const std::vector<SortedTable>& tables_;
    const std::int64_t* ids_;
    const Signatures& queries_;
    std::uint32_t radius_;
    bool first_;
    TaskMatches& matches_;
    BucketScan scan_;
    std::size_t begin_ = 0;
    std::vector<std::uint8_t> done_;
};

}  // namespace

Matches block_within(const std::vector<SortedTable>& tables, const std::int64_t* ids,
                     const Signatures& queries, std::uint32_t radius, bool first, std::size_t limit,
                     std::size_t threads, const bits::Checkpoint& checkpoint) {
    return gather_matches(
        queries.count, kQueriesPerTask, limit, threads, checkpoint,
        [&](std::size_t, std::size_t begin, std::size_t end, TaskMatches& matches) {
            BlockTask(tables, ids, queries, radius, first, matches).run(begin, end);
        });
}

}  // namespace lookalike::search
