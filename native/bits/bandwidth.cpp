#include "bits/bandwidth.hpp"

#include <algorithm>
#include <atomic>

#include "bits/kernels.hpp"
#include "bits/threads.hpp"

namespace lookalike::bits {

std::uint64_t read_all(const std::uint8_t* data, std::size_t bytes, std::size_t threads) {
    constexpr std::size_t kChunkLines = 1 << 14;
    const std::size_t lines = bytes / 64;
    const auto read = selected().read;
    std::atomic<std::uint64_t> total{0};
    share_out((lines + kChunkLines - 1) / kChunkLines, threads, [] {},
              [&](std::size_t, std::size_t chunk) {
                  const std::size_t from = chunk * kChunkLines;
                  total += read(data + from * 64, std::min(kChunkLines, lines - from));
              });
    return total;
}

}  // namespace lookalike::bits
