// The best of few postings. Most rows have a single one, and most of those the same score: which
// have more is found by a table of bits, and where the line between equal scores goes by counting.

#include <algorithm>
#include <bit>

#include "bits/hash.hpp"
#include "slices/scoring/loops.hpp"
#include "slices/scoring/scores.hpp"

namespace lookalike::search {

std::optional<std::uint32_t> PostingBlock::choose(std::size_t query, std::size_t place,
                                                  std::size_t wanted, Reranking& reranking,
                                                  Counters& counters) {
    const std::size_t begin = query == 0 ? 0 : store_->ends[query - 1];
    const Keys keys(store_->narrow.of(0) + begin, store_->ends[query] - begin);
    std::uint32_t* const spare = store_->narrow_spare.of(keys.size() + 1);
    counters.lists += lists_;
    counters.postings += static_cast<std::int64_t>(keys.size());
    const std::size_t apart = set_apart(keys, spare);
    add_up_several({spare, apart});
    Keys singles = without_uncounted(keys.first(keys.size() - apart));
    std::size_t above;
    const std::uint32_t least = least_score(wanted, singles, above);
    const std::size_t ties = store_->counts[least];
    const bool all = above + ties <= wanted;
    // Single postings above the least score are put in front of those that have it.
    Keys tied = singles;
    if (least_amount_ != most_amount_ || least != most_amount_) {
        const auto middle = std::partition(singles.begin(), singles.end(),
                                           [&](std::uint32_t key) { return amount(key) > least; });
        const auto end = std::partition(middle, singles.end(),
                                        [&](std::uint32_t key) { return amount(key) == least; });
        singles = {singles.begin(), end};
        tied = {middle, end};
    }
    // Of those with the least score, the first rows.
    std::uint64_t last = UINT64_MAX;
    if (!all) {
        last = row_of_rank(tied, least, wanted - above);
        const auto limit = static_cast<std::uint32_t>((last + 1) << kLabelBits) - 1;
        const std::size_t left_out =
            tied.size() - score_loops().keep_up_to(tied.data(), tied.size(), limit);
        singles = singles.first(singles.size() - left_out);
    }
    Reranking::Adder adder = reranking.adder(place, 0);
    for (const ScoredRow& one : store_->several)
        if (one.score > least || (one.score == least && one.row <= last))
            adder.add(one.row, one.score);
    for (const std::uint32_t key : singles)
        adder.add(row(key), amount(key));
    counters.reranked += static_cast<std::int64_t>(all ? above + ties : wanted);
    if (!all)
        return least;
    return least > 1 ? std::optional(least - 1) : std::nullopt;
}

// Moves the postings of rows that have more than one, and of a few others, to `several`, and
// returns how many that are. The others stay, in front.
std::size_t PostingBlock::set_apart(Keys keys, std::uint32_t* several) const {
    constexpr std::size_t kBits = 1 << 16;  // 8 KB: they stay in the first-level cache
    std::uint32_t seen[kBits / 32] = {};
    std::size_t suspects = 0;
    for (const std::uint32_t key : keys) {
        const std::uint32_t hash = key >> kLabelBits & (kBits - 1), bit = 1u << hash % 32;
        std::uint32_t& word = seen[hash / 32];
        several[suspects] = key;
        suspects += (word & bit) != 0 ? 1 : 0;
        word |= bit;
    }
    if (suspects == 0)
        return 0;
    // Those that came first have been passed over: again, with only the bits of suspects.
    std::fill_n(seen, kBits / 32, 0);
    for (std::size_t at = 0; at < suspects; ++at) {
        const std::uint32_t hash = several[at] >> kLabelBits & (kBits - 1);
        seen[hash / 32] |= 1u << hash % 32;
    }
    return score_loops().set_apart(keys.data(), keys.size(), kLabelBits, seen, several);
}

// Adds up the postings of each row, by a small hash table.
void PostingBlock::add_up_several(std::span<const std::uint32_t> keys) {
    constexpr std::uint32_t kAdmitted = 1u << 31;
    std::vector<ScoredRow>& several = store_->several;
    several.clear();
    const std::size_t places = std::bit_ceil(2 * keys.size() + 1);
    std::vector<std::uint32_t>& table = store_->counts;  // numbers of `several`, from 1 on
    table.assign(places, 0);
    for (const std::uint32_t key : keys) {
        std::size_t place = static_cast<std::size_t>(bits::fmix64(row(key))) & (places - 1);
        while (table[place] != 0 && several[table[place] - 1].row != row(key))
            place = (place + 1) & (places - 1);
        if (table[place] == 0) {
            several.push_back({row(key), 0});
            table[place] = static_cast<std::uint32_t>(several.size());
        }
        std::uint32_t& score = several[table[place] - 1].score;
        score = (score + amount(key)) | ((key & 1) != 0 ? kAdmitted : 0);
    }
    // Those that no posting admits go, and those that were removed.
    std::size_t kept = 0;
    for (const ScoredRow& one : several) {
        const std::uint32_t score = one.score & ~kAdmitted;
        if (score > bits_)
            throw CorruptLists();  // more than all slices together: a row is in a list twice
        if (score != one.score && score != 0 && !segment_.is_removed(one.row))
            several[kept++] = {one.row, score};
    }
    several.resize(kept);
}

// Single postings without those that do not admit, add nothing, or were removed.
PostingBlock::Keys PostingBlock::without_uncounted(Keys singles) const {
    if (all_count_ && segment_.removed == nullptr)
        return singles;
    const auto end = std::remove_if(singles.begin(), singles.end(), [&](std::uint32_t key) {
        return (key & 1) == 0 || amount(key) == 0 || segment_.is_removed(row(key));
    });
    return {singles.begin(), end};
}

// The largest score that at least `wanted` reach, or 1, and how many are above it. Leaves in
// `counts` how many have which score.
std::uint32_t PostingBlock::least_score(std::size_t wanted, Keys singles, std::size_t& above) {
    std::vector<std::uint32_t>& counts = store_->counts;
    counts.assign(bits_ + 1, 0);
    std::uint32_t least = most_amount_;
    for (const ScoredRow& one : store_->several) {
        ++counts[one.score];
        least = std::max(least, one.score);
    }
    if (least_amount_ == most_amount_)
        counts[most_amount_] += static_cast<std::uint32_t>(singles.size());
    else
        for (const std::uint32_t key : singles)
            ++counts[amount(key)];
    above = 0;
    for (; least > 1 && above + counts[least] < wanted; --least)
        above += counts[least];
    return least;
}

// The row of that rank, from 1 on, among single postings and others that have the score.
std::uint64_t PostingBlock::row_of_rank(std::span<const std::uint32_t> ties, std::uint32_t score,
                                        std::size_t rank) {
    constexpr std::size_t kFew = 48;
    std::vector<std::uint32_t>& rows = store_->rows;
    rows.clear();
    for (const ScoredRow& one : store_->several)
        if (one.score == score)
            rows.push_back(static_cast<std::uint32_t>(one.row));
    const auto key_after = [](std::int64_t row) {
        return static_cast<std::uint32_t>(row + 1) << kLabelBits;
    };
    const auto up_to = [&](std::int64_t row) {  // how many rows there are up to this one
        return score_loops().count_up_to(ties.data(), ties.size(), key_after(row) - 1) +
               static_cast<std::size_t>(std::count_if(
                   rows.begin(), rows.end(), [&](std::uint32_t one) { return one <= row; }));
    };
    // Narrows down where it is, guessing as if rows were spread evenly, and by halves if they are
    // not. It is above `low` and not above `high`.
    std::int64_t low = -1, high = static_cast<std::int64_t>(segment_.collection.count) - 1;
    std::size_t below = 0, reached = ties.size() + rows.size();
    for (std::size_t step = 0; reached - below > kFew && high - low > 1; ++step) {
        const double share = step % 4 == 3 ? 0.5
                                           : (static_cast<double>(rank - below) - 0.5) /
                                                 static_cast<double>(reached - below);
        const std::int64_t middle = std::clamp<std::int64_t>(
            low + static_cast<std::int64_t>(share * static_cast<double>(high - low)), low + 1,
            high - 1);
        const std::size_t count = up_to(middle);
        if (count >= rank) {
            high = middle;
            reached = count;
        } else {
            low = middle;
            below = count;
        }
    }
    std::erase_if(rows, [&](std::uint32_t one) { return one <= low || one > high; });
    const std::size_t others = rows.size();
    rows.resize(others + ties.size() + 16);
    const std::size_t found =
        score_loops().copy_near(ties.data(), ties.size(), key_after(low) - 1,
                                key_after(high) - key_after(low), rows.data() + others);
    rows.resize(others + found);
    for (std::size_t at = others; at < rows.size(); ++at)
        rows[at] >>= kLabelBits;
    const auto at = rows.begin() + static_cast<std::ptrdiff_t>(rank - below - 1);
    std::nth_element(rows.begin(), at, rows.end());
    return *at;
}

}  // namespace lookalike::search
