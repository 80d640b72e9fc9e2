#include "bits/xxh64.hpp"

#include <bit>
#include <cstring>

namespace lookalike::bits {

namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5u;

// The specification reads little-endian words on every machine.
template <class Word>
Word read(const unsigned char* from) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (std::endian::native == std::endian::big) {
        if constexpr (sizeof word == 8)
            word = __builtin_bswap64(word);
        else
            word = __builtin_bswap32(word);
    }
    return word;
}

std::uint64_t mix(std::uint64_t lane, std::uint64_t input) {
    return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

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
        hash = std::rotl(hash ^ mix(0, read<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
    if (left >= 4) {
        hash = std::rotl(hash ^ (read<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
        left -= 4;
        at += 4;
    }
    for (; left > 0; --left, ++at)
        hash = std::rotl(hash ^ (*at * kPrime5), 11) * kPrime1;

    hash = (hash ^ (hash >> 33)) * kPrime2;
    hash = (hash ^ (hash >> 29)) * kPrime3;
    return hash ^ (hash >> 32);
}

}  // namespace lookalike::bits
