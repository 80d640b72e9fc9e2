#include "bands/table.hpp"
#include "bindings/arrays.hpp"
#include "bindings/module.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using search::BandTable;
using ValueArray = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void expect_rows(const BandTable& table, const ValueArray& rows) {
    expect(rows.shape(1) == table.shape().values, "rows of another number of values");
}

}  // namespace

void bind_bands(nb::module_& module) {
    nb::class_<BandTable>(module, "BandTable")
        .def(
            "__init__",
            [](BandTable* self, std::size_t values, std::size_t bands, std::size_t band_values,
               bool empty_counts, std::uint64_t seed) {
                expect(bands >= 1 && band_values >= 1 && bands <= values / band_values,
                       "more bands than values");
                new (self) BandTable({values, bands, band_values}, empty_counts, seed);
            },
            "values"_a, "bands"_a, "band_values"_a, "empty_counts"_a, "seed"_a)
        .def("__len__", &BandTable::size)
        .def_prop_ro("removed", &BandTable::removed)
        .def_prop_ro("memory_bytes", &BandTable::memory_bytes)
        .def(
            "insert",
            [](BandTable& self, const ValueArray& rows) {
                expect_rows(self, rows);
                const nb::gil_scoped_release nogil;
                return self.insert(rows.data(), rows.shape(0));
            },
            "rows"_a.noconvert())
        .def(
            "remove",
            [](BandTable& self, const IdArray& rows) {
                const nb::gil_scoped_release nogil;
                self.remove(rows.data(), rows.size());
            },
            "rows"_a.noconvert())
        .def(
            "copy",
            [](const BandTable& self, const IdArray& rows,
               const OutputArray<std::uint32_t, 2>& values) {
                expect_shape(values, {rows.size(), self.shape().values},
                             "values of another shape than rows");
                const nb::gil_scoped_release nogil;
                self.copy(rows.data(), rows.size(), values.data());
            },
            "rows"_a.noconvert(), "values"_a.noconvert())
        .def(
            "query",
            [](const BandTable& self, const ValueArray& queries, std::size_t bands,
               std::size_t least, std::size_t limit, std::size_t threads) {
                expect_rows(self, queries);
                expect(bands <= self.shape().bands, "bands that are not there");
                search::BandMatches matches;
                {
                    const nb::gil_scoped_release nogil;
                    matches = self.query(queries.data(), queries.shape(0), bands, least, limit,
                                         threads, python_signals);
                }
                return nb::make_tuple(to_numpy(std::move(matches.offsets)),
                                      to_numpy(std::move(matches.rows)),
                                      to_numpy(std::move(matches.equal)));
            },
            "queries"_a.noconvert(), "bands"_a, "least"_a, "limit"_a, "threads"_a);
}

}  // namespace lookalike::bindings
