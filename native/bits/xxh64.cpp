#include "bits/xxh64.hpp"

#include <bit>

namespace lookalike::bits {

using namespace xxh64_steps;

namespace {

std::uint64_t fold(std::uint64_t hash, std::uint64_t lane) {
    return (hash ^ mix(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

std::uint64_t xxh64(const void* data, std::size_t length, std::uint64_t seed) {
    const auto* at = static_cast<const unsigned char*>(data);
    std::size_t left = length;
    std::uint64_t hash;

    if (left >= 32) {
        std::uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
        for (; left >= 32; left -= 32, at += 32)
            for (int lane = 0; lane < 4; ++lane)
                lanes[lane] = mix(lanes[lane], read<std::uint64_t>(at + 8 * lane));
        hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
               std::rotl(lanes[3], 18);
        for (const std::uint64_t lane : lanes)
            hash = fold(hash, lane);
    } else {
        hash = seed + kPrime5;
    }
    hash += length;

    for (; left >= 8; left -= 8, at += 8)
        hash = add_8_bytes(hash, at);
    if (left >= 4) {
        hash = add_4_bytes(hash, at);
        left -= 4;
        at += 4;
    }
    for (; left > 0; --left, ++at)
        hash = add_byte(hash, *at);
    return finish(hash);
}

}  // namespace lookalike::bits
