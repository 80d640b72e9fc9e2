// The loops that all instruction sets share. Each kernels_NAME.cpp has an `Isa`, gets its
// functions, specialized by width, from `kernels_of<Isa>`, and ends with
//   const KernelLoops KernelLoops::NAME{kernels_of<Isa>, read_lines<Isa>};
//
// An Isa has
//   group                                 how many rows it compares at once
//   Query<kBytes, kMasked>(query, bytes, mask)  a query, in registers where its width is known
//   Query::distances(rows) -> Distances   to `group` consecutive rows, over the bits that count
//   at_most(Distances, cutoff) -> mask    bit i set where row i is near enough
//   store(Distances, std::uint32_t*)
//   one<kBytes, kMasked>(left, right, bytes, mask)  the distance of a single pair
//   Rows<kBytes>(rows).distances(query)   of `group` consecutive rows in registers, if that is
//                                         quicker where several queries follow each other
//   of_pairs<kBytes>(left, right, bytes)  of `group` pairs, if that is quicker than one by one
//   narrow                                if there is a Query and a `one` of 4 bytes
//   Sum, add_line(Sum&, line), total(Sum) the sum of the words of 64-byte lines
// kBytes is the width, or kAnyWidth. Without kMasked all bits count, and the mask is null.
//
// Everything is in an anonymous namespace, and nothing here may call an inline function of another
// header: see instruction_sets.hpp.
#pragma once

#include "bits/kernels.hpp"

namespace lookalike::bits {
namespace {

constexpr std::size_t kAnyWidth = 0;

// Loads that come before this in the source come before it in the program. Rows are to be read in
// ascending order: the processor then sees one stream and fetches ahead by itself. Compilers do not
// keep to that on their own, and evaluate arguments from the last to the first: a group of rows
// read backwards got 60% of the bandwidth of a Zen 4. Asking for lines ahead is no remedy: with
// rows in order it costs a quarter of the bandwidth there.
inline void keep_order() {
    asm volatile("" ::: "memory");
}

template <class Isa, std::size_t kBytes>
struct Loops {
    static std::size_t width(std::size_t bytes) { return kBytes == kAnyWidth ? bytes : kBytes; }

    static void distances(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                          std::size_t bytes, std::int32_t* out) {
        bytes = width(bytes);
        const typename Isa::template Query<kBytes, false> prepared(query, bytes, nullptr);
        std::size_t row = 0;
        for (; row + Isa::group <= count; row += Isa::group) {
            std::uint32_t lanes[Isa::group];
            Isa::store(prepared.distances(rows + row * bytes), lanes);
            for (std::size_t lane = 0; lane < Isa::group; ++lane)
                out[row + lane] = static_cast<std::int32_t>(lanes[lane]);
        }
        for (; row < count; ++row)
            out[row] = static_cast<std::int32_t>(
                Isa::template one<kBytes, false>(query, rows + row * bytes, bytes, nullptr));
    }

    static std::size_t filter(const std::uint8_t* query, const std::uint8_t* rows,
                              std::size_t count, std::size_t bytes, std::uint32_t cutoff,
                              Hit* hits) {
        return filter_by<false>(query, nullptr, rows, count, bytes, cutoff, hits);
    }

    static std::size_t crossed(const std::uint8_t* queries, std::size_t asked,
                               const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                               std::uint32_t cutoff, Crossing* hits) {
        bytes = width(bytes);
        std::size_t found = 0, row = 0;
        const auto note = [&](std::size_t query, std::uint32_t near, const auto& distances) {
            std::uint32_t lanes[Isa::group];
            Isa::store(distances, lanes);
            for (; near != 0; near &= near - 1) {
                const auto lane = static_cast<std::uint32_t>(__builtin_ctz(near));
                hits[found++] = {static_cast<std::uint32_t>(query),
                                 static_cast<std::uint32_t>(row) + lane, lanes[lane]};
            }
        };
        if constexpr (requires { typename Isa::template Rows<kBytes>; }) {
            for (; row + Isa::group <= count; row += Isa::group) {
                const typename Isa::template Rows<kBytes> held(rows + row * bytes);
                for (std::size_t query = 0; query < asked; ++query) {
                    const auto distances = held.distances(queries + query * bytes);
                    if (const std::uint32_t near = Isa::at_most(distances, cutoff); near != 0)
                        note(query, near, distances);
                }
            }
        } else {
            for (std::size_t query = 0; query < asked; ++query) {
                const typename Isa::template Query<kBytes, false> prepared(queries + query * bytes,
                                                                           bytes, nullptr);
                for (row = 0; row + Isa::group <= count; row += Isa::group) {
                    const auto distances = prepared.distances(rows + row * bytes);
                    if (const std::uint32_t near = Isa::at_most(distances, cutoff); near != 0)
                        note(query, near, distances);
                }
            }
        }
        for (row = count / Isa::group * Isa::group; row < count; ++row)
            for (std::size_t query = 0; query < asked; ++query) {
                const std::uint32_t distance = Isa::template one<kBytes, false>(
                    queries + query * bytes, rows + row * bytes, bytes, nullptr);
                if (distance <= cutoff)
                    hits[found++] = {static_cast<std::uint32_t>(query),
                                     static_cast<std::uint32_t>(row), distance};
            }
        return found;
    }

    static std::size_t masked_filter(const std::uint8_t* query, const std::uint8_t* mask,
                                     const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                                     std::uint32_t cutoff, Hit* hits) {
        return filter_by<true>(query, mask, rows, count, bytes, cutoff, hits);
    }

    template <bool kMasked>
    static std::size_t filter_by(const std::uint8_t* query, const std::uint8_t* mask,
                                 const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                                 std::uint32_t cutoff, Hit* hits) {
        bytes = width(bytes);
        const typename Isa::template Query<kBytes, kMasked> prepared(query, bytes, mask);
        std::size_t found = 0;
        std::size_t row = 0;
        for (; row + Isa::group <= count; row += Isa::group) {
            const auto distances = prepared.distances(rows + row * bytes);
            std::uint32_t near = Isa::at_most(distances, cutoff);
            if (near == 0) [[likely]]
                continue;
            std::uint32_t lanes[Isa::group];
            Isa::store(distances, lanes);
            for (; near != 0; near &= near - 1) {
                const auto lane = static_cast<std::uint32_t>(__builtin_ctz(near));
                hits[found++] = {static_cast<std::uint32_t>(row) + lane, lanes[lane]};
            }
        }
        for (; row < count; ++row) {
            const std::uint32_t distance =
                Isa::template one<kBytes, kMasked>(query, rows + row * bytes, bytes, mask);
            if (distance <= cutoff)
                hits[found++] = {static_cast<std::uint32_t>(row), distance};
        }
        return found;
    }

    static void paired(const std::uint8_t* left, const std::uint8_t* right, std::size_t count,
                       std::size_t bytes, std::int32_t* out) {
        bytes = width(bytes);
        for (std::size_t row = 0; row < count; ++row)
            out[row] = static_cast<std::int32_t>(Isa::template one<kBytes, false>(
                left + row * bytes, right + row * bytes, bytes, nullptr));
    }

    static void scattered(const std::uint8_t* const* left, const std::uint8_t* const* right,
                          std::size_t count, std::size_t bytes, std::int32_t* out) {
        bytes = width(bytes);
        std::size_t at = 0;
        if constexpr (requires { Isa::template of_pairs<kBytes>(left, right, bytes); })
            for (; at + Isa::group <= count; at += Isa::group) {
                std::uint32_t lanes[Isa::group];
                Isa::store(Isa::template of_pairs<kBytes>(left + at, right + at, bytes), lanes);
                for (std::size_t lane = 0; lane < Isa::group; ++lane)
                    out[at + lane] = static_cast<std::int32_t>(lanes[lane]);
            }
        for (; at < count; ++at)
            out[at] = static_cast<std::int32_t>(
                Isa::template one<kBytes, false>(left[at], right[at], bytes, nullptr));
    }

    static constexpr Kernels table{distances, filter, crossed, masked_filter, paired, scattered};
};

template <class Isa>
Kernels kernels_of(std::size_t bytes) {
    if constexpr (requires { Isa::narrow; })
        if (bytes == 4)
            return Loops<Isa, 4>::table;
    switch (bytes) {
        case 8:
            return Loops<Isa, 8>::table;
        case 16:
            return Loops<Isa, 16>::table;
        case 32:
            return Loops<Isa, 32>::table;
        case 64:
            return Loops<Isa, 64>::table;
        case 128:
            return Loops<Isa, 128>::table;
        default:
            return Loops<Isa, kAnyWidth>::table;
    }
}

template <class Isa>
std::uint64_t read_lines(const std::uint8_t* data, std::size_t lines) {
    constexpr std::size_t kAtOnce = 8;
    typename Isa::Sum sums[kAtOnce]{};
    std::size_t line = 0;
    for (; line + kAtOnce <= lines; line += kAtOnce)
        for (std::size_t at = 0; at < kAtOnce; ++at) {
            Isa::add_line(sums[at], data + (line + at) * 64);
            keep_order();
        }
    for (; line < lines; ++line)
        Isa::add_line(sums[0], data + line * 64);
    std::uint64_t total = 0;
    for (const typename Isa::Sum& sum : sums)
        total += Isa::total(sum);
    return total;
}

// Reads `bytes` < 8 bytes as a number whose other bytes are zero.
inline std::uint64_t load_partial(const std::uint8_t* from, std::size_t bytes) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, from, bytes);
    return word;
}

inline std::uint64_t load_word(const std::uint8_t* from) {
    std::uint64_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

// The bits that count, of a difference of up to 8 bytes at byte `at` of the signatures.
template <bool kMasked>
inline std::uint64_t counted(std::uint64_t difference, const std::uint8_t* mask, std::size_t at,
                             std::size_t bytes) {
    if constexpr (kMasked)
        return difference & (bytes == 8 ? load_word(mask + at) : load_partial(mask + at, bytes));
    else
        return difference;
}

}  // namespace
}  // namespace lookalike::bits
