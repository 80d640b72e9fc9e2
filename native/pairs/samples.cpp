#include "pairs/samples.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>
#include <utility>

#include "bits/hash.hpp"
#include "sign/per_document.hpp"

namespace lookalike::search {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr double kUnits = 1 << 16;  // of weights

}  // namespace

void Samples::observe(const sign::Source& source, sign::Work work) {
    if (weighted())
        return observe_weighted(source, work);
    struct State {
        sign::Reader reader;
        sign::DistinctFeatures distinct;
    };
    std::vector<std::vector<std::uint64_t>> samples(source.size());
    const std::size_t before = sizes_.size();
    sizes_.resize(before + source.size());
    sign::per_document(source.size(), work, State{}, [&](State& state, std::size_t document) {
        state.distinct.fill(state.reader.read(source, document));
        std::vector<std::uint64_t>& hashes = state.distinct.features;
        sizes_[before + document] = static_cast<std::uint32_t>(hashes.size());
        // Mixed, because a caller's features may be any numbers; still different for different
        // ones.
        for (std::uint64_t& hash : hashes)
            hash = bits::fmix64(hash);
        const std::size_t count = std::min(size_, hashes.size());
        const auto end = hashes.begin() + static_cast<std::ptrdiff_t>(count);
        std::nth_element(hashes.begin(), end, hashes.end());
        samples[document].assign(hashes.begin(), end);
    });
    for (const auto& sample : samples) {
        samples_.insert(samples_.end(), sample.begin(), sample.end());
        sample_begins_.push_back(samples_.size());
    }
}

void Samples::observe_weighted(const sign::Source& source, sign::Work work) {
    struct State {
        sign::Reader reader;
        sign::Weigher weigher;
        std::vector<std::uint64_t> features;
        std::vector<double> weights;
        std::vector<std::pair<std::uint64_t, double>> ordered;
    };
    std::vector<Sample> samples(source.size());
    const State initial{{}, sign::Weigher(kind_, vocabulary_), {}, {}, {}};
    sign::per_document(source.size(), work, initial, [&](State& state, std::size_t document) {
        state.weigher.weigh(state.reader.read(source, document), state.features, state.weights);
        state.ordered.clear();
        Sample& sample = samples[document];
        for (std::size_t at = 0; at < state.features.size(); ++at) {
            state.ordered.emplace_back(bits::fmix64(state.features[at]), state.weights[at]);
            sample.total += state.weights[at];
        }
        std::sort(state.ordered.begin(), state.ordered.end());
        draw(state.ordered, sample);
    });
    for (const Sample& sample : samples) {
        sizes_.push_back(static_cast<std::uint32_t>(sample.hashes.size()));
        totals_.push_back(sample.total);
        drawn_.push_back(sample.drawn);
        samples_.insert(samples_.end(), sample.hashes.begin(), sample.hashes.end());
        worths_.insert(worths_.end(), sample.worths.begin(), sample.worths.end());
        sample_begins_.push_back(samples_.size());
    }
}

// The sample of a document with these features by ascending hash. What is drawn depends on them
// alone.
void Samples::draw(std::span<const std::pair<std::uint64_t, double>> features,
                   Sample& sample) const {
    sample.drawn = features.size() >= size_;
    if (!sample.drawn) {
        for (const auto& [hash, weight] : features) {
            sample.hashes.push_back(hash);
            sample.worths.push_back(weight / sample.total * static_cast<double>(size_));
        }
        return;
    }
    std::uint64_t seed = 0;
    for (const auto& [hash, weight] : features)
        seed = bits::fmix64(seed ^ hash);
    const auto total = static_cast<std::uint64_t>(sample.total * kUnits);
    std::size_t at = 0;
    auto end = static_cast<std::uint64_t>(features[0].second * kUnits);
    for (std::size_t part = 0; part < size_; ++part) {
        // A number below 1 in steps of 2^-64, in the part of all weight that is this one's.
        const std::uint64_t drawn = bits::fmix64(seed + 0x9e3779b97f4a7c15u * (part + 1));
        const auto below = (static_cast<unsigned __int128>(part) << 64 | drawn) / size_;
        const auto place = static_cast<std::uint64_t>(below * total >> 64);
        while (place >= end)
            end += static_cast<std::uint64_t>(features[++at].second * kUnits);
        if (sample.hashes.empty() || sample.hashes.back() != features[at].first) {
            sample.hashes.push_back(features[at].first);
            sample.worths.push_back(0);
        }
        ++sample.worths.back();
    }
}

void Samples::order_by_size() {
    order_.resize(sizes_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return weighted() ? totals_[a] < totals_[b] : sizes_[a] < sizes_[b];
    });
    places_.resize(order_.size());
    for (std::uint32_t place = 0; place < order_.size(); ++place)
        places_[order_[place]] = place;
}

void Samples::index() {
    order_by_size();
    hashes_ = samples_;
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    slots_.assign(std::bit_ceil(std::max<std::size_t>(64, 2 * hashes_.size())), kNone);
    for (std::uint32_t number = 0; number < hashes_.size(); ++number) {
        std::size_t at = hashes_[number] & (slots_.size() - 1);
        while (slots_[at] != kNone)
            at = (at + 1) & (slots_.size() - 1);
        slots_[at] = number;
    }
    // By place, so that each list ascends.
    begins_.assign(hashes_.size() + 1, 0);
    for (const std::uint64_t hash : samples_)
        ++begins_[number_of(hash) + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    lists_.resize(samples_.size());
    list_worths_.resize(worths_.size());
    std::vector<std::uint64_t> to(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t place = 0; place < order_.size(); ++place) {
        const std::uint32_t document = order_[place];
        for (std::size_t at = sample_begins_[document]; at < sample_begins_[document + 1]; ++at) {
            const std::uint64_t entry = to[number_of(samples_[at])]++;
            lists_[entry] = place;
            if (weighted())
                list_worths_[entry] = worths_[at];
        }
    }
}

std::uint32_t Samples::number_of(std::uint64_t hash) const {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != kNone && hashes_[slots_[at]] != hash)
        at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
}

void Samples::look_up(const sign::Source& source, sign::Work work) {
    if (slots_.empty())
        index();
    std::vector<std::vector<std::uint32_t>> found(source.size());
    sign::per_document(
        source.size(), work, sign::Reader{}, [&](sign::Reader& reader, std::size_t document) {
            // Nearly all are in no sample: one slot is read, and that is not in the cache.
            constexpr std::size_t kAhead = 16;
            const auto& features = reader.read(source, document).features;
            std::uint64_t next[kAhead];
            std::vector<std::uint32_t>& numbers = found[document];
            for (std::size_t at = 0; at < features.size() + kAhead; ++at) {
                if (at >= kAhead)
                    if (const std::uint32_t number = number_of(next[at % kAhead]); number != kNone)
                        numbers.push_back(number);
                if (at < features.size()) {
                    next[at % kAhead] = bits::fmix64(features[at]);
                    __builtin_prefetch(&slots_[next[at % kAhead] & (slots_.size() - 1)]);
                }
            }
            std::sort(numbers.begin(), numbers.end());
            numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
            numbers.shrink_to_fit();
        });
    for (const auto& numbers : found) {
        found_.insert(found_.end(), numbers.begin(), numbers.end());
        offsets_.push_back(found_.size());
    }
}

void Samples::limit_large_groups(std::span<const double> needed) {
    limited_ = true;
    from_.assign(hashes_.size(), 0);
    doubtful_.assign(order_.size(), 0);
    std::vector<std::uint32_t> left(hashes_.size(), static_cast<std::uint32_t>(leaders_));
    for (std::size_t place = order_.size(); place-- > 0;) {
        const std::uint32_t document = order_[place];
        for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at) {
            const std::uint32_t number = found_[at];
            if (list(number).size() > largest_group_ && left[number] > 0 && --left[number] == 0)
                from_[number] = static_cast<std::uint32_t>(place);
        }
    }
    for (std::uint32_t number = 0; number < hashes_.size(); ++number)
        if (from_[number] > 0)
            for (std::uint64_t entry = begins_[number]; entry < begins_[number + 1]; ++entry)
                doubtful_[lists_[entry]] += weighted() ? list_worths_[entry] : 1;
    for (std::size_t place = 0; place < order_.size(); ++place)
        in_large_groups_ +=
            doubtful_[place] > 0 && doubtful_[place] >= needed[sample_size(order_[place])];
}

// The first place, in the order by weight, of a document that is not too light for a pair.
std::uint32_t Samples::first_partner(std::uint32_t place, double least_share) const {
    const double least = least_share * totals_[order_[place]];
    const auto first =
        std::partition_point(order_.begin(), order_.end(),
                             [&](std::uint32_t document) { return totals_[document] < least; });
    return static_cast<std::uint32_t>(first - order_.begin());
}

SampledPairs Samples::pairs(std::size_t begin, std::size_t end, std::span<const double> needed,
                            std::size_t first_new, double least_share, sign::Work work) {
    if (!limited_)
        limit_large_groups(needed);
    return weighted() ? pairs_by<double>(begin, end, needed, first_new, least_share, work)
                      : pairs_by<std::uint32_t>(begin, end, needed, first_new, 0, work);
}

// `Count` is double for features that count differently.
template <class Count>
SampledPairs Samples::pairs_by(std::size_t begin, std::size_t end, std::span<const double> needed,
                               std::size_t first_new, double least_share, sign::Work work) {
    constexpr bool kWeighted = std::is_same_v<Count, double>;
    struct Found {
        std::vector<Count> counts;  // by place, 0 between two documents
        std::vector<std::uint32_t> touched;
    };
    std::vector<std::vector<std::uint32_t>> smaller(end - begin);
    const Found initial{std::vector<Count>(order_.size()), {}};
    sign::per_document(end - begin, work, initial, [&](Found& state, std::size_t index) {
        const auto place = static_cast<std::uint32_t>(begin + index);
        const std::uint32_t document = order_[place];
        const std::uint32_t first = kWeighted ? first_partner(place, least_share) : 0;
        state.touched.clear();
        for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at) {
            const std::uint32_t number = found_[at];
            if (place < from_[number])
                continue;
            const std::span<const std::uint32_t> others = list(number);
            auto at_other = others.begin();
            if (kWeighted)
                at_other = std::lower_bound(others.begin(), others.end(), first);
            for (; at_other != others.end() && *at_other < place; ++at_other) {
                Count& count = state.counts[*at_other];
                if (count == 0)
                    state.touched.push_back(*at_other);
                if constexpr (kWeighted)
                    count += list_worths_[static_cast<std::size_t>(&*at_other - lists_.data())];
                else
                    ++count;
            }
        }
        std::sort(state.touched.begin(), state.touched.end());
        for (const std::uint32_t other : state.touched) {
            const std::uint32_t one = order_[other];
            const double count = std::exchange(state.counts[other], Count{0});
            if (count + doubtful_[other] >= needed[sample_size(one)] &&
                (document >= first_new || one >= first_new))
                smaller[index].push_back(one);
        }
    });
    SampledPairs pairs;
    for (std::size_t index = 0; index < smaller.size(); ++index)
        for (const std::uint32_t one : smaller[index]) {
            pairs.smaller.push_back(one);
            pairs.larger.push_back(order_[begin + index]);
        }
    return pairs;
}

}  // namespace lookalike::search
