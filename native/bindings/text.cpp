#include "bindings/text.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings/arrow.hpp"
#include "bindings/module.hpp"
#include "text/decoded_size.hpp"
#include "text/equal_texts.hpp"
#include "text/hash_map.hpp"
#include "text/json_lines.hpp"
#include "text/prefixed_values.hpp"
#include "text/unicode.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

std::string name_of_type(nb::handle object) {
    return nb::cast<std::string>(object.type().attr("__name__"));
}

// The UTF-8 bytes of a Python string are cached in it, so they live as long as the list.
Documents documents_from_list(nb::list list, std::size_t first_position) {
    Documents documents;
    documents.texts.reserve(list.size());
    for (std::size_t index = 0; index < list.size(); ++index) {
        const nb::handle item = list[index];
        const std::string name = "document " + std::to_string(first_position + index);
        if (!PyUnicode_Check(item.ptr()))
            throw std::invalid_argument(name + " is of type " + name_of_type(item) +
                                        "; expected str");
        Py_ssize_t length = 0;
        const char* const bytes = PyUnicode_AsUTF8AndSize(item.ptr(), &length);
        if (bytes == nullptr) {
            const nb::python_error error;
            throw std::invalid_argument(name + " cannot be encoded as UTF-8 (" + error.what() +
                                        "); remove lone surrogates, for example with "
                                        "text.encode('utf-8', 'replace').decode()");
        }
        documents.texts.emplace_back(bytes, static_cast<std::size_t>(length));
    }
    documents.list = list;
    return documents;
}

Documents documents_from_arrow(nb::capsule stream) {
    ArrowTexts arrow = arrow_texts(stream);
    Documents documents;
    documents.texts = std::move(arrow.texts);
    documents.owner = std::move(arrow.owner);
    return documents;
}

std::string_view view_of(const ByteArray& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A run of the documents, sharing what keeps them alive.
Documents part_of(const Documents& all, std::size_t begin, std::size_t end) {
    end = std::min(end, all.texts.size());
    expect(begin <= end, "a part that ends before it begins");
    Documents part;
    part.texts.assign(all.texts.begin() + static_cast<std::ptrdiff_t>(begin),
                      all.texts.begin() + static_cast<std::ptrdiff_t>(end));
    part.owner = all.owner;
    part.list = all.list;
    return part;
}

// The documents at these positions, in that order, sharing what keeps them alive.
Documents taken_from(const Documents& all, const IdArray& positions) {
    expect_below(positions, all.texts.size(), "documents that are not there");
    Documents taken;
    taken.texts.reserve(positions.size());
    for (std::size_t index = 0; index < positions.size(); ++index)
        taken.texts.push_back(all.texts[static_cast<std::size_t>(positions.data()[index])]);
    taken.owner = all.owner;
    taken.list = all.list;
    return taken;
}

// The texts as Python has them; what is no UTF-8 in them is replaced.
nb::list texts_of(const Documents& documents) {
    nb::list texts;
    for (const std::string_view text : documents.texts)
        texts.append(nb::steal(
            PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")));
    return texts;
}

// How many documents have a text of at most this number of characters, and how many have a text.
std::tuple<std::size_t, std::size_t> count_short(const Documents& documents,
                                                 std::size_t characters) {
    return without_gil([&] {
        std::size_t brief = 0, filled = 0;
        for (const std::string_view text : documents.texts) {
            filled += !text.empty();
            brief += !text.empty() && text::has_at_most(text, characters);
        }
        return std::make_tuple(brief, filled);
    });
}

nb::list unknown_words(const TextFeatures& features, const Documents& documents) {
    text::HashMap<std::string> unknown;
    const auto stems = features.stems;
    {
        const nb::gil_scoped_release nogil;
        text::Scratch scratch;
        for (const std::string_view document : documents.texts)
            text::collect_unknown(document, features.options, *stems, scratch, unknown);
    }
    nb::list words;
    unknown.each([&](std::uint64_t, const std::string& word) {
        words.append(nb::steal(
            PyUnicode_DecodeUTF8(word.data(), static_cast<Py_ssize_t>(word.size()), "replace")));
    });
    return words;
}

// A list with (bytes, offsets, present) for each key, `present` being None where no value is
// missing; None if a line is not plain.
nb::object json_columns(const ByteArray& text, const IdArray& ends,
                        const std::vector<std::string>& keys, std::size_t threads) {
    expect(ends.size() == 0 || ends.data()[0] >= 0, "lines that end before they begin");
    expect(std::is_sorted(ends.data(), ends.data() + ends.size()) &&
               (ends.size() == 0 ||
                static_cast<std::size_t>(ends.data()[ends.size() - 1]) <= text.size()),
           "lines that do not lie in the text");
    auto columns = without_gil([&] {
        return text::json_values(view_of(text), ends.data(), ends.size(), keys, threads,
                                 python_signals);
    });
    if (!columns)
        return nb::none();
    nb::list values;
    for (text::JsonColumn& column : *columns) {
        const auto size = static_cast<std::size_t>(column.offsets.back());
        auto* const bytes = reinterpret_cast<std::uint8_t*>(column.bytes.release());
        const nb::capsule owner(bytes,
                                [](void* data) noexcept { delete[] static_cast<char*>(data); });
        const nb::object present =
            column.missing == 0 ? nb::none() : nb::cast(to_numpy(std::move(column.present)));
        values.append(
            nb::make_tuple(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes, {size}, owner),
                           to_numpy(std::move(column.offsets)), present));
    }
    return values;
}

std::uint64_t hash_of(const std::string& word) {
    return bits::xxh64(word.data(), word.size());
}

}  // namespace

void bind_text(nb::module_& module) {
    module.attr("unicode_version") = nb::str(text::tables::kVersion);

    nb::class_<Documents>(module, "Documents")
        .def_static("from_list", &documents_from_list, "texts"_a, "first_position"_a)
        .def_static("from_arrow", &documents_from_arrow, "stream"_a)
        .def("__len__", [](const Documents& documents) { return documents.texts.size(); })
        .def("part", &part_of, "begin"_a, "end"_a)
        .def("take", &taken_from, "positions"_a.noconvert())
        .def("to_list", &texts_of)
        .def("count_short", &count_short, "characters"_a)
        .def(
            "first_equal",
            [](const Documents& documents, std::size_t threads,
               const OutputArray<std::int64_t, 1>& first) {
                expect_shape(first, {documents.texts.size()},
                             "firsts of another number than documents");
                const nb::gil_scoped_release nogil;
                text::first_equal(documents.texts, threads, python_signals, first.data());
            },
            "threads"_a, "first"_a.noconvert());

    module.def(
        "line_ends",
        [](const ByteArray& text) {
            auto ends = without_gil([&] { return text::line_ends(view_of(text)); });
            return to_numpy(std::move(ends));
        },
        "text"_a.noconvert());
    module.def("json_columns", &json_columns, "text"_a.noconvert(), "ends"_a.noconvert(), "keys"_a,
               "threads"_a);
    module.def(
        "longest_prefixed",
        [](const ByteArray& data) {
            return without_gil([&] { return text::longest_prefixed(view_of(data)); });
        },
        "data"_a.noconvert());
    module.def(
        "decoded_json",
        [](const ByteArray& data) {
            const auto size = without_gil([&] { return text::decoded_json(view_of(data)); });
            return std::make_tuple(size.values, size.string_bytes, size.longest_list);
        },
        "data"_a.noconvert());
    module.def(
        "decoded_messagepack",
        [](const ByteArray& data, std::size_t deepest) {
            const auto size =
                without_gil([&] { return text::decoded_messagepack(view_of(data), deepest); });
            std::optional<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> found;
            if (size)
                found.emplace(size->values, size->string_bytes, size->longest_list);
            return found;
        },
        "data"_a.noconvert(), "deepest"_a);

    module.def(
        "places_of",
        [](const WordArray& hashes, const WordArray& known,
           const OutputArray<std::int64_t, 1>& places) {
            expect(places.size() == hashes.size() && known.size() <= UINT32_MAX,
                   "places of another number than hashes");
            const nb::gil_scoped_release nogil;
            text::HashMap<std::uint32_t> table;
            table.reserve(known.size());
            for (std::size_t place = 0; place < known.size(); ++place)
                table[known.data()[place]] = static_cast<std::uint32_t>(place);
            for (std::size_t at = 0; at < hashes.size(); ++at) {
                const std::uint32_t* const found = table.find(hashes.data()[at]);
                places.data()[at] = found == nullptr ? -1 : static_cast<std::int64_t>(*found);
            }
        },
        "hashes"_a.noconvert(), "known"_a.noconvert(), "places"_a.noconvert());

    nb::class_<TextFeatures>(module, "TextFeatures")
        .def(
            "__init__",
            [](TextFeatures* self, bool characters, const std::vector<std::size_t>& ngrams,
               bool lowercase, std::size_t min_length, const std::vector<std::string>& stopwords,
               bool stem) {
                expect(!ngrams.empty() && ngrams.front() >= 1 &&
                           std::is_sorted(ngrams.begin(), ngrams.end(), std::less_equal<>()),
                       "lengths of n-grams that do not ascend from 1 on");
                new (self) TextFeatures();
                self->options = {characters, ngrams, lowercase, min_length, {}, stem};
                for (const std::string& word : stopwords)
                    self->options.stopwords[hash_of(word)];
            },
            "characters"_a, "ngrams"_a, "lowercase"_a, "min_length"_a, "stopwords"_a, "stem"_a)
        .def("unknown_words", &unknown_words, "documents"_a)
        .def(
            "add_stems",
            [](TextFeatures& self, const std::vector<std::string>& words,
               const std::vector<std::string>& stems) {
                expect(words.size() == stems.size(), "stems of another number than words");
                const auto more = std::make_shared<text::Stems>(*self.stems);
                for (std::size_t index = 0; index < words.size(); ++index)
                    (*more)[hash_of(words[index])] = hash_of(stems[index]);
                self.stems = more;
            },
            "words"_a, "stems"_a)
        .def("forget_stems",
             [](TextFeatures& self) { self.stems = std::make_shared<text::Stems>(); })
        .def_prop_ro("known_stems", [](const TextFeatures& self) { return self.stems->size(); })
        .def(
            "extract",
            [](const TextFeatures& self, const Documents& documents) {
                std::vector<std::int64_t> offsets{0};
                std::vector<std::uint64_t> features;
                {
                    const nb::gil_scoped_release nogil;
                    text::Scratch scratch;
                    for (const std::string_view document : documents.texts) {
                        text::extract(document, self.options, *self.stems, scratch, features);
                        offsets.push_back(static_cast<std::int64_t>(features.size()));
                    }
                }
                return nb::make_tuple(to_numpy(std::move(offsets)), to_numpy(std::move(features)));
            },
            "documents"_a);
}

}  // namespace lookalike::bindings
