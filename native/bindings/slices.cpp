#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "slices/masked.hpp"
#include "slices/sample.hpp"
#include "slices/scoring/thresholds.hpp"
#include "slices/search.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

template <class Row>
using RowArray = nb::ndarray<const Row, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SketchArray = RowArray<std::uint16_t>;
using SketchOutput = OutputArray<std::uint16_t, 1>;
using ValueArray = RowArray<std::uint32_t>;
using ValueOutput = OutputArray<std::uint32_t, 1>;

// The width of slices that cover a signature, or the width of each.
using Cut = std::variant<std::size_t, std::vector<std::size_t>>;

std::vector<std::size_t> widths_of(std::size_t bits, const Cut& cut) {
    if (const auto* const each = std::get_if<std::vector<std::size_t>>(&cut))
        return *each;
    const std::size_t slice_bits = std::get<std::size_t>(cut);
    expect(bits > 0 && slice_bits > 0, "slices of no width");
    return search::Slicing::equal_widths(bits, slice_bits);
}

search::Slicing slicing_of(std::size_t bits, const Cut& cut,
                           std::size_t directory = search::Slicing::kMostSliceBits) {
    const auto widths = widths_of(bits, cut);
    std::size_t sum = 0;
    for (const std::size_t width : widths) {
        expect(width > 0 && width <= search::Slicing::kMostSliceBits,
               "slices of no width, or too wide");
        sum += width;
    }
    expect(!widths.empty() && sum <= bits, "slices of more bits than there are, or none");
    expect(directory > 0, "a directory of no bits");
    return {bits, widths, directory};
}

// A segment as Python holds it, with what it points into.
struct BoundSegment {
    search::Segment segment;
    SignatureArray rows;
    std::optional<IdArray> ids;
    std::optional<ByteArray> removed;
    nb::object lists;

    BoundSegment(const SignatureArray& signature_rows, const std::optional<IdArray>& row_ids,
                 bool ascending, const std::optional<ByteArray>& removed_rows, std::size_t alive)
        : segment{{signatures(signature_rows), row_ids ? row_ids->data() : nullptr, ascending},
                  removed_rows ? removed_rows->data() : nullptr,
                  alive,
                  {}},
          rows(signature_rows),
          ids(row_ids),
          removed(removed_rows) {
        expect(!ids || ids->size() == rows.shape(0), "ids of another number than rows");
        expect(!removed || removed->size() == rows.shape(0), "marks of another number than rows");
        expect(alive <= rows.shape(0), "more rows left than there are");
    }
};

template <class Row>
void use_lists(BoundSegment& self, const Cut& slice_bits, const RowArray<Row>& offsets,
               const RowArray<Row>& postings, const std::optional<SketchArray>& sketches,
               const std::optional<ValueArray>& values, std::size_t directory) {
    auto slicing = slicing_of(8 * self.rows.shape(1), slice_bits, directory);
    // These come from files, which may be damaged; their values are checked as they are read.
    if (offsets.size() != slicing.lists_before(slicing.count()) ||
        postings.size() != slicing.count() * self.rows.shape(0) ||
        (sketches && (sketches->size() != postings.size() || !slicing.has_sketches())) ||
        values.has_value() == slicing.is_dense() || (values && values->size() != postings.size()))
        throw search::CorruptLists();
    self.segment.lists = search::SliceLists<Row>{std::move(slicing),
                                                 offsets.data(),
                                                 postings.data(),
                                                 self.rows.shape(0),
                                                 sketches ? sketches->data() : nullptr,
                                                 values ? values->data() : nullptr};
    self.lists = nb::make_tuple(offsets, postings, sketches, values);
}

std::vector<search::Segment> plain(const std::vector<const BoundSegment*>& segments,
                                   const SignatureArray& queries) {
    std::vector<search::Segment> result;
    for (const BoundSegment* segment : segments) {
        expect(segment->rows.shape(1) == queries.shape(1), "queries of another width than rows");
        result.push_back(segment->segment);
    }
    return result;
}

using LengthArray = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ScoreArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// What a search for the nearest writes to, as Python holds it: a row a query.
struct BoundAnswer {
    OutputArray<std::int64_t, 2> ids;
    OutputArray<std::int32_t, 2> distances, scores;
    OutputArray<std::int32_t, 1> rest;
    OutputArray<std::uint8_t, 1> proven;
    OutputArray<std::int64_t, 2> work;

    search::NearestOutput output(std::size_t queries, std::size_t k) const {
        expect_shape(ids, {queries, k}, "ids of another shape than the answer");
        expect_shape(distances, {queries, k}, "distances of another shape than the answer");
        expect_shape(scores, {queries, k}, "scores of another shape than the answer");
        expect_shape(rest, {queries}, "scores of the rest of another number than queries");
        expect_shape(proven, {queries}, "proofs of another number than queries");
        expect_shape(work, {5, queries}, "counts of work of another shape");
        const auto row = [&](std::size_t kind) { return work.data() + kind * queries; };
        return {ids.data(), distances.data(), scores.data(), rest.data(), proven.data(),
                row(0),     row(1),           row(2),        row(3),      row(4)};
    }
};

// What is beside postings.
void expect_beside(const search::Slicing& slicing, std::size_t postings,
                   const std::optional<SketchOutput>& sketches,
                   const std::optional<ValueOutput>& values) {
    expect(!sketches || (slicing.has_sketches() && sketches->size() == postings),
           "sketches of other lists");
    expect(values.has_value() != slicing.is_dense() && (!values || values->size() == postings),
           "values of other lists");
}

// Room for lists that are built: as much as these signatures take.
template <class Row>
void expect_room(const search::Slicing& slicing, std::size_t rows,
                 const OutputArray<Row, 1>& offsets, const OutputArray<Row, 1>& postings,
                 const std::optional<SketchOutput>& sketches,
                 const std::optional<ValueOutput>& values) {
    expect_shape(offsets, {slicing.lists_before(slicing.count())}, "offsets of other lists");
    expect_shape(postings, {slicing.count() * rows}, "postings of other lists");
    expect_beside(slicing, postings.size(), sketches, values);
}

template <class Row>
void bind_building(nb::module_& module) {
    module.def(
        "build_lists",
        [](const SignatureArray& rows, const Cut& slice_bits, std::size_t threads,
           const OutputArray<Row, 1>& offsets, const OutputArray<Row, 1>& postings,
           const std::optional<SketchOutput>& sketches, const std::optional<ValueOutput>& values,
           std::size_t directory) {
            const auto slicing = slicing_of(8 * rows.shape(1), slice_bits, directory);
            expect_room<Row>(slicing, rows.shape(0), offsets, postings, sketches, values);
            const nb::gil_scoped_release nogil;
            search::build_lists(slicing, signatures(rows), threads, python_signals, offsets.data(),
                                postings.data(), sketches ? sketches->data() : nullptr,
                                values ? values->data() : nullptr);
        },
        "rows"_a.noconvert(), "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(),
        "postings"_a.noconvert(), "sketches"_a.noconvert().none(), "values"_a.noconvert().none(),
        "directory"_a);

    module.def(
        "count_lists",
        [](const SignatureArray& rows, const Cut& slice_bits, std::size_t threads,
           const OutputArray<Row, 1>& offsets, std::size_t directory) {
            const auto slicing = slicing_of(8 * rows.shape(1), slice_bits, directory);
            expect_shape(offsets, {slicing.lists_before(slicing.count())},
                         "offsets of other lists");
            const nb::gil_scoped_release nogil;
            search::count_lists(slicing, signatures(rows), threads, python_signals, offsets.data());
        },
        "rows"_a.noconvert(), "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(), "directory"_a);

    module.def(
        "fill_lists",
        [](const SignatureArray& rows, const Cut& slice_bits, std::size_t threads,
           const RowArray<Row>& offsets, std::size_t first, std::size_t end,
           const OutputArray<Row, 1>& postings, const std::optional<SketchOutput>& sketches,
           const std::optional<ValueOutput>& values, std::size_t directory) {
            const auto slicing = slicing_of(8 * rows.shape(1), slice_bits, directory);
            expect_shape(offsets, {slicing.lists_before(slicing.count())},
                         "offsets of other lists");
            expect(first <= end && end <= offsets.size(), "lists that are not there");
            expect_beside(slicing, postings.size(), sketches, values);
            const nb::gil_scoped_release nogil;
            search::fill_lists(slicing, signatures(rows), threads, python_signals, offsets.data(),
                               first, end, postings.data(), postings.size(),
                               sketches ? sketches->data() : nullptr,
                               values ? values->data() : nullptr);
        },
        "rows"_a.noconvert(), "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(), "first"_a,
        "end"_a, "postings"_a.noconvert(), "sketches"_a.noconvert().none(),
        "values"_a.noconvert().none(), "directory"_a);

    module.def(
        "merge_lists",
        [](const std::vector<const BoundSegment*>& segments, const Cut& slice_bits,
           std::size_t threads, const OutputArray<Row, 1>& offsets,
           const OutputArray<Row, 1>& postings, const std::optional<SketchOutput>& sketches) {
            expect(!segments.empty(), "no segments to merge");
            const auto slicing = slicing_of(8 * segments.front()->rows.shape(1), slice_bits);
            std::vector<search::SliceLists<Row>> parts;
            std::size_t rows = 0;
            for (const BoundSegment* segment : segments) {
                const auto* const lists =
                    std::get_if<search::SliceLists<Row>>(&segment->segment.lists);
                expect(lists != nullptr && lists->slicing == slicing, "segments of other lists");
                parts.push_back(*lists);
                rows += segment->rows.shape(0);
            }
            expect_room<Row>(slicing, rows, offsets, postings, sketches, std::nullopt);
            const nb::gil_scoped_release nogil;
            search::merge_lists(slicing, parts, threads, python_signals, offsets.data(),
                                postings.data(), sketches ? sketches->data() : nullptr);
        },
        "segments"_a, "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(),
        "postings"_a.noconvert(), "sketches"_a.noconvert().none());
}

// Three numbers for each query: lists, postings, and rows verified.
std::vector<std::int64_t> counts_of(const std::vector<search::WithinWork>& work) {
    std::vector<std::int64_t> counts;
    for (const search::WithinWork& one : work)
        counts.insert(counts.end(), {one.lists, one.postings, one.verified});
    return counts;
}

void bind_searching(nb::module_& module) {
    nb::enum_<search::Cull>(module, "Cull")
        .value("pessimistic", search::Cull::pessimistic)
        .value("optimistic", search::Cull::optimistic)
        .value("both", search::Cull::both);

    nb::class_<search::NearestSettings>(module, "NearestSettings")
        .def(
            "__init__",
            [](search::NearestSettings* self, std::size_t k, std::size_t expand, std::size_t admit,
               std::size_t rerank, bool exact, bool or_scan, bool explain, bool by_score,
               search::Cull cull) {
                expect(!by_score || (!exact && !or_scan), "scores where distances are wanted");
                expect(cull == search::Cull::pessimistic || (!by_score && !exact),
                       "culling of what is not chosen");
                new (self) search::NearestSettings{k,       expand,  admit,    rerank, exact,
                                                   or_scan, explain, by_score, cull};
            },
            nb::kw_only(), "k"_a, "expand"_a, "admit"_a, "rerank"_a, "exact"_a, "or_scan"_a,
            "explain"_a, "by_score"_a = false, "cull"_a = search::Cull::pessimistic);

    nb::class_<BoundAnswer>(module, "NearestAnswer")
        .def(
            "__init__",
            [](BoundAnswer* self, const OutputArray<std::int64_t, 2>& ids,
               const OutputArray<std::int32_t, 2>& distances,
               const OutputArray<std::int32_t, 2>& scores, const OutputArray<std::int32_t, 1>& rest,
               const OutputArray<std::uint8_t, 1>& proven,
               const OutputArray<std::int64_t, 2>& work) {
                new (self) BoundAnswer{ids, distances, scores, rest, proven, work};
            },
            nb::kw_only(), "ids"_a.noconvert(), "distances"_a.noconvert(), "scores"_a.noconvert(),
            "rest"_a.noconvert(), "proven"_a.noconvert(), "work"_a.noconvert());

    module.def(
        "slice_nearest",
        [](const std::vector<const BoundSegment*>& segments, const Cut& slice_bits,
           const SignatureArray& queries, const search::NearestSettings& settings,
           std::size_t threads, const BoundAnswer& answer) {
            const auto parts = plain(segments, queries);
            const auto output = answer.output(queries.shape(0), settings.k);
            const nb::gil_scoped_release nogil;
            search::slice_nearest(slicing_of(8 * queries.shape(1), slice_bits), parts,
                                  signatures(queries), settings, threads, python_signals, output);
        },
        "segments"_a, "slice_bits"_a, "queries"_a.noconvert(), "settings"_a, "threads"_a,
        "answer"_a);

    module.def(
        "slice_within",
        [](const std::vector<const BoundSegment*>& segments, const Cut& slice_bits,
           const SignatureArray& queries, std::uint32_t radius, std::size_t limit,
           std::size_t threads) {
            const auto parts = plain(segments, queries);
            std::vector<search::WithinWork> work;
            auto matches = without_gil([&] {
                return search::slice_within(slicing_of(8 * queries.shape(1), slice_bits), parts,
                                            signatures(queries), radius, limit, threads,
                                            python_signals, work);
            });
            auto counts = counts_of(work);
            return tuple_of(matches.offsets, matches.ids, matches.distances, counts);
        },
        "segments"_a, "slice_bits"_a, "queries"_a.noconvert(), "radius"_a, "limit"_a, "threads"_a);
}

void bind_masked_searching(nb::module_& module) {
    module.def(
        "slice_nearest_masked",
        [](const std::vector<const BoundSegment*>& segments, const Cut& slice_bits,
           const SignatureArray& queries, const SignatureArray& masks, std::size_t k,
           std::size_t threads, const OutputArray<std::int64_t, 2>& out_ids,
           const OutputArray<std::int32_t, 2>& out_distances,
           const OutputArray<std::int32_t, 2>& out_unmasked) {
            const auto parts = plain(segments, queries);
            const auto asked = masked_queries(queries, masks);
            expect_shape(out_ids, {queries.shape(0), k}, "ids of another shape than the answer");
            for (const auto& each : {out_distances, out_unmasked})
                expect_shape(each, {queries.shape(0), k},
                             "distances of another shape than the answer");
            std::vector<search::WithinWork> work;
            without_gil([&] {
                search::slice_nearest_masked(
                    slicing_of(8 * queries.shape(1), slice_bits), parts, asked, k, threads,
                    python_signals, {out_ids.data(), out_distances.data(), out_unmasked.data()},
                    work);
            });
            return to_numpy(counts_of(work));
        },
        "segments"_a, "slice_bits"_a, "queries"_a.noconvert(), "masks"_a.noconvert(), "k"_a,
        "threads"_a, "out_ids"_a.noconvert(), "out_distances"_a.noconvert(),
        "out_unmasked"_a.noconvert());

    module.def(
        "slice_within_masked",
        [](const std::vector<const BoundSegment*>& segments, const Cut& slice_bits,
           const SignatureArray& queries, const SignatureArray& masks, std::uint32_t radius,
           std::size_t limit, std::size_t threads) {
            const auto parts = plain(segments, queries);
            const auto asked = masked_queries(queries, masks);
            std::vector<search::WithinWork> work;
            auto matches = without_gil([&] {
                return search::slice_within_masked(slicing_of(8 * queries.shape(1), slice_bits),
                                                   parts, asked, radius, limit, threads,
                                                   python_signals, work);
            });
            auto counts = counts_of(work);
            return tuple_of(matches.offsets, matches.ids, matches.distances, matches.unmasked,
                            counts);
        },
        "segments"_a, "slice_bits"_a, "queries"_a.noconvert(), "masks"_a.noconvert(), "radius"_a,
        "limit"_a, "threads"_a);
}

}  // namespace

void bind_slices(nb::module_& module) {
    nb::exception<search::CorruptLists>(module, "CorruptLists");

    nb::class_<BoundSegment>(module, "Segment")
        .def(nb::init<const SignatureArray&, const std::optional<IdArray>&, bool,
                      const std::optional<ByteArray>&, std::size_t>(),
             "rows"_a.noconvert(), "ids"_a.noconvert().none(), "ascending"_a,
             "removed"_a.noconvert().none(), "alive"_a)
        .def("use_lists", &use_lists<std::uint32_t>, "slice_bits"_a, "offsets"_a.noconvert(),
             "postings"_a.noconvert(), "sketches"_a.noconvert().none(),
             "values"_a.noconvert().none(), "directory"_a)
        .def("use_lists", &use_lists<std::uint64_t>, "slice_bits"_a, "offsets"_a.noconvert(),
             "postings"_a.noconvert(), "sketches"_a.noconvert().none(),
             "values"_a.noconvert().none(), "directory"_a);

    module.def(
        "has_sketches",
        [](std::size_t bits) { return slicing_of(bits, std::size_t{1}).has_sketches(); }, "bits"_a);

    module.def("slice_widths", &widths_of, "bits"_a, "slice_bits"_a);

    module.def("lists_near", &search::lists_near, "width"_a, "expand"_a);

    module.def(
        "expected_work",
        [](std::size_t bits, std::size_t slice_bits, std::size_t rows, std::uint32_t radius,
           std::size_t queries, const std::optional<LengthArray>& lengths,
           const std::optional<LengthArray>& near) -> nb::object {
            if (bits == 0 || slice_bits == 0 || slice_bits > search::Slicing::kMostSliceBits)
                throw nb::value_error("slices have from 1 bit to as many as lists are made for");
            const search::Slicing slicing(bits, slice_bits);
            for (const auto& each : {lengths, near})
                expect(!each || (each->shape(0) == slicing.count() &&
                                 each->shape(1) == slicing.widest() + 1),
                       "lengths of other lists");
            const auto work = search::expected_work(slicing, rows, radius, queries,
                                                    lengths ? lengths->data() : nullptr,
                                                    near ? near->data() : nullptr);
            if (!work)
                return nb::none();
            return nb::make_tuple(work->lists, work->postings, work->compared);
        },
        "bits"_a, "slice_bits"_a, "rows"_a, "radius"_a, "queries"_a,
        "lengths"_a.noconvert().none() = nb::none(), "near"_a.noconvert().none() = nb::none());

    module.def(
        "slice_levels",
        [](const SignatureArray& rows, const SignatureArray& queries, const Cut& slice_bits,
           std::uint32_t radius, const OutputArray<std::int64_t, 3>& levels,
           const OutputArray<std::int64_t, 3>& near) {
            const auto slicing = slicing_of(8 * rows.shape(1), slice_bits);
            expect(rows.shape(1) == queries.shape(1), "queries of another width than rows");
            for (const auto& each : {levels, near})
                expect_shape(each, {queries.shape(0), slicing.count(), slicing.widest() + 1},
                             "levels of other slices");
            const nb::gil_scoped_release nogil;
            search::slice_levels(slicing, signatures(rows), signatures(queries), radius,
                                 levels.data(), near.data());
        },
        "rows"_a.noconvert(), "queries"_a.noconvert(), "slice_bits"_a, "radius"_a,
        "levels"_a.noconvert(), "near"_a.noconvert());

    module.def(
        "slice_scores",
        [](const SignatureArray& rows, const SignatureArray& queries, const Cut& slice_bits,
           const OutputArray<std::int32_t, 3>& scores) {
            const auto slicing = slicing_of(8 * rows.shape(1), slice_bits);
            expect(rows.shape(1) == queries.shape(1), "queries of another width than rows");
            expect(scores.shape(0) > 0, "scores of no expansion");
            expect_shape(scores, {scores.shape(0), queries.shape(0), rows.shape(0)},
                         "scores of other pairs");
            const nb::gil_scoped_release nogil;
            search::slice_scores(slicing, signatures(rows), signatures(queries),
                                 scores.shape(0) - 1, scores.data());
        },
        "rows"_a.noconvert(), "queries"_a.noconvert(), "slice_bits"_a, "scores"_a.noconvert());

    module.def(
        "optimistic_distances",
        [](std::size_t bits, const Cut& slice_bits, std::size_t expand) {
            return to_numpy(search::optimistic_distances(slicing_of(bits, slice_bits), expand));
        },
        "bits"_a, "slice_bits"_a, "expand"_a);

    module.def(
        "slice_proofs",
        [](std::size_t bits, const Cut& slice_bits, std::size_t expand, std::size_t admit,
           const ScoreArray& rest, const ScoreArray& kth,
           const OutputArray<std::uint8_t, 1>& proven) {
            const auto slicing = slicing_of(bits, slice_bits);
            const auto optimistic = search::optimistic_distances(slicing, expand);
            expect_shape(kth, {rest.size()}, "distances of another number than scores");
            expect_shape(proven, {rest.size()}, "proofs of another number than scores");
            for (std::size_t query = 0; query < rest.size(); ++query) {
                const std::int32_t score = rest.data()[query], far = kth.data()[query];
                expect(score < 0 || static_cast<std::size_t>(score) <= bits, "an impossible score");
                proven.data()[query] = search::nothing_is_nearer(
                    slicing, optimistic, std::min(admit, expand),
                    score < 0 ? std::nullopt : std::optional<std::uint32_t>(score),
                    far < 0 ? std::nullopt : std::optional<std::int64_t>(far));
            }
        },
        "bits"_a, "slice_bits"_a, "expand"_a, "admit"_a, "rest"_a.noconvert(), "kth"_a.noconvert(),
        "proven"_a.noconvert());

    bind_building<std::uint32_t>(module);
    bind_building<std::uint64_t>(module);
    bind_searching(module);
    bind_masked_searching(module);
}

}  // namespace lookalike::bindings
