#include "pairs/samples.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "bits/hash.hpp"
#include "sign/per_document.hpp"

namespace lookalike::search {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace

void Samples::observe(const sign::Source& source, sign::Work work) {
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

void Samples::order_by_size() {
    order_.resize(sizes_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return sizes_[a] < sizes_[b]; });
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
    std::vector<std::uint64_t> to(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t place = 0; place < order_.size(); ++place) {
        const std::uint32_t document = order_[place];
        for (std::size_t at = sample_begins_[document]; at < sample_begins_[document + 1]; ++at)
            lists_[to[number_of(samples_[at])]++] = place;
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

void Samples::limit_large_groups(std::span<const std::uint64_t> needed) {
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
            for (const std::uint32_t place : list(number))
                ++doubtful_[place];
    for (std::size_t place = 0; place < order_.size(); ++place)
        in_large_groups_ +=
            doubtful_[place] > 0 && doubtful_[place] >= needed[sample_size(order_[place])];
}

struct Samples::Found {
    std::vector<std::uint32_t> counts;  // by place, 0 between two documents
    std::vector<std::uint32_t> touched;
};

SampledPairs Samples::pairs(std::size_t begin, std::size_t end,
                            std::span<const std::uint64_t> needed, std::size_t first_new,
                            sign::Work work) {
    if (!limited_)
        limit_large_groups(needed);
    std::vector<std::vector<std::uint32_t>> smaller(end - begin);
    const Found initial{std::vector<std::uint32_t>(order_.size()), {}};
    sign::per_document(end - begin, work, initial, [&](Found& state, std::size_t index) {
        const auto place = static_cast<std::uint32_t>(begin + index);
        const std::uint32_t document = order_[place];
        state.touched.clear();
        for (std::size_t at = offsets_[document]; at < offsets_[document + 1]; ++at) {
            const std::uint32_t number = found_[at];
            if (place < from_[number])
                continue;
            for (const std::uint32_t other : list(number)) {
                if (other >= place)
                    break;
                if (state.counts[other]++ == 0)
                    state.touched.push_back(other);
            }
        }
        std::sort(state.touched.begin(), state.touched.end());
        for (const std::uint32_t other : state.touched) {
            const std::uint32_t count = state.counts[other], one = order_[other];
            state.counts[other] = 0;
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
