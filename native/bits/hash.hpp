// Hashes of bytes and of numbers; not meant to resist an attacker.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lookalike::bits {

// The finaliser of MurmurHash3 by Austin Appleby: a permutation in which every input bit reaches
// every output bit.
inline std::uint64_t fmix64(std::uint64_t value) {
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
    return value ^ (value >> 33);
}

// XXH64, the 64-bit hash designed by Yann Collet (xxHash specification, version 0.1.1). Reads about
// 10 GB/s with one thread.
std::uint64_t xxh64(const void* data, std::size_t length, std::uint64_t seed = 0);

// The same, with the seed 0, of bytes that come in pieces.
class Xxh64 {
  public:
    Xxh64();
    void add(const void* data, std::size_t length);
    std::uint64_t value() const;

  private:
    std::array<std::uint64_t, 4> lanes_;
    std::array<unsigned char, 32> rest_{};  // its first length_ % 32 bytes count
    std::uint64_t length_ = 0;
};

// The steps of which the hash consists.
namespace xxh64_steps {

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

inline std::uint64_t mix(std::uint64_t lane, std::uint64_t input) {
    return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

inline std::uint64_t add_8_bytes(std::uint64_t hash, const unsigned char* at) {
    return std::rotl(hash ^ mix(0, read<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
}

inline std::uint64_t add_4_bytes(std::uint64_t hash, const unsigned char* at) {
    return std::rotl(hash ^ (read<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
}

inline std::uint64_t add_byte(std::uint64_t hash, unsigned char byte) {
    return std::rotl(hash ^ (byte * kPrime5), 11) * kPrime1;
}

inline std::uint64_t finish(std::uint64_t hash) {
    hash = (hash ^ (hash >> 33)) * kPrime2;
    hash = (hash ^ (hash >> 29)) * kPrime3;
    return hash ^ (hash >> 32);
}

}  // namespace xxh64_steps

// The same of fewer than 16 bytes, where 16 can be read. It takes every step and keeps those that
// count, because branches on the lengths of words are guessed wrongly, which costs more.
inline std::uint64_t xxh64_short(const unsigned char* at, std::size_t length) {
    using namespace xxh64_steps;
    std::uint64_t hash = kPrime5 + length;
    const auto keep_if = [&hash](bool counts, std::uint64_t next) {
        hash ^= (hash ^ next) & (std::uint64_t{0} - counts);
    };
    keep_if((length & 8) != 0, add_8_bytes(hash, at));
    at += length & 8;
    keep_if((length & 4) != 0, add_4_bytes(hash, at));
    at += length & 4;
    for (std::size_t index = 0; index < 3; ++index)
        keep_if((length & 3) > index, add_byte(hash, at[index]));
    return finish(hash);
}

// The same of kLength bytes, fewer than 32, without a branch or a byte read beyond them.
template <std::size_t kLength>
std::uint64_t xxh64_of_length(const unsigned char* at) {
    using namespace xxh64_steps;
    static_assert(kLength < 32);
    std::uint64_t hash = kPrime5 + kLength;
    for (std::size_t eight = 0; eight < kLength / 8; ++eight)
        hash = add_8_bytes(hash, at + 8 * eight);
    if constexpr ((kLength & 4) != 0)
        hash = add_4_bytes(hash, at + (kLength & ~std::size_t{7}));
    for (std::size_t byte = kLength & ~std::size_t{3}; byte < kLength; ++byte)
        hash = add_byte(hash, at[byte]);
    return finish(hash);
}

}  // namespace lookalike::bits
