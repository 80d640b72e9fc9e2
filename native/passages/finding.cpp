#include "passages/finding.hpp"

#include <algorithm>
#include <atomic>

#include "passages/windows.hpp"
#include "text/hash_map.hpp"

namespace lookalike::passages {

void Passages::add(std::size_t one, std::size_t other, const Passage& passage) {
    left.push_back(static_cast<std::int64_t>(one));
    right.push_back(static_cast<std::int64_t>(other));
    words.push_back(static_cast<std::int64_t>(passage.words));
    for (const Run& run : passage.runs) {
        run_left.push_back(static_cast<std::int64_t>(run.left));
        run_right.push_back(static_cast<std::int64_t>(run.right));
        run_length.push_back(static_cast<std::int64_t>(run.length));
    }
    begins.push_back(static_cast<std::int64_t>(run_left.size()));
}

void Passages::append(const Passages& more) {
    const auto put = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    const auto before = static_cast<std::int64_t>(run_left.size());
    for (std::size_t at = 1; at < more.begins.size(); ++at)
        begins.push_back(before + more.begins[at]);
    put(left, more.left);
    put(right, more.right);
    put(words, more.words);
    put(run_left, more.run_left);
    put(run_right, more.run_right);
    put(run_length, more.run_length);
    common += more.common;
    common_places += more.common_places;
}

namespace {

// Sampled windows of all texts, in groups of equal hashes.
class SampledWindows {
  public:
    SampledWindows(const WordTexts& texts, const Sampling& sampling, std::size_t common,
                   std::size_t threads, const bits::Checkpoint& checkpoint);

    struct Window {
        std::uint64_t hash;
        std::uint64_t place;  // among all words; later, which of all windows it is
    };

    // Of each text, where its windows are among all, which are ordered by place.
    std::vector<std::size_t> begins{0};
    std::vector<std::uint64_t> places;
    std::vector<std::uint32_t> groups;  // kNone: in a group of its own, or in one too large
    // Places of each group, ascending.
    std::vector<std::size_t> group_begins{0};
    std::vector<std::uint64_t> group_places;
    std::size_t common_windows = 0, common_places = 0;

    static constexpr std::uint32_t kNone = UINT32_MAX;

  private:
    void group(std::vector<Window> windows);
    void leave_out_common(const WordTexts& texts, std::size_t words, std::size_t common,
                          std::size_t threads, const bits::Checkpoint& checkpoint);

    std::vector<std::uint64_t> hashes_;  // of each group
};

SampledWindows::SampledWindows(const WordTexts& texts, const Sampling& sampling, std::size_t common,
                               std::size_t threads, const bits::Checkpoint& checkpoint) {
    std::vector<std::vector<Window>> each(texts.size());
    bits::share_out(texts.size(), threads, checkpoint, [&](std::size_t, std::size_t number) {
        const auto hashes = window_hashes(texts.text(number), sampling.words);
        std::size_t same =
            0;  // windows in a row; of a word that is repeated for ever, some will do
        for (const std::size_t at : sampled(hashes, sampling.window)) {
            auto& own = each[number];
            same = !own.empty() && own.back().hash == hashes[at] ? same + 1 : 0;
            if (same <= common)
                own.push_back({hashes[at], texts.begins[number] + at});
        }
    });
    std::vector<Window> windows;
    for (auto& own : each) {
        windows.insert(windows.end(), own.begin(), own.end());
        begins.push_back(windows.size());
        own = {};
    }
    for (Window& window : windows) {
        places.push_back(window.place);
        window.place = places.size() - 1;
    }
    group(std::move(windows));
    leave_out_common(texts, sampling.words, common, threads, checkpoint);
}

void SampledWindows::group(std::vector<Window> windows) {
    groups.assign(places.size(), kNone);
    std::sort(windows.begin(), windows.end(), [](const Window& a, const Window& b) {
        return a.hash != b.hash ? a.hash < b.hash : a.place < b.place;
    });
    for (std::size_t first = 0, end; first < windows.size(); first = end) {
        for (end = first + 1; end < windows.size() && windows[end].hash == windows[first].hash;)
            ++end;
        if (end - first == 1)
            continue;
        for (std::size_t at = first; at < end; ++at) {
            groups[windows[at].place] = static_cast<std::uint32_t>(group_begins.size() - 1);
            group_places.push_back(places[windows[at].place]);
        }
        group_begins.push_back(group_places.size());
        hashes_.push_back(windows[first].hash);
    }
}

// A window is sampled in some of its places; how common it is, all of them tell.
void SampledWindows::leave_out_common(const WordTexts& texts, std::size_t words, std::size_t common,
                                      std::size_t threads, const bits::Checkpoint& checkpoint) {
    text::HashMap<std::uint32_t> numbers;
    for (std::size_t number = 0; number < hashes_.size(); ++number)
        numbers[hashes_[number]] = static_cast<std::uint32_t>(number);
    std::vector<std::atomic<std::size_t>> counts(hashes_.size());
    bits::share_out(texts.size(), threads, checkpoint, [&](std::size_t, std::size_t text) {
        for (const std::uint64_t hash : window_hashes(texts.text(text), words))
            if (const std::uint32_t* number = numbers.find(hash))
                counts[*number].fetch_add(1, std::memory_order_relaxed);
    });
    for (const auto& count : counts)
        if (count > common) {
            ++common_windows;
            common_places += count;
        }
    for (std::uint32_t& number : groups)
        if (number != kNone && counts[number] > common)
            number = kNone;
}

struct Proposed {
    std::size_t other;
    Seed seed;
};

// Runs of a text with itself, without the parts that overlap their copies.
std::vector<Run> apart(std::vector<Run> runs, std::size_t piece) {
    for (Run& run : runs)
        run.length = std::min(run.length, run.right - run.left);
    std::erase_if(runs, [&](const Run& run) { return run.length < piece; });
    return runs;
}

// The same passage without the runs at its end that overlap its copy.
Passage apart(Passage passage) {
    while (passage.runs.back().left_end() > passage.runs.front().right) {
        passage.words -= passage.runs.back().length;
        passage.runs.pop_back();
    }
    return passage;
}

// The passages of one text with texts behind it, and with `within` with itself.
Passages with_later_texts(const WordTexts& texts, const SampledWindows& windows, std::size_t one,
                          const Rules& rules, bool within) {
    std::vector<Proposed> proposed;
    for (std::size_t at = windows.begins[one]; at < windows.begins[one + 1]; ++at) {
        if (windows.groups[at] == SampledWindows::kNone)
            continue;
        const auto group = windows.group_places.begin();
        const auto end =
            group + static_cast<std::ptrdiff_t>(windows.group_begins[windows.groups[at] + 1]);
        auto place = std::lower_bound(
            group + static_cast<std::ptrdiff_t>(windows.group_begins[windows.groups[at]]), end,
            within ? windows.places[at] + 1 : texts.begins[one + 1]);
        for (; place != end; ++place) {
            const std::size_t other = texts.text_of(*place);
            proposed.push_back(
                {other, {windows.places[at] - texts.begins[one], *place - texts.begins[other]}});
        }
    }
    std::sort(proposed.begin(), proposed.end(),
              [](const Proposed& a, const Proposed& b) { return a.other < b.other; });
    Passages found;
    std::vector<Seed> seeds;
    for (std::size_t first = 0, end; first < proposed.size(); first = end) {
        const std::size_t other = proposed[first].other;
        seeds.clear();
        for (end = first; end < proposed.size() && proposed[end].other == other; ++end)
            seeds.push_back(proposed[end].seed);
        auto runs = runs_of(texts.text(one), texts.text(other), seeds, rules.piece);
        if (one == other)
            runs = apart(std::move(runs), rules.piece);
        for (const Passage& passage : passages_of(runs, rules)) {
            const Passage own = one == other ? apart(passage) : passage;
            if (own.words >= rules.min_words)
                found.add(one, other, own);
        }
    }
    return found;
}

Passages put_together(const std::vector<Passages>& each) {
    Passages all;
    for (const Passages& own : each)
        all.append(own);
    return all;
}

}  // namespace

Passages find_overlaps(const WordTexts& texts, const Rules& rules, std::size_t common, bool within,
                       std::size_t threads, const bits::Checkpoint& checkpoint) {
    const SampledWindows windows(texts, Sampling::for_runs(rules.piece), common, threads,
                                 checkpoint);
    std::vector<Passages> each(texts.size());
    bits::share_out(texts.size(), threads, checkpoint, [&](std::size_t, std::size_t one) {
        each[one] = with_later_texts(texts, windows, one, rules, within);
    });
    Passages all = put_together(each);
    all.common = windows.common_windows;
    all.common_places = windows.common_places;
    return all;
}

Query::Query(std::string_view text, const Rules& rules, std::size_t common)
    : rules_(rules), common_(common) {
    words_.add(text, vocabulary_);
    const auto hashes = window_hashes(words_.text(0), rules.piece);
    for (std::size_t at = 0; at < hashes.size(); ++at) {
        const auto [window, is_new] = numbers_.try_emplace(hashes[at], places_.size());
        if (is_new)
            places_.emplace_back();
        if (places_[window->second].size() < common)
            places_[window->second].push_back(at);
    }
}

Passages Query::in_text(std::string_view text, std::size_t number) const {
    WordTexts words;
    words.add_known(text, vocabulary_);
    const std::span<const Word> left = words_.text(0), right = words.text(0);
    const auto hashes = window_hashes(right, rules_.piece);
    std::vector<std::size_t> counts(places_.size());
    std::vector<Seed> seeds;
    for (std::size_t at = 0; at < hashes.size(); ++at) {
        const auto window = numbers_.find(hashes[at]);
        if (window == numbers_.end() || ++counts[window->second] > common_)
            continue;
        for (const std::size_t place : places_[window->second])
            seeds.push_back({place, at});
    }
    Passages found;
    const auto runs = runs_of(left, right, seeds, rules_.piece);
    for (const Passage& passage : passages_of(runs, rules_))
        found.add(0, number, passage);
    found.common = static_cast<std::size_t>(std::count_if(
        counts.begin(), counts.end(), [&](std::size_t count) { return count > common_; }));
    return found;
}

Passages Query::find(std::span<const std::string_view> texts, std::size_t threads,
                     const bits::Checkpoint& checkpoint) const {
    std::vector<Passages> each(texts.size());
    bits::share_out(texts.size(), threads, checkpoint, [&](std::size_t, std::size_t number) {
        each[number] = in_text(texts[number], number);
    });
    return put_together(each);
}

}  // namespace lookalike::passages
