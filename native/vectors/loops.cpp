// Compiled once per instruction set: see bits/instruction_sets.hpp.

#include "vectors/loops.hpp"

#include <cstring>

namespace lookalike::vectors {
namespace {

// Eight numbers at a time, in vectors that the compiler makes of whatever the processor has: arrays
// of sums would stay in memory. Vectors are handed on by reference, which is the same for all.
constexpr std::size_t kWidth = 8, kLanes = 2 * kWidth;

using Halves = std::uint16_t [[gnu::vector_size(2 * kWidth)]];
using Words = std::uint32_t [[gnu::vector_size(4 * kWidth)]];
using Floats = float [[gnu::vector_size(4 * kWidth)]];
using Doubles = double [[gnu::vector_size(8 * kWidth)]];

inline void load(const float* from, Floats& to) {
    std::memcpy(&to, from, sizeof to);
}

// The exponent of a half is 112 less than a float's with the same bits there; a product with a
// power of two is exact, and makes of a subnormal half what it is.
inline void load(const std::uint16_t* from, Floats& to) {
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    const Words words = __builtin_convertvector(halves, Words);
    const Words magnitudes = (words & 0x7fffu) << 13, signs = (words & 0x8000u) << 16;
    Floats scaled;
    std::memcpy(&scaled, &magnitudes, sizeof scaled);
    scaled *= 0x1p112f;
    Words bits;
    std::memcpy(&bits, &scaled, sizeof bits);
    bits |= signs;
    std::memcpy(&to, &bits, sizeof to);
}

// Sums of products in two vectors of lanes, of one precision or the other.
template <class Lanes>
struct Sums {
    Lanes both{}, squares{};

    template <class Value>
    void add(const float* a, const Value* b) {
        Floats left, right;
        load(a, left);
        load(b, right);
        const Lanes x = __builtin_convertvector(left, Lanes);
        const Lanes y = __builtin_convertvector(right, Lanes);
        both += x * y;
        squares += y * y;
    }
};

template <class Number, class Lanes>
Number added(const Lanes& low, const Lanes& high) {
    Number sums[kWidth];
    const Lanes halves = low + high;
    std::memcpy(sums, &halves, sizeof sums);
    for (std::size_t half = kWidth / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane)
            sums[lane] += sums[lane + half];
    return sums[0];
}

// The product of dimension d is added to lane d modulo 16; what is missing at the end is zero.
template <class Found, class Number, class Lanes, class Value>
Found products_of(const float* a, const Value* b, std::size_t dimensions) {
    Sums<Lanes> low, high;
    std::size_t at = 0;
    for (; at + kLanes <= dimensions; at += kLanes) {
        low.add(a + at, b + at);
        high.add(a + at + kWidth, b + at + kWidth);
    }
    if (at < dimensions) {
        float left[kLanes] = {};
        Value right[kLanes] = {};
        for (std::size_t lane = 0; at + lane < dimensions; ++lane) {
            left[lane] = a[at + lane];
            right[lane] = b[at + lane];
        }
        low.add(left, right);
        high.add(left + kWidth, right + kWidth);
    }
    return {added<Number>(low.both, high.both), added<Number>(low.squares, high.squares)};
}

Products products(const float* a, const float* b, std::size_t dimensions) {
    return products_of<Products, double, Doubles>(a, b, dimensions);
}

Products products_of_halves(const float* a, const std::uint16_t* b, std::size_t dimensions) {
    return products_of<Products, double, Doubles>(a, b, dimensions);
}

RoughProducts rough(const float* a, const float* b, std::size_t dimensions) {
    return products_of<RoughProducts, float, Floats>(a, b, dimensions);
}

RoughProducts rough_of_halves(const float* a, const std::uint16_t* b, std::size_t dimensions) {
    return products_of<RoughProducts, float, Floats>(a, b, dimensions);
}

void widen(const std::uint16_t* halves, std::size_t count, float* floats) {
    Floats some;
    std::size_t at = 0;
    for (; at + kWidth <= count; at += kWidth) {
        load(halves + at, some);
        std::memcpy(floats + at, &some, sizeof some);
    }
    if (at < count) {
        std::uint16_t last[kWidth] = {};
        std::memcpy(last, halves + at, (count - at) * sizeof *last);
        load(last, some);
        std::memcpy(floats + at, &some, (count - at) * sizeof(float));
    }
}

std::size_t count_at_least(const float* numbers, std::size_t count, float least) {
    std::uint32_t found = 0;
    for (std::size_t at = 0; at < count; ++at)
        found += numbers[at] >= least ? 1u : 0u;
    return found;
}

constexpr Loops kLoops{products, products_of_halves, rough, rough_of_halves, widen, count_at_least};

}  // namespace

constinit const Loops Loops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::vectors
