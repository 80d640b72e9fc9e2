#include "pairs/samples.hpp"

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/source.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using NeedArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const bits::Checkpoint kCheckpoint = python_signals;

}  // namespace

void bind_samples(nb::module_& module) {
    using search::Samples;
    using sign::WeightKind;

    nb::class_<Samples>(module, "Samples")
        .def(
            "__init__",
            [](Samples* self, std::size_t size, std::size_t largest_group, std::size_t leaders,
               WeightKind kind, const sign::Vocabulary* vocabulary) {
                expect(size > 0 && largest_group > 0 && leaders > 0 && leaders < UINT32_MAX,
                       "samples or groups of nothing");
                expect(kind == WeightKind::uniform ||
                           (kind == WeightKind::idf && vocabulary != nullptr),
                       "weights that are neither uniform nor by rarity");
                new (self) Samples(size, largest_group, leaders, kind, vocabulary);
            },
            "size"_a, "largest_group"_a, "leaders"_a, "kind"_a = WeightKind::uniform,
            "vocabulary"_a.none() = nb::none(), nb::keep_alive<1, 6>())
        .def(
            "observe",
            [](Samples& self, const BoundSource& source, std::size_t threads) {
                expect(self.looked_up() == 0, "documents after some were looked up");
                expect(self.observed() + source.source->size() < UINT32_MAX, "too many documents");
                const nb::gil_scoped_release nogil;
                self.observe(*source.source, {threads, kCheckpoint});
            },
            "source"_a, "threads"_a)
        .def(
            "look_up",
            [](Samples& self, const BoundSource& source, std::size_t threads) {
                expect(self.looked_up() + source.source->size() <= self.observed(),
                       "documents that were not observed");
                const nb::gil_scoped_release nogil;
                self.look_up(*source.source, {threads, kCheckpoint});
            },
            "source"_a, "threads"_a)
        .def(
            "pairs",
            [](Samples& self, std::size_t begin, std::size_t end, const NeedArray& needed,
               std::size_t first_new, std::size_t threads, double least_share) {
                expect(self.looked_up() == self.observed(), "documents that were not looked up");
                expect(begin <= end && end <= self.observed(), "documents that are not there");
                expect_shape(needed, {self.size() + 1}, "needs of other samples");
                search::SampledPairs pairs;
                {
                    const nb::gil_scoped_release nogil;
                    pairs = self.pairs(begin, end, {needed.data(), needed.size()}, first_new,
                                       least_share, {threads, kCheckpoint});
                }
                return nb::make_tuple(to_numpy(std::move(pairs.smaller)),
                                      to_numpy(std::move(pairs.larger)));
            },
            "begin"_a, "end"_a, "needed"_a.noconvert(), "first_new"_a, "threads"_a,
            "least_share"_a = 0.0)
        .def_prop_ro("in_large_groups", &Samples::in_large_groups);
}

}  // namespace lookalike::bindings
