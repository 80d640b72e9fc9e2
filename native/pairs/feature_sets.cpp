#include "pairs/feature_sets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "scan/scan.hpp"
#include "sign/per_document.hpp"

namespace lookalike::search {

namespace {

constexpr std::size_t kPlacesPerFeature = 8;
constexpr std::size_t kFewestPlaces = std::size_t{1} << 16, kMostPlaces = std::size_t{1} << 31;
constexpr int kPartitionBits = 4;
constexpr std::size_t kPartitions = std::size_t{1} << kPartitionBits;
constexpr std::uint32_t kNone = UINT32_MAX;
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
// of[p][n], or kNone for one that is in one document only.
struct FeatureSets::Numbers {
    std::vector<std::vector<std::uint32_t>> of;
    std::size_t count = 0;

    std::uint32_t at(std::uint64_t provisional) const {
        return of[provisional >> 32][provisional & UINT32_MAX];
    }
};

FeatureSets::FeatureSets(sign::WeightKind kind, std::size_t expected, std::size_t most)
    : kind_(kind), most_(most) {
    const std::size_t places = std::bit_ceil(std::clamp(
        std::min(expected, kMostPlaces) * kPlacesPerFeature, kFewestPlaces, kMostPlaces));
    marks_ = std::vector<std::atomic<std::uint64_t>>(places / 32);
}

void FeatureSets::observe(const sign::Source& source, sign::Work work) {
    // What one document has twice counts as repeated too; `finish` knows better.
    sign::per_document(source.size(), work, sign::Reader{},
                       [&](sign::Reader& reader, std::size_t document) {
                           const auto& features = reader.read(source, document).features;
                           prefetch(features);
                           for (const std::uint64_t feature : features)
                               mark(feature);
                       });
}

void FeatureSets::mark(std::uint64_t feature) {
    const std::size_t at = place(feature);
    std::atomic<std::uint64_t>& marks = marks_[at / 32];
    const std::uint64_t once = std::uint64_t{1} << (2 * (at % 32)), again = once << 1;
    if (marks.load(std::memory_order_relaxed) & again)
        return;
    if (marks.fetch_or(once, std::memory_order_relaxed) & once)
        marks.fetch_or(again, std::memory_order_relaxed);
}

bool FeatureSets::repeated(std::uint64_t feature) const {
    const std::size_t at = place(feature);
    return marks_[at / 32].load(std::memory_order_relaxed) >> (2 * (at % 32) + 1) & 1;
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
    const State initial{{}, sign::Weigher(kind_, nullptr), {}, {}, {}};
    sign::per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        const sign::Bag& bag = state.reader.read(source, document);
        prefetch(bag.features);
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
            if (repeated(bag.features[index])) {
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
    // Counting sort by frequency; features of equal frequency in the order of their numbers.
    std::vector<std::uint64_t> begins(sizes_.size() + 2);
    for (const auto& some : times)
        for (const std::uint32_t frequency : some)
            if (frequency > 1)
                ++begins[frequency + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    Numbers numbers{std::move(times), begins.back()};
    for (auto& some : numbers.of)
        for (std::uint32_t& frequency : some)
            frequency = frequency > 1 ? static_cast<std::uint32_t>(begins[frequency]++) : kNone;
    return numbers;
}

Sets FeatureSets::finish(std::size_t threads, const bits::Checkpoint& checkpoint) {
    decltype(marks_)().swap(marks_);
    const Numbers numbers = number_features(threads, checkpoint);
    const std::size_t count = sizes_.size();
    Sets sets;
    sets.numbers = numbers.count;
    sets.documents.resize(count);
    std::iota(sets.documents.begin(), sets.documents.end(), 0u);
    std::stable_sort(sets.documents.begin(), sets.documents.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return sizes_[a] < sizes_[b]; });
    sets.sizes.resize(count);
    sets.offsets.resize(count + 1);
    in_runs(count, threads, checkpoint, [&](std::size_t first, std::size_t end) {
        for (std::size_t set = first; set < end; ++set) {
            const std::uint32_t document = sets.documents[set];
            sets.sizes[set] = sizes_[document];
            for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at)
                sets.offsets[set + 1] += numbers.at(features_[at]) != kNone;
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
                if (number == kNone)
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
