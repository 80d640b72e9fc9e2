#include "sign/weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

constexpr double kRarityUnits = 1 << 16;
constexpr std::size_t kPlacesPerFeature = 8;
constexpr std::size_t kFewestPlaces = std::size_t{1} << 16, kMostPlaces = std::size_t{1} << 31;

}  // namespace

double rarity(std::uint64_t documents, std::uint64_t all) {
    if (all == 0)
        return 0;
    const double times = static_cast<double>(all) / static_cast<double>(std::min(documents, all));
    return std::nearbyint(std::log(times) * kRarityUnits) / kRarityUnits;
}

RepeatedFeatures::RepeatedFeatures(std::size_t expected)
    : marks_(std::bit_ceil(std::clamp(std::min(expected, kMostPlaces) * kPlacesPerFeature,
                                      kFewestPlaces, kMostPlaces)) /
             32) {}

void RepeatedFeatures::observe(const Source& source, std::size_t threads,
                               const bits::Checkpoint& checkpoint) {
    per_document(source.size(), {threads, checkpoint}, Reader{},
                 [&](Reader& reader, std::size_t document) {
                     const auto& features = reader.read(source, document).features;
                     prefetch(features);
                     for (const std::uint64_t feature : features)
                         mark(feature);
                 });
}

void Vocabulary::observe(const Source& source, const RepeatedFeatures* repeated,
                         std::size_t threads, const bits::Checkpoint& checkpoint) {
    struct Worker {
        text::Scratch scratch;
        Bag bag;
        DistinctFeatures distinct;
        text::HashMap<Counts> found;
        std::uint64_t occurrences = 0;
    };
    std::vector<Worker> workers(threads);
    const auto count = [&](std::size_t at, std::size_t begin, std::size_t end) {
        Worker& worker = workers[at];
        for (std::size_t document = begin; document < end; ++document) {
            source.read(document, worker.scratch, worker.bag);
            worker.distinct.fill(worker.bag);
            if (repeated != nullptr)
                repeated->prefetch(worker.distinct.features);
            for (std::size_t index = 0; index < worker.distinct.features.size(); ++index) {
                // Ready-made weights need not be whole; occurrences are.
                const auto times = static_cast<std::uint64_t>(
                    std::max(1.0, std::nearbyint(std::abs(worker.distinct.counts[index]))));
                if (repeated != nullptr && !repeated->repeated(worker.distinct.features[index])) {
                    worker.occurrences += times;
                    continue;
                }
                Counts& counts = worker.found[worker.distinct.features[index]];
                ++counts.documents;
                counts.occurrences += times;
                worker.occurrences += times;
            }
        }
    };
    bits::share_out_runs(source.size(), kDocumentsPerTask, threads, checkpoint, count);
    totals_.documents += source.size();
    for (Worker& worker : workers) {
        totals_.occurrences += worker.occurrences;
        reserve(worker.found.size());
        worker.found.each([&](std::uint64_t feature, Counts counts) { add(feature, counts); });
        worker.found.clear();
    }
    forget_rare();
}

void Vocabulary::add(std::uint64_t feature, Counts counts) {
    Counts& known = features_[feature];
    known.documents += counts.documents;
    known.occurrences += counts.occurrences;
}

void Vocabulary::add_totals(Counts totals, Counts forgotten) {
    totals_.documents += totals.documents;
    totals_.occurrences += totals.occurrences;
    forgotten_.documents = std::max(forgotten_.documents, forgotten.documents);
    forgotten_.occurrences = std::max(forgotten_.occurrences, forgotten.occurrences);
}

void Vocabulary::forget_rare() {
    if (features_.size() <= most_)
        return;
    // The smallest number of documents such that those with more are few enough.
    std::vector<std::uint64_t> documents;
    documents.reserve(features_.size());
    each([&](std::uint64_t, Counts counts) { documents.push_back(counts.documents); });
    const auto first_kept = documents.end() - static_cast<std::ptrdiff_t>(most_ / 2);
    std::nth_element(documents.begin(), first_kept - 1, documents.end());
    const std::uint64_t threshold = *(first_kept - 1);

    text::HashMap<Counts> kept;
    kept.reserve(most_ / 2);
    each([&](std::uint64_t feature, Counts counts) {
        if (counts.documents > threshold)
            kept[feature] = counts;
        else
            add_totals({}, counts);
    });
    features_ = std::move(kept);
}

Vocabulary::Counts Vocabulary::counts(std::uint64_t feature) const {
    if (const Counts* known = features_.find(feature))
        return *known;
    return {std::max<std::uint64_t>(1, forgotten_.documents),
            std::max<std::uint64_t>(1, forgotten_.occurrences)};
}

void DistinctFeatures::fill(const Bag& bag) {
    features.clear();
    counts.clear();
    ends.clear();
    const std::size_t size = std::bit_ceil(2 * bag.features.size() + 2);
    slots_.assign(size, 0);
    for (std::size_t index = 0; index < bag.features.size(); ++index) {
        while (ends.size() < bag.runs.size() && bag.runs[ends.size()].end == index)
            ends.push_back(features.size());
        const std::uint64_t feature = bag.features[index];
        std::size_t at = text::place_in_table(feature, size);
        while (slots_[at] != 0 && features[slots_[at] - 1] != feature)
            at = (at + 1) & (size - 1);
        if (slots_[at] == 0) {
            features.push_back(feature);
            counts.push_back(0);
            slots_[at] = static_cast<std::uint32_t>(features.size());
        }
        counts[slots_[at] - 1] += bag.weights.empty() ? 1 : bag.weights[index];
    }
    ends.resize(bag.runs.size(), features.size());
}

double Weigher::weight(std::uint64_t feature, double count, double total) const {
    if (count < 0)
        return -weight(feature, -count, total);
    if (vocabulary_ != nullptr && vocabulary_->is_common(feature))
        return 0;
    switch (kind_) {
        case WeightKind::uniform:
            return 1;
        case WeightKind::count:
            return count;
        case WeightKind::log_count:
            return std::log1p(count);
        case WeightKind::tfidf: {
            const auto known = static_cast<double>(vocabulary_->counts(feature).documents);
            const auto documents = static_cast<double>(vocabulary_->totals().documents);
            return count * (1 + std::log((1 + documents) / (1 + std::min(known, documents))));
        }
        case WeightKind::idf:
            return rarity(vocabulary_->counts(feature).documents, vocabulary_->totals().documents);
        case WeightKind::log_likelihood: {
            const auto known = static_cast<double>(vocabulary_->counts(feature).occurrences);
            const auto occurrences = static_cast<double>(vocabulary_->totals().occurrences);
            const double ratio = (count / total) / (known / std::max(1.0, occurrences));
            return count > 0.5 && ratio > 1 ? (count - 0.5) * std::log(ratio) : 0;
        }
    }
    return 0;
}

void Weigher::weigh(const Bag& bag, std::vector<std::uint64_t>& features,
                    std::vector<double>& weights) {
    features.clear();
    weights.clear();
    distinct_.fill(bag);
    double total = 0;
    for (const double count : distinct_.counts)
        total += std::abs(count);
    std::size_t run = 0;
    for (std::size_t index = 0; index < distinct_.features.size(); ++index) {
        while (run < bag.runs.size() && distinct_.ends[run] == index)
            ++run;
        const double value = weight(distinct_.features[index], distinct_.counts[index], total) *
                             (run < bag.runs.size() ? bag.runs[run].factor : 1);
        if (value != 0) {
            features.push_back(distinct_.features[index]);
            weights.push_back(value);
        }
    }
}

void Weigher::weigh(const Bag& bag, WeightedFeatures& out) {
    weigh(bag, out.features, weights_);
    double sum = 0;
    bool whole = true;
    for (const double value : weights_) {
        sum += std::abs(value);
        whole = whole && value == std::nearbyint(value);
    }
    const int exponent = sum == 0 || (whole && sum < 1 << 30) ? 0 : 29 - std::ilogb(sum);
    out.weights.resize(weights_.size());
    double squares = 0;
    for (std::size_t index = 0; index < weights_.size(); ++index) {
        const double units = std::nearbyint(std::ldexp(weights_[index], exponent));
        out.weights[index] = static_cast<std::int32_t>(units);
        squares += units * units;
    }
    out.norm = std::sqrt(squares);
}

}  // namespace lookalike::sign
