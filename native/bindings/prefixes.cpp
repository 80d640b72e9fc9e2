#include "tables/prefixes.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"
#include "bindings/tables.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using KeyArray = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Orders of a collection as Python holds them, and the queries that are looked for.
struct BoundPrefixes {
    std::vector<search::SortedTable> orders;
    search::Collection collection;
    search::Signatures asked;
    search::PrefixSearch search;

    BoundPrefixes(const std::vector<const BoundTable*>& tables, const SignatureArray& rows,
                  const std::optional<IdArray>& ids, const std::optional<ByteArray>& removed,
                  const SignatureArray& queries, const KeyArray& keys, std::size_t examine,
                  const OutputArray<std::int64_t, 2>& work)
        : collection{signatures(rows), ids ? ids->data() : nullptr, false},
          asked(signatures(queries)),
          search{orders, collection,  removed ? removed->data() : nullptr,
                 asked,  keys.data(), examine} {
        for (const BoundTable* table : tables) {
            expect(table->signatures.shape(1) == 8, "an order by something else than words");
            if (table->signatures.shape(0) != rows.shape(0) || !table->rows)
                throw search::CorruptTable();
            orders.push_back(table->table);
        }
        expect(rows.shape(1) == queries.shape(1), "queries of another width than rows");
        expect(!ids || ids->size() == rows.shape(0), "ids of another number than rows");
        expect(!removed || removed->size() == rows.shape(0), "marks of another number than rows");
        expect(examine <= rows.shape(0), "more to be examined than there is");
        expect_shape(keys, {tables.size(), queries.shape(0)}, "keys of other queries");
        expect_shape(work, {2, queries.shape(0)}, "counts of work of another shape");
    }
    BoundPrefixes(const BoundPrefixes&) = delete;
};

}  // namespace

void bind_prefixes(nb::module_& module) {
    module.def(
        "prefix_keys",
        [](const SignatureArray& rows, const NumberArray& bits, std::size_t threads,
           const OutputArray<std::uint64_t, 1>& keys) {
            expect(bits.size() <= search::kMostPrefixBits, "a prefix of too many bits");
            expect_below(bits, 8 * rows.shape(1), "bits that signatures do not have");
            expect_shape(keys, {rows.shape(0)}, "keys of another number than rows");
            const nb::gil_scoped_release nogil;
            search::prefix_keys(signatures(rows), {bits.data(), bits.size()}, threads,
                                python_signals, keys.data());
        },
        "rows"_a.noconvert(), "bits"_a.noconvert(), "threads"_a, "keys"_a.noconvert());

    module.def(
        "prefix_nearest",
        [](const std::vector<const BoundTable*>& orders, const SignatureArray& rows,
           const std::optional<IdArray>& ids, const std::optional<ByteArray>& removed,
           const SignatureArray& queries, const KeyArray& keys, std::size_t examine,
           std::size_t threads, const OutputArray<std::int64_t, 2>& near,
           const OutputArray<std::int32_t, 2>& distances,
           const OutputArray<std::int64_t, 2>& work) {
            const BoundPrefixes bound(orders, rows, ids, removed, queries, keys, examine, work);
            expect_shape(near, {queries.shape(0), near.shape(1)}, "ids of other queries");
            expect_shape(distances, {queries.shape(0), near.shape(1)}, "distances of other ids");
            const nb::gil_scoped_release nogil;
            search::prefix_nearest(
                bound.search, near.shape(1), threads, python_signals,
                {near.data(), distances.data(), work.data(), work.data() + queries.shape(0)});
        },
        "orders"_a, "rows"_a.noconvert(), "ids"_a.noconvert().none(),
        "removed"_a.noconvert().none(), "queries"_a.noconvert(), "keys"_a.noconvert(), "examine"_a,
        "threads"_a, "near"_a.noconvert(), "distances"_a.noconvert(), "work"_a.noconvert());

    module.def(
        "prefix_within",
        [](const std::vector<const BoundTable*>& orders, const SignatureArray& rows,
           const std::optional<IdArray>& ids, const std::optional<ByteArray>& removed,
           const SignatureArray& queries, const KeyArray& keys, std::size_t examine,
           std::size_t threads, std::uint32_t radius, std::size_t limit,
           const OutputArray<std::int64_t, 2>& work) {
            const BoundPrefixes bound(orders, rows, ids, removed, queries, keys, examine, work);
            auto matches = without_gil([&] {
                return search::prefix_within(
                    bound.search, radius, limit, threads, python_signals,
                    {nullptr, nullptr, work.data(), work.data() + queries.shape(0)});
            });
            return tuple_of(std::move(matches));
        },
        "orders"_a, "rows"_a.noconvert(), "ids"_a.noconvert().none(),
        "removed"_a.noconvert().none(), "queries"_a.noconvert(), "keys"_a.noconvert(), "examine"_a,
        "threads"_a, "radius"_a, "limit"_a, "work"_a.noconvert());
}

}  // namespace lookalike::bindings
