#include "slices/slicing.hpp"

#include <algorithm>

namespace lookalike::search {

Variants::Variants(std::size_t width, std::size_t most) {
    for (std::size_t ones = 0; ones <= std::min(width, most); ++ones) {
        const std::uint64_t limit = std::uint64_t{1} << width;
        std::uint64_t value = (std::uint64_t{1} << ones) - 1;
        while (value < limit) {
            values.push_back(static_cast<std::uint32_t>(value));
            if (value == 0)
                break;
            // The next number with as many ones (Gosper).
            const std::uint64_t lowest = value & -value, carried = value + lowest;
            value = carried | (((value ^ carried) / lowest) >> 2);
        }
        ends.push_back(values.size());
    }
    ends.resize(most + 1, values.size());
}

double choose(std::size_t n, std::size_t k) {
    double result = 1;
    for (std::size_t step = 0; step < k; ++step)
        result = result * static_cast<double>(n - step) / static_cast<double>(step + 1);
    return result;
}

}  // namespace lookalike::search
