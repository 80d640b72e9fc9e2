// Bits out of the middle of a signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lookalike::search {

// Bits `from` and following, at least 57 of them or the rest of the signature, in the low bits of
// the result; never reads outside of the signature's `bytes`.
inline std::uint64_t bits_from(const std::uint8_t* signature, std::size_t bytes, std::size_t from) {
    const std::size_t byte = from / 8;
    std::uint64_t word = 0;
    if (bytes >= 8) {
        const std::size_t start = byte + 8 <= bytes ? byte : bytes - 8;
        std::memcpy(&word, signature + start, 8);
        return word >> (from - 8 * start);
    }
    for (std::size_t at = byte; at < bytes; ++at)
        word |= std::uint64_t{signature[at]} << 8 * (at - byte);
    return word >> from % 8;
}

}  // namespace lookalike::search
