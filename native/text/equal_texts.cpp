#include "text/equal_texts.hpp"

#include <algorithm>
#include <bit>

#include "bits/hash.hpp"

namespace lookalike::text {

void first_equal(const std::vector<std::string_view>& texts, std::size_t threads,
                 const bits::Checkpoint& checkpoint, std::int64_t* first) {
    constexpr std::size_t kTextsPerTask = 1024;
    std::vector<std::uint64_t> hashes(texts.size());
    const auto hash = [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; ++at)
            hashes[at] = bits::xxh64(texts[at].data(), texts[at].size());
    };
    bits::share_out_runs(texts.size(), kTextsPerTask, threads, checkpoint, hash);
    // Open addressing; a slot holds a position plus one.
    const std::size_t slots = std::bit_ceil(std::max<std::size_t>(16, texts.size() * 3 / 2));
    const std::size_t mask = slots - 1;
    constexpr std::size_t kAhead = 16;
    const auto fill = [&](auto& table) {
        using Slot = typename std::remove_reference_t<decltype(table)>::value_type;
        for (std::size_t at = 0; at < texts.size(); ++at) {
            if (at % (std::size_t{1} << 16) == 0)
                checkpoint();
            if (at + kAhead < texts.size())
                __builtin_prefetch(&table[hashes[at + kAhead] & mask]);
            std::size_t slot = hashes[at] & mask;
            for (; table[slot] != 0; slot = (slot + 1) & mask) {
                const auto other = static_cast<std::size_t>(table[slot] - 1);
                if (hashes[other] == hashes[at] && texts[other] == texts[at])
                    break;
            }
            if (table[slot] == 0)
                table[slot] = static_cast<Slot>(at + 1);
            first[at] = static_cast<std::int64_t>(table[slot] - 1);
        }
    };
    if (texts.size() < UINT32_MAX) {
        std::vector<std::uint32_t> table(slots);
        fill(table);
    } else {
        std::vector<std::uint64_t> table(slots);
        fill(table);
    }
}

}  // namespace lookalike::text
