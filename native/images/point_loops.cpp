// Compiled once per instruction set: see bits/instruction_sets.hpp.

#include "images/point_loops.hpp"

namespace lookalike::images {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kBytes = 32;
#else
constexpr std::size_t kBytes = 16;
#endif
using Lanes = float __attribute__((vector_size(kBytes)));
constexpr std::size_t kLanes = kBytes / sizeof(float);
constexpr std::size_t kTogether = 4;  // vectors whose sums are in registers

inline Lanes load(const float* from) {
    Lanes lanes;
    __builtin_memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

// Every value has a sum of its own, added up in the order of the weights, so the vectors may be of
// any width: sums are the same on every machine.
void weigh(const float* const* rows, const float* weights, std::size_t count, float* to,
           std::size_t width) {
    std::size_t x = 0;
    for (; x + kTogether * kLanes <= width; x += kTogether * kLanes) {
        Lanes sums[kTogether] = {};
        for (std::size_t at = 0; at < count; ++at)
            for (std::size_t one = 0; one < kTogether; ++one)
                sums[one] += weights[at] * load(rows[at] + x + one * kLanes);
        __builtin_memcpy(to + x, sums, sizeof sums);
    }
    for (; x + kLanes <= width; x += kLanes) {
        Lanes sum{};
        for (std::size_t at = 0; at < count; ++at)
            sum += weights[at] * load(rows[at] + x);
        __builtin_memcpy(to + x, &sum, sizeof sum);
    }
    for (; x < width; ++x) {
        float sum = 0;
        for (std::size_t at = 0; at < count; ++at)
            sum += weights[at] * rows[at][x];
        to[x] = sum;
    }
}

void tops(const float* above, const float* own, const float* below, float least, std::size_t width,
          std::uint8_t* found) {
    for (std::size_t x = 1; x + 1 < width; ++x) {
        const float value = own[x], left = own[x - 1], right = own[x + 1], over = above[x],
                    under = below[x];
        const bool high =
            (value >= least) & (value > left) & (value > right) & (value > over) & (value > under);
        const bool low =
            (value <= -least) & (value < left) & (value < right) & (value < over) & (value < under);
        found[x] = static_cast<std::uint8_t>(high | low);
    }
}

constexpr PointLoops kLoops{weigh, tops};

}  // namespace

const PointLoops PointLoops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::images
