// Comparing a query with the signatures of one bucket of a sorted table.
#pragma once

#include <algorithm>
#include <vector>

#include "bits/kernels.hpp"
#include "bits/operation.hpp"
#include "tables/sorted_table.hpp"

namespace lookalike::search {

// Buckets are read one after the other. A large one is not: what its signatures have in common at
// the front is compared once, halves that differ too much there are left out, and equal signatures
// cost one comparison. So a bucket that holds a fifth of the collection does not make every search
// a scan.
class BucketScan {
  public:
    BucketScan(std::size_t bytes, std::uint32_t radius)
        : kernels_(bits::kernels_for(bytes)),
          bytes_(bytes),
          radius_(radius),
          step_(std::max<std::size_t>(1, kStepBytes / bytes)),
          hits_(step_) {}

    // Calls take(place, distance) for what is within the radius, in order of place, until it
    // returns false; then returns false too.
    template <class Take>
    bool scan(const SortedTable& table, SortedTable::Range bucket, const std::uint8_t* query,
              Take take) {
        if (bucket.end - bucket.begin > kLarge) {
            bits::stop_if_canceled();
            return narrow(table, bucket, query, 0, 0, take);
        }
        return each(table, bucket, query, take);
    }

    // Asks for the beginning of a bucket.
    static void prefetch(const SortedTable& table, SortedTable::Range bucket) {
        if (table.compressed)
            prefetch_bytes(table.rows + bucket.begin, table.rows + bucket.end);
        else
            prefetch_bytes(table.signatures.row(bucket.begin), table.signatures.row(bucket.end));
    }

    // Asks for what the beginning of a bucket points to, once that is there.
    static void prefetch_signatures(const SortedTable& table, SortedTable::Range bucket) {
        if (table.compressed)
            for (std::size_t place = bucket.begin;
                 place < std::min(bucket.end, bucket.begin + kAhead); ++place)
                __builtin_prefetch(table.at(place));
    }

  private:
    static constexpr std::size_t kStepBytes = 1024;
    static constexpr std::size_t kLarge = 8192;
    static constexpr std::size_t kSmall = 64;  // not worth to be narrowed any more
    static constexpr std::size_t kAhead = 16;

    static void prefetch_bytes(const void* begin, const void* end) {
        const char* const first = static_cast<const char*>(begin);
        const std::size_t bytes = std::min<std::size_t>(
            static_cast<std::size_t>(static_cast<const char*>(end) - first), kStepBytes);
        for (std::size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(first + at);
        if (bytes != 0)
            __builtin_prefetch(first + bytes - 1);
    }

    template <class Take>
    bool each_row(const SortedTable& table, SortedTable::Range range, const std::uint8_t* query,
                  Take& take) {
        for (std::size_t place = range.begin; place < range.end; ++place) {
            if (place + kAhead < range.end)
                __builtin_prefetch(table.at(place + kAhead));
            std::int32_t distance;
            kernels_.paired(query, table.at(place), 1, bytes_, &distance);
            if (static_cast<std::uint32_t>(distance) <= radius_ &&
                !take(place, static_cast<std::uint32_t>(distance)))
                return false;
        }
        return true;
    }

    template <class Take>
    bool each(const SortedTable& table, SortedTable::Range range, const std::uint8_t* query,
              Take& take) {
        if (table.compressed)
            return each_row(table, range, query, take);
        for (std::size_t begin = range.begin; begin < range.end; begin += step_) {
            const std::size_t end = std::min(range.end, begin + step_);
            prefetch(table, {end, std::min(range.end, end + step_)});
            const std::size_t found =
                kernels_.filter(query, table.at(begin), end - begin, bytes_, radius_, hits_.data());
            for (std::size_t hit = 0; hit < found; ++hit)
                if (!take(begin + hits_[hit].row, hits_[hit].distance))
                    return false;
        }
        return true;
    }

    // `words` of the range are equal throughout, and differ from the query's in `differing` bits.
    template <class Take>
    bool narrow(const SortedTable& table, SortedTable::Range range, const std::uint8_t* query,
                std::size_t words, std::uint32_t differing, Take& take) {
        if (range.end - range.begin <= kSmall)
            return each(table, range, query, take);
        const std::uint8_t* const first = table.at(range.begin);
        const std::uint8_t* const last = table.at(range.end - 1);
        for (; 8 * words < bytes_; ++words) {
            const std::uint64_t low = signature_word(first, bytes_, words);
            const std::uint64_t high = signature_word(last, bytes_, words);
            const std::uint64_t wanted = signature_word(query, bytes_, words);
            if (low > high)
                throw CorruptTable();
            if (low == high) {
                differing += ones(low ^ wanted);
                if (differing > radius_)
                    return true;
                continue;
            }
            // The highest bit that tells them apart: all above it is common to the whole range.
            const std::uint64_t top = std::uint64_t{1} << (63 - __builtin_clzll(low ^ high));
            const std::uint64_t common = ~(top | (top - 1));
            if (differing + ones((low ^ wanted) & common) > radius_)
                return true;
            std::size_t from = range.begin, to = range.end;
            while (from < to) {
                const std::size_t middle = from + (to - from) / 2;
                if ((signature_word(table.at(middle), bytes_, words) & top) != 0)
                    to = middle;
                else
                    from = middle + 1;
            }
            if (from == range.begin || from == range.end)
                throw CorruptTable();  // or this would not end
            return narrow(table, {range.begin, from}, query, words, differing, take) &&
                   narrow(table, {from, range.end}, query, words, differing, take);
        }
        for (std::size_t place = range.begin; place < range.end; ++place)  // all are equal
            if (!take(place, differing))
                return false;
        return true;
    }

    static std::uint32_t ones(std::uint64_t word) {
        return static_cast<std::uint32_t>(__builtin_popcountll(word));
    }

    bits::Kernels kernels_;
    std::size_t bytes_;
    std::uint32_t radius_;
    std::size_t step_;
    std::vector<bits::Hit> hits_;
};

}  // namespace lookalike::search
