#include "scan/scan.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

search::Collection collection(const SignatureArray& array, const std::optional<IdArray>& ids,
                              bool ascending) {
    expect(!ids || ids->size() == array.shape(0), "ids of another number than rows");
    return {signatures(array), ids ? ids->data() : nullptr, ascending};
}

const std::uint8_t* marks(const std::optional<ByteArray>& removed, const SignatureArray& rows) {
    expect(!removed || removed->size() == rows.shape(0), "marks of another number than rows");
    return removed ? removed->data() : nullptr;
}

// How many rows have no mark.
std::size_t living(const std::uint8_t* removed, std::size_t rows) {
    return removed ? static_cast<std::size_t>(std::count(removed, removed + rows, 0)) : rows;
}

}  // namespace

void bind_scan(nb::module_& module) {
    nb::exception<search::TooManyResults>(module, "TooManyResults");

    module.def(
        "scan_nearest",
        [](const SignatureArray& rows, const std::optional<IdArray>& ids, bool ascending,
           const SignatureArray& queries, std::size_t k, std::size_t threads,
           const OutputArray<std::int64_t, 2>& out_ids,
           const OutputArray<std::int32_t, 2>& out_distances,
           const std::optional<ByteArray>& removed) {
            expect(queries.shape(1) == rows.shape(1), "queries of another width than rows");
            const std::uint8_t* const marked = marks(removed, rows);
            expect(k <= living(marked, rows.shape(0)), "a k of more than there are rows");
            expect_shape(out_ids, {queries.shape(0), k}, "ids of another shape than the answer");
            expect_shape(out_distances, {queries.shape(0), k},
                         "distances of another shape than the answer");
            const nb::gil_scoped_release nogil;
            search::scan_nearest(collection(rows, ids, ascending), signatures(queries), k, threads,
                                 python_signals, out_ids.data(), out_distances.data(), marked);
        },
        "rows"_a.noconvert(), "ids"_a.noconvert().none(), "ascending"_a, "queries"_a.noconvert(),
        "k"_a, "threads"_a, "out_ids"_a.noconvert(), "out_distances"_a.noconvert(),
        "removed"_a.noconvert().none() = nb::none());

    module.def(
        "scan_within",
        [](const SignatureArray& rows, const std::optional<IdArray>& ids, bool ascending,
           const SignatureArray& queries, std::uint32_t radius, std::size_t limit,
           std::size_t threads, const std::optional<ByteArray>& removed) {
            expect(queries.shape(1) == rows.shape(1), "queries of another width than rows");
            const std::uint8_t* const marked = marks(removed, rows);
            auto matches = without_gil([&] {
                return search::scan_within(collection(rows, ids, ascending), signatures(queries),
                                           radius, limit, threads, python_signals, marked);
            });
            return tuple_of(std::move(matches));
        },
        "rows"_a.noconvert(), "ids"_a.noconvert().none(), "ascending"_a, "queries"_a.noconvert(),
        "radius"_a, "limit"_a, "threads"_a, "removed"_a.noconvert().none() = nb::none());

    module.def(
        "scan_nearest_masked",
        [](const SignatureArray& rows, const std::optional<IdArray>& ids, bool ascending,
           const SignatureArray& queries, const SignatureArray& masks, std::size_t k,
           std::size_t threads, const OutputArray<std::int64_t, 2>& out_ids,
           const OutputArray<std::int32_t, 2>& out_distances,
           const OutputArray<std::int32_t, 2>& out_unmasked,
           const std::optional<ByteArray>& removed) {
            expect(queries.shape(1) == rows.shape(1), "queries of another width than rows");
            const auto asked = masked_queries(queries, masks);
            const std::uint8_t* const marked = marks(removed, rows);
            expect(k <= living(marked, rows.shape(0)), "a k of more than there are rows");
            expect_shape(out_ids, {queries.shape(0), k}, "ids of another shape than the answer");
            for (const auto& each : {out_distances, out_unmasked})
                expect_shape(each, {queries.shape(0), k},
                             "distances of another shape than the answer");
            const nb::gil_scoped_release nogil;
            search::scan_nearest_masked(collection(rows, ids, ascending), asked, k, threads,
                                        python_signals, out_ids.data(), out_distances.data(),
                                        out_unmasked.data(), marked);
        },
        "rows"_a.noconvert(), "ids"_a.noconvert().none(), "ascending"_a, "queries"_a.noconvert(),
        "masks"_a.noconvert(), "k"_a, "threads"_a, "out_ids"_a.noconvert(),
        "out_distances"_a.noconvert(), "out_unmasked"_a.noconvert(),
        "removed"_a.noconvert().none() = nb::none());

    module.def(
        "scan_within_masked",
        [](const SignatureArray& rows, const std::optional<IdArray>& ids, bool ascending,
           const SignatureArray& queries, const SignatureArray& masks, std::uint32_t radius,
           std::size_t limit, std::size_t threads, const std::optional<ByteArray>& removed) {
            expect(queries.shape(1) == rows.shape(1), "queries of another width than rows");
            const auto asked = masked_queries(queries, masks);
            const std::uint8_t* const marked = marks(removed, rows);
            auto matches = without_gil([&] {
                return search::scan_within_masked(collection(rows, ids, ascending), asked, radius,
                                                  limit, threads, python_signals, marked);
            });
            return tuple_of(matches.offsets, matches.ids, matches.distances, matches.unmasked);
        },
        "rows"_a.noconvert(), "ids"_a.noconvert().none(), "ascending"_a, "queries"_a.noconvert(),
        "masks"_a.noconvert(), "radius"_a, "limit"_a, "threads"_a,
        "removed"_a.noconvert().none() = nb::none());

    module.def(
        "scan_pairs",
        [](const SignatureArray& rows, const std::optional<IdArray>& ids, bool ascending,
           std::uint32_t radius, std::size_t limit, std::size_t threads) {
            auto pairs = without_gil([&] {
                return search::scan_pairs(collection(rows, ids, ascending), radius, limit, threads,
                                          python_signals);
            });
            return tuple_of(std::move(pairs));
        },
        "rows"_a.noconvert(), "ids"_a.noconvert().none(), "ascending"_a, "radius"_a, "limit"_a,
        "threads"_a);

    module.def(
        "scan_all",
        [](const SignatureArray& left, const SignatureArray& right, std::size_t threads,
           const OutputArray<std::int32_t, 2>& out) {
            expect(left.shape(1) == right.shape(1), "signatures of two widths");
            expect_shape(out, {left.shape(0), right.shape(0)}, "distances of another shape");
            const nb::gil_scoped_release nogil;
            search::scan_all(signatures(left), signatures(right), threads, python_signals,
                             out.data());
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "threads"_a, "out"_a.noconvert());
}

}  // namespace lookalike::bindings
