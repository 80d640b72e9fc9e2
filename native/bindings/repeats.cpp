#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/text.hpp"
#include "repeats/cover.hpp"
#include "repeats/fingerprints.hpp"
#include "repeats/items.hpp"
#include "repeats/windows.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

const bits::Checkpoint kCheckpoint = python_signals;

// Texts with their order; the documents keep the bytes alive.
struct RepeatTexts {
    RepeatTexts(const Documents& given, std::vector<std::int64_t> order)
        : documents(given), texts(documents.texts, std::move(order)) {}

    Documents documents;
    repeats::Texts texts;
};

std::vector<std::int64_t> vector_of(const IdArray& array) {
    return {array.data(), array.data() + array.size()};
}

std::span<const repeats::Position> positions_of(const IdArray& array) {
    return {array.data(), array.size()};
}

repeats::Hashed hashed_of(const WordArray& hashes, const IdArray& positions) {
    expect(hashes.size() == positions.size(), "positions of another number than hashes");
    return {{hashes.data(), hashes.data() + hashes.size()}, vector_of(positions)};
}

// Hashes, positions, and where the parts of both begin.
nb::tuple divided(repeats::Hashed& hashed, std::size_t part_bits, std::size_t hash_bits) {
    expect(part_bits <= hash_bits && hash_bits <= 64 && part_bits <= 16, "parts of no bits");
    auto begins = without_gil([&] { return repeats::divide(hashed, part_bits, hash_bits); });
    return tuple_of(hashed.hashes, hashed.positions, begins);
}

repeats::Unit unit_of(std::size_t unit) {
    expect(unit <= static_cast<std::size_t>(repeats::Unit::paragraph), "a unit that is none");
    return static_cast<repeats::Unit>(unit);
}

repeats::Choice choice_of(std::size_t words, std::size_t unit, std::int64_t most_texts, bool every,
                          bool compared) {
    return {words, unit_of(unit), most_texts, every, compared, 0, 0, 1};
}

nb::tuple columns_of(repeats::Removals& found) {
    const nb::tuple columns = tuple_of(found.texts, found.begins, found.ends, found.words,
                                       found.copy_texts, found.copy_begins, found.copy_ends);
    return nb::make_tuple(columns, found.collisions);
}

void expect_texts(const RepeatTexts& self, std::size_t begin, std::size_t end) {
    expect(begin <= end && end <= self.texts.size(), "texts that are not there");
}

// The texts without ranges of bytes, one behind the other, and where each begins.
nb::tuple without_ranges(const Documents& documents, const IdArray& offsets, const IdArray& begins,
                         const IdArray& ends) {
    const std::size_t count = documents.texts.size();
    expect_shape(offsets, {count + 1}, "ranges of another number of texts");
    expect_offsets(offsets, begins.size(), "ranges that are not there");
    expect(begins.size() == ends.size(), "ranges that do not end");
    std::vector<std::uint8_t> bytes;
    std::vector<std::int64_t> places{0};
    for (std::size_t number = 0; number < count; ++number) {
        const std::string_view text = documents.texts[number];
        std::size_t at = 0;
        for (auto range = static_cast<std::size_t>(offsets.data()[number]);
             range < static_cast<std::size_t>(offsets.data()[number + 1]); ++range) {
            const auto begin = static_cast<std::size_t>(begins.data()[range]);
            const auto end = static_cast<std::size_t>(ends.data()[range]);
            expect(at <= begin && begin <= end && end <= text.size(), "ranges outside of texts");
            bytes.insert(bytes.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                         text.begin() + static_cast<std::ptrdiff_t>(begin));
            at = end;
        }
        bytes.insert(bytes.end(), text.begin() + static_cast<std::ptrdiff_t>(at), text.end());
        places.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    return tuple_of(bytes, places);
}

// Where characters begin that begin at these bytes; both ascend by text.
nb::object characters_at(const Documents& documents, const IdArray& numbers, const IdArray& bytes) {
    expect(numbers.size() == bytes.size(), "bytes of another number than texts");
    expect_below(numbers, documents.texts.size(), "texts that are not there");
    std::vector<std::int64_t> found(bytes.size());
    std::size_t text = SIZE_MAX, at = 0;
    std::int64_t count = 0;
    for (std::size_t index = 0; index < bytes.size(); ++index) {
        const auto number = static_cast<std::size_t>(numbers.data()[index]);
        const auto place = static_cast<std::size_t>(bytes.data()[index]);
        const std::string_view own = documents.texts[number];
        expect(place <= own.size(), "bytes that are not there");
        if (number != text || place < at) {
            text = number;
            at = 0;
            count = 0;
        }
        for (; at < place; ++at)
            count += (static_cast<unsigned char>(own[at]) & 0xc0) != 0x80;
        found[index] = count;
    }
    return nb::cast(to_numpy(std::move(found)));
}

}  // namespace

void bind_repeats(nb::module_& module) {
    module.def("without_ranges", &without_ranges, "documents"_a, "offsets"_a.noconvert(),
               "begins"_a.noconvert(), "ends"_a.noconvert());
    module.def("characters_at", &characters_at, "documents"_a, "numbers"_a.noconvert(),
               "bytes"_a.noconvert());
    module.def(
        "mark_repeated",
        [](const WordArray& hashes, std::size_t part, std::size_t part_bits,
           const OutputArray<std::uint8_t, 1>& flags, std::size_t threads) {
            expect_shape(flags, {hashes.size()}, "flags of another number than hashes");
            expect(part_bits <= 16 && part >> part_bits == 0, "a part that is none");
            const nb::gil_scoped_release nogil;
            repeats::mark_repeated({hashes.data(), hashes.size()}, part, part_bits, flags.data(),
                                   threads, kCheckpoint);
        },
        "hashes"_a.noconvert(), "part"_a, "part_bits"_a, "flags"_a.noconvert(), "threads"_a);
    module.def(
        "mark_texts",
        [](const WordArray& anchors, const IdArray& counts, const WordArray& wanted,
           const OutputArray<std::uint8_t, 1>& flags) {
            expect_shape(flags, {counts.size()}, "flags of another number of texts");
            std::size_t sum = 0;
            for (std::size_t at = 0; at < counts.size(); ++at) {
                expect(counts.data()[at] >= 0, "a number below 0");
                sum += static_cast<std::size_t>(counts.data()[at]);
            }
            expect(sum == anchors.size(), "anchors of other texts");
            expect(std::is_sorted(wanted.data(), wanted.data() + wanted.size()),
                   "hashes that do not ascend");
            const nb::gil_scoped_release nogil;
            repeats::mark_texts({anchors.data(), anchors.size()}, {counts.data(), counts.size()},
                                {wanted.data(), wanted.size()}, flags.data());
        },
        "anchors"_a.noconvert(), "counts"_a.noconvert(), "wanted"_a.noconvert(),
        "flags"_a.noconvert());
    module.def(
        "units",
        [](const Documents& documents, std::size_t unit) {
            expect(documents.texts.size() == 1, "another number of texts than one");
            return to_numpy(repeats::units_of(documents.texts[0], unit_of(unit)));
        },
        "documents"_a, "unit"_a);

    nb::class_<repeats::Items>(module, "BenchmarkItems")
        .def(
            "__init__",
            [](repeats::Items* self, const Documents& documents, std::size_t rule,
               std::size_t words, std::size_t fewest, double share, std::size_t gap) {
                expect(rule <= static_cast<std::size_t>(repeats::Rule::near) && words > 0 &&
                           fewest > 0 && documents.texts.size() < UINT32_MAX,
                       "a rule that is none");
                const repeats::ItemRule wanted{static_cast<repeats::Rule>(rule), words, fewest,
                                               share, gap};
                const nb::gil_scoped_release nogil;
                new (self) repeats::Items(documents.texts, wanted);
            },
            nb::keep_alive<1, 2>(), "documents"_a, "rule"_a, "words"_a, "fewest"_a, "share"_a,
            "gap"_a)
        .def_prop_ro("skipped", &repeats::Items::skipped)
        .def(
            "find",
            [](const repeats::Items& self, const Documents& documents, std::size_t threads) {
                repeats::Hits found =
                    without_gil([&] { return self.find(documents.texts, threads, kCheckpoint); });
                return tuple_of(found.texts, found.items, found.longest, found.shares,
                                found.offsets, found.begins, found.ends);
            },
            "documents"_a, "threads"_a);

    nb::class_<RepeatTexts>(module, "RepeatTexts")
        .def(
            "__init__",
            [](RepeatTexts* self, const Documents& documents, const IdArray& order) {
                const std::size_t count = documents.texts.size();
                expect_shape(order, {count}, "an order of another number of texts");
                expect_below(order, count, "texts that are not there");
                std::vector<bool> seen(count);
                for (std::size_t at = 0; at < count; ++at)
                    seen[static_cast<std::size_t>(order.data()[at])] = true;
                expect(std::find(seen.begin(), seen.end(), false) == seen.end(),
                       "an order without some texts");
                new (self) RepeatTexts(documents, vector_of(order));
            },
            "documents"_a, "order"_a.noconvert())
        .def_prop_ro("total", [](const RepeatTexts& self) { return self.texts.total(); })
        .def(
            "set_removed",
            [](RepeatTexts& self, const IdArray& offsets, const IdArray& begins,
               const IdArray& ends) {
                expect_shape(offsets, {self.texts.size() + 1}, "ranges of other texts");
                expect_offsets(offsets, begins.size(), "ranges that are not there");
                expect(begins.size() == ends.size(), "ranges that do not end");
                std::vector<repeats::Range> ranges;
                for (std::size_t text = 0; text < self.texts.size(); ++text) {
                    repeats::Position last = 0;
                    const auto size = static_cast<repeats::Position>(self.texts.text(text).size());
                    for (auto at = static_cast<std::size_t>(offsets.data()[text]);
                         at < static_cast<std::size_t>(offsets.data()[text + 1]); ++at) {
                        const repeats::Range range{begins.data()[at], ends.data()[at]};
                        expect(last <= range.begin && range.begin < range.end && range.end <= size,
                               "ranges outside of texts");
                        last = range.end;
                        ranges.push_back(range);
                    }
                }
                self.texts.set_removed(vector_of(offsets), std::move(ranges));
            },
            "offsets"_a.noconvert(), "begins"_a.noconvert(), "ends"_a.noconvert())
        .def(
            "anchors",
            [](const RepeatTexts& self, std::size_t begin, std::size_t end, std::size_t words,
               std::size_t threads) {
                expect_texts(self, begin, end);
                expect(words > 0, "windows without words");
                auto found = without_gil([&] {
                    return repeats::anchors_of(self.texts, begin, end, words, threads, kCheckpoint);
                });
                return tuple_of(found.hashes, found.counts);
            },
            "begin"_a, "end"_a, "words"_a, "threads"_a)
        .def(
            "flagged_windows",
            [](const RepeatTexts& self, std::size_t begin, std::size_t end, std::size_t words,
               const ByteArray& flags, const IdArray& counts, std::size_t part_bits,
               std::size_t hash_bits, std::size_t threads) {
                expect_texts(self, begin, end);
                expect_shape(counts, {end - begin}, "counts of other texts");
                std::size_t sum = 0;
                for (std::size_t at = 0; at < counts.size(); ++at)
                    sum += static_cast<std::size_t>(counts.data()[at]);
                expect(words > 0 && sum == flags.size(), "flags of other anchors");
                auto found = without_gil([&] {
                    return repeats::flagged_windows(
                        self.texts, begin, end, words, {flags.data(), flags.size()},
                        {counts.data(), counts.size()}, hash_bits, threads, kCheckpoint);
                });
                return divided(found, part_bits, hash_bits);
            },
            "begin"_a, "end"_a, "words"_a, "flags"_a.noconvert(), "counts"_a.noconvert(),
            "part_bits"_a, "hash_bits"_a, "threads"_a)
        .def(
            "joining_windows",
            [](const RepeatTexts& self, std::size_t begin, std::size_t end, std::size_t words,
               std::size_t hash_bits, std::size_t threads) {
                expect_texts(self, begin, end);
                expect(words > 0, "windows without words");
                auto found = without_gil([&] {
                    return repeats::joining_windows(self.texts, begin, end, words, hash_bits,
                                                    threads, kCheckpoint);
                });
                return tuple_of(found.hashes, found.anchors);
            },
            "begin"_a, "end"_a, "words"_a, "hash_bits"_a, "threads"_a)
        .def(
            "wanted_windows",
            [](const RepeatTexts& self, std::size_t begin, std::size_t end, std::size_t words,
               const WordArray& wanted, const ByteArray& flags, std::size_t part_bits,
               std::size_t hash_bits, std::size_t threads) {
                expect_texts(self, begin, end);
                expect_shape(flags, {end - begin}, "flags of other texts");
                expect(words > 0 && std::is_sorted(wanted.data(), wanted.data() + wanted.size()),
                       "hashes that do not ascend");
                auto found = without_gil([&] {
                    return repeats::wanted_windows(
                        self.texts, begin, end, words, {wanted.data(), wanted.size()},
                        {flags.data(), flags.size()}, hash_bits, threads, kCheckpoint);
                });
                return divided(found, part_bits, hash_bits);
            },
            "begin"_a, "end"_a, "words"_a, "wanted"_a.noconvert(), "flags"_a.noconvert(),
            "part_bits"_a, "hash_bits"_a, "threads"_a)
        .def(
            "units",
            [](const RepeatTexts& self, std::size_t begin, std::size_t end, std::size_t unit,
               std::size_t words, std::size_t part_bits, std::size_t hash_bits,
               std::size_t threads) {
                expect_texts(self, begin, end);
                auto found = without_gil([&] {
                    return repeats::hashed_units(self.texts, begin, end, unit_of(unit), words,
                                                 hash_bits, threads, kCheckpoint);
                });
                return divided(found, part_bits, hash_bits);
            },
            "begin"_a, "end"_a, "unit"_a, "words"_a, "part_bits"_a, "hash_bits"_a, "threads"_a)
        .def(
            "copies",
            [](const RepeatTexts& self, const WordArray& hashes, const IdArray& positions,
               std::size_t words, std::size_t unit, std::int64_t most_texts, bool every,
               bool compared, std::size_t least, std::size_t most_places, std::size_t threads) {
                expect(least == 0 || words > 1, "passages of single words");
                auto choice = choice_of(words, unit, most_texts, every, compared);
                choice.least = least;
                choice.most_places = most_places;
                auto hashed = hashed_of(hashes, positions);
                expect_below(positions, static_cast<std::size_t>(self.texts.total()),
                             "positions behind the texts");
                repeats::UnitCounts counts;
                auto found = without_gil([&] {
                    repeats::sort_hashed(hashed, threads, kCheckpoint);
                    return repeats::copies_of(self.texts, hashed, choice, &counts);
                });
                return nb::make_tuple(tuple_of(found.places, found.firsts),
                                      tuple_of(counts.firsts, counts.texts, counts.places));
            },
            "hashes"_a.noconvert(), "positions"_a.noconvert(), "words"_a, "unit"_a, "most_texts"_a,
            "every"_a, "compared"_a, "least"_a, "most_places"_a, "threads"_a)
        .def(
            "text_of",
            [](const RepeatTexts& self, const IdArray& positions) {
                expect_below(positions, static_cast<std::size_t>(self.texts.total()),
                             "positions behind the texts");
                std::vector<std::int64_t> texts, bytes;
                for (std::size_t at = 0; at < positions.size(); ++at) {
                    const std::size_t text = self.texts.text_of(positions.data()[at]);
                    texts.push_back(static_cast<std::int64_t>(text));
                    bytes.push_back(positions.data()[at] - self.texts.begin(text));
                }
                return tuple_of(texts, bytes);
            },
            "positions"_a.noconvert())
        .def(
            "removals",
            [](const RepeatTexts& self, const IdArray& places, const IdArray& firsts,
               std::size_t words, std::size_t unit, std::size_t least, std::size_t gap,
               std::size_t boundary, std::size_t threads) {
                expect(least == 0 || words > 1, "passages of single words");
                expect(places.size() == firsts.size(), "copies of nothing");
                for (const IdArray& positions : {places, firsts})
                    expect_below(positions, static_cast<std::size_t>(self.texts.total()),
                                 "positions behind the texts");
                expect(boundary <= static_cast<std::size_t>(repeats::Boundary::paragraph),
                       "a boundary that is none");
                auto choice = choice_of(words, unit, 1, false, false);
                choice.least = least;
                choice.gap = gap;
                auto found = without_gil([&] {
                    return repeats::removals_of(self.texts, {vector_of(places), vector_of(firsts)},
                                                choice, static_cast<repeats::Boundary>(boundary),
                                                threads, kCheckpoint);
                });
                return columns_of(found);
            },
            "places"_a.noconvert(), "firsts"_a.noconvert(), "words"_a, "unit"_a, "least"_a, "gap"_a,
            "boundary"_a, "threads"_a)
        .def(
            "far_removals",
            [](const RepeatTexts& self, const IdArray& places, const IdArray& documents,
               const IdArray& firsts, const IdArray& own, std::size_t words, std::size_t unit,
               std::size_t boundary, std::size_t threads) {
                expect(places.size() == documents.size() && places.size() == firsts.size(),
                       "copies of nothing");
                expect_shape(own, {self.texts.size()}, "numbers of other texts");
                expect_below(places, static_cast<std::size_t>(self.texts.total()),
                             "positions behind the texts");
                expect(std::is_sorted(places.data(), places.data() + places.size()),
                       "positions that do not ascend");
                expect(boundary <= static_cast<std::size_t>(repeats::Boundary::paragraph),
                       "a boundary that is none");
                const auto choice = choice_of(words, unit, 1, false, false);
                const repeats::FarCopies copies{vector_of(places), vector_of(documents),
                                                vector_of(firsts), vector_of(own)};
                auto found = without_gil([&] {
                    return repeats::far_removals_of(self.texts, copies, choice,
                                                    static_cast<repeats::Boundary>(boundary),
                                                    threads, kCheckpoint);
                });
                expect(found.collisions == 0, "a place where no window begins");
                return tuple_of(found.texts, found.begins, found.ends, found.words,
                                found.copy_texts, found.copy_begins, found.copy_ends);
            },
            "places"_a.noconvert(), "documents"_a.noconvert(), "firsts"_a.noconvert(),
            "own"_a.noconvert(), "words"_a, "unit"_a, "boundary"_a, "threads"_a)
        .def(
            "fingerprints",
            [](const RepeatTexts& self, const IdArray& positions, std::size_t words,
               std::size_t unit, std::uint64_t first, std::uint64_t second, std::size_t threads) {
                expect_below(positions, static_cast<std::size_t>(self.texts.total()),
                             "positions behind the texts");
                expect(std::is_sorted(positions.data(), positions.data() + positions.size()),
                       "positions that do not ascend");
                const auto choice = choice_of(words, unit, 1, false, false);
                auto found = without_gil([&] {
                    return repeats::fingerprints_of(self.texts, positions_of(positions), choice,
                                                    {first, second}, threads, kCheckpoint);
                });
                return tuple_of(found.first, found.second, found.words);
            },
            "positions"_a.noconvert(), "words"_a, "unit"_a, "first"_a, "second"_a, "threads"_a);
}

}  // namespace lookalike::bindings
