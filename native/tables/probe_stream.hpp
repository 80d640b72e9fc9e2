// Look-ups in sorted tables, kept in flight: where a bucket begins is asked for some look-ups
// before it is read, and the bucket some look-ups before it is compared. Each would be a cache miss
// of a hundred nanoseconds; together they are a dozen.
#pragma once

#include <vector>

#include "tables/bucket_scan.hpp"

namespace lookalike::search {

// `Compare` is called as compare(table, bucket, query), in the order of pushing. Only non-empty
// buckets get there.
template <class Compare>
class ProbeStream {
  public:
    // `ahead` look-ups are between the steps, at most kMostAhead.
    static constexpr std::size_t kMostAhead = 64;

    ProbeStream(std::size_t ahead, Compare compare)
        : ahead_(std::min(std::max<std::size_t>(1, ahead), kMostAhead)), compare_(compare) {}

    void push(const SortedTable& table, std::uint64_t header, std::size_t query) {
        __builtin_prefetch(table.offsets + header);
        __builtin_prefetch(table.offsets + header + 1);
        ring_[pushed_ % kRing] = {&table, header, {0, 0}, query};
        ++pushed_;
        if (pushed_ > ahead_)
            look_up();
        if (pushed_ > 2 * ahead_)
            ask_again();
        if (pushed_ > 3 * ahead_)
            finish_one();
    }

    void drain() {
        while (looked_up_ < pushed_)
            look_up();
        while (asked_again_ < pushed_)
            ask_again();
        while (finished_ < pushed_)
            finish_one();
    }

  private:
    static constexpr std::size_t kRing = 4 * kMostAhead;

    struct Probe {
        const SortedTable* table;
        std::uint64_t header;
        SortedTable::Range bucket;
        std::size_t query;
    };

    void look_up() {
        Probe& probe = ring_[looked_up_++ % kRing];
        probe.bucket = probe.table->bucket(probe.header);
        if (probe.bucket.begin != probe.bucket.end)
            BucketScan::prefetch(*probe.table, probe.bucket);
    }

    void ask_again() {
        const Probe& probe = ring_[asked_again_++ % kRing];
        if (probe.table->compressed)
            BucketScan::prefetch_signatures(*probe.table, probe.bucket);
    }

    void finish_one() {
        const Probe& probe = ring_[finished_++ % kRing];
        if (probe.bucket.begin != probe.bucket.end)
            compare_(*probe.table, probe.bucket, probe.query);
    }

    Probe ring_[kRing];
    std::size_t ahead_;
    std::size_t pushed_ = 0, looked_up_ = 0, asked_again_ = 0, finished_ = 0;
    Compare compare_;
};

}  // namespace lookalike::search
