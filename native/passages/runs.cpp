#include "passages/runs.hpp"

#include <algorithm>

namespace lookalike::passages {

namespace {

bool by_place(const Run& a, const Run& b) {
    return a.left != b.left ? a.left < b.left : a.right < b.right;
}

// The run around a seed; none if the words there differ after all.
Run around(std::span<const Word> left, std::span<const Word> right, const Seed& seed) {
    std::size_t before = 0, after = 0;
    while (before < seed.left && before < seed.right &&
           left[seed.left - before - 1] == right[seed.right - before - 1])
        ++before;
    while (seed.left + after < left.size() && seed.right + after < right.size() &&
           left[seed.left + after] == right[seed.right + after])
        ++after;
    return {seed.left - before, seed.right - before, after == 0 ? 0 : before + after};
}

// How much has to be cut off a run so that it comes after another one in both texts.
std::size_t overlap(const Run& first, const Run& second) {
    std::size_t cut = 0;
    if (first.left_end() > second.left)
        cut = first.left_end() - second.left;
    if (first.right_end() > second.right)
        cut = std::max(cut, first.right_end() - second.right);
    return cut;
}

bool follows(const Run& first, const Run& second, std::size_t gap) {
    const std::size_t cut = overlap(first, second);
    return cut < second.length && second.left + cut - first.left_end() <= gap &&
           second.right + cut - first.right_end() <= gap;
}

// By how many words the second run lies elsewhere opposite the text than the first.
std::size_t shift(const Run& first, const Run& second) {
    const std::size_t one = first.right + second.left, two = second.right + first.left;
    return one < two ? two - one : one - two;
}

}  // namespace

std::vector<Run> runs_of(std::span<const Word> left, std::span<const Word> right,
                         std::vector<Seed>& seeds, std::size_t piece) {
    // Seeds of one diagonal come together, so that each run is gone through once.
    const auto diagonal = [&](const Seed& seed) { return seed.right + left.size() - seed.left; };
    std::sort(seeds.begin(), seeds.end(), [&](const Seed& a, const Seed& b) {
        const std::size_t one = diagonal(a), two = diagonal(b);
        return one != two ? one < two : a.left < b.left;
    });
    std::vector<Run> runs;
    Run last{0, 0, 0};
    std::size_t on = SIZE_MAX;
    for (const Seed& seed : seeds) {
        if (diagonal(seed) == on && seed.left < last.left_end())
            continue;
        on = diagonal(seed);
        last = around(left, right, seed);
        if (last.length >= piece)
            runs.push_back(last);
    }
    std::sort(runs.begin(), runs.end(), by_place);
    return runs;
}

std::vector<Passage> passages_of(std::span<const Run> runs, const Rules& rules) {
    std::vector<Passage> found;
    std::vector<std::size_t> open;  // passages that may go on
    for (const Run& run : runs) {
        std::erase_if(open, [&](std::size_t one) {
            return found[one].runs.back().left_end() + rules.gap < run.left;
        });
        std::size_t best = found.size(), least = SIZE_MAX;
        for (const std::size_t one : open) {
            const Run& last = found[one].runs.back();
            if (follows(last, run, rules.gap) && shift(last, run) < least) {
                best = one;
                least = shift(last, run);
            }
        }
        if (best == found.size()) {
            open.push_back(best);
            found.push_back({{run}, run.length});
            continue;
        }
        const std::size_t cut = overlap(found[best].runs.back(), run);
        found[best].runs.push_back({run.left + cut, run.right + cut, run.length - cut});
        found[best].words += run.length - cut;
    }
    std::erase_if(found, [&](const Passage& one) { return one.words < rules.min_words; });
    return found;
}

}  // namespace lookalike::passages
