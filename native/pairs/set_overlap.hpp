// What two sets have in common, by merging their elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "pairs/sets.hpp"

namespace lookalike::search {

// The number of elements that two ascending lists have in common; -1 as soon as more elements than
// are spare have no partner.
inline std::int64_t overlap(std::span<const std::uint32_t> left,
                            std::span<const std::uint32_t> right, std::int64_t left_spare,
                            std::int64_t right_spare) {
    constexpr std::size_t kRun = 4;
    const std::uint32_t *a = left.data(), *const a_end = a + left.size();
    const std::uint32_t *b = right.data(), *const b_end = b + right.size();
    std::int64_t common = 0;
    while (a != a_end && b != b_end) {
        // Near-duplicates have long runs in common.
        while (static_cast<std::size_t>(a_end - a) >= kRun &&
               static_cast<std::size_t>(b_end - b) >= kRun &&
               std::memcmp(a, b, kRun * sizeof *a) == 0) {
            a += kRun;
            b += kRun;
            common += std::int64_t{kRun};
        }
        if (a == a_end || b == b_end)
            break;
        if (*a == *b) {
            ++common;
            ++a;
            ++b;
        } else if (*a < *b) {
            ++a;
            if (--left_spare < 0)
                return -1;
        } else {
            ++b;
            if (--right_spare < 0)
                return -1;
        }
    }
    return a_end - a <= left_spare && b_end - b <= right_spare ? common : -1;
}

// The sum of products of weights of common elements, from places a and b of two sets on.
inline double product(const Sets& sets, std::size_t left, std::size_t right, std::size_t a,
                      std::size_t b) {
    const auto one = sets.elements_of(left), two = sets.elements_of(right);
    const double *const x = sets.weights_of(left), *const y = sets.weights_of(right);
    double sum = 0;
    while (a < one.size() && b < two.size()) {
        if (one[a] == two[b]) {
            sum += x[a] * y[b];
            ++a;
            ++b;
        } else if (one[a] < two[b]) {
            ++a;
        } else {
            ++b;
        }
    }
    return sum;
}

// The sum of the weights by frequency of common elements of two ascending lists.
inline double common_weight(const Sets& sets, std::span<const std::uint32_t> left,
                            std::span<const std::uint32_t> right) {
    const std::uint32_t *a = left.data(), *const a_end = a + left.size();
    const std::uint32_t *b = right.data(), *const b_end = b + right.size();
    double sum = 0;
    while (a != a_end && b != b_end) {
        const std::uint32_t one = *a, two = *b;
        if (one == two)
            sum += sets.element_weights[one];
        a += one <= two;
        b += two <= one;
    }
    return sum;
}

// How many elements of an ascending list are at most `last`.
inline std::size_t up_to(std::span<const std::uint32_t> elements, std::uint32_t last) {
    return static_cast<std::size_t>(std::upper_bound(elements.begin(), elements.end(), last) -
                                    elements.begin());
}

}  // namespace lookalike::search
