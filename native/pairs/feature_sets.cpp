#include "pairs/feature_sets.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scan/scan.hpp"
#include "sign/per_document.hpp"

namespace lookalike::search {

namespace {

constexpr int kPartitionBits = 4;
constexpr std::size_t kPartitions = std::size_t{1} << kPartitionBits;
constexpr std::uint32_t kNone = UINT32_MAX, kWeightless = UINT32_MAX - 1;

// Whether a number is that of a stored element.
constexpr bool is_stored(std::uint32_t number) {
    return number < kWeightless;
}
constexpr std::size_t kSetsPerTask = 256;

// Hashes become numbers in order of first occurrence, with how often each came.
class Numbering {
  public:
    std::uint32_t operator()(std::uint64_t key) {
        if (2 * keys_.size() >= slots_.size())
            grow();
        const std::size_t at = place(key);
        if (slots_[at] == kNone) {
            slots_[at] = static_cast<std::uint32_t>(keys_.size());
            keys_.push_back(key);
            times.push_back(0);
        }
        ++times[slots_[at]];
        return slots_[at];
    }

    std::vector<std::uint32_t> times;

  private:
    std::size_t place(std::uint64_t key) const {
        std::size_t at = text::place_in_table(key, slots_.size());
        while (slots_[at] != kNone && keys_[slots_[at]] != key)
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    void grow() {
        slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), kNone);
        for (std::size_t number = 0; number < keys_.size(); ++number)
            slots_[place(keys_[number])] = static_cast<std::uint32_t>(number);
    }

    std::vector<std::uint32_t> slots_;
    std::vector<std::uint64_t> keys_;
};

// Neighboring keys of a caller go to different partitions; the table of one mixes otherwise.
std::size_t partition_of(std::uint64_t feature) {
    return (feature * 0xd6e8feb86659fd93u) >> (64 - kPartitionBits);
}

// Calls work_on(first, end) for runs of `count` things.
template <class WorkOn>
void in_runs(std::size_t count, std::size_t threads, const bits::Checkpoint& checkpoint,
             WorkOn work_on) {
    const std::size_t tasks = (count + kSetsPerTask - 1) / kSetsPerTask;
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        work_on(task * kSetsPerTask, std::min(count, (task + 1) * kSetsPerTask));
    });
}

}  // namespace

// The final number of each feature: that of partition p with the provisional number n is
// of[p][n], kNone for one that is in one document only, or kWeightless for one that is in too many.
struct FeatureSets::Numbers {
    std::vector<std::vector<std::uint32_t>> of;
    std::size_t count = 0;
    std::vector<double> weights;  // by frequency, if these differ
    double weight_alone = 0;      // of an element that is in one document only

    std::uint32_t at(std::uint64_t provisional) const {
        return of[provisional >> 32][provisional & UINT32_MAX];
    }
};

FeatureSets::FeatureSets(sign::WeightKind kind, std::size_t expected, std::size_t most,
                         std::uint64_t common)
    : kind_(kind),
      most_(most),
      frequency_weights_{kind == sign::WeightKind::idf, common},
      repeated_(expected) {}

void FeatureSets::observe(const sign::Source& source, sign::Work work) {
    repeated_.observe(source, work.threads, work.checkpoint);
}

void FeatureSets::add(const sign::Source& source, sign::Work work) {
    struct State {
        sign::Reader reader;
        sign::Weigher weigher;
        sign::Bag shared;
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
    };
    std::vector<Document> found(source.size());
    const auto kind = weighted() ? sign::WeightKind::count : sign::WeightKind::uniform;
    const State initial{{}, sign::Weigher(kind, nullptr), {}, {}, {}};
    sign::per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        const sign::Bag& bag = state.reader.read(source, document);
        repeated_.prefetch(bag.features);
        Document& kept = found[document];
        double squares = 0;
        const auto count = [&](double weight) {
            squares += weight * weight;
            ++kept.size;
        };
        // What did not come again is different from all else, here too.
        state.shared.clear();
        const bool alone = bag.counts_alone();
        std::size_t run = 0;
        for (std::size_t index = 0; index < bag.features.size(); ++index) {
            while (run < bag.runs.size() && bag.runs[run].end == index)
                ++run;
            const double given = (bag.weights.empty() ? 1 : bag.weights[index]) *
                                 (run < bag.runs.size() ? bag.runs[run].factor : 1);
            if (repeated_.repeated(bag.features[index])) {
                state.shared.features.push_back(bag.features[index]);
                if (!alone)
                    state.shared.weights.push_back(given);
            } else if (!weighted() || given > 0) {
                count(weighted() ? given : 1);
            }
        }
        state.weigher.weigh(state.shared, state.features, state.weights);
        for (const double weight : state.weights)
            count(weight);
        kept.features = state.features;
        if (weighted())
            kept.weights = state.weights;
        kept.length = std::sqrt(squares);
    });
    for (Document& document : found) {
        features_.insert(features_.end(), document.features.begin(), document.features.end());
        weights_.insert(weights_.end(), document.weights.begin(), document.weights.end());
        offsets_.push_back(features_.size());
        sizes_.push_back(document.size);
        if (weighted())
            lengths_.push_back(document.length);
        document = {};
    }
    if (features_.size() > most_)
        throw TooManyResults();
}

FeatureSets::Numbers FeatureSets::number_features(std::size_t threads,
                                                  const bits::Checkpoint& checkpoint) {
    // Each worker goes through all features and takes those of a partition, by document, so that
    // numbers do not depend on the worker. Features are replaced by partition and number, the
    // features of one partition by one worker.
    std::vector<std::vector<std::uint32_t>> times(kPartitions);
    std::vector<std::uint8_t> partitions(features_.size());
    in_runs(sizes_.size(), threads, checkpoint, [&](std::size_t first, std::size_t end) {
        for (std::size_t at = offsets_[first]; at < offsets_[end]; ++at)
            partitions[at] = static_cast<std::uint8_t>(partition_of(features_[at]));
    });
    bits::share_out(kPartitions, threads, checkpoint, [&](std::size_t, std::size_t partition) {
        Numbering numbering;
        for (std::size_t at = 0; at < features_.size(); ++at)
            if (partitions[at] == partition)
                features_[at] = std::uint64_t{partition} << 32 | numbering(features_[at]);
        times[partition] = std::move(numbering.times);
    });
    // Counting sort by frequency; features of equal frequency in the order of their numbers. Those
    // that weigh nothing are the most frequent.
    const auto frequency_weight = [&](std::size_t frequency) {
        return frequency_weights_.weight(frequency, sizes_.size());
    };
    std::size_t most_frequent = sizes_.size();
    while (most_frequent > 1 && frequency_weight(most_frequent) <= 0)
        --most_frequent;
    std::vector<std::uint64_t> begins(sizes_.size() + 2);
    for (const auto& some : times)
        for (const std::uint32_t frequency : some)
            if (frequency > 1 && frequency <= most_frequent)
                ++begins[frequency + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    Numbers numbers{std::move(times), begins.back(), {}, frequency_weight(1)};
    if (by_frequency())
        for (std::size_t frequency = 2; frequency <= most_frequent; ++frequency)
            numbers.weights.resize(begins[frequency + 1], frequency_weight(frequency));
    for (auto& some : numbers.of)
        for (std::uint32_t& frequency : some)
            frequency = frequency <= 1 ? kNone
                        : frequency > most_frequent
                            ? kWeightless
                            : static_cast<std::uint32_t>(begins[frequency]++);
    return numbers;
}

// The weight of each document by the frequencies of its elements. Those that weigh nothing no
// longer count in sizes, which are 0 where nothing is left.
std::vector<double> FeatureSets::weigh_documents(const Numbers& numbers, std::size_t threads,
                                                 const bits::Checkpoint& checkpoint) {
    std::vector<double> totals(sizes_.size());
    in_runs(sizes_.size(), threads, checkpoint, [&](std::size_t first, std::size_t end) {
        for (std::size_t document = first; document < end; ++document) {
            std::uint32_t stored = 0, weightless = 0;
            for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at) {
                const std::uint32_t number = numbers.at(features_[at]);
                stored += is_stored(number);
                weightless += number == kWeightless;
                totals[document] += is_stored(number) ? numbers.weights[number] : 0;
            }
            totals[document] += numbers.weight_alone * (sizes_[document] - weightless - stored);
            sizes_[document] = totals[document] > 0 ? sizes_[document] - weightless : 0;
        }
    });
    return totals;
}

Sets FeatureSets::finish(std::size_t threads, const bits::Checkpoint& checkpoint) {
    repeated_.release();
    const Numbers numbers = number_features(threads, checkpoint);
    const std::size_t count = sizes_.size();
    Sets sets;
    sets.numbers = numbers.count;
    sets.documents.resize(count);
    std::iota(sets.documents.begin(), sets.documents.end(), 0u);
    std::vector<double> totals;
    if (by_frequency()) {
        totals = weigh_documents(numbers, threads, checkpoint);
        sets.element_weights = numbers.weights;
        sets.totals.resize(count);
        std::stable_sort(sets.documents.begin(), sets.documents.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return totals[a] < totals[b]; });
    } else {
        std::stable_sort(sets.documents.begin(), sets.documents.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return sizes_[a] < sizes_[b]; });
    }
    sets.sizes.resize(count);
    sets.offsets.resize(count + 1);
    in_runs(count, threads, checkpoint, [&](std::size_t first, std::size_t end) {
        for (std::size_t set = first; set < end; ++set) {
            const std::uint32_t document = sets.documents[set];
            sets.sizes[set] = sizes_[document];
            if (by_frequency())
                sets.totals[set] = totals[document];
            for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at)
                sets.offsets[set + 1] += is_stored(numbers.at(features_[at]));
        }
    });
    std::partial_sum(sets.offsets.begin(), sets.offsets.end(), sets.offsets.begin());
    sets.elements.resize(sets.offsets.back());
    if (weighted()) {
        sets.weights.resize(sets.offsets.back());
        sets.lengths.resize(count);
    }
    in_runs(count, threads, checkpoint, [&](std::size_t first, std::size_t end) {
        std::vector<std::pair<std::uint32_t, double>> both;
        for (std::size_t set = first; set < end; ++set) {
            const std::uint32_t document = sets.documents[set];
            std::uint64_t to = sets.offsets[set];
            both.clear();
            for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at) {
                const std::uint32_t number = numbers.at(features_[at]);
                if (!is_stored(number))
                    continue;
                if (weighted())
                    both.emplace_back(number, weights_[at]);
                else
                    sets.elements[to++] = number;
            }
            if (!weighted()) {
                std::sort(sets.elements.begin() + static_cast<std::ptrdiff_t>(sets.offsets[set]),
                          sets.elements.begin() + static_cast<std::ptrdiff_t>(to));
                continue;
            }
            sets.lengths[set] = lengths_[document];
            std::sort(both.begin(), both.end());
            for (const auto& [number, weight] : both) {
                sets.elements[to] = number;
                sets.weights[to++] = weight;
            }
        }
    });
    features_ = {};
    weights_ = {};
    return sets;
}

}  // namespace lookalike::search
