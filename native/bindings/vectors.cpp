#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "vectors/cosines.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using FloatRows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using HalfRows = nb::ndarray<const std::uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Skip = std::optional<ByteArray>;
using Ids = OutputArray<std::int64_t, 2>;
using Cosines = OutputArray<double, 2>;

// Vectors as Python holds them, which keeps the arrays while this is used.
struct BoundVectors {
    vectors::Rows rows;

    template <class Array>
    BoundVectors(const Array& first, const Array& added, const std::optional<IdArray>& ids)
        : rows{first.data(),
               added.data(),
               first.shape(0),
               first.shape(0) + added.shape(0),
               first.shape(1),
               sizeof(typename Array::Scalar) == 2,
               ids ? ids->data() : nullptr} {
        expect(first.shape(1) > 0 && added.shape(1) == first.shape(1),
               "vectors of no or of different lengths");
        expect(!ids || ids->size() == rows.count, "ids of another number than vectors");
    }

    vectors::Queries asked(const FloatRows& queries) const {
        expect(queries.shape(1) == rows.dimensions, "queries of another length than vectors");
        return {queries.data(), queries.shape(0)};
    }

    const std::uint8_t* skipped(const Skip& skip) const {
        expect(!skip || skip->size() == rows.count, "marks of another number than vectors");
        return skip ? skip->data() : nullptr;
    }
};

vectors::Work work_on(std::size_t threads) {
    return {threads, python_signals};
}

std::size_t expect_answer(const FloatRows& queries, const Ids& ids, const Cosines& cosines) {
    const std::size_t k = ids.shape(1);
    expect(k > 0, "nothing to look for");
    expect_shape(ids, {queries.shape(0), k}, "ids of other queries");
    expect_shape(cosines, {queries.shape(0), k}, "cosines of other ids");
    return k;
}

// Every place is a row, or -1 where that is allowed.
template <class Array>
void expect_places(const Array& places, std::size_t rows, std::int64_t least) {
    for (std::size_t at = 0; at < places.size(); ++at)
        expect(places.data()[at] >= least && places.data()[at] < static_cast<std::int64_t>(rows),
               "places outside of the vectors");
}

}  // namespace

void bind_vectors(nb::module_& module) {
    nb::class_<BoundVectors>(module, "Vectors")
        .def(nb::init<const FloatRows&, const FloatRows&, const std::optional<IdArray>&>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             "first"_a.noconvert(), "added"_a.noconvert(), "ids"_a.noconvert().none())
        .def(nb::init<const HalfRows&, const HalfRows&, const std::optional<IdArray>&>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             "first"_a.noconvert(), "added"_a.noconvert(), "ids"_a.noconvert().none())
        .def(
            "best_candidates",
            [](const BoundVectors& self, const FloatRows& queries,
               const nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>&
                   candidates,
               std::size_t threads, const Ids& ids, const Cosines& cosines) {
                const vectors::Queries asked = self.asked(queries);
                const std::size_t k = expect_answer(queries, ids, cosines);
                expect(candidates.shape(0) == asked.count, "candidates of other queries");
                expect_places(candidates, self.rows.count, -1);
                const nb::gil_scoped_release nogil;
                vectors::best_candidates(self.rows, asked, candidates.data(), candidates.shape(1),
                                         k, work_on(threads), ids.data(), cosines.data());
            },
            "queries"_a.noconvert(), "candidates"_a.noconvert(), "threads"_a, "ids"_a.noconvert(),
            "cosines"_a.noconvert())
        .def(
            "best_of_all",
            [](const BoundVectors& self, const Skip& skip, const FloatRows& queries,
               std::size_t threads, const Ids& ids, const Cosines& cosines) {
                const vectors::Queries asked = self.asked(queries);
                const std::size_t k = expect_answer(queries, ids, cosines);
                const std::uint8_t* const skipped = self.skipped(skip);
                const nb::gil_scoped_release nogil;
                vectors::best_of_all(self.rows, skipped, asked, k, work_on(threads), ids.data(),
                                     cosines.data());
            },
            "skip"_a.noconvert().none(), "queries"_a.noconvert(), "threads"_a, "ids"_a.noconvert(),
            "cosines"_a.noconvert())
        .def(
            "at_least",
            [](const BoundVectors& self, const Skip& skip, const FloatRows& queries, double least,
               std::size_t limit, std::size_t threads) {
                const vectors::Queries asked = self.asked(queries);
                const std::uint8_t* const skipped = self.skipped(skip);
                auto found = without_gil([&] {
                    return vectors::at_least(self.rows, skipped, asked, least, limit,
                                             work_on(threads));
                });
                return tuple_of(found.offsets, found.ids, found.cosines);
            },
            "skip"_a.noconvert().none(), "queries"_a.noconvert(), "least"_a, "limit"_a, "threads"_a)
        .def(
            "cosines",
            [](const BoundVectors& self, const FloatRows& queries, const IdArray& numbers,
               const IdArray& places, std::size_t threads, const OutputArray<double, 1>& cosines) {
                const vectors::Queries asked = self.asked(queries);
                expect(numbers.size() == places.size() && cosines.size() == places.size(),
                       "pairs of different numbers");
                expect_below(numbers, asked.count, "queries that are not there");
                expect_places(places, self.rows.count, 0);
                const nb::gil_scoped_release nogil;
                vectors::cosines_of_pairs(self.rows, asked, numbers.data(), places.data(),
                                          places.size(), work_on(threads), cosines.data());
            },
            "queries"_a.noconvert(), "numbers"_a.noconvert(), "places"_a.noconvert(), "threads"_a,
            "cosines"_a.noconvert());
}

}  // namespace lookalike::bindings
