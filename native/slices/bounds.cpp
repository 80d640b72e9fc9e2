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
    const std::size_t bits = slicing.bits(), widest = slicing.widest();
    std::size_t wide = 0;
    while (wide < slicing.count() && slicing.width(wide) == widest)
        ++wide;
    const std::size_t narrow = slicing.count() - wide;
    const std::size_t narrow_width = widest - 1;
    const auto unseen = [&](std::size_t count, std::size_t width) {
        return count * std::min(expand + 1, width);
    };
    // With `a` wide and `b` narrow slices seen, a score S leaves their width less S, and each slice
    // that was not seen has at least one bit more than was looked for.
    std::vector<std::int32_t> least(bits + 1, static_cast<std::int32_t>(bits));
    for (std::size_t a = 0; a <= wide; ++a)
        for (std::size_t b = 0; b <= narrow; ++b) {
            const std::size_t seen = a * widest + b * narrow_width;
            const std::size_t total =
                seen + unseen(wide - a, widest) + unseen(narrow - b, narrow_width);
            least[seen] = std::min(least[seen], static_cast<std::int32_t>(total));
        }
    for (std::size_t score = bits; score-- > 0;)
        least[score] = std::min(least[score], least[score + 1]);
    for (std::size_t score = 0; score <= bits; ++score)
        least[score] = std::max(0, least[score] - static_cast<std::int32_t>(score));
    return least;
}

}  // namespace lookalike::search
