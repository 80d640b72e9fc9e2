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

using Runs = std::vector<std::pair<std::size_t, std::size_t>>;
using NumberArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using CostArray = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MaskArray = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatArray = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using UnitArray = nb::ndarray<const std::int16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using SetArray = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using WeightArray = std::variant<std::monostate, FloatArray, UnitArray, SetArray>;

// Runs that do not lie in the signature, or make too many bits, are a mistake of ours.
search::Header header(std::size_t bytes, const Runs& runs) {
    std::vector<search::Header::Run> parts;
    std::size_t bits = 0;
    for (const auto& [from, width] : runs) {
        bits += width;
        if (width > search::Header::kMostBits || from + width > 8 * bytes ||
            bits > search::Header::kMostBits)
            throw search::CorruptTable();
        parts.push_back({from, width});
    }
    return {bytes, std::move(parts)};
}

// A table as Python holds it, with what it points into.
struct BoundTable {
    search::SortedTable table;
    SignatureArray signatures;
    std::optional<NumberArray> rows;
    NumberArray offsets;

    BoundTable(const SignatureArray& sorted, const Runs& runs,
               const std::optional<NumberArray>& row_numbers, const NumberArray& bucket_offsets,
               bool compressed)
        : table{header(sorted.shape(1), runs), bindings::signatures(sorted),
                row_numbers ? row_numbers->data() : nullptr, bucket_offsets.data(), compressed},
          signatures(sorted),
          rows(row_numbers),
          offsets(bucket_offsets) {
        if (offsets.size() != table.header.buckets() + 1 ||
            (rows && rows->size() != sorted.shape(0)) || sorted.shape(0) >> 32 != 0 ||
            (sorted.shape(1) == 8 && reinterpret_cast<std::uintptr_t>(sorted.data()) % 8 != 0))
            throw search::CorruptTable();
    }
};

search::FlipWeights weights_of(const WeightArray& array, std::size_t rows, std::size_t from,
                               std::size_t bits) {
    search::FlipWeights weights;
    weights.from = from;
    std::visit(
        [&](const auto& values) {
            using Values = std::decay_t<decltype(values)>;
            if constexpr (!std::is_same_v<Values, std::monostate>) {
                weights.stride = values.shape(1);
                if (values.shape(0) != rows ||
                    (!std::is_same_v<Values, SetArray> && from + bits > values.shape(1)))
                    throw search::CorruptTable();
            }
            if constexpr (std::is_same_v<Values, SetArray>)
                weights.sets = values.data();
            if constexpr (std::is_same_v<Values, FloatArray>)
                weights.floats = values.data();
            if constexpr (std::is_same_v<Values, UnitArray>)
                weights.units = values.data();
        },
        array);
    return weights;
}

search::FlipCosts costs_of(float scale, const CostArray& costs) {
    if (costs.size() != search::FlipCosts::kSteps)
        throw search::CorruptTable();
    return {scale, costs.data()};
}

nb::tuple tuple_of(search::Matches matches) {
    return nb::make_tuple(to_numpy(std::move(matches.offsets)), to_numpy(std::move(matches.ids)),
                          to_numpy(std::move(matches.distances)));
}

void bind_building(nb::module_& module) {
    module.def(
        "build_table",
        [](const SignatureArray& rows, const Runs& runs, std::size_t threads,
           const std::optional<OutputArray<std::uint8_t, 2>>& sorted,
           const OutputArray<std::uint32_t, 1>& places,
           const OutputArray<std::uint32_t, 1>& offsets) {
            const nb::gil_scoped_release nogil;
            search::build_table(header(rows.shape(1), runs), signatures(rows), threads,
                                python_signals, sorted ? sorted->data() : nullptr, places.data(),
                                offsets.data());
        },
        "rows"_a.noconvert(), "runs"_a, "threads"_a, "sorted"_a.noconvert().none(),
        "places"_a.noconvert(), "offsets"_a.noconvert());

    module.def(
        "find_offsets",
        [](const SignatureArray& sorted, const Runs& runs, std::size_t threads,
           const OutputArray<std::uint32_t, 1>& offsets) {
            const nb::gil_scoped_release nogil;
            return search::find_offsets(header(sorted.shape(1), runs), signatures(sorted), threads,
                                        python_signals, offsets.data());
        },
        "sorted"_a.noconvert(), "runs"_a, "threads"_a, "offsets"_a.noconvert());

    module.def(
        "order_by_prefix",
        [](const SignatureArray& queries, const OutputArray<std::uint8_t, 2>& ordered,
           const OutputArray<std::uint32_t, 1>& rows, const OutputArray<std::uint32_t, 1>& places) {
            const std::size_t count = queries.shape(0);
            if (ordered.shape(0) != count || ordered.shape(1) != queries.shape(1) ||
                rows.size() != count || places.size() != count || count >> 32 != 0)
                throw search::CorruptTable();
            const nb::gil_scoped_release nogil;
            search::order_by_prefix(signatures(queries), ordered.data(), rows.data(),
                                    places.data());
        },
        "queries"_a.noconvert(), "ordered"_a.noconvert(), "rows"_a.noconvert(),
        "places"_a.noconvert());
}

void bind_flips(nb::module_& module) {
    module.def(
        "flip_within",
        [](const BoundTable& table, const std::optional<IdArray>& ids,
           const SignatureArray& queries, const WeightArray& weights, std::size_t from, float scale,
           const CostArray& costs, std::uint32_t radius, std::uint64_t flips, bool first,
           bool differences, std::size_t limit, std::size_t threads) {
            search::Matches matches;
            if (const auto* sets = std::get_if<SetArray>(&weights))
                if (sets->shape(1) != flips || flips > search::Candidates::kMostSets)
                    throw search::CorruptTable();
            {
                const nb::gil_scoped_release nogil;
                matches = search::flip_within(
                    table.table, ids ? ids->data() : nullptr, signatures(queries),
                    weights_of(weights, queries.shape(0), from, table.table.header.bits()),
                    costs_of(scale, costs), {radius, flips, first, differences}, limit, threads,
                    python_signals);
            }
            return tuple_of(std::move(matches));
        },
        "table"_a, "ids"_a.noconvert().none(), "queries"_a.noconvert(),
        "weights"_a.noconvert().none(), "start"_a, "scale"_a, "costs"_a.noconvert(), "radius"_a,
        "flips"_a, "first"_a, "differences"_a, "limit"_a, "threads"_a);

    module.def(
        "flip_sets",
        [](std::size_t queries, const WeightArray& weights, std::size_t from, std::size_t bits,
           float scale, const CostArray& costs, std::size_t most, std::size_t threads,
           const OutputArray<std::uint64_t, 2>& sets) {
            const nb::gil_scoped_release nogil;
            search::flip_sets(queries, weights_of(weights, queries, from, bits),
                              costs_of(scale, costs), bits, most, sets.shape(1), threads,
                              python_signals, sets.data());
        },
        "queries"_a, "weights"_a.noconvert().none(), "start"_a, "bits"_a, "scale"_a,
        "costs"_a.noconvert(), "most"_a, "threads"_a, "sets"_a.noconvert());

    module.def(
        "flip_choices",
        [](const WeightArray& weights, const std::optional<NumberArray>& places, std::size_t from,
           std::size_t bits, float scale, const CostArray& costs, std::size_t most,
           std::size_t threads, const OutputArray<std::uint32_t, 2>& sets) {
            const std::size_t queries = sets.shape(0);
            if (sets.shape(1) > search::Candidates::kMostSets || bits > search::Header::kMostBits ||
                search::count_sets(bits, most, sets.shape(1)) < sets.shape(1))
                throw search::CorruptTable();
            if (places && (places->size() != queries ||
                           std::any_of(places->data(), places->data() + queries,
                                       [&](std::uint32_t place) { return place >= queries; })))
                throw search::CorruptTable();
            const nb::gil_scoped_release nogil;
            search::flip_choices(queries, weights_of(weights, queries, from, bits),
                                 places ? places->data() : nullptr, costs_of(scale, costs), bits,
                                 most, sets.shape(1), threads, python_signals, sets.data());
        },
        "weights"_a.noconvert().none(), "places"_a.noconvert().none(), "start"_a, "bits"_a,
        "scale"_a, "costs"_a.noconvert(), "most"_a, "threads"_a, "sets"_a.noconvert());

    module.def(
        "flip_attempts",
        [](const MaskArray& differences, const WeightArray& weights, std::size_t from,
           std::size_t bits, float scale, const CostArray& costs, std::size_t most,
           std::size_t threads, const OutputArray<std::int64_t, 1>& attempts) {
            const nb::gil_scoped_release nogil;
            search::flip_attempts(differences.size(),
                                  weights_of(weights, differences.size(), from, bits),
                                  costs_of(scale, costs), bits, most, differences.data(), threads,
                                  python_signals, attempts.data());
        },
        "differences"_a.noconvert(), "weights"_a.noconvert().none(), "start"_a, "bits"_a, "scale"_a,
        "costs"_a.noconvert(), "most"_a, "threads"_a, "attempts"_a.noconvert());
}

}  // namespace

void bind_tables(nb::module_& module) {
    nb::exception<search::CorruptTable>(module, "CorruptTable");
    nb::exception<search::NotFinite>(module, "NotFinite");

    nb::class_<BoundTable>(module, "Table")
        .def(nb::init<const SignatureArray&, const Runs&, const std::optional<NumberArray>&,
                      const NumberArray&, bool>(),
             "sorted"_a.noconvert(), "runs"_a, "rows"_a.noconvert().none(), "offsets"_a.noconvert(),
             "compressed"_a);

    bind_building(module);

    module.def(
        "block_within",
        [](const std::vector<const BoundTable*>& tables, const std::optional<IdArray>& ids,
           const SignatureArray& queries, std::uint32_t radius, bool first, std::size_t limit,
           std::size_t threads) {
            search::Matches matches;
            std::vector<search::SortedTable> plain;
            for (const BoundTable* table : tables)
                plain.push_back(table->table);
            {
                const nb::gil_scoped_release nogil;
                matches =
                    search::block_within(plain, ids ? ids->data() : nullptr, signatures(queries),
                                         radius, first, limit, threads, python_signals);
            }
            return tuple_of(std::move(matches));
        },
        "tables"_a, "ids"_a.noconvert().none(), "queries"_a.noconvert(), "radius"_a, "first"_a,
        "limit"_a, "threads"_a);

    bind_flips(module);
}

}  // namespace lookalike::bindings
