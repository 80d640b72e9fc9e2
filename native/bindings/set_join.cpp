#include "pairs/set_join.hpp"

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/source.hpp"
#include "pairs/feature_sets.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

const bits::Checkpoint kCheckpoint = python_signals;

}  // namespace

void bind_set_join(nb::module_& module) {
    using search::FeatureSets;
    using search::Measure;
    using search::SetJoin;
    using sign::WeightKind;

    nb::enum_<Measure>(module, "Measure")
        .value("jaccard", Measure::jaccard)
        .value("containment", Measure::containment)
        .value("cosine", Measure::cosine);

    nb::class_<FeatureSets>(module, "FeatureSets")
        .def(
            "__init__",
            [](FeatureSets* self, WeightKind kind, std::size_t expected, std::size_t most,
               std::uint64_t common) {
                expect(kind == WeightKind::uniform || kind == WeightKind::idf ||
                           (kind == WeightKind::count && common == sign::kNeverCommon),
                       "weights other than counts, or by frequency");
                new (self) FeatureSets(kind, expected, most, common);
            },
            "kind"_a, "expected"_a, "most"_a, "common"_a = sign::kNeverCommon)
        .def(
            "observe",
            [](FeatureSets& self, const BoundSource& source, std::size_t threads) {
                const nb::gil_scoped_release nogil;
                self.observe(*source.source, {threads, kCheckpoint});
            },
            "source"_a, "threads"_a)
        .def(
            "add",
            [](FeatureSets& self, const BoundSource& source, std::size_t threads) {
                expect(self.count() + source.source->size() < UINT32_MAX, "too many documents");
                const nb::gil_scoped_release nogil;
                self.add(*source.source, {threads, kCheckpoint});
            },
            "source"_a, "threads"_a);

    nb::class_<SetJoin>(module, "SetJoin")
        .def(
            "__init__",
            [](SetJoin* self, FeatureSets& sets, Measure measure, double threshold,
               const ByteArray& old, std::size_t most_postings, std::size_t threads) {
                expect(!sets.weighted() || measure == Measure::cosine,
                       "weights, which only the cosine has");
                expect(!sets.by_frequency() || measure != Measure::cosine,
                       "weights by frequency, which the cosine does not have");
                expect(threshold > 0 && threshold <= 1, "a threshold that is no similarity");
                expect_shape(old, {sets.count()}, "marks of another number than documents");
                const nb::gil_scoped_release nogil;
                new (self) SetJoin(sets.finish(threads, kCheckpoint), {measure, threshold},
                                   {old.data(), old.data() + old.size()}, most_postings);
            },
            "sets"_a, "measure"_a, "threshold"_a, "old"_a.noconvert(), "most_postings"_a,
            "threads"_a)
        .def(
            "next",
            [](SetJoin& self, std::size_t most, std::size_t threads) {
                search::SimilarPairs pairs;
                {
                    const nb::gil_scoped_release nogil;
                    pairs = self.next(most, threads, kCheckpoint);
                }
                return nb::make_tuple(to_numpy(std::move(pairs.left)),
                                      to_numpy(std::move(pairs.right)),
                                      to_numpy(std::move(pairs.similarities)));
            },
            "most"_a, "threads"_a)
        .def_prop_ro("finished", &SetJoin::finished)
        .def_prop_ro("share", &SetJoin::share)
        .def_prop_ro("candidates", &SetJoin::candidates)
        .def_prop_ro("compared", &SetJoin::compared);
}

}  // namespace lookalike::bindings
