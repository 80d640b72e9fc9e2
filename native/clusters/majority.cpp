#include "clusters/majority.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "bits/kernels.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kGroupsPerTask = 16;

// How many of some words have each of 64 bits. Plane p holds bit p of all 64 counts, so that a word
// is added to all of them by the logic of an adder; few carries go further than two planes.
class BitCounts {
  public:
    void clear() { planes_.clear(); }

    void add(std::uint64_t word) {
        for (std::uint64_t& plane : planes_) {
            const std::uint64_t carry = plane & word;
            plane ^= word;
            word = carry;
            if (word == 0)
                return;
        }
        planes_.push_back(word);
    }

    // Ones where more than half of `count` words have the bit; that of `before` where half have.
    std::uint64_t majority(std::size_t count, std::uint64_t before) const {
        std::uint64_t more = 0, equal = ~std::uint64_t{0};
        const std::size_t half = count / 2;
        for (std::size_t plane = planes_.size(); plane-- > 0;) {
            const std::uint64_t wanted = (half >> plane & 1) != 0 ? ~std::uint64_t{0} : 0;
            more |= equal & planes_[plane] & ~wanted;
            equal &= ~(planes_[plane] ^ wanted);
        }
        if (half >> planes_.size() != 0)  // no count reaches so far
            return 0;
        return count % 2 == 0 ? more | (equal & before) : more;
    }

  private:
    std::vector<std::uint64_t> planes_;  // the lowest first
};

std::uint64_t load(const std::uint8_t* from, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    return word;
}

}  // namespace

void majority_centers(const Signatures& rows, const std::int64_t* labels, std::size_t groups,
                      std::size_t threads, const bits::Checkpoint& checkpoint,
                      std::uint8_t* centers) {
    std::vector<std::size_t> begins(groups + 1, 0);
    for (std::size_t row = 0; row < rows.count; ++row)
        ++begins[static_cast<std::size_t>(labels[row]) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::size_t> members(rows.count), next(begins.begin(), begins.end() - 1);
    for (std::size_t row = 0; row < rows.count; ++row)
        members[next[static_cast<std::size_t>(labels[row])]++] = row;

    bits::share_out_runs(
        groups, kGroupsPerTask, threads, checkpoint,
        [&](std::size_t, std::size_t first, std::size_t last) {
            const std::size_t words = (rows.bytes + 7) / 8;
            std::vector<BitCounts> counts(words);
            for (std::size_t group = first; group < last; ++group) {
                const std::size_t size = begins[group + 1] - begins[group];
                if (size == 0)
                    continue;
                for (BitCounts& each : counts)
                    each.clear();
                for (std::size_t at = begins[group]; at < begins[group + 1]; ++at)
                    for (std::size_t word = 0; word < words; ++word) {
                        const std::size_t from = 8 * word;
                        counts[word].add(load(rows.row(members[at]) + from,
                                              std::min<std::size_t>(8, rows.bytes - from)));
                    }
                for (std::size_t word = 0; word < words; ++word) {
                    std::uint8_t* const place = centers + group * rows.bytes + 8 * word;
                    const std::size_t bytes = std::min<std::size_t>(8, rows.bytes - 8 * word);
                    const std::uint64_t bits = counts[word].majority(size, load(place, bytes));
                    std::memcpy(place, &bits, bytes);
                }
            }
        });
}

void nearest_among(const Signatures& rows, const Signatures& centers,
                   const std::int64_t* candidates, std::size_t count, std::size_t threads,
                   const bits::Checkpoint& checkpoint, std::int64_t* labels,
                   std::int32_t* distances) {
    constexpr std::size_t kRowsPerTask = 4096;
    const bits::Kernels kernels = bits::kernels_for(rows.bytes);
    bits::share_out_runs(
        rows.count, kRowsPerTask, threads, checkpoint,
        [&](std::size_t, std::size_t first, std::size_t last) {
            std::vector<const std::uint8_t*> left(count), right(count);
            std::vector<std::int32_t> far(count);
            for (std::size_t row = first; row < last; ++row) {
                const std::int64_t* const own = candidates + row * count;
                for (std::size_t at = 0; at < count; ++at) {
                    left[at] = rows.row(row);
                    right[at] = centers.row(static_cast<std::size_t>(own[at]));
                }
                kernels.scattered(left.data(), right.data(), count, rows.bytes, far.data());
                std::size_t best = 0;
                for (std::size_t at = 1; at < count; ++at)
                    if (far[at] < far[best] || (far[at] == far[best] && own[at] < own[best]))
                        best = at;
                labels[row] = own[best];
                distances[row] = far[best];
            }
        });
}

}  // namespace lookalike::search
