#include "bindings/tables.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <variant>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "tables/blocks.hpp"
#include "tables/flips.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using CostArray = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MaskArray = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatArray = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using UnitArray = nb::ndarray<const std::int16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using SetArray = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using WeightArray = std::variant<std::monostate, FloatArray, UnitArray, SetArray>;

PyObject* not_finite = nullptr;  // the exception's type, which lives as long as the module

// Weights of queries as Python holds them, or the sets that were chosen by them.
struct BoundWeights {
    WeightArray values;
    std::size_t from;  // the first bit of the header

    search::FlipWeights of(std::size_t queries, std::size_t header_bits) const {
        search::FlipWeights weights;
        weights.from = from;
        std::visit(
            [&](const auto& array) {
                using Array = std::decay_t<decltype(array)>;
                if constexpr (!std::is_same_v<Array, std::monostate>) {
                    weights.stride = array.shape(1);
                    expect(array.shape(0) == queries, "weights of another number than queries");
                }
                if constexpr (std::is_same_v<Array, FloatArray> || std::is_same_v<Array, UnitArray>)
                    expect(from <= array.shape(1) && header_bits <= array.shape(1) - from,
                           "weights of fewer bits than the header has");
                if constexpr (std::is_same_v<Array, SetArray>)
                    weights.sets = array.data();
                if constexpr (std::is_same_v<Array, FloatArray>)
                    weights.floats = array.data();
                if constexpr (std::is_same_v<Array, UnitArray>)
                    weights.units = array.data();
            },
            values);
        return weights;
    }
};

// What flipping a bit costs, by its weight, as Python holds it.
struct BoundCosts {
    float scale;
    CostArray costs;

    operator search::FlipCosts() const { return {scale, costs.data()}; }
};

void expect_fitting(const std::vector<const BoundTable*>& tables, const std::optional<IdArray>& ids,
                    const SignatureArray& queries) {
    for (const BoundTable* table : tables) {
        expect(table->signatures.shape(1) == queries.shape(1),
               "queries of another width than rows");
        expect(!ids || ids->size() == table->signatures.shape(0),
               "ids of another number than rows");
    }
}

void bind_building(nb::module_& module) {
    module.def(
        "build_table",
        [](const SignatureArray& rows, const Runs& runs, std::size_t threads,
           const std::optional<OutputArray<std::uint8_t, 2>>& sorted,
           const OutputArray<std::uint32_t, 1>& places,
           const OutputArray<std::uint32_t, 1>& offsets) {
            const search::Header lead = header(rows.shape(1), runs);
            expect(rows.shape(0) >> 32 == 0, "more rows than a table can have");
            expect_shape(places, {rows.shape(0)}, "places of another number than rows");
            expect_shape(offsets, {lead.buckets() + 1}, "offsets of another number than buckets");
            if (sorted)
                expect_shape(*sorted, {rows.shape(0), rows.shape(1)}, "a copy of another shape");
            const nb::gil_scoped_release nogil;
            search::build_table(lead, signatures(rows), threads, python_signals,
                                sorted ? sorted->data() : nullptr, places.data(), offsets.data());
        },
        "rows"_a.noconvert(), "runs"_a, "threads"_a, "sorted"_a.noconvert().none(),
        "places"_a.noconvert(), "offsets"_a.noconvert());

    module.def(
        "find_offsets",
        [](const SignatureArray& sorted, const Runs& runs, std::size_t threads,
           const OutputArray<std::uint32_t, 1>& offsets) {
            const search::Header lead = header(sorted.shape(1), runs);
            expect(sorted.shape(0) >> 32 == 0, "more rows than a table can have");
            expect_shape(offsets, {lead.buckets() + 1}, "offsets of another number than buckets");
            const nb::gil_scoped_release nogil;
            return search::find_offsets(lead, signatures(sorted), threads, python_signals,
                                        offsets.data());
        },
        "sorted"_a.noconvert(), "runs"_a, "threads"_a, "offsets"_a.noconvert());

    module.def(
        "order_by_prefix",
        [](const SignatureArray& queries, const OutputArray<std::uint8_t, 2>& ordered,
           const OutputArray<std::uint32_t, 1>& rows, const OutputArray<std::uint32_t, 1>& places) {
            const std::size_t count = queries.shape(0);
            expect(count >> 32 == 0, "more queries than can be ordered");
            expect_shape(ordered, {count, queries.shape(1)}, "a copy of another shape");
            expect_shape(rows, {count}, "rows of another number than queries");
            expect_shape(places, {count}, "places of another number than queries");
            const nb::gil_scoped_release nogil;
            search::order_by_prefix(signatures(queries), ordered.data(), rows.data(),
                                    places.data());
        },
        "queries"_a.noconvert(), "ordered"_a.noconvert(), "rows"_a.noconvert(),
        "places"_a.noconvert());
}

void bind_flips(nb::module_& module) {
    nb::class_<BoundWeights>(module, "FlipWeights")
        .def(
            "__init__",
            [](BoundWeights* self, const WeightArray& values, std::size_t start) {
                new (self) BoundWeights{values, start};
            },
            "values"_a.noconvert().none(), "start"_a);

    nb::class_<BoundCosts>(module, "FlipCosts")
        .def(
            "__init__",
            [](BoundCosts* self, float scale, const CostArray& costs) {
                expect_shape(costs, {search::FlipCosts::kSteps},
                             "costs of another number of steps");
                new (self) BoundCosts{scale, costs};
            },
            "scale"_a, "costs"_a.noconvert());

    nb::class_<search::FlipSettings>(module, "FlipSettings")
        .def(
            "__init__",
            [](search::FlipSettings* self, std::uint32_t radius, std::uint64_t flips, bool first,
               bool differences) {
                new (self) search::FlipSettings{radius, flips, first, differences};
            },
            nb::kw_only(), "radius"_a, "flips"_a, "first"_a, "differences"_a);

    module.def(
        "flip_within",
        [](const BoundTable& table, const std::optional<IdArray>& ids,
           const SignatureArray& queries, const BoundWeights& weights, const BoundCosts& costs,
           const search::FlipSettings& settings, std::size_t limit, std::size_t threads) {
            expect_fitting({&table}, ids, queries);
            if (const auto* sets = std::get_if<SetArray>(&weights.values))
                expect(sets->shape(1) == settings.flips &&
                           settings.flips <= search::Candidates::kMostSets,
                       "sets of another number than flips");
            const auto plain = weights.of(queries.shape(0), table.table.header.bits());
            auto matches = without_gil([&] {
                return search::flip_within(table.table, ids ? ids->data() : nullptr,
                                           signatures(queries), plain, costs, settings, limit,
                                           threads, python_signals);
            });
            return tuple_of(std::move(matches));
        },
        "table"_a, "ids"_a.noconvert().none(), "queries"_a.noconvert(), "weights"_a, "costs"_a,
        "settings"_a, "limit"_a, "threads"_a);

    module.def(
        "flip_choices",
        [](const BoundWeights& weights, const std::optional<NumberArray>& places,
           const BoundCosts& costs, std::size_t bits, std::size_t most, std::size_t threads,
           const OutputArray<std::uint32_t, 2>& sets) {
            const std::size_t queries = sets.shape(0);
            expect(bits <= search::Header::kMostBits, "a header of too many bits");
            expect(sets.shape(1) <= search::Candidates::kMostSets &&
                       search::count_sets(bits, most, sets.shape(1)) >= sets.shape(1),
                   "more sets than there are, or can be chosen");
            if (places) {
                expect_shape(*places, {queries}, "places of another number than queries");
                expect_below(*places, queries, "places that are not there");
            }
            const auto plain = weights.of(queries, bits);
            const nb::gil_scoped_release nogil;
            search::flip_choices(queries, plain, places ? places->data() : nullptr, costs, bits,
                                 most, sets.shape(1), threads, python_signals, sets.data());
        },
        "weights"_a, "places"_a.noconvert().none(), "costs"_a, "bits"_a, "most"_a, "threads"_a,
        "sets"_a.noconvert());

    module.def(
        "flip_attempts",
        [](const MaskArray& differences, const BoundWeights& weights, const BoundCosts& costs,
           std::size_t bits, std::size_t most, std::size_t threads,
           const OutputArray<std::int64_t, 1>& attempts) {
            expect(bits <= 64, "a header of more than a word");
            expect_shape(attempts, {differences.size()},
                         "attempts of another number than differences");
            const auto plain = weights.of(differences.size(), bits);
            const nb::gil_scoped_release nogil;
            search::flip_attempts(differences.size(), plain, costs, bits, most, differences.data(),
                                  threads, python_signals, attempts.data());
        },
        "differences"_a.noconvert(), "weights"_a, "costs"_a, "bits"_a, "most"_a, "threads"_a,
        "attempts"_a.noconvert());
}

}  // namespace

void bind_tables(nb::module_& module) {
    nb::exception<search::CorruptTable>(module, "CorruptTable");
    not_finite = nb::exception<search::NotFinite>(module, "NotFinite").ptr();
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const search::NotFinite& error) {
            nb::object raised = nb::borrow(not_finite)(error.what());
            raised.attr("query") = error.query;
            PyErr_SetObject(not_finite, raised.ptr());
        }
    });

    nb::class_<BoundTable>(module, "Table")
        .def(nb::init<const SignatureArray&, const Runs&, const std::optional<NumberArray>&,
                      const NumberArray&, bool>(),
             "sorted"_a.noconvert(), "runs"_a, "rows"_a.noconvert().none(), "offsets"_a.noconvert(),
             "compressed"_a);

    bind_building(module);

    module.def(
        "bucket_rows",
        [](const std::vector<const BoundTable*>& tables, const SignatureArray& queries) {
            std::vector<std::int64_t> rows(queries.shape(0));
            for (const BoundTable* table : tables) {
                expect(table->table.signatures.bytes == queries.shape(1),
                       "queries of another width than rows");
                for (std::size_t query = 0; query < rows.size(); ++query) {
                    const auto bucket = table->table.bucket(
                        table->table.header.value(signatures(queries).row(query)));
                    rows[query] += static_cast<std::int64_t>(bucket.end - bucket.begin);
                }
            }
            return to_numpy(std::move(rows));
        },
        "tables"_a, "queries"_a.noconvert());

    module.def(
        "block_within",
        [](const std::vector<const BoundTable*>& tables, const std::optional<IdArray>& ids,
           const SignatureArray& queries, std::uint32_t radius, bool first, std::size_t limit,
           std::size_t threads) {
            expect_fitting(tables, ids, queries);
            std::vector<search::SortedTable> plain;
            for (const BoundTable* table : tables)
                plain.push_back(table->table);
            auto matches = without_gil([&] {
                return search::block_within(plain, ids ? ids->data() : nullptr, signatures(queries),
                                            radius, first, limit, threads, python_signals);
            });
            return tuple_of(std::move(matches));
        },
        "tables"_a, "ids"_a.noconvert().none(), "queries"_a.noconvert(), "radius"_a, "first"_a,
        "limit"_a, "threads"_a);

    bind_flips(module);
}

}  // namespace lookalike::bindings
