#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "clusters/groups.hpp"
#include "clusters/majority.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using DistanceArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Groups as Python holds them. Searches need not look at all offsets: that is done here, once.
struct BoundGroups {
    SignatureArray rows;
    IdArray ids, offsets;
    SignatureArray centers;
    DistanceArray from_center, nearest, farthest;

    BoundGroups(const SignatureArray& rows_, const IdArray& ids_, const IdArray& offsets_,
                const SignatureArray& centers_, const DistanceArray& from_center_,
                const DistanceArray& nearest_, const DistanceArray& farthest_)
        : rows(rows_),
          ids(ids_),
          offsets(offsets_),
          centers(centers_),
          from_center(from_center_),
          nearest(nearest_),
          farthest(farthest_) {
        const std::size_t groups = centers.shape(0);
        expect(centers.shape(1) == rows.shape(1), "centers of another width than rows");
        expect(ids.size() == rows.shape(0) && from_center.size() == rows.shape(0),
               "ids or distances of another number than rows");
        expect(groups < UINT32_MAX, "too many groups");
        expect(
            offsets.size() == groups + 1 && nearest.size() == groups && farthest.size() == groups,
            "offsets or distances of another number than groups");
        expect_offsets(offsets, rows.shape(0), "offsets outside of the rows");
    }

    search::Groups groups(const std::optional<ByteArray>& removed) const {
        expect(!removed || removed->size() == rows.shape(0), "marks of another number than rows");
        return {{signatures(rows), ids.data(), false},
                offsets.data(),
                signatures(centers),
                from_center.data(),
                nearest.data(),
                farthest.data(),
                removed ? removed->data() : nullptr};
    }
};

search::GroupWork counted(const OutputArray<std::int64_t, 2>& work, std::size_t queries) {
    expect_shape(work, {2, queries}, "counts of work of another shape");
    return {work.data(), work.data() + queries};
}

}  // namespace

void bind_clusters(nb::module_& module) {
    module.def(
        "majority_centers",
        [](const SignatureArray& rows, const IdArray& labels, std::size_t threads,
           const OutputArray<std::uint8_t, 2>& centers) {
            expect(labels.size() == rows.shape(0), "labels of another number than rows");
            expect(centers.shape(1) == rows.shape(1), "centers of another width than rows");
            expect_below(labels, centers.shape(0), "labels of groups that are not there");
            const nb::gil_scoped_release nogil;
            search::majority_centers(signatures(rows), labels.data(), centers.shape(0), threads,
                                     python_signals, centers.data());
        },
        "rows"_a.noconvert(), "labels"_a.noconvert(), "threads"_a, "centers"_a.noconvert());
    module.def(
        "nearest_among",
        [](const SignatureArray& rows, const SignatureArray& centers,
           const OutputArray<const std::int64_t, 2>& candidates, std::size_t threads,
           const OutputArray<std::int64_t, 1>& labels,
           const OutputArray<std::int32_t, 1>& distances) {
            expect(centers.shape(1) == rows.shape(1), "centers of another width than rows");
            expect(candidates.shape(0) == rows.shape(0) && candidates.shape(1) > 0,
                   "candidates of another number than rows");
            expect_below(candidates, centers.shape(0), "centers that are not there");
            expect_shape(labels, {rows.shape(0)}, "labels of another number than rows");
            expect_shape(distances, {rows.shape(0)}, "distances of another number than rows");
            const nb::gil_scoped_release nogil;
            search::nearest_among(signatures(rows), signatures(centers), candidates.data(),
                                  candidates.shape(1), threads, python_signals, labels.data(),
                                  distances.data());
        },
        "rows"_a.noconvert(), "centers"_a.noconvert(), "candidates"_a.noconvert(), "threads"_a,
        "labels"_a.noconvert(), "distances"_a.noconvert());

    nb::class_<BoundGroups>(module, "Groups")
        .def(nb::init<const SignatureArray&, const IdArray&, const IdArray&, const SignatureArray&,
                      const DistanceArray&, const DistanceArray&, const DistanceArray&>(),
             "rows"_a.noconvert(), "ids"_a.noconvert(), "offsets"_a.noconvert(),
             "centers"_a.noconvert(), "from_center"_a.noconvert(), "nearest"_a.noconvert(),
             "farthest"_a.noconvert())
        .def(
            "nearest",
            [](const BoundGroups& self, const std::optional<ByteArray>& removed,
               const SignatureArray& queries, std::size_t probe, std::size_t threads,
               const OutputArray<std::int64_t, 2>& ids,
               const OutputArray<std::int32_t, 2>& distances,
               const OutputArray<std::uint8_t, 1>& proven,
               const OutputArray<std::int64_t, 2>& work) {
                const std::size_t asked = queries.shape(0), k = ids.shape(1);
                const search::Groups groups = self.groups(removed);
                expect(queries.shape(1) == groups.rows.bytes, "queries of another width than rows");
                expect(probe > 0 && k > 0, "nothing to look for");
                expect_shape(ids, {asked, k}, "ids of other queries");
                expect_shape(distances, {asked, k}, "distances of other ids");
                expect_shape(proven, {asked}, "proofs of other queries");
                const search::GroupWork counts = counted(work, asked);
                const nb::gil_scoped_release nogil;
                search::nearest_in_groups(groups, signatures(queries), k, probe, threads,
                                          python_signals, ids.data(), distances.data(),
                                          proven.data(), counts);
            },
            "removed"_a.noconvert().none(), "queries"_a.noconvert(), "probe"_a, "threads"_a,
            "ids"_a.noconvert(), "distances"_a.noconvert(), "proven"_a.noconvert(),
            "work"_a.noconvert())
        .def(
            "within",
            [](const BoundGroups& self, const std::optional<ByteArray>& removed,
               const SignatureArray& queries, std::uint32_t radius, std::size_t limit,
               std::size_t threads, const OutputArray<std::int64_t, 2>& work) {
                const search::Groups groups = self.groups(removed);
                expect(queries.shape(1) == groups.rows.bytes, "queries of another width than rows");
                const search::GroupWork counts = counted(work, queries.shape(0));
                auto matches = without_gil([&] {
                    return search::within_in_groups(groups, signatures(queries), radius, limit,
                                                    threads, python_signals, counts);
                });
                return tuple_of(std::move(matches));
            },
            "removed"_a.noconvert().none(), "queries"_a.noconvert(), "radius"_a, "limit"_a,
            "threads"_a, "work"_a.noconvert());
}

}  // namespace lookalike::bindings
