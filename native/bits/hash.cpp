#include "bits/hash.hpp"

#include <algorithm>
#include <bit>

namespace lookalike::bits {

using namespace xxh64_steps;

namespace {

using Lanes = std::array<std::uint64_t, 4>;

Lanes begun(std::uint64_t seed) {
    return {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
}

// Takes as many whole blocks of 32 bytes as there are; returns what is left of them.
const unsigned char* add_blocks(Lanes& lanes, const unsigned char* at, std::size_t length) {
    for (; length >= 32; length -= 32, at += 32)
        for (std::size_t lane = 0; lane < 4; ++lane)
            lanes[lane] = mix(lanes[lane], read<std::uint64_t>(at + 8 * lane));
    return at;
}

std::uint64_t fold(std::uint64_t hash, std::uint64_t lane) {
    return (hash ^ mix(0, lane)) * kPrime1 + kPrime4;
}

std::uint64_t folded(const Lanes& lanes) {
    std::uint64_t hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                         std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes)
        hash = fold(hash, lane);
    return hash;
}

// Adds the bytes behind the last whole block.
std::uint64_t ended(std::uint64_t hash, const unsigned char* at, std::size_t left) {
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

}  // namespace

std::uint64_t xxh64(const void* data, std::size_t length, std::uint64_t seed) {
    const auto* at = static_cast<const unsigned char*>(data);
    std::uint64_t hash = seed + kPrime5;
    if (length >= 32) {
        Lanes lanes = begun(seed);
        at = add_blocks(lanes, at, length);
        hash = folded(lanes);
    }
    return ended(hash + length, at, length % 32);
}

Xxh64::Xxh64() : lanes_(begun(0)) {}

void Xxh64::add(const void* data, std::size_t length) {
    const auto* at = static_cast<const unsigned char*>(data);
    const std::size_t held = length_ % 32;
    length_ += length;
    if (held + length < 32) {
        std::copy_n(at, length, rest_.data() + held);
        return;
    }
    if (held > 0) {
        std::copy_n(at, 32 - held, rest_.data() + held);
        add_blocks(lanes_, rest_.data(), 32);
        at += 32 - held;
        length -= 32 - held;
    }
    std::copy_n(add_blocks(lanes_, at, length), length % 32, rest_.data());
}

std::uint64_t Xxh64::value() const {
    return ended((length_ >= 32 ? folded(lanes_) : kPrime5) + length_, rest_.data(), length_ % 32);
}

}  // namespace lookalike::bits
