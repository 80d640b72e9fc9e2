#include "bits/memory_speed.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "bits/hash.hpp"
#include "bits/kernels.hpp"
#include "bits/threads.hpp"

namespace lookalike::bits {

std::uint64_t read_all(const std::uint8_t* data, std::size_t bytes, std::size_t threads) {
    constexpr std::size_t kChunkLines = 1 << 14;
    const std::size_t lines = bytes / 64;
    const auto read = chosen<KernelLoops>().read;
    std::atomic<std::uint64_t> total{0};
    share_out_runs(
        lines, kChunkLines, threads, [] {},
        [&](std::size_t, std::size_t begin, std::size_t end) {
            total += read(data + begin * 64, end - begin);
        });
    return total;
}

std::uint64_t read_at_random(const std::uint64_t* words, std::size_t count, std::size_t first,
                             std::size_t reads, std::size_t ahead) {
    const std::size_t mask = std::bit_floor(count) - 1;
    std::uint64_t sum = 0;
    if (ahead == 0) {
        for (std::size_t read = first; read < first + reads; ++read)
            sum += words[fmix64(sum + read) & mask] + 1;
        return sum;
    }
    for (std::size_t read = first; read < first + reads; ++read) {
        __builtin_prefetch(words + (fmix64(read + ahead) & mask));
        sum += words[fmix64(read) & mask];
    }
    return sum;
}

}  // namespace lookalike::bits
