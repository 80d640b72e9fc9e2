#include <cmath>
#include <numeric>

#include "bits/hash.hpp"
#include "sign/loops.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;

// The 64 bits of a feature's hash that decide over counters 64 * word and following.
std::uint64_t hash_word(std::uint64_t feature, std::uint64_t seed, std::size_t word) {
    if (seed == 0 && word == 0)
        return feature;
    return bits::fmix64(feature ^ bits::fmix64(seed * kStep + word + 1));
}

// Adding each occurrence is the same as adding each feature's count, and quicker; without weights,
// each counts 1. Factors of kinds have to be whole 256ths, and few enough, so that nothing is
// rounded here or by a `Weigher`: then sums have the same signs in both units. Returns false where
// that is not so.
bool weigh_occurrences(const Bag& bag, WeightedFeatures& weighted) {
    if (!bag.weights.empty())
        return false;
    weighted.features.assign(bag.features.begin(), bag.features.end());
    weighted.weights.clear();
    if (bag.counts_alone())
        return true;
    weighted.weights.resize(bag.features.size());
    constexpr double kUnits = 256;
    double total = 0;
    std::size_t begin = 0;
    for (const Bag::Run& run : bag.runs) {
        const double weight = kUnits * run.factor;
        total += weight * static_cast<double>(run.end - begin);
        if (weight != std::nearbyint(weight) || total >= 1 << 30)
            return false;
        std::fill(weighted.weights.begin() + static_cast<std::ptrdiff_t>(begin),
                  weighted.weights.begin() + static_cast<std::ptrdiff_t>(run.end),
                  static_cast<std::int32_t>(weight));
        begin = run.end;
    }
    return true;
}

}  // namespace

void count_features(const Source& source, Work work, std::int64_t* counts) {
    per_document(source.size(), work, Reader{}, [&](Reader& reader, std::size_t document) {
        counts[document] = static_cast<std::int64_t>(reader.read(source, document).features.size());
    });
}

void count_distinct(const Source& source, Work work, std::int64_t* counts) {
    struct State {
        Reader reader;
        DistinctFeatures distinct;
    };
    per_document(source.size(), work, State{}, [&](State& state, std::size_t document) {
        state.distinct.fill(state.reader.read(source, document));
        counts[document] = static_cast<std::int64_t>(state.distinct.features.size());
    });
}

void total_weights(const Source& source, WeightKind kind, const Vocabulary* vocabulary, Work work,
                   double* totals) {
    struct State {
        Reader reader;
        Weigher weigher;
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
    };
    const State initial{{}, Weigher(kind, vocabulary), {}, {}};
    per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        state.weigher.weigh(state.reader.read(source, document), state.features, state.weights);
        totals[document] = std::accumulate(state.weights.begin(), state.weights.end(), 0.0);
    });
}

FeatureLists list_features(const Source& source, WeightKind kind, const Vocabulary* vocabulary,
                           Work work) {
    struct State {
        Reader reader;
        Weigher weigher;
    };
    struct Document {
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
    };
    std::vector<Document> found(source.size());
    const State initial{{}, Weigher(kind, vocabulary)};
    per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        Document& mine = found[document];
        state.weigher.weigh(state.reader.read(source, document), mine.features, mine.weights);
    });
    FeatureLists lists{{0}, {}, {}};
    for (Document& document : found) {
        lists.features.insert(lists.features.end(), document.features.begin(),
                              document.features.end());
        lists.weights.insert(lists.weights.end(), document.weights.begin(), document.weights.end());
        lists.offsets.push_back(static_cast<std::int64_t>(lists.features.size()));
        document = {};
    }
    return lists;
}

void simhash(const Source& source, WeightKind kind, const Vocabulary* vocabulary, std::size_t bytes,
             std::uint64_t seed, Work work, std::uint8_t* signatures, float* sums) {
    struct State {
        Reader reader;
        Weigher weigher;
        WeightedFeatures weighted;
        std::vector<std::uint64_t> words;
    };
    const Loops& loop = loops();
    const State initial{{}, Weigher(kind, vocabulary), {}, {}};
    per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        const Bag& bag = state.reader.read(source, document);
        WeightedFeatures& weighted = state.weighted;
        if (kind != WeightKind::count || sums != nullptr || !weigh_occurrences(bag, weighted))
            state.weigher.weigh(bag, weighted);
        const bool each_counts_1 = weighted.weights.empty();
        std::int64_t total =
            each_counts_1 ? static_cast<std::int64_t>(weighted.features.size()) : 0;
        for (const std::int32_t weight : weighted.weights)
            total += weight;

        std::uint8_t* const row = signatures + document * bytes;
        std::fill(row, row + bytes, std::uint8_t{0});
        for (std::size_t word = 0; 8 * word < bytes; ++word) {
            const std::vector<std::uint64_t>* words = &weighted.features;
            if (seed != 0 || word != 0) {
                state.words.resize(weighted.features.size());
                for (std::size_t index = 0; index < state.words.size(); ++index)
                    state.words[index] = hash_word(weighted.features[index], seed, word);
                words = &state.words;
            }
            std::int32_t positive[64] = {};
            if (each_counts_1)
                loop.count_where_set(words->data(), words->size(), positive);
            else
                loop.add_where_set(words->data(), weighted.weights.data(), words->size(), positive);
            const std::size_t bits = std::min<std::size_t>(64, 8 * bytes - 64 * word);
            for (std::size_t bit = 0; bit < bits; ++bit) {
                const std::int64_t sum = 2 * std::int64_t{positive[bit]} - total;
                const std::size_t at = 64 * word + bit;
                row[at / 8] |= static_cast<std::uint8_t>((sum >= 0 ? 1 : 0) << (at % 8));
                if (sums != nullptr)
                    sums[document * 8 * bytes + at] =
                        weighted.norm == 0
                            ? 0.0f
                            : static_cast<float>(static_cast<double>(sum) / weighted.norm);
            }
        }
    });
}

}  // namespace lookalike::sign
