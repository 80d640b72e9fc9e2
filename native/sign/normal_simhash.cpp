#include "bits/hash.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t kStream = 0x6e6f726d616c7321u;  // other words than those of `simhash`
constexpr std::size_t kPerWord = 4;
constexpr std::size_t kNormals = std::size_t{1} << 15;

// Adds `weight` times the feature's normal numbers, four from each 64 random bits.
void add_normals(std::uint64_t feature, std::int32_t weight,
                 const std::vector<std::uint64_t>& words, const std::int16_t* normals,
                 std::int64_t* sums) {
    for (const std::uint64_t word : words) {
        const std::uint64_t random = bits::fmix64(feature ^ word);
        sums[0] += std::int64_t{weight} * normals[random & 0xffff];
        sums[1] += std::int64_t{weight} * normals[random >> 16 & 0xffff];
        sums[2] += std::int64_t{weight} * normals[random >> 32 & 0xffff];
        sums[3] += std::int64_t{weight} * normals[random >> 48];
        sums += kPerWord;
    }
}

}  // namespace

void normal_simhash(const Source& source, WeightKind kind, const Vocabulary* vocabulary,
                    std::size_t bytes, std::uint64_t seed, const std::int16_t* normals, double unit,
                    Work work, std::uint8_t* signatures, float* sums) {
    struct State {
        Reader reader;
        Weigher weigher;
        WeightedFeatures weighted;
        std::vector<std::int64_t> sums;  // weights are below 2^30 together, normals below 2^15
    };
    const std::size_t bits = 8 * bytes;
    std::vector<std::uint64_t> words(bits / kPerWord);
    for (std::size_t word = 0; word < words.size(); ++word)
        words[word] = bits::fmix64(bits::fmix64(seed + kStream) + (word + 1) * kStep);
    std::vector<std::int16_t> both(normals, normals + kNormals);  // and those below 0
    for (std::size_t index = 0; index < kNormals; ++index)
        both.push_back(static_cast<std::int16_t>(-normals[index]));
    const State initial{{}, Weigher(kind, vocabulary), {}, {}};
    per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        state.weigher.weigh(state.reader.read(source, document), state.weighted);
        const WeightedFeatures& weighted = state.weighted;
        state.sums.assign(bits, 0);
        for (std::size_t index = 0; index < weighted.features.size(); ++index)
            add_normals(weighted.features[index], weighted.weights[index], words, both.data(),
                        state.sums.data());
        std::uint8_t* const row = signatures + document * bytes;
        std::fill(row, row + bytes, std::uint8_t{0});
        for (std::size_t bit = 0; bit < bits; ++bit) {
            row[bit / 8] |= static_cast<std::uint8_t>((state.sums[bit] >= 0 ? 1 : 0) << (bit % 8));
            if (sums != nullptr)
                sums[document * bits + bit] =
                    weighted.norm == 0 ? 0.0f
                                       : static_cast<float>(static_cast<double>(state.sums[bit]) /
                                                            (weighted.norm * unit));
        }
    });
}

}  // namespace lookalike::sign
