#include "passages/windows.hpp"

#include "bits/hash.hpp"

namespace lookalike::passages {

std::vector<std::uint64_t> window_hashes(std::span<const Word> text, std::size_t words) {
    constexpr std::uint64_t kBase = 0x9fb21c651e98df25u;  // odd; otherwise arbitrary
    std::vector<std::uint64_t> hashes;
    if (text.size() < words)
        return hashes;
    hashes.reserve(text.size() - words + 1);
    std::uint64_t sum = 0, leaving = 1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        sum = sum * kBase + bits::fmix64(text[at] + 1);
        if (at < words)
            leaving *= kBase;
        else
            sum -= bits::fmix64(text[at - words] + 1) * leaving;
        if (at + 1 >= words)
            hashes.push_back(bits::fmix64(sum));
    }
    return hashes;
}

std::vector<std::size_t> sampled(std::span<const std::uint64_t> hashes, std::size_t window) {
    std::vector<std::size_t> places;
    std::size_t least = 0;
    for (std::size_t end = 1; end <= hashes.size(); ++end) {
        const std::size_t begin = end >= window ? end - window : 0;
        if (least < begin) {
            least = begin;
            for (std::size_t at = begin + 1; at < end; ++at)
                if (hashes[at] <= hashes[least])
                    least = at;
        } else if (hashes[end - 1] <= hashes[least]) {
            least = end - 1;
        }
        if (end >= window && (places.empty() || places.back() != least))
            places.push_back(least);
    }
    return places;
}

}  // namespace lookalike::passages
