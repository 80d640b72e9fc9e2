#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/text.hpp"
#include "passages/finding.hpp"
#include "passages/placed_words.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

const bits::Checkpoint kCheckpoint = python_signals;

// Texts in words, with the vocabulary that numbers them.
struct NumberedTexts {
    passages::Vocabulary vocabulary;
    passages::WordTexts texts;
};

passages::Rules rules_of(std::size_t piece, std::size_t gap, std::size_t min_words) {
    constexpr std::size_t kMost = std::size_t{1} << 40;
    expect(piece > 0 && piece < kMost && gap < kMost && min_words > 0, "rules that say nothing");
    return {piece, gap, min_words};
}

nb::tuple columns_of(passages::Passages& found) {
    const nb::tuple columns = tuple_of(found.left, found.right, found.words, found.begins,
                                       found.run_left, found.run_right, found.run_length);
    return nb::make_tuple(columns, found.common, found.common_places);
}

// Begin and end of each word, in characters.
nb::tuple word_places(const Documents& documents, std::size_t number) {
    expect(number < documents.texts.size(), "a text that is not there");
    std::vector<std::int64_t> begins, ends;
    {
        const nb::gil_scoped_release nogil;
        std::vector<unsigned char> room;
        passages::each_placed_word(documents.texts[number], room,
                                   [&](std::string_view, std::size_t begin, std::size_t end) {
                                       begins.push_back(static_cast<std::int64_t>(begin));
                                       ends.push_back(static_cast<std::int64_t>(end));
                                   });
    }
    return tuple_of(begins, ends);
}

}  // namespace

void bind_passages(nb::module_& module) {
    module.def("word_places", &word_places, "documents"_a, "number"_a);

    nb::class_<NumberedTexts>(module, "NumberedTexts")
        .def(nb::init<>())
        .def("__len__", [](const NumberedTexts& self) { return self.texts.size(); })
        .def_prop_ro("words", [](const NumberedTexts& self) { return self.texts.words.size(); })
        .def("word_counts",
             [](const NumberedTexts& self) {
                 std::vector<std::int64_t> counts;
                 for (std::size_t text = 0; text < self.texts.size(); ++text)
                     counts.push_back(static_cast<std::int64_t>(self.texts.text(text).size()));
                 return to_numpy(std::move(counts));
             })
        .def(
            "add",
            [](NumberedTexts& self, const Documents& documents) {
                const nb::gil_scoped_release nogil;
                for (const std::string_view text : documents.texts) {
                    self.texts.add(text, self.vocabulary);
                    kCheckpoint();
                }
            },
            "documents"_a)
        .def(
            "overlaps",
            [](const NumberedTexts& self, std::size_t piece, std::size_t gap, std::size_t min_words,
               std::size_t common, bool within, std::size_t threads) {
                const passages::Rules rules = rules_of(piece, gap, min_words);
                passages::Passages found = without_gil([&] {
                    return passages::find_overlaps(self.texts, rules, common, within, threads,
                                                   kCheckpoint);
                });
                return columns_of(found);
            },
            "piece"_a, "gap"_a, "min_words"_a, "common"_a, "within"_a, "threads"_a);

    nb::class_<passages::Query>(module, "PassageQuery")
        .def(
            "__init__",
            [](passages::Query* self, const Documents& documents, std::size_t piece,
               std::size_t gap, std::size_t min_words, std::size_t common) {
                expect(documents.texts.size() == 1, "another number of queries than one");
                new (self)
                    passages::Query(documents.texts[0], rules_of(piece, gap, min_words), common);
            },
            "documents"_a, "piece"_a, "gap"_a, "min_words"_a, "common"_a)
        .def(
            "find",
            [](const passages::Query& self, const Documents& documents, std::size_t threads) {
                passages::Passages found =
                    without_gil([&] { return self.find(documents.texts, threads, kCheckpoint); });
                return columns_of(found);
            },
            "documents"_a, "threads"_a);
}

}  // namespace lookalike::bindings
