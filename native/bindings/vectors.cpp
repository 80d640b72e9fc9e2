#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "vectors/cosines.hpp"
#include "vectors/estimates.hpp"
#include "vectors/sketches.hpp"
#include "vectors/sparse_rows.hpp"

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

using Blocks = nb::ndarray<const std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Scales = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Done = OutputArray<std::int64_t, 2>;

vectors::Sketches sketches_of(const Blocks& blocks, const Scales& scales, std::size_t count) {
    using vectors::kSketchRows, vectors::kSketchStep;
    expect(blocks.shape(2) == kSketchRows && blocks.shape(3) == kSketchStep,
           "blocks of sketches of another shape");
    expect(blocks.shape(0) == (count + kSketchRows - 1) / kSketchRows &&
               scales.size() == blocks.shape(0) * kSketchRows,
           "sketches of another number than scales");
    return {blocks.data(), scales.data(), count, blocks.shape(1)};
}

// Groups of sketches as Python holds them. With at most kMostSteps steps, sums of whole numbers are
// right.
struct BoundSketches {
    static constexpr std::size_t kMostSteps = (1 << 17) / vectors::kSketchStep;
    vectors::SketchGroups groups;
    std::size_t beyond = 0;  // every place

    BoundSketches(const Blocks& blocks, const Scales& scales, const Places& places,
                  const IdArray& offsets, const Blocks& centers, const Scales& center_scales,
                  double error)
        : groups{sketches_of(blocks, scales, places.size()), places.data(), offsets.data(),
                 sketches_of(centers, center_scales, offsets.size() - 1), error} {
        expect_offsets(offsets, places.size(), "offsets outside of the sketches");
        expect(groups.rows.steps == groups.centers.steps && groups.rows.steps <= kMostSteps,
               "sketches of other lengths than centers");
        for (std::size_t at = 0; at < places.size(); ++at)
            beyond = std::max<std::size_t>(beyond, std::size_t{places.data()[at]} + 1);
    }

    void expect_of(const BoundVectors& vectors) const {
        expect(groups.rows.steps == vectors::sketch_steps(vectors.rows.dimensions) &&
                   beyond <= vectors.rows.count && groups.covered() <= vectors.rows.count,
               "sketches of other vectors");
    }
};

vectors::SketchWork done_for(const Done& done, std::size_t queries) {
    expect_shape(done, {3, queries}, "room for the work of other queries");
    return {done.data(), done.data() + queries, done.data() + 2 * queries};
}

}  // namespace

void bind_vectors(nb::module_& module) {
    nb::class_<BoundSketches>(module, "Sketches")
        .def(nb::init<const Blocks&, const Scales&, const Places&, const IdArray&, const Blocks&,
                      const Scales&, double>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(),
             "blocks"_a.noconvert(), "scales"_a.noconvert(), "places"_a.noconvert(),
             "offsets"_a.noconvert(), "centers"_a.noconvert(), "center_scales"_a.noconvert(),
             "error"_a)
        .def(
            "best",
            [](const BoundSketches& self, const BoundVectors& vectors, const Skip& skip,
               const FloatRows& queries, std::size_t candidates, std::size_t probe,
               std::size_t threads, const Ids& ids, const Cosines& cosines, const Done& done) {
                self.expect_of(vectors);
                const vectors::Queries asked = vectors.asked(queries);
                const std::size_t k = expect_answer(queries, ids, cosines);
                expect(candidates >= k, "fewer candidates than neighbors");
                const std::uint8_t* const skipped = vectors.skipped(skip);
                const vectors::SketchWork work = done_for(done, asked.count);
                const nb::gil_scoped_release nogil;
                vectors::best_of_groups(vectors.rows, self.groups, skipped, asked, k,
                                        {candidates, probe}, work_on(threads), ids.data(),
                                        cosines.data(), work);
            },
            "vectors"_a, "skip"_a.noconvert().none(), "queries"_a.noconvert(), "candidates"_a,
            "probe"_a, "threads"_a, "ids"_a.noconvert(), "cosines"_a.noconvert(),
            "done"_a.noconvert())
        .def(
            "best_of_all",
            [](const BoundSketches& self, const BoundVectors& vectors, const Skip& skip,
               const FloatRows& queries, std::size_t threads, const Ids& ids,
               const Cosines& cosines, const Done& done) {
                self.expect_of(vectors);
                const vectors::Queries asked = vectors.asked(queries);
                const std::size_t k = expect_answer(queries, ids, cosines);
                const std::uint8_t* const skipped = vectors.skipped(skip);
                const vectors::SketchWork work = done_for(done, asked.count);
                const nb::gil_scoped_release nogil;
                vectors::best_by_sketches(vectors.rows, self.groups, skipped, asked, k,
                                          work_on(threads), ids.data(), cosines.data(), work);
            },
            "vectors"_a, "skip"_a.noconvert().none(), "queries"_a.noconvert(), "threads"_a,
            "ids"_a.noconvert(), "cosines"_a.noconvert(), "done"_a.noconvert())
        .def(
            "candidates",
            [](const BoundSketches& self, const BoundVectors& vectors, const Skip& skip,
               const FloatRows& queries, std::size_t probe, std::size_t threads,
               const Ids& places) {
                self.expect_of(vectors);
                const vectors::Queries asked = vectors.asked(queries);
                expect(places.shape(0) == asked.count && places.shape(1) > 0,
                       "room for the candidates of other queries");
                const std::uint8_t* const skipped = vectors.skipped(skip);
                const nb::gil_scoped_release nogil;
                vectors::candidates_of_groups(vectors.rows, self.groups, asked, skipped,
                                              {places.shape(1), probe}, work_on(threads),
                                              places.data());
            },
            "vectors"_a, "skip"_a.noconvert().none(), "queries"_a.noconvert(), "probe"_a,
            "threads"_a, "places"_a.noconvert());
    module.def(
        "signed_sums",
        [](const FloatRows& weights, const SignatureArray& rows, const IdArray& numbers,
           std::size_t threads, const OutputArray<double, 1>& sums) {
            expect(rows.shape(1) > 0 && weights.shape(1) == 8 * rows.shape(1),
                   "weights of other bits than signatures");
            expect(numbers.size() == rows.shape(0) && sums.size() == rows.shape(0),
                   "signatures of another number than queries");
            expect_below(numbers, weights.shape(0), "queries that are not there");
            const nb::gil_scoped_release nogil;
            vectors::signed_sums({weights.data(), weights.shape(0), weights.shape(1)}, rows.data(),
                                 numbers.data(), rows.shape(0), work_on(threads), sums.data());
        },
        "weights"_a.noconvert(), "signatures"_a.noconvert(), "numbers"_a.noconvert(), "threads"_a,
        "sums"_a.noconvert());
    module.def(
        "nearest_sketches",
        [](const Blocks& blocks, const Scales& scales, const Codes& codes, std::size_t count,
           std::size_t threads, const OutputArray<std::int64_t, 1>& nearest,
           const OutputArray<float, 1>& products) {
            const vectors::Sketches among = sketches_of(blocks, scales, count);
            expect(count > 0 && codes.shape(1) == vectors::kSketchStep * among.steps &&
                       among.steps <= BoundSketches::kMostSteps,
                   "sketches of other lengths");
            expect(nearest.size() == codes.shape(0) && products.size() == codes.shape(0),
                   "room for other sketches");
            const nb::gil_scoped_release nogil;
            vectors::nearest_sketches(among, codes.data(), codes.shape(0), work_on(threads),
                                      nearest.data(), products.data());
        },
        "blocks"_a.noconvert(), "scales"_a.noconvert(), "codes"_a.noconvert(), "count"_a,
        "threads"_a, "nearest"_a.noconvert(), "products"_a.noconvert());
    nb::class_<BoundVectors>(module, "Vectors")
        .def(nb::init<const FloatRows&, const FloatRows&, const std::optional<IdArray>&>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             "first"_a.noconvert(), "added"_a.noconvert(), "ids"_a.noconvert().none())
        .def(nb::init<const HalfRows&, const HalfRows&, const std::optional<IdArray>&>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             "first"_a.noconvert(), "added"_a.noconvert(), "ids"_a.noconvert().none())
        .def(
            "sketch",
            [](const BoundVectors& self, std::size_t first, std::size_t threads,
               const OutputArray<std::uint8_t, 2>& codes, const OutputArray<float, 1>& scales) {
                expect(first <= self.rows.count, "a first row that is not there");
                const std::size_t count = self.rows.count - first;
                const std::size_t width =
                    vectors::kSketchStep * vectors::sketch_steps(self.rows.dimensions);
                expect_shape(codes, {count, width}, "room for other sketches");
                expect_shape(scales, {count}, "room for other scales");
                return without_gil([&] {
                    return vectors::sketch_rows(self.rows, first, work_on(threads), codes.data(),
                                                scales.data());
                });
            },
            "first"_a, "threads"_a, "codes"_a.noconvert(), "scales"_a.noconvert())
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

    module.def(
        "multiply_rows",
        [](const IdArray& offsets, const IdArray& columns,
           const OutputArray<const float, 1>& values, const FloatRows& matrix, std::size_t threads,
           const OutputArray<float, 2>& product) {
            expect(values.size() == columns.size() && product.shape(1) == matrix.shape(1) &&
                       product.shape(0) + 1 == offsets.size(),
                   "rows of another size than the product");
            expect_offsets(offsets, columns.size(), "rows that do not lie in the entries");
            expect_below(columns, matrix.shape(0), "columns that are not there");
            const nb::gil_scoped_release nogil;
            vectors::multiply_rows(offsets.data(), product.shape(0), columns.data(), values.data(),
                                   matrix.data(), matrix.shape(1), threads, python_signals,
                                   product.data());
        },
        "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
        "matrix"_a.noconvert(), "threads"_a, "product"_a.noconvert());
}

}  // namespace lookalike::bindings
