// Included by each loops_*.cpp, which are compiled with different flags. Anonymous, so that the
// linker cannot merge the copies.
#pragma once

#include <bit>

#include "vectors/loops.hpp"

namespace lookalike::vectors {
namespace {

constexpr std::size_t kLanes = 16;

inline float as_float(float number) {
    return number;
}

// The exponent of a half is 112 less than a float's with the same bits there; a product with a
// power of two is exact, and makes of a subnormal half what it is.
inline float as_float(std::uint16_t half) {
    const std::uint32_t magnitude = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

inline double added(const double (&lanes)[kLanes]) {
    double sums[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane)
        sums[lane] = lanes[lane];
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane)
            sums[lane] += sums[lane + half];
    return sums[0];
}

template <class Value>
Products products_of(const float* a, const Value* b, std::size_t dimensions) {
    double both[kLanes] = {}, squares[kLanes] = {};
    std::size_t at = 0;
    for (; at + kLanes <= dimensions; at += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const auto left = static_cast<double>(a[at + lane]);
            const auto right = static_cast<double>(as_float(b[at + lane]));
            both[lane] += left * right;
            squares[lane] += right * right;
        }
    for (std::size_t lane = 0; at + lane < dimensions; ++lane) {
        const auto left = static_cast<double>(a[at + lane]);
        const auto right = static_cast<double>(as_float(b[at + lane]));
        both[lane] += left * right;
        squares[lane] += right * right;
    }
    return {added(both), added(squares)};
}

Products products(const float* a, const float* b, std::size_t dimensions) {
    return products_of(a, b, dimensions);
}

Products products_of_halves(const float* a, const std::uint16_t* b, std::size_t dimensions) {
    return products_of(a, b, dimensions);
}

void widen(const std::uint16_t* halves, std::size_t count, float* floats) {
    for (std::size_t at = 0; at < count; ++at)
        floats[at] = as_float(halves[at]);
}

std::size_t count_at_least(const float* numbers, std::size_t count, float least) {
    std::uint32_t found = 0;
    for (std::size_t at = 0; at < count; ++at)
        found += numbers[at] >= least ? 1u : 0u;
    return found;
}

constexpr Loops kLoops{products, products_of_halves, widen, count_at_least};

}  // namespace
}  // namespace lookalike::vectors
