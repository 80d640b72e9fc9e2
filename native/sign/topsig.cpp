#include <cmath>

#include "bits/hash.hpp"
#include "sign/document_parts.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

// A stream of random numbers that belongs to one feature (SplitMix64 by Steele, Lea and Flood).
class FeatureStream {
  public:
    FeatureStream(std::uint64_t feature, std::uint64_t seed)
        : state_(feature ^ bits::fmix64(seed + kStep)) {}

    std::uint64_t next() {
        state_ += kStep;
        std::uint64_t value = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
        value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
        return value ^ (value >> 31);
    }

  private:
    static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
    std::uint64_t state_;
};

// Adds or subtracts `weight` in one of each `density` positions. Groups are taken in pairs, whose
// signs are opposite; the last group may be cut short, and then has a position only by chance.
void add_ternary(std::uint64_t feature, std::uint64_t seed, std::int32_t weight,
                 std::size_t density, std::vector<std::int32_t>& sums) {
    FeatureStream stream(feature, seed);
    for (std::size_t group = 0; group < sums.size(); group += 2 * density) {
        const std::uint64_t random = stream.next();
        const std::int32_t signed_weight = (random & 1) != 0 ? weight : -weight;
        const std::size_t first = group + (((random >> 1 & 0x7fffffff) * density) >> 31);
        const std::size_t second = group + density + (((random >> 32) * density) >> 32);
        if (first < sums.size())
            sums[first] += signed_weight;
        if (second < sums.size())
            sums[second] -= signed_weight;
    }
}

}  // namespace

void topsig(const Source& source, WeightKind kind, const Vocabulary* vocabulary, std::size_t bytes,
            std::size_t density, std::uint64_t seed, std::size_t terms_per_part, Work work,
            std::vector<std::int64_t>& parts, std::vector<std::uint8_t>& signatures,
            std::vector<std::uint8_t>* masks, float* sums) {
    struct State {
        Reader reader;
        Bag part;
        Weigher weigher;
        WeightedFeatures weighted;
        std::vector<std::int32_t> sums;
    };
    std::vector<std::vector<std::uint8_t>> rows(source.size());
    std::vector<std::vector<std::uint8_t>> touched(masks == nullptr ? 0 : source.size());
    const double spread = std::sqrt(static_cast<double>(density));
    const State initial{{}, {}, Weigher(kind, vocabulary), {}, {}};
    per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        const Bag& bag = state.reader.read(source, document);
        const std::size_t terms = bag.features.size();
        const std::size_t count =
            terms_per_part == 0 || terms == 0 ? 1 : (terms + terms_per_part - 1) / terms_per_part;
        rows[document].assign(count * bytes, 0);
        DocumentParts document_parts(bag, count);
        if (masks != nullptr)
            touched[document].assign(count * bytes, 0);
        for (std::size_t index = 0; index < count; ++index) {
            document_parts.next(state.part);
            state.weigher.weigh(state.part, state.weighted);
            state.sums.assign(8 * bytes, 0);
            for (std::size_t term = 0; term < state.weighted.features.size(); ++term)
                add_ternary(state.weighted.features[term], seed, state.weighted.weights[term],
                            density, state.sums);
            std::uint8_t* const row = rows[document].data() + index * bytes;
            for (std::size_t bit = 0; bit < 8 * bytes; ++bit)
                row[bit / 8] |= static_cast<std::uint8_t>((state.sums[bit] > 0 ? 1 : 0) << bit % 8);
            if (masks != nullptr) {
                std::uint8_t* const mask = touched[document].data() + index * bytes;
                for (std::size_t bit = 0; bit < 8 * bytes; ++bit)
                    mask[bit / 8] |=
                        static_cast<std::uint8_t>((state.sums[bit] != 0 ? 1 : 0) << bit % 8);
            }
            if (sums == nullptr)
                continue;
            const double norm = state.weighted.norm;
            for (std::size_t bit = 0; bit < 8 * bytes; ++bit)
                sums[document * 8 * bytes + bit] =
                    norm == 0
                        ? 0.0f
                        : static_cast<float>(spread * static_cast<double>(state.sums[bit]) / norm);
        }
    });
    for (auto& row : rows) {
        parts.push_back(static_cast<std::int64_t>(row.size() / bytes));
        signatures.insert(signatures.end(), row.begin(), row.end());
        row = {};
    }
    for (const auto& row : touched)
        masks->insert(masks->end(), row.begin(), row.end());
}

}  // namespace lookalike::sign
