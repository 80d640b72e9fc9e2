#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "pairs/block_pairs.hpp"
#include "pairs/equal_rows.hpp"
#include "slices/search.hpp"
#include "slices/thresholds.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

template <class Row>
using RowArray = nb::ndarray<const Row, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SketchArray = RowArray<std::uint16_t>;
using SketchOutput = OutputArray<std::uint16_t, 1>;

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
          removed(removed_rows) {}
};

template <class Row>
void use_lists(BoundSegment& self, std::size_t slice_bits, const RowArray<Row>& offsets,
               const RowArray<Row>& postings, const std::optional<SketchArray>& sketches) {
    const search::Slicing slicing(8 * self.rows.shape(1), slice_bits);
    if (offsets.size() != slicing.lists_before(slicing.count()) ||
        postings.size() != slicing.count() * self.rows.shape(0) ||
        (sketches && (sketches->size() != postings.size() || !slicing.has_sketches())))
        throw search::CorruptLists();
    self.segment.lists =
        search::SliceLists<Row>{slicing, offsets.data(), postings.data(), self.rows.shape(0),
                                sketches ? sketches->data() : nullptr};
    self.lists = nb::make_tuple(offsets, postings, sketches);
}

std::vector<search::Segment> plain(const std::vector<const BoundSegment*>& segments) {
    std::vector<search::Segment> result;
    for (const BoundSegment* segment : segments)
        result.push_back(segment->segment);
    return result;
}

template <class Row>
void bind_building(nb::module_& module) {
    module.def(
        "build_lists",
        [](const SignatureArray& rows, std::size_t slice_bits, std::size_t threads,
           const OutputArray<Row, 1>& offsets, const OutputArray<Row, 1>& postings,
           const std::optional<SketchOutput>& sketches) {
            const nb::gil_scoped_release nogil;
            search::build_lists(search::Slicing(8 * rows.shape(1), slice_bits), signatures(rows),
                                threads, python_signals, offsets.data(), postings.data(),
                                sketches ? sketches->data() : nullptr);
        },
        "rows"_a.noconvert(), "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(),
        "postings"_a.noconvert(), "sketches"_a.noconvert().none());

    module.def(
        "count_lists",
        [](const SignatureArray& rows, std::size_t slice_bits, std::size_t threads,
           const OutputArray<Row, 1>& offsets) {
            const nb::gil_scoped_release nogil;
            search::count_lists(search::Slicing(8 * rows.shape(1), slice_bits), signatures(rows),
                                threads, python_signals, offsets.data());
        },
        "rows"_a.noconvert(), "slice_bits"_a, "threads"_a, "offsets"_a.noconvert());

    module.def(
        "fill_lists",
        [](const SignatureArray& rows, std::size_t slice_bits, std::size_t threads,
           const RowArray<Row>& offsets, std::size_t first, std::size_t end,
           const OutputArray<Row, 1>& postings, const std::optional<SketchOutput>& sketches) {
            const nb::gil_scoped_release nogil;
            search::fill_lists(search::Slicing(8 * rows.shape(1), slice_bits), signatures(rows),
                               threads, python_signals, offsets.data(), first, end, postings.data(),
                               sketches ? sketches->data() : nullptr);
        },
        "rows"_a.noconvert(), "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(), "first"_a,
        "end"_a, "postings"_a.noconvert(), "sketches"_a.noconvert().none());

    module.def(
        "merge_lists",
        [](const std::vector<const BoundSegment*>& segments, std::size_t slice_bits,
           std::size_t threads, const OutputArray<Row, 1>& offsets,
           const OutputArray<Row, 1>& postings, const std::optional<SketchOutput>& sketches) {
            const nb::gil_scoped_release nogil;
            std::vector<search::SliceLists<Row>> parts;
            for (const BoundSegment* segment : segments)
                parts.push_back(std::get<search::SliceLists<Row>>(segment->segment.lists));
            search::merge_lists(search::Slicing(8 * segments.front()->rows.shape(1), slice_bits),
                                parts, threads, python_signals, offsets.data(), postings.data(),
                                sketches ? sketches->data() : nullptr);
        },
        "segments"_a, "slice_bits"_a, "threads"_a, "offsets"_a.noconvert(),
        "postings"_a.noconvert(), "sketches"_a.noconvert().none());
}

void bind_searching(nb::module_& module) {
    module.def(
        "slice_top",
        [](const std::vector<const BoundSegment*>& segments, std::size_t slice_bits,
           const SignatureArray& queries, std::size_t k, std::size_t expand, std::size_t admit,
           std::size_t rerank, bool exact, bool explain, std::size_t threads,
           const OutputArray<std::int64_t, 2>& ids, const OutputArray<std::int32_t, 2>& distances,
           const OutputArray<std::int32_t, 2>& scores, const OutputArray<std::int32_t, 1>& rest,
           const OutputArray<std::uint8_t, 1>& proven, const OutputArray<std::int64_t, 2>& work) {
            const nb::gil_scoped_release nogil;
            const std::size_t count = queries.shape(0);
            search::slice_top(
                search::Slicing(8 * queries.shape(1), slice_bits), plain(segments),
                signatures(queries), {k, expand, admit, rerank, exact, explain}, threads,
                python_signals,
                {ids.data(), distances.data(), scores.data(), rest.data(), proven.data(),
                 work.data(), work.data() + count, work.data() + 2 * count, work.data() + 3 * count,
                 work.data() + 4 * count});
        },
        "segments"_a, "slice_bits"_a, "queries"_a.noconvert(), "k"_a, "expand"_a, "admit"_a,
        "rerank"_a, "exact"_a, "explain"_a, "threads"_a, "ids"_a.noconvert(),
        "distances"_a.noconvert(), "scores"_a.noconvert(), "rest"_a.noconvert(),
        "proven"_a.noconvert(), "work"_a.noconvert());

    module.def(
        "slice_within",
        [](const std::vector<const BoundSegment*>& segments, std::size_t slice_bits,
           const SignatureArray& queries, std::uint32_t radius, std::size_t limit,
           std::size_t threads) {
            search::Matches matches;
            std::vector<search::WithinWork> work;
            {
                const nb::gil_scoped_release nogil;
                matches = search::slice_within(search::Slicing(8 * queries.shape(1), slice_bits),
                                               plain(segments), signatures(queries), radius, limit,
                                               threads, python_signals, work);
            }
            std::vector<std::int64_t> counts;
            for (const search::WithinWork& one : work)
                counts.insert(counts.end(), {one.lists, one.postings, one.verified});
            return nb::make_tuple(
                to_numpy(std::move(matches.offsets)), to_numpy(std::move(matches.ids)),
                to_numpy(std::move(matches.distances)), to_numpy(std::move(counts)));
        },
        "segments"_a, "slice_bits"_a, "queries"_a.noconvert(), "radius"_a, "limit"_a, "threads"_a);

    module.def(
        "block_pairs",
        [](const SignatureArray& rows, const std::optional<ByteArray>& skipped,
           std::uint32_t radius, std::size_t limit, std::size_t threads) -> nb::object {
            if (skipped && skipped->size() != rows.shape(0))
                throw nb::value_error("skipped needs a byte for each row");
            std::optional<search::Pairs> pairs;
            {
                const nb::gil_scoped_release nogil;
                pairs = search::block_pairs(signatures(rows), skipped ? skipped->data() : nullptr,
                                            radius, limit, threads, python_signals);
            }
            if (!pairs)
                return nb::none();
            return nb::make_tuple(to_numpy(std::move(pairs->left)),
                                  to_numpy(std::move(pairs->right)),
                                  to_numpy(std::move(pairs->distances)));
        },
        "rows"_a.noconvert(), "skipped"_a.noconvert().none(), "radius"_a, "limit"_a, "threads"_a);

    module.def(
        "equal_rows",
        [](const SignatureArray& rows) {
            search::EqualRows equal;
            {
                const nb::gil_scoped_release nogil;
                equal = search::equal_rows(signatures(rows));
            }
            return nb::make_tuple(to_numpy(std::move(equal.rows)),
                                  to_numpy(std::move(equal.offsets)));
        },
        "rows"_a.noconvert());
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
             "postings"_a.noconvert(), "sketches"_a.noconvert().none())
        .def("use_lists", &use_lists<std::uint64_t>, "slice_bits"_a, "offsets"_a.noconvert(),
             "postings"_a.noconvert(), "sketches"_a.noconvert().none());

    module.def(
        "has_sketches", [](std::size_t bits) { return search::Slicing(bits, 1).has_sketches(); },
        "bits"_a);

    module.def(
        "slice_widths",
        [](std::size_t bits, std::size_t slice_bits) {
            const search::Slicing slicing(bits, slice_bits);
            std::vector<std::size_t> widths;
            for (std::size_t position = 0; position < slicing.count(); ++position)
                widths.push_back(slicing.width(position));
            return widths;
        },
        "bits"_a, "slice_bits"_a);

    module.def(
        "expected_work",
        [](std::size_t bits, std::size_t slice_bits, std::size_t rows,
           std::uint32_t radius) -> nb::object {
            if (bits == 0 || slice_bits == 0 || slice_bits > search::Slicing::kMostSliceBits)
                throw nb::value_error("slices have from 1 bit to as many as lists are made for");
            const auto work =
                search::expected_work(search::Slicing(bits, slice_bits), rows, radius);
            if (!work)
                return nb::none();
            return nb::make_tuple(work->lists, work->postings, work->compared);
        },
        "bits"_a, "slice_bits"_a, "rows"_a, "radius"_a);

    module.def(
        "optimistic_distances",
        [](std::size_t bits, std::size_t slice_bits, std::size_t expand) {
            return to_numpy(
                search::optimistic_distances(search::Slicing(bits, slice_bits), expand));
        },
        "bits"_a, "slice_bits"_a, "expand"_a);

    bind_building<std::uint32_t>(module);
    bind_building<std::uint64_t>(module);
    bind_searching(module);
}

}  // namespace lookalike::bindings
