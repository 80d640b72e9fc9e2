#include "sign/given_hashes.hpp"

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/source.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using WordArray = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ValueArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const bits::Checkpoint kCheckpoint = python_signals;

struct GivenHashes {
    std::vector<sign::GivenHash> functions;
};

void add_linear(GivenHashes& self, std::uint64_t factor, std::uint64_t term,
                std::uint32_t modulus) {
    expect(modulus != 0, "a modulus of 0");
    self.functions.push_back({factor, term, modulus, {}});
}

void add_table(GivenHashes& self, const WordArray& features, const ValueArray& values) {
    expect_shape(values, {features.size()}, "values of another number than features");
    sign::GivenHash table;
    for (std::size_t index = 0; index < features.size(); ++index)
        table.table[features.data()[index]] = values.data()[index];
    self.functions.push_back(std::move(table));
}

nb::tuple minima(const GivenHashes& self, const BoundSource& source, std::size_t threads,
                 const OutputArray<std::uint32_t, 2>& values) {
    expect_shape(values, {source.source->size(), self.functions.size()},
                 "values of another shape than documents and functions");
    const sign::UnknownFeature unknown = without_gil([&] {
        return sign::given_minima(*source.source, self.functions, {threads, kCheckpoint},
                                  values.data());
    });
    return nb::make_tuple(unknown.document, unknown.function);
}

}  // namespace

void bind_given_hashes(nb::module_& module) {
    nb::class_<GivenHashes>(module, "GivenHashes")
        .def(nb::init<>())
        .def("add_linear", &add_linear, "factor"_a, "term"_a, "modulus"_a)
        .def("add_table", &add_table, "features"_a.noconvert(), "values"_a.noconvert())
        .def("minima", &minima, "source"_a, "threads"_a, "values"_a.noconvert());
}

}  // namespace lookalike::bindings
