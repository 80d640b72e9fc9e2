#include "tables/vosh.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace lookalike::search {

namespace {

std::uint32_t size_of(std::uint32_t ranks) {
    return static_cast<std::uint32_t>(__builtin_popcount(ranks));
}

// Whether `other` comes before `set` or is it, whatever the costs: its highest rank is no higher
// than the highest one of `set`, its second highest no higher than the second highest, and so on.
bool precedes(std::uint32_t other, std::uint32_t set) {
    while (other != 0) {
        if (set == 0)
            return false;
        const std::uint32_t top = 31 - static_cast<std::uint32_t>(__builtin_clz(set));
        const std::uint32_t other_top = 31 - static_cast<std::uint32_t>(__builtin_clz(other));
        if (other_top > top)
            return false;
        set ^= std::uint32_t{1} << top;
        other ^= std::uint32_t{1} << other_top;
    }
    return true;
}

struct OwnedCandidates : Candidates {
    std::vector<std::uint8_t> owned;
};

std::unique_ptr<OwnedCandidates> make_candidates(std::size_t wanted, std::size_t bits,
                                                 std::size_t most) {
    // A set that is no candidate makes none of its successors one, so candidates of each size are
    // found from those of the same size with one rank less: walk the ranks upwards.
    std::vector<std::uint32_t> found;
    for (std::size_t size = 1; size <= std::min({most, bits, Candidates::kMostMembers}); ++size) {
        std::vector<std::uint32_t> open{(std::uint32_t{1} << size) - 1};
        const std::size_t before = found.size();
        while (!open.empty()) {
            std::sort(open.begin(), open.end());
            open.erase(std::unique(open.begin(), open.end()), open.end());
            std::vector<std::uint32_t> next;
            for (const std::uint32_t set : open) {
                // Everything that precedes it is a candidate too, and found already, unless it is
                // of the same size and reached in as many steps: then it precedes nothing here.
                std::size_t earlier = 1;
                for (const std::uint32_t other : found)
                    earlier += other != set && precedes(other, set) ? 1 : 0;
                if (earlier > wanted)
                    continue;
                found.push_back(set);
                for (std::uint32_t rank = 0; rank + 1 < bits; ++rank)
                    if ((set >> rank & 3) == 1)
                        next.push_back(set + (std::uint32_t{1} << rank));
            }
            open = std::move(next);
        }
        if (found.size() == before)
            break;
    }
    std::sort(found.begin(), found.end(), [](std::uint32_t a, std::uint32_t b) {
        return size_of(a) != size_of(b) ? size_of(a) < size_of(b) : a < b;
    });
    auto made = std::make_unique<OwnedCandidates>();
    OwnedCandidates& candidates = *made;
    candidates.wanted = std::min(wanted, found.size());
    candidates.count = found.size();
    candidates.members = found.empty() ? 0 : size_of(found.back());
    candidates.owned.assign(found.size() * candidates.members, RankedBits::kMost);
    candidates.ranks = candidates.owned.data();
    for (std::size_t index = 0; index < found.size(); ++index) {
        std::size_t place = index * candidates.members;
        for (std::uint32_t ranks = found[index]; ranks != 0; ranks &= ranks - 1)
            candidates.owned[place++] = static_cast<std::uint8_t>(__builtin_ctz(ranks));
    }
    return made;
}

}  // namespace

std::uint64_t count_sets(std::size_t bits, std::size_t most, std::uint64_t enough) {
    double total = 0, choices = 1;
    for (std::size_t size = 1; size <= std::min(most, bits); ++size) {
        choices *= static_cast<double>(bits - size + 1) / static_cast<double>(size);
        total += choices;
        if (total >= static_cast<double>(enough))
            return enough;
    }
    return static_cast<std::uint64_t>(total + 0.5);
}

const Candidates& candidates_for(std::size_t wanted, std::size_t bits, std::size_t most) {
    static std::mutex mutex;
    using Key = std::tuple<std::size_t, std::size_t, std::size_t>;
    static std::map<Key, std::unique_ptr<OwnedCandidates>> known;
    // More than that can be of no use, and fewer keys keep the table small.
    most = std::min(most, Candidates::kMostMembers);
    bits = std::min({bits, wanted, std::size_t{32}});
    const std::scoped_lock lock(mutex);
    auto& entry = known[{wanted, bits, most}];
    if (!entry)
        entry = make_candidates(wanted, bits, most);
    return *entry;
}

}  // namespace lookalike::search
