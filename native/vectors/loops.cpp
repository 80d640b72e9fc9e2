// Compiled once per instruction set: see bits/instruction_sets.hpp.

#include "vectors/loops.hpp"

#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

// The products of some queries with some blocks that lie one after the other. Values have 128 added
// to them, so that 128 times the sum of the query's values is too much.
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

template <std::size_t kBlocks, std::size_t kQueries>
void block_products(const std::uint8_t* sketches, std::size_t steps,
                    const std::int8_t* const* queries, const std::int32_t* extra,
                    std::size_t stride, std::int32_t* sums) {
    constexpr std::size_t kBytes = kSketchRows * kSketchStep;
    __m512i found[kBlocks][kQueries];
    for (std::size_t block = 0; block < kBlocks; ++block)
        for (std::size_t query = 0; query < kQueries; ++query)
            found[block][query] = _mm512_set1_epi32(-extra[query]);
    for (std::size_t step = 0; step < steps; ++step) {
        __m512i asked[kQueries];
        for (std::size_t query = 0; query < kQueries; ++query) {
            std::int32_t values;
            std::memcpy(&values, queries[query] + kSketchStep * step, sizeof values);
            asked[query] = _mm512_set1_epi32(values);
        }
        for (std::size_t block = 0; block < kBlocks; ++block) {
            const __m512i rows = _mm512_loadu_si512(sketches + (block * steps + step) * kBytes);
            for (std::size_t query = 0; query < kQueries; ++query)
                found[block][query] = _mm512_dpbusd_epi32(found[block][query], rows, asked[query]);
        }
    }
    for (std::size_t block = 0; block < kBlocks; ++block)
        for (std::size_t query = 0; query < kQueries; ++query)
            _mm512_storeu_si512(sums + query * stride + block * kSketchRows, found[block][query]);
}

#elif defined(__AVX2__)

template <std::size_t kBlocks, std::size_t kQueries>
void block_products(const std::uint8_t* sketches, std::size_t steps,
                    const std::int8_t* const* queries, const std::int32_t* extra,
                    std::size_t stride, std::int32_t* sums) {
    constexpr std::size_t kBytes = kSketchRows * kSketchStep, kParts = 4;  // of four rows each
    for (std::size_t block = 0; block < kBlocks; ++block)
        for (std::size_t query = 0; query < kQueries; ++query) {
            const std::uint8_t* from = sketches + block * steps * kBytes;
            __m256i found[kParts] = {};
            for (std::size_t step = 0; step < steps; ++step, from += kBytes) {
                std::int32_t values;
                std::memcpy(&values, queries[query] + kSketchStep * step, sizeof values);
                const __m256i asked = _mm256_cvtepi8_epi16(_mm_set1_epi32(values));
                for (std::size_t part = 0; part < kParts; ++part) {
                    __m128i bytes;
                    std::memcpy(&bytes, from + 16 * part, sizeof bytes);
                    found[part] = _mm256_add_epi32(
                        found[part], _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), asked));
                }
            }
            for (std::size_t part = 0; part < kParts; ++part) {
                std::uint32_t halves[8];  // what is too large on the way is not in the end
                std::memcpy(halves, &found[part], sizeof halves);
                for (std::size_t row = 0; row < 4; ++row)
                    sums[query * stride + block * kSketchRows + 4 * part + row] =
                        static_cast<std::int32_t>(halves[2 * row] + halves[2 * row + 1] -
                                                  static_cast<std::uint32_t>(extra[query]));
            }
        }
}

#else

template <std::size_t kBlocks, std::size_t kQueries>
void block_products(const std::uint8_t* sketches, std::size_t steps,
                    const std::int8_t* const* queries, const std::int32_t* extra,
                    std::size_t stride, std::int32_t* sums) {
    for (std::size_t block = 0; block < kBlocks; ++block)
        for (std::size_t query = 0; query < kQueries; ++query) {
            const std::uint8_t* from = sketches + block * steps * kSketchRows * kSketchStep;
            std::uint32_t found[kSketchRows];  // what is too large on the way is not in the end
            for (std::uint32_t& one : found)
                one = static_cast<std::uint32_t>(-extra[query]);
            for (std::size_t step = 0; step < steps; ++step, from += kSketchRows * kSketchStep) {
                const std::int8_t* const asked = queries[query] + kSketchStep * step;
                for (std::size_t row = 0; row < kSketchRows; ++row)
                    for (std::size_t at = 0; at < kSketchStep; ++at)
                        found[row] +=
                            static_cast<std::uint32_t>(from[kSketchStep * row + at] * asked[at]);
            }
            std::memcpy(sums + query * stride + block * kSketchRows, found, sizeof found);
        }
}

#endif

template <std::size_t kBlocks, std::size_t kQueries>
void products_of_blocks(const std::uint8_t* sketches, std::size_t blocks, std::size_t steps,
                        const std::int8_t* const* queries, std::int32_t* sums) {
    const std::size_t stride = blocks * kSketchRows;
    const std::size_t block_bytes = steps * kSketchRows * kSketchStep;
    std::int32_t extra[kQueries];
    for (std::size_t query = 0; query < kQueries; ++query) {
        extra[query] = 0;
        for (std::size_t at = 0; at < kSketchStep * steps; ++at)
            extra[query] += 128 * queries[query][at];
    }
    std::size_t block = 0;
    for (; block + kBlocks <= blocks; block += kBlocks)
        block_products<kBlocks, kQueries>(sketches + block * block_bytes, steps, queries, extra,
                                          stride, sums + block * kSketchRows);
    for (; block < blocks; ++block)
        block_products<1, kQueries>(sketches + block * block_bytes, steps, queries, extra, stride,
                                    sums + block * kSketchRows);
}

void sketch_products(const std::uint8_t* sketches, std::size_t blocks, std::size_t steps,
                     const std::int8_t* const* queries, std::size_t count, std::int32_t* sums) {
    if (count == 1)
        products_of_blocks<4, 1>(sketches, blocks, steps, queries, sums);
    else
        products_of_blocks<2, kSketchQueries>(sketches, blocks, steps, queries, sums);
}

std::size_t sketch_hits(const std::int32_t* sums, const float* scales, std::size_t count,
                        float least, SketchHit* hits) {
    constexpr std::size_t kTogether = 16;
    SketchHit* hit = hits;
    const auto look_at = [&](std::size_t row) {
        const float product = static_cast<float>(sums[row]) * scales[row];
        if (product >= least)
            *hit++ = {product, static_cast<std::uint32_t>(row)};
    };
    std::size_t begin = 0;
    for (; begin + kTogether <= count; begin += kTogether) {
        std::uint32_t near = 0;
        for (std::size_t row = begin; row < begin + kTogether; ++row)
            near += static_cast<float>(sums[row]) * scales[row] >= least ? 1u : 0u;
        if (near != 0)
            for (std::size_t row = begin; row < begin + kTogether; ++row)
                look_at(row);
    }
    for (; begin < count; ++begin)
        look_at(begin);
    return static_cast<std::size_t>(hit - hits);
}

constexpr Loops kLoops{products, products_of_halves, rough,       rough_of_halves,
                       widen,    sketch_products,    sketch_hits, count_at_least};

}  // namespace

constinit const Loops Loops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::vectors
