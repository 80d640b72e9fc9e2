#include "slices/rerank.hpp"

#include <algorithm>
#include <bit>
#include <memory>

namespace lookalike::search {

namespace {

constexpr std::size_t kPartBytes = 512 << 10;  // signatures that stay in the second-level cache
constexpr std::size_t kMostPartBits = 10;
constexpr double kMost = 1 << 20;             // entries that there is room for
constexpr std::size_t kLeastRoom = 64;        // entries of a part
constexpr std::size_t kAhead = 32;            // rows are prefetched this far ahead
constexpr std::size_t kLine = 64;             // bytes of the cache
constexpr std::size_t kBlock = 16;            // pairs that are compared at a time
constexpr std::size_t kComparedApart = 2048;  // entries that are worth a thread

}  // namespace

Reranking::Reranking(const std::vector<Segment>& segments, const Signatures& queries, std::size_t k,
                     std::size_t expected, bool by_score)
    : queries_(queries),
      kernels_(bits::kernels_for(queries.bytes)),
      by_score_(by_score),
      k_(k),
      nearest_(queries.count, bits::TopItems<ScoredNeighbor>(k)),
      cutoffs_(queries.count, UINT32_MAX) {
    std::uint64_t all = 1;
    for (const Segment& segment : segments)
        all += segment.collection.count;
    std::size_t entries = 0;
    for (const Segment& segment : segments) {
        first_strips_.push_back(strips_.size());
        for (std::uint64_t first = 0; first == 0 || first < segment.collection.count;
             first += kStripRows) {
            const std::uint64_t rows = std::min(segment.collection.count - first, kStripRows);
            const auto row_bits = static_cast<std::size_t>(std::bit_width(rows));
            std::size_t shift = row_bits - std::min(row_bits, kMostPartBits);
            while (queries.bytes << (shift + 1) <= kPartBytes)
                ++shift;
            if (queries.count == 1)
                shift = kStripBits - 1;  // each is wanted once, and rows come in order
            const std::size_t parts = (rows >> shift) + 1;
            // Twice what each has on average, as some have more.
            const double share = static_cast<double>(rows) / static_cast<double>(all);
            const auto room = static_cast<std::size_t>(
                                  2 * share * std::min(static_cast<double>(expected), kMost) /
                                  static_cast<double>(parts)) +
                              kLeastRoom;
            strips_.push_back({&segment.collection, first, shift, room, nullptr,
                               std::vector<std::uint32_t>(parts, 0)});
            entries += parts * room;
        }
    }
    first_strips_.push_back(strips_.size());
    Entry* next = store_->entries.of(entries);
    for (Strip& strip : strips_) {
        strip.entries = next;
        next += strip.sizes.size() * strip.room;
    }
    const std::size_t all_bytes = queries.count * queries.bytes;
    void* place = store_->queries.of(all_bytes + kLine);
    std::size_t room = all_bytes + kLine;
    queries_.data = static_cast<const std::uint8_t*>(std::align(kLine, all_bytes, place, room));
    std::copy_n(queries.data, all_bytes, static_cast<std::uint8_t*>(place));
}

void Reranking::run(std::size_t threads, const bits::Checkpoint& checkpoint) {
    for (Strip& strip : strips_)
        for (std::size_t part = 0; part < strip.sizes.size(); ++part) {
            const std::size_t count = strip.sizes[part];
            const std::size_t workers = std::min(threads, count / kComparedApart);
            if (workers <= 1 || queries_.count != 1) {
                compare(strip, part);
                continue;
            }
            const Entry* const entries = strip.entries + part * strip.room;
            std::vector<Nearest> nearest(workers, Nearest(k_));
            bits::share_out(workers, workers, checkpoint, [&](std::size_t, std::size_t share) {
                const std::size_t begin = count * share / workers;
                std::int64_t cutoff = cutoffs_[0];
                compare(strip, entries + begin, count * (share + 1) / workers - begin,
                        &nearest[share], &cutoff);
            });
            for (const Nearest& some : nearest)
                nearest_[0].push_all(some);
            cutoffs_[0] = nearest_[0].cutoff(false);
            strip.sizes[part] = 0;
        }
}

void Reranking::compare(Strip& strip, std::size_t part) {
    compare(strip, strip.entries + part * strip.room, strip.sizes[part], nearest_.data(),
            cutoffs_.data());
    strip.sizes[part] = 0;
}

void Reranking::compare(const Strip& strip, const Entry* entries, std::size_t count,
                        Nearest* nearest, std::int64_t* cutoffs) const {
    const Collection& rows = *strip.collection;
    const std::size_t bytes = queries_.bytes;
    const auto take = [&](const Entry& entry, std::int64_t distance) {
        if (distance > cutoffs[entry.query]) [[likely]]
            return;
        nearest[entry.query].push(
            {{static_cast<std::uint32_t>(distance), rows.id(strip.first + entry.row)},
             entry.score});
        cutoffs[entry.query] = nearest[entry.query].cutoff(false);
    };
    if (by_score_) {
        for (std::size_t at = 0; at < count; ++at)
            take(entries[at], static_cast<std::int64_t>(8 * bytes) - entries[at].score);
        return;
    }
    const std::uint8_t *asking[kBlock], *asked[kBlock];
    std::int32_t distances[kBlock];
    const auto row_of = [&](std::size_t at) { return rows.row(strip.first + entries[at].row); };
    // All of a row, into the first-level cache: most are in the second already.
    const auto ask_for = [&](std::size_t at) __attribute__((always_inline)) {
        if (at >= count)
            return;
        for (std::size_t byte = 0; byte < bytes; byte += kLine)
            __builtin_prefetch(row_of(at) + byte);
        __builtin_prefetch(row_of(at) + bytes - 1);
    };
    for (std::size_t at = 0; at < kAhead; ++at)
        ask_for(at);
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
        const std::size_t size = std::min(kBlock, count - begin);
        for (std::size_t at = 0; at < size; ++at) {
            ask_for(begin + at + kAhead);
            asking[at] = queries_.row(entries[begin + at].query);
            asked[at] = row_of(begin + at);
        }
        kernels_.scattered(asking, asked, size, bytes, distances);
        for (std::size_t at = 0; at < size; ++at)
            take(entries[begin + at], distances[at]);
    }
}

}  // namespace lookalike::search
