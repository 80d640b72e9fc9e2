// How near what a search by lists has not looked at can be.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "slices/search.hpp"

namespace lookalike::search {

std::int64_t least_unseen(const Slicing& slicing, std::size_t admit) {
    std::int64_t least = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position) {
        if (admit >= slicing.width(position))
            return INT64_MAX;  // every signature is seen at this position
        least += static_cast<std::int64_t>(admit) + 1;
    }
    return least;
}

std::uint32_t lowest_doubtful(const std::vector<std::int32_t>& optimistic,
                              std::optional<std::uint32_t> rest, std::optional<std::int64_t> kth) {
    for (std::uint32_t score = 1; rest && score <= *rest; ++score)
        if (!kth || optimistic[score] <= *kth)
            return score;
    return 0;
}

bool nothing_is_nearer(const Slicing& slicing, const std::vector<std::int32_t>& optimistic,
                       std::size_t admit, std::optional<std::uint32_t> rest,
                       std::optional<std::int64_t> kth) {
    return kth && least_unseen(slicing, admit) > *kth &&
           lowest_doubtful(optimistic, rest, kth) == 0;
}

std::vector<std::int32_t> optimistic_distances(const Slicing& slicing, std::size_t expand) {
    const std::size_t bits = slicing.bits();
    // With some slices seen, a score S leaves their width less S, and each slice that was not seen
    // has at least one bit more than was looked for. Of slices of one width, how many are seen
    // counts; sums of widths that were seen are built up width by width.
    std::size_t numbers[Slicing::kMostSliceBits + 1] = {};
    for (std::size_t position = 0; position < slicing.count(); ++position)
        ++numbers[slicing.width(position)];
    constexpr std::int32_t kNever = INT32_MAX;
    std::vector<std::int32_t> least(bits + 1, kNever), before;
    least[0] = 0;
    for (std::size_t width = 1; width <= Slicing::kMostSliceBits; ++width) {
        if (numbers[width] == 0)
            continue;
        before.assign(bits + 1, kNever);
        before.swap(least);
        for (std::size_t seen = 0; seen <= bits; ++seen)
            for (std::size_t more = 0; before[seen] != kNever && more <= numbers[width]; ++more) {
                const std::size_t unseen = (numbers[width] - more) * std::min(expand + 1, width);
                std::int32_t& total = least[seen + more * width];
                total = std::min(total, before[seen] + static_cast<std::int32_t>(unseen));
            }
    }
    for (std::size_t seen = 0; seen <= bits; ++seen)
        if (least[seen] == kNever)
            least[seen] = static_cast<std::int32_t>(bits);
        else
            least[seen] += static_cast<std::int32_t>(seen);
    for (std::size_t score = bits; score-- > 0;)
        least[score] = std::min(least[score], least[score + 1]);
    for (std::size_t score = 0; score <= bits; ++score)
        least[score] = std::max(0, least[score] - static_cast<std::int32_t>(score));
    return least;
}

}  // namespace lookalike::search
