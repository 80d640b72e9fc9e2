#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/text.hpp"
#include "words/bags.hpp"
#include "words/index.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

template <class Value>
using Vector = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value>
std::span<const Value> span_of(const Vector<Value>& array) {
    return {array.data(), array.size()};
}

// The arrays of a segment, which are kept alive, checked once.
struct WordSegment {
    Vector<std::int64_t> numbers;
    Vector<std::uint32_t> lengths;
    Vector<std::uint64_t> words;
    Vector<std::int64_t> offsets;
    Vector<std::uint32_t> documents;
    Vector<std::uint8_t> counts;
    Vector<std::int64_t> piece_offsets;
    Vector<std::uint8_t> pieces;
    std::uint64_t length = 0;

    void check() {
        const nb::gil_scoped_release nogil;
        const auto ascending = [](const auto& array) {
            const auto *const begin = array.data(), *const end = begin + array.size();
            return std::adjacent_find(begin, end, std::greater_equal<>()) == end;
        };
        expect(lengths.size() == numbers.size(), "lengths of another number than documents");
        expect(offsets.size() == words.size() + 1 && offsets.data()[0] == 0,
               "lists of another number than words");
        expect_offsets(offsets, documents.size(), "lists that do not lie in the documents");
        expect(static_cast<std::size_t>(offsets.data()[words.size()]) == documents.size() &&
                   counts.size() == documents.size(),
               "counts of another number than documents of words");
        expect(piece_offsets.size() == numbers.size() + 1,
               "pieces of another number than documents");
        expect_offsets(piece_offsets, pieces.size(), "pieces that do not lie in the bytes");
        expect(ascending(numbers) && ascending(words), "numbers or words that do not ascend");
        expect_below(documents, numbers.size(), "documents of words that are not there");
        for (std::size_t list = 0; list < words.size(); ++list) {
            const auto *const begin = documents.data() + offsets.data()[list],
                              *const end = documents.data() + offsets.data()[list + 1];
            expect(begin != end && std::adjacent_find(begin, end, std::greater_equal<>()) == end,
                   "a list of documents that does not ascend");
        }
        for (std::size_t document = 0; document < lengths.size(); ++document)
            length += lengths.data()[document];
    }
};

using Part = std::tuple<const WordSegment*, Vector<std::uint32_t>>;  // and what is removed

std::vector<words::Segment> segments_of(const std::vector<Part>& parts) {
    std::vector<words::Segment> segments;
    for (const auto& [segment, removed] : parts) {
        expect_below(removed, segment->numbers.size(), "removed documents that are not there");
        segments.push_back({span_of(segment->numbers), span_of(segment->lengths),
                            span_of(segment->words), span_of(segment->offsets),
                            span_of(segment->documents), span_of(segment->counts),
                            span_of(segment->piece_offsets), span_of(segment->pieces),
                            segment->length, span_of(removed)});
    }
    return segments;
}

nb::tuple arrays_of(words::BuiltSegment built) {
    return tuple_of(built.numbers, built.lengths, built.words, built.offsets, built.documents,
                    built.counts, built.piece_offsets, built.pieces);
}

words::WordKind kind_of(const std::string& name) {
    if (name == "porter")
        return words::WordKind::porter;
    expect(name == "plain" || name == "trigram", "an unknown kind of words");
    return name == "plain" ? words::WordKind::plain : words::WordKind::trigram;
}

// The bags of texts, and where each of them begins.
nb::tuple word_bags(const Documents& documents, const std::string& kind, std::size_t threads) {
    const words::WordKind wanted = kind_of(kind);
    words::Bags bags = without_gil(
        [&] { return words::bags_of(documents.texts, wanted, threads, python_signals); });
    return tuple_of(bags.offsets, bags.bytes);
}

// A hash of number, id and bag of each document.
void hash_bags(const IdArray& numbers, const Documents& ids, const IdArray& offsets,
               const ByteArray& bags, const OutputArray<std::uint64_t, 1>& hashes) {
    const std::size_t count = numbers.size();
    expect(ids.texts.size() == count && offsets.size() == count + 1 && hashes.size() == count,
           "bags of another number than documents");
    expect_offsets(offsets, bags.size(), "bags that do not lie in the bytes");
    const nb::gil_scoped_release nogil;
    for (std::size_t at = 0; at < count; ++at) {
        const auto number = static_cast<std::uint64_t>(numbers.data()[at]);
        const std::string_view id = ids.texts[at];
        const std::int64_t begin = offsets.data()[at], end = offsets.data()[at + 1];
        hashes.data()[at] = bits::xxh64(bags.data() + begin, static_cast<std::size_t>(end - begin),
                                        bits::xxh64(id.data(), id.size(), number));
    }
}

}  // namespace

void bind_words(nb::module_& module) {
    module.attr("most_query_words") = words::kMostWords;
    module.attr("piece_share") = nb::make_tuple(words::kPieceShare, words::kPieceWhole);
    nb::class_<WordSegment>(module, "WordSegment")
        .def(
            "__init__",
            [](WordSegment* self, Vector<std::int64_t> numbers, Vector<std::uint32_t> lengths,
               Vector<std::uint64_t> words, Vector<std::int64_t> offsets,
               Vector<std::uint32_t> documents, Vector<std::uint8_t> counts,
               Vector<std::int64_t> piece_offsets, Vector<std::uint8_t> pieces) {
                WordSegment segment{numbers,   lengths, words,         offsets,
                                    documents, counts,  piece_offsets, pieces};
                segment.check();
                new (self) WordSegment(std::move(segment));
            },
            "numbers"_a.noconvert(), "lengths"_a.noconvert(), "words"_a.noconvert(),
            "offsets"_a.noconvert(), "documents"_a.noconvert(), "counts"_a.noconvert(),
            "piece_offsets"_a.noconvert(), "pieces"_a.noconvert());

    module.def("word_bags", &word_bags, "documents"_a, "kind"_a, "threads"_a);
    module.def(
        "query_words",
        [](const Documents& query, const std::string& kind) {
            expect(query.texts.size() == 1, "another number of queries than one");
            const words::WordKind wanted = kind_of(kind);
            words::QueryWords found =
                without_gil([&] { return words::query_words(query.texts.front(), wanted); });
            return nb::make_tuple(found.words, to_numpy(std::move(found.hashes)),
                                  to_numpy(std::move(found.offsets)),
                                  to_numpy(std::move(found.pieces)));
        },
        "query"_a, "kind"_a);
    module.def("hash_bags", &hash_bags, "numbers"_a.noconvert(), "ids"_a, "offsets"_a.noconvert(),
               "bags"_a.noconvert(), "hashes"_a.noconvert());
    module.def(
        "build_words",
        [](const IdArray& numbers, const IdArray& offsets, const ByteArray& bags) {
            expect(offsets.size() == numbers.size() + 1 && numbers.size() < UINT32_MAX,
                   "bags of another number than documents");
            expect_offsets(offsets, bags.size(), "bags that do not lie in the bytes");
            for (std::size_t at = 0; at < numbers.size(); ++at)
                expect(words::is_bag({bags.data() + offsets.data()[at],
                                      bags.data() + offsets.data()[at + 1]}),
                       "bytes that are not a bag of words");
            return arrays_of(without_gil(
                [&] { return words::build(span_of(numbers), span_of(offsets), bags.data()); }));
        },
        "numbers"_a.noconvert(), "offsets"_a.noconvert(), "bags"_a.noconvert());
    module.def(
        "merge_words",
        [](const std::vector<Part>& parts) {
            const std::vector<words::Segment> segments = segments_of(parts);
            return arrays_of(without_gil([&] { return words::merge(segments); }));
        },
        "parts"_a);
    module.def(
        "search_words",
        [](const std::vector<Part>& parts, const WordArray& hashes, const IdArray& offsets,
           const Vector<std::uint16_t>& pieces, std::size_t k) {
            const std::vector<words::Segment> segments = segments_of(parts);
            expect(hashes.size() <= words::kMostWords, "too many words");
            expect(offsets.size() == hashes.size() + 1, "pieces of another number than words");
            expect_offsets(offsets, pieces.size(), "pieces that are not there");
            const words::Query query{span_of(hashes), span_of(offsets), span_of(pieces)};
            for (const std::uint16_t piece : query.pieces)
                expect(piece < 1 << words::kPieceBits, "a piece that is too large");
            words::Found found = without_gil([&] { return words::search(segments, query, k); });
            return tuple_of(found.numbers, found.scores, found.has, found.frequencies,
                            found.weights);
        },
        "parts"_a, "words"_a.noconvert(), "offsets"_a.noconvert(), "pieces"_a.noconvert(), "k"_a);
}

}  // namespace lookalike::bindings
