// Included by each score_loops_*.cpp, which are compiled with different flags. Anonymous, so that
// the linker cannot merge the copies.
#pragma once

#include "search/score_loops.hpp"

namespace lookalike::search {
namespace {

constexpr std::size_t kBlock = 64;

std::size_t collect(const std::uint16_t* scores, std::size_t count, std::uint16_t least,
                    std::uint64_t* places, std::size_t room) {
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
        const std::size_t end = begin + kBlock < count ? begin + kBlock : count;
        if (end - begin == kBlock) {
            std::uint16_t largest = 0;
            for (std::size_t at = begin; at < begin + kBlock; ++at)
                largest = scores[at] > largest ? scores[at] : largest;
            if (largest < least) [[likely]]
                continue;
        }
        for (std::size_t at = begin; at < end; ++at)
            if (scores[at] >= least) {
                if (found == room)
                    return found;
                places[found++] = at;
            }
    }
    return found;
}

std::size_t count_nonzero(const std::uint16_t* scores, std::size_t count) {
    std::size_t found = 0;
    for (std::size_t at = 0; at < count; ++at)
        found += scores[at] != 0 ? 1 : 0;
    return found;
}

constexpr ScoreLoops kLoops{collect, count_nonzero};

}  // namespace
}  // namespace lookalike::search
