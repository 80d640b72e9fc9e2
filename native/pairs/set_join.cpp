#include "pairs/set_join.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bits/hash.hpp"
#include "pairs/set_overlap.hpp"

namespace lookalike::search {

namespace {

constexpr std::uint32_t kHopeless = UINT32_MAX;
constexpr std::size_t kSetsPerTask = 8;
constexpr std::size_t kFewestAtATime = 16, kMostAtATime = 8192;
constexpr std::size_t kManyPairs = std::size_t{1} << 20;
constexpr double kAbove = 1 + 1e-6;  // more than rounding to single precision takes away

}  // namespace

SetJoin::SetJoin(Sets sets, SetMeasure measure, std::vector<std::uint8_t> old,
                 std::size_t most_postings)
    : sets_(std::move(sets)),
      measure_(measure),
      old_(std::move(old)),
      most_postings_(most_postings) {
    group_equal();
    choose_prefixes();
}

bool SetJoin::equal(std::uint32_t one, std::uint32_t two) const {
    const auto a = sets_.elements_of(one), b = sets_.elements_of(two);
    return sets_.sizes[one] == sets_.sizes[two] && std::equal(a.begin(), a.end(), b.begin()) &&
           (!sets_.weighted() || std::equal(sets_.weights_of(one), sets_.weights_of(one) + a.size(),
                                            sets_.weights_of(two)));
}

void SetJoin::group_equal() {
    // A set with an element of its own is like no other; the others are put together by a hash,
    // and then compared.
    struct Hashed {
        std::uint64_t hash;
        std::uint32_t set;
    };
    const std::size_t count = sets_.count();
    std::vector<Hashed> whole;
    group_.resize(count);
    group_sizes_.assign(count, 0);
    group_old_.assign(count, 1);
    std::vector<std::uint32_t> stands(count);
    for (std::uint32_t set = 0; set < count; ++set) {
        stands[set] = set;
        if (sets_.sizes[set] == 0 || sets_.unstored(set) != 0)
            continue;
        const auto elements = sets_.elements_of(set);
        std::uint64_t hash = bits::xxh64(elements.data(), elements.size_bytes());
        if (sets_.weighted())
            hash = bits::xxh64(sets_.weights_of(set), elements.size() * sizeof(double), hash);
        whole.push_back({hash, set});
    }
    std::sort(whole.begin(), whole.end(), [](const Hashed& a, const Hashed& b) {
        return a.hash != b.hash ? a.hash < b.hash : a.set < b.set;
    });
    for (std::size_t at = 1, first = 0; at < whole.size(); ++at) {
        if (whole[at].hash != whole[first].hash || !equal(whole[at].set, whole[first].set))
            first = at;
        else
            stands[whole[at].set] = whole[first].set;
    }
    for (std::size_t set = 0; set < count; ++set)
        if (sets_.sizes[set] != 0)
            ++group_sizes_[stands[set]];
    std::uint64_t begin = 0;
    for (std::uint32_t set = 0; set < count; ++set) {
        group_[set] = begin;
        begin += group_sizes_[set];
        if (group_sizes_[set] != 0)
            order_.push_back(set);
        if (group_sizes_[set] > 1)
            waiting_.push_back({set, set, 1.0});
    }
    members_.resize(begin);
    std::vector<std::uint64_t> to(group_);
    for (std::size_t set = 0; set < count; ++set)  // of equal sizes, so by document
        if (sets_.sizes[set] != 0)
            members_[to[stands[set]]++] = sets_.documents[set];
    for (std::size_t set = 0; set < count; ++set)
        if (!old_[sets_.documents[set]])
            group_old_[stands[set]] = 0;
    one_ = 0;
    two_ = 1;
}

void SetJoin::choose_prefixes() {
    probed_.resize(sets_.count());
    indexed_.resize(sets_.count());
    rests_.resize(sets_.weighted() || sets_.by_frequency() ? sets_.elements.size() : 0);
    for (const std::uint32_t set : order_) {
        const std::uint32_t size = sets_.sizes[set];
        if (sets_.weighted()) {
            probed_[set] = indexed_[set] = weighty_prefix(set);
            continue;
        }
        if (sets_.by_frequency()) {
            choose_prefixes_by_frequency(set);
            continue;
        }
        probed_[set] = size - std::min(size, measure_.least_with_smaller(size)) + 1;
        indexed_[set] = size - std::min(size, measure_.least_with_larger(size)) + 1;
    }
}

// Elements after which what follows is too light to make a pair by itself; notes how long the rests
// are from each on.
std::uint32_t SetJoin::weighty_prefix(std::size_t set) {
    const double* const weights = sets_.weights_of(set);
    const double most = measure_.least_share_of_squares() * sets_.lengths[set] * sets_.lengths[set];
    std::uint32_t prefix = 0;
    double squares = 0;
    for (std::uint32_t place = sets_.stored(set); place-- > 0;) {
        squares += weights[place] * weights[place];
        rests_[sets_.offsets[set] + place] = static_cast<float>(std::sqrt(squares));
        if (squares >= most)
            prefix = std::max(prefix, place + 1);
    }
    return sets_.unstored(set) + prefix;
}

// The same by weights of elements: what a pair has in common, from its first common element on,
// weighs at least so much in either set.
void SetJoin::choose_prefixes_by_frequency(std::size_t set) {
    const auto elements = sets_.elements_of(set);
    const double total = sets_.totals[set];
    const double with_smaller = measure_.least_other_weight(total);
    const double with_larger = measure_.least_common_weight(total, total);
    probed_[set] = indexed_[set] = sets_.unstored(set);
    double weight = 0;
    for (std::uint32_t place = sets_.stored(set); place-- > 0;) {
        weight += sets_.element_weights[elements[place]];
        rests_[sets_.offsets[set] + place] = static_cast<float>(weight);
        const std::uint32_t prefix = sets_.unstored(set) + place + 1;
        if (weight >= with_smaller)
            probed_[set] = std::max(probed_[set], prefix);
        if (weight >= with_larger)
            indexed_[set] = std::max(indexed_[set], prefix);
    }
}

// The first set that is not too small, or too light, for a pair with a larger one.
std::size_t SetJoin::first_partner(std::size_t set) const {
    if (sets_.weighted())
        return 0;
    if (sets_.by_frequency())
        return static_cast<std::size_t>(
            std::lower_bound(sets_.totals.begin(), sets_.totals.end(),
                             measure_.least_other_weight(sets_.totals[set])) -
            sets_.totals.begin());
    return static_cast<std::size_t>(std::lower_bound(sets_.sizes.begin(), sets_.sizes.end(),
                                                     measure_.least_size(sets_.sizes[set])) -
                                    sets_.sizes.begin());
}

double SetJoin::share() const {
    if (order_.empty())
        return 1;
    const auto all = static_cast<double>(order_.size());
    const auto begin = static_cast<double>(begin_), end = static_cast<double>(end_);
    const double asked = end_ == begin_ || begin_ == order_.size()
                             ? 0
                             : (static_cast<double>(next_) - begin) / (all - begin);
    return (begin + (end - begin) * asked) / all;
}

void SetJoin::index_next_block() {
    lists_.assign(sets_.numbers + 1, 0);
    const auto prefix = [&](std::uint32_t set) {
        const std::uint32_t unstored = sets_.unstored(set);
        return indexed_[set] > unstored ? indexed_[set] - unstored : 0;
    };
    std::size_t total = 0;
    for (end_ = begin_; end_ < order_.size(); ++end_) {
        const std::uint32_t set = order_[end_], length = prefix(set);
        if (end_ > begin_ && total + length > most_postings_)
            break;
        total += length;
        for (const std::uint32_t element : sets_.elements_of(set).first(length))
            ++lists_[element];
    }
    std::uint64_t begin = 0;
    for (std::uint64_t& list : lists_)
        begin += std::exchange(list, begin);
    postings_.resize(total);
    posting_weights_.resize(sets_.weighted() ? total : 0);
    for (std::size_t at = begin_; at < end_; ++at) {
        const std::uint32_t set = order_[at], length = prefix(set), first = sets_.unstored(set);
        const auto elements = sets_.elements_of(set);
        for (std::uint32_t place = 0; place < length; ++place) {
            const std::uint64_t to = lists_[elements[place]]++;
            postings_[to] = {set, first + place};
            if (sets_.weighted())
                posting_weights_[to] = sets_.weights_of(set)[place];
        }
    }
    // Each list has moved to where the next one begins.
    std::copy_backward(lists_.begin(), lists_.end() - 1, lists_.end());
    lists_.front() = 0;
    next_ = begin_;
}

void SetJoin::probe_some(std::size_t threads, const bits::Checkpoint& checkpoint) {
    if (begin_ == end_)
        index_next_block();
    const std::uint32_t largest = order_[end_ - 1];
    std::size_t end = next_;
    while (end < order_.size() && end < next_ + at_a_time_ && first_partner(order_[end]) <= largest)
        ++end;
    const std::size_t tasks = (end - next_ + kSetsPerTask - 1) / kSetsPerTask;
    workers_.resize(std::max<std::size_t>(1, threads));
    std::vector<std::vector<Found>> found(tasks);
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t at, std::size_t task) {
        const std::size_t first = next_ + task * kSetsPerTask;
        for (std::size_t each = first; each < std::min(end, first + kSetsPerTask); ++each)
            probe(workers_[at], order_[each], found[task]);
    });
    waiting_.clear();
    waiting_from_ = one_ = two_ = 0;
    for (const auto& some : found)
        waiting_.insert(waiting_.end(), some.begin(), some.end());
    for (Worker& worker : workers_) {
        candidates_ += std::exchange(worker.candidates, 0);
        compared_ += std::exchange(worker.compared, 0);
    }
    if (end == order_.size() || end < next_ + at_a_time_)  // all others are too large
        begin_ = end_;
    next_ = end;
    // Many answers wait in memory, few are not worth starting threads for.
    at_a_time_ = waiting_.size() > kManyPairs ? std::max(kFewestAtATime, at_a_time_ / 2)
                                              : std::min(kMostAtATime, at_a_time_ * 2);
}

void SetJoin::probe(Worker& worker, std::size_t set, std::vector<Found>& found) const {
    worker.counts.resize(sets_.count());
    worker.needed.resize(sets_.count());
    worker.sums.resize(rests_.empty() ? 0 : sets_.count());
    worker.touched.clear();
    const std::uint32_t unstored = sets_.unstored(set);
    const std::size_t prefix = probed_[set] > unstored ? probed_[set] - unstored : 0;
    const std::size_t from = first_partner(set);
    for (std::size_t place = 0; place < prefix; ++place)
        touch(worker, set, place, from);
    worker.candidates += worker.touched.size();
    decide(worker, set, found);
}

// Counts a common element of the set with those in the list of its element at `place`, from set
// `from` on and before the set itself.
void SetJoin::touch(Worker& worker, std::size_t set, std::size_t place, std::size_t from) const {
    const std::uint32_t element = sets_.elements_of(set)[place], size = sets_.sizes[set];
    const Posting* posting = postings_.data() + lists_[element];
    const Posting* const end = postings_.data() + lists_[element + 1];
    if (posting == end || end[-1].set < from)
        return;
    if (posting->set < from)
        posting = std::lower_bound(posting, end, from,
                                   [](const Posting& a, std::size_t b) { return a.set < b; });
    if (sets_.weighted()) {
        const double weight = sets_.weights_of(set)[place];
        for (; posting != end && posting->set < set; ++posting) {
            if (worker.counts[posting->set]++ == 0)
                worker.touched.push_back(posting->set);
            worker.sums[posting->set] +=
                weight * posting_weights_[static_cast<std::size_t>(posting - postings_.data())];
        }
        return;
    }
    if (sets_.by_frequency()) {
        const double weight = sets_.element_weights[element];
        for (; posting != end && posting->set < set; ++posting) {
            if (worker.counts[posting->set]++ == 0)
                worker.touched.push_back(posting->set);
            worker.sums[posting->set] += weight;
        }
        return;
    }
    const auto rest = static_cast<std::uint32_t>(sets_.stored(set) - place);
    for (; posting != end && posting->set < set; ++posting) {
        const std::uint32_t other = posting->set;
        std::uint32_t& count = worker.counts[other];
        if (count == kHopeless)
            continue;
        if (count == 0) {
            worker.touched.push_back(other);
            worker.needed[other] = measure_.least_overlap(size, sets_.sizes[other]);
        }
        ++count;
        // Even if all that follows in the shorter rest is common.
        if (count + std::min(rest, sets_.sizes[other] - posting->place) - 1 < worker.needed[other])
            count = kHopeless;
    }
}

// Compares the set with all that share an element of the beginning. What they have in common up to
// the end of the beginning that ends first was counted; what follows is looked at now.
void SetJoin::decide(Worker& worker, std::size_t set, std::vector<Found>& found) const {
    const auto elements = sets_.elements_of(set);
    for (const std::uint32_t other : worker.touched) {
        const std::uint32_t count = std::exchange(worker.counts[other], 0);
        const double sum = rests_.empty() ? 0 : std::exchange(worker.sums[other], 0);
        if (count == kHopeless || (group_old_[set] && group_old_[other]))
            continue;
        const auto others = sets_.elements_of(other);
        std::size_t place = probed_[set] - sets_.unstored(set);
        std::size_t other_place = indexed_[other] - sets_.unstored(other);
        if (elements[place - 1] < others[other_place - 1])
            other_place = up_to(others, elements[place - 1]);
        else
            place = up_to(elements, others[other_place - 1]);
        const double similarity =
            sets_.weighted() ? weighted_similarity(worker, set, other, place, other_place, sum)
            : sets_.by_frequency()
                ? similarity_by_frequency(worker, set, other, place, other_place, sum)
                : plain_similarity(worker, set, other, place, other_place, count);
        if (measure_.enough(similarity))
            found.push_back({other, static_cast<std::uint32_t>(set), similarity});
    }
}

// The similarity of two sets that have `count` elements in common before these places; 0 if it is
// clear that it is not enough.
double SetJoin::plain_similarity(Worker& worker, std::size_t set, std::uint32_t other,
                                 std::size_t place, std::size_t other_place,
                                 std::uint32_t count) const {
    const auto elements = sets_.elements_of(set).subspan(place);
    const auto others = sets_.elements_of(other).subspan(other_place);
    const std::int64_t missing = std::int64_t{worker.needed[other]} - count;
    const std::int64_t spare = static_cast<std::int64_t>(elements.size()) - missing;
    const std::int64_t other_spare = static_cast<std::int64_t>(others.size()) - missing;
    if (spare < 0 || other_spare < 0)
        return 0;
    ++worker.compared;
    const std::int64_t common = overlap(elements, others, spare, other_spare);
    return common < 0 ? 0
                      : measure_.similarity(count + static_cast<std::uint32_t>(common),
                                            sets_.sizes[set], sets_.sizes[other]);
}

// The same of sets with weights by frequency, those of common elements being `sum` before these
// places.
double SetJoin::similarity_by_frequency(Worker& worker, std::size_t set, std::uint32_t other,
                                        std::size_t place, std::size_t other_place,
                                        double sum) const {
    const double total = sets_.totals[set], others_total = sets_.totals[other];
    const double most = sum + std::min(rest(set, place), rest(other, other_place));
    if (kAbove * most < measure_.least_common_weight(total, others_total))
        return 0;
    ++worker.compared;
    sum += common_weight(sets_, sets_.elements_of(set).subspan(place),
                         sets_.elements_of(other).subspan(other_place));
    return measure_.similarity(sum, total, others_total);
}

// The same of sets with weights, whose products sum up to `sum` before these places.
double SetJoin::weighted_similarity(Worker& worker, std::size_t set, std::uint32_t other,
                                    std::size_t place, std::size_t other_place, double sum) const {
    const double lengths = sets_.lengths[set] * sets_.lengths[other];
    const double most = sum + rest(set, place) * rest(other, other_place);
    if (!measure_.enough(kAbove * most / lengths))
        return 0;
    ++worker.compared;
    sum += product(sets_, set, other, place, other_place);
    return std::min(1.0, sum / lengths);
}

// The Euclidean length, or the weight by frequency, from a place on.
double SetJoin::rest(std::size_t set, std::size_t place) const {
    return place < sets_.stored(set) ? rests_[sets_.offsets[set] + place] : 0;
}

void SetJoin::emit(std::size_t most, SimilarPairs& pairs) {
    for (; waiting_from_ < waiting_.size(); ++waiting_from_) {
        const Found& found = waiting_[waiting_from_];
        const bool same = found.one == found.two;
        const std::uint32_t* const ones = members_.data() + group_[found.one];
        const std::uint32_t* const twos = members_.data() + group_[found.two];
        for (; one_ < group_sizes_[found.one]; ++one_, two_ = same ? one_ + 1 : 0)
            for (; two_ < group_sizes_[found.two]; ++two_) {
                if (pairs.left.size() == most)
                    return;
                const auto [left, right] = std::minmax(ones[one_], twos[two_]);
                if (old_[left] && old_[right])
                    continue;
                pairs.left.push_back(left);
                pairs.right.push_back(right);
                pairs.similarities.push_back(found.similarity);
            }
        one_ = 0;
        two_ = waiting_from_ + 1 < waiting_.size() &&
               waiting_[waiting_from_ + 1].one == waiting_[waiting_from_ + 1].two;
    }
}

SimilarPairs SetJoin::next(std::size_t most, std::size_t threads,
                           const bits::Checkpoint& checkpoint) {
    SimilarPairs pairs;
    emit(most, pairs);
    if (waiting_from_ == waiting_.size() && pairs.left.size() < most && begin_ < order_.size()) {
        probe_some(threads, checkpoint);
        emit(most, pairs);
    }
    return pairs;
}

}  // namespace lookalike::search
