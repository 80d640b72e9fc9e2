// Three ways to find where a header begins among sorted fingerprints, for an experiment: by
// halving, by interpolation, and by a table of where each header begins. Each returns the places,
// and how often memory was looked at.
#include <cstddef>
#include <cstdint>

namespace {

// The first of `count` that is not below `target`, by halving.
std::size_t halved(const std::uint64_t* sorted, std::size_t count, std::uint64_t target,
                   std::uint64_t& looks) {
    std::size_t begin = 0, size = count;
    while (size > 0) {
        const std::size_t half = size / 2;
        ++looks;
        if (sorted[begin + half] < target) {
            begin += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return begin;
}

// The same by interpolation: fingerprints are taken to be spread evenly between the two that are
// known on either side. What is below is in [0, begin), the others in [end, count).
std::size_t interpolated(const std::uint64_t* sorted, std::size_t count, std::uint64_t target,
                         std::uint64_t& looks) {
    std::size_t begin = 0, end = count;
    std::uint64_t low = 0, high = ~std::uint64_t{0};
    while (begin < end) {
        const double share =
            static_cast<double>(target - low) / (static_cast<double>(high - low) + 1.0);
        std::size_t at = begin + static_cast<std::size_t>(share * static_cast<double>(end - begin));
        if (at >= end)
            at = end - 1;
        ++looks;
        const std::uint64_t value = sorted[at];
        if (value < target) {
            begin = at + 1;
            low = value;
        } else {
            end = at;
            high = value;
        }
    }
    return begin;
}

template <class Find>
std::uint64_t all(const std::uint64_t* targets, std::size_t queries, std::uint64_t* places,
                  Find find) {
    std::uint64_t looks = 0;
    for (std::size_t query = 0; query < queries; ++query)
        places[query] = find(targets[query], looks);
    return looks;
}

}  // namespace

extern "C" {

std::uint64_t by_halving(const std::uint64_t* sorted, std::size_t count,
                         const std::uint64_t* targets, std::size_t queries, std::uint64_t* places) {
    return all(targets, queries, places, [&](std::uint64_t target, std::uint64_t& looks) {
        return halved(sorted, count, target, looks);
    });
}

std::uint64_t by_interpolation(const std::uint64_t* sorted, std::size_t count,
                               const std::uint64_t* targets, std::size_t queries,
                               std::uint64_t* places) {
    return all(targets, queries, places, [&](std::uint64_t target, std::uint64_t& looks) {
        return interpolated(sorted, count, target, looks);
    });
}

// `offsets` say where each header of `bits` bits begins.
std::uint64_t by_header(const std::uint32_t* offsets, std::size_t bits,
                        const std::uint64_t* targets, std::size_t queries, std::uint64_t* places) {
    return all(targets, queries, places, [&](std::uint64_t target, std::uint64_t& looks) {
        ++looks;
        return static_cast<std::size_t>(offsets[target >> (64 - bits)]);
    });
}
}
