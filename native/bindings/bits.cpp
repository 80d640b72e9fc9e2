#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bits/hash.hpp"
#include "bits/kernels.hpp"
#include "bits/memory_speed.hpp"
#include "bits/operation.hpp"
#include "bits/step_costs.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

void bind_bits(nb::module_& module) {
    nb::class_<bits::StepCosts>(module, "StepCosts")
        .def_ro("touch", &bits::StepCosts::touch)
        .def_ro("list", &bits::StepCosts::list)
        .def_ro("entry", &bits::StepCosts::entry)
        .def_ro("visit", &bits::StepCosts::visit)
        .def("listed", &bits::StepCosts::listed, "bytes"_a)
        .def("look_up", &bits::StepCosts::look_up)
        .def("compare", &bits::StepCosts::compare, "bytes"_a)
        .def("bucket", &bits::StepCosts::bucket, "bytes"_a)
        .def("scan", &bits::StepCosts::scan, "bytes"_a, "queries"_a);
    module.attr("USUAL_COSTS") = nb::cast(bits::kUsualCosts);

    nb::exception<bits::Canceled>(module, "Canceled", PyExc_BaseException);
    nb::class_<bits::Operation>(module, "Operation")
        .def(nb::init<>())
        .def("cancel", &bits::Operation::cancel, "shielded_too"_a)
        .def("canceled", &bits::Operation::canceled, "shielded"_a)
        .def("done", &bits::Operation::done)
        .def("set_done", &bits::Operation::set_done, "share"_a);

    // The caller keeps the operation alive until it sets another one for this thread.
    module.def(
        "work_on",
        [](bits::Operation* operation, bool shielded, double begin, double width) {
            bits::current_operation = {operation, shielded, begin, width};
        },
        "operation"_a.none(), "shielded"_a, "begin"_a, "width"_a);
    module.def("stop_if_canceled", &bits::stop_if_canceled);

    module.def("kernels", [] {
        nb::list rows;
        for (const bits::InstructionSet set : bits::kInstructionSets)
            rows.append(nb::make_tuple(bits::name_of(set), bits::is_supported(set),
                                       set == bits::selected()));
        return rows;
    });

    module.def("select_kernel", &bits::select, "name"_a);

    module.def(
        "paired_distances",
        [](const SignatureArray& left, const SignatureArray& right,
           const OutputArray<std::int32_t, 1>& out) {
            expect(left.shape(0) == right.shape(0) && left.shape(1) == right.shape(1),
                   "pairs of signatures that are not as many and as wide");
            expect_shape(out, {left.shape(0)}, "distances of another number than pairs");
            const nb::gil_scoped_release nogil;
            bits::kernels_for(left.shape(1))
                .paired(left.data(), right.data(), left.shape(0), left.shape(1), out.data());
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "out"_a.noconvert());

    module.def(
        "read_all",
        [](const ByteArray& data, std::size_t threads) {
            const nb::gil_scoped_release nogil;
            return bits::read_all(data.data(), data.size(), threads);
        },
        "data"_a.noconvert(), "threads"_a);

    module.def(
        "read_at_random",
        [](const WordArray& words, std::size_t first, std::size_t reads, std::size_t ahead) {
            const nb::gil_scoped_release nogil;
            return words.size() == 0
                       ? 0
                       : bits::read_at_random(words.data(), words.size(), first, reads, ahead);
        },
        "words"_a.noconvert(), "first"_a, "reads"_a, "ahead"_a);

    module.def(
        "hash_rows",
        [](const SignatureArray& rows, const OutputArray<std::uint64_t, 1>& hashes) {
            expect_shape(hashes, {rows.shape(0)}, "hashes of another number than rows");
            const nb::gil_scoped_release nogil;
            for (std::size_t row = 0; row < rows.shape(0); ++row)
                hashes.data()[row] = bits::xxh64(rows.data() + row * rows.shape(1), rows.shape(1));
        },
        "rows"_a.noconvert(), "hashes"_a.noconvert());

    module.def(
        "xxh64",
        [](const ByteArray& data, std::uint64_t seed) {
            const nb::gil_scoped_release nogil;
            return bits::xxh64(data.data(), data.size(), seed);
        },
        "data"_a.noconvert(), "seed"_a = 0);

    nb::class_<bits::Xxh64>(module, "Xxh64")
        .def(nb::init<>())
        .def(
            "add",
            [](bits::Xxh64& hash, const ByteArray& data) {
                const nb::gil_scoped_release nogil;
                hash.add(data.data(), data.size());
            },
            "data"_a.noconvert())
        .def("value", &bits::Xxh64::value);
}

}  // namespace lookalike::bindings
