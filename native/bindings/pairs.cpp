#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "pairs/bands.hpp"
#include "pairs/block_pairs.hpp"
#include "pairs/clusters.hpp"
#include "pairs/drawn_pairs.hpp"
#include "pairs/equal_rows.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using RowArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using DrawArray = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using KeyArray = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void expect_pairs(const IdArray& left, const IdArray& right, std::size_t rows) {
    expect(left.size() == right.size(), "pairs with one side");
    expect_below(left, rows, "pairs of rows that are not there");
    expect_below(right, rows, "pairs of rows that are not there");
}

}  // namespace

void bind_pairs(nb::module_& module) {
    module.attr("BAND_LEADERS") = search::kLeaders;

    module.def(
        "block_pairs",
        [](const SignatureArray& rows, const std::optional<ByteArray>& skipped,
           std::uint32_t radius, std::size_t limit, std::size_t threads) -> nb::object {
            expect(!skipped || skipped->size() == rows.shape(0),
                   "marks of another number than rows");
            auto pairs = without_gil([&] {
                return search::block_pairs(signatures(rows), skipped ? skipped->data() : nullptr,
                                           radius, limit, threads, python_signals);
            });
            if (!pairs)
                return nb::none();
            return tuple_of(std::move(*pairs));
        },
        "rows"_a.noconvert(), "skipped"_a.noconvert().none(), "radius"_a, "limit"_a, "threads"_a);

    module.def(
        "drawn_pairs",
        [](const SignatureArray& rows, const std::optional<ByteArray>& skipped,
           const DrawArray& draws, std::size_t key_bits, std::uint32_t radius, double most,
           std::size_t limit, std::size_t threads) -> nb::object {
            expect(!skipped || skipped->size() == rows.shape(0),
                   "marks of another number than rows");
            expect(draws.shape(1) <= 64 && key_bits > 0 && key_bits <= 24 &&
                       key_bits <= draws.shape(1),
                   "keys wider than draws, or than words");
            for (std::size_t at = 0; at < draws.size(); ++at)
                expect(draws.data()[at] >= 0 &&
                           static_cast<std::size_t>(draws.data()[at]) < 8 * rows.shape(1),
                       "bits that rows do not have");
            auto pairs = without_gil([&] {
                return search::drawn_pairs(signatures(rows), skipped ? skipped->data() : nullptr,
                                           {draws.data(), draws.shape(0), draws.shape(1)}, key_bits,
                                           radius, most, limit, threads, python_signals);
            });
            if (!pairs)
                return nb::none();
            return tuple_of(std::move(*pairs));
        },
        "rows"_a.noconvert(), "skipped"_a.noconvert().none(), "draws"_a.noconvert(), "key_bits"_a,
        "radius"_a, "most"_a, "limit"_a, "threads"_a);

    module.def(
        "equal_rows",
        [](const SignatureArray& rows) {
            auto equal = without_gil([&] { return search::equal_rows(signatures(rows)); });
            return tuple_of(equal.rows, equal.offsets);
        },
        "rows"_a.noconvert());

    module.attr("BAND_STEP") = search::kBandStep;

    module.def(
        "deal_bands",
        [](const KeyArray& keys, const IdArray& positions, std::uint64_t buckets,
           const OutputArray<std::uint64_t, 2>& entries,
           const OutputArray<std::int64_t, 1>& begins) {
            static_assert(sizeof(search::BandEntry) == 2 * sizeof(std::uint64_t));
            expect(buckets > 0, "no buckets");
            expect_shape(positions, {keys.shape(1)}, "positions of another number than rows");
            expect_shape(entries, {keys.size(), 2}, "entries of another number than keys");
            expect_shape(begins, {buckets + 1}, "beginnings of another number than buckets");
            const nb::gil_scoped_release nogil;
            search::deal_bands({keys.data(), keys.shape(1)}, keys.shape(0), positions.data(),
                               buckets, reinterpret_cast<search::BandEntry*>(entries.data()),
                               begins.data());
        },
        "keys"_a.noconvert(), "positions"_a.noconvert(), "buckets"_a, "entries"_a.noconvert(),
        "begins"_a.noconvert());

    module.def(
        "band_keys",
        [](const SignatureArray& rows, std::size_t band_bytes, std::size_t first,
           const OutputArray<std::uint32_t, 2>& keys) {
            expect(keys.shape(0) * band_bytes <= rows.shape(1), "bands wider than rows");
            expect(first <= keys.shape(1) && rows.shape(0) <= keys.shape(1) - first,
                   "more rows than there is room for keys");
            const nb::gil_scoped_release nogil;
            search::band_keys(rows.data(), rows.shape(0), rows.shape(1), keys.shape(0), band_bytes,
                              first, keys.shape(1), keys.data());
        },
        "rows"_a.noconvert(), "band_bytes"_a, "first"_a, "keys"_a.noconvert());

    module.def(
        "band_groups",
        [](const KeyArray& keys, std::size_t band) {
            expect(band < keys.shape(0), "a band that is not there");
            auto groups = without_gil([&] {
                return search::band_groups(keys.data() + band * keys.shape(1), keys.shape(1));
            });
            return tuple_of(groups.rows, groups.offsets);
        },
        "keys"_a.noconvert(), "band"_a);

    module.def(
        "group_pairs",
        [](const KeyArray& keys, const RowArray& large_keys, const IdArray& large_offsets,
           std::size_t band, const RowArray& rows, const IdArray& offsets, std::size_t most,
           std::size_t first_new, std::size_t threads) {
            expect(band < keys.shape(0), "a band that is not there");
            expect_below(rows, keys.shape(1), "rows that are not there");
            expect_offsets(offsets, rows.size(), "groups that are not there");
            expect_offsets(large_offsets, large_keys.size(), "large groups that are not there");
            expect(large_offsets.size() > band, "large groups of too few bands");
            auto pairs = without_gil([&] {
                return search::group_pairs({keys.data(), keys.shape(1)},
                                           {large_keys.data(), large_offsets.data()}, band,
                                           rows.data(), offsets.data(), offsets.size() - 1, most,
                                           first_new, threads, python_signals);
            });
            return tuple_of(pairs.left, pairs.right);
        },
        "keys"_a.noconvert(), "large_keys"_a.noconvert(), "large_offsets"_a.noconvert(), "band"_a,
        "rows"_a.noconvert(), "offsets"_a.noconvert(), "most"_a, "first_new"_a, "threads"_a);

    module.def(
        "equal_values_at",
        [](const SignatureArray& rows, std::size_t value_bytes, const IdArray& left,
           const IdArray& right, std::size_t threads, const OutputArray<std::int32_t, 1>& equal) {
            expect((value_bytes == 1 || value_bytes == 2) && rows.shape(1) % value_bytes == 0,
                   "rows that are not made of such values");
            expect_pairs(left, right, rows.shape(0));
            expect_shape(equal, {left.size()}, "counts of another number than pairs");
            const nb::gil_scoped_release nogil;
            search::equal_values_at(rows.data(), rows.shape(1), value_bytes, left.data(),
                                    right.data(), left.size(), threads, python_signals,
                                    equal.data());
        },
        "rows"_a.noconvert(), "value_bytes"_a, "left"_a.noconvert(), "right"_a.noconvert(),
        "threads"_a, "equal"_a.noconvert());

    module.def(
        "components",
        [](const IdArray& left, const IdArray& right, const OutputArray<std::int64_t, 1>& labels) {
            expect_pairs(left, right, labels.size());
            const nb::gil_scoped_release nogil;
            search::components(labels.size(), left.data(), right.data(), left.size(),
                               labels.data());
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "labels"_a.noconvert());

    module.def(
        "stars",
        [](const IdArray& order, const IdArray& left, const IdArray& right,
           const OutputArray<std::int64_t, 1>& labels) {
            expect_shape(order, {labels.size()}, "an order of another number than labels");
            expect_below(order, labels.size(), "an order of what is not there");
            expect_pairs(left, right, labels.size());
            const nb::gil_scoped_release nogil;
            search::stars(labels.size(), order.data(), left.data(), right.data(), left.size(),
                          labels.data());
        },
        "order"_a.noconvert(), "left"_a.noconvert(), "right"_a.noconvert(), "labels"_a.noconvert());
}

}  // namespace lookalike::bindings
