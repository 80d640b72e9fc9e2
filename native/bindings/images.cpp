#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "images/bits.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using WaveArray = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AxisTuple = std::tuple<std::int64_t, std::int64_t, bool>;

images::Axis expect_axis(const AxisTuple& given, std::size_t blocks) {
    const auto [pixels, block, turned] = given;
    expect(pixels > 0 && pixels <= images::kMostPixels, "no or too many pixels");
    expect(block > 0 && block <= pixels, "blocks of no or too many pixels");
    const images::Axis axis{pixels, block, turned};
    expect(static_cast<std::size_t>(axis.blocks()) == blocks, "pixels of other blocks");
    return axis;
}

void expect_bits(std::size_t bits, std::int64_t least) {
    expect(bits > 0 && bits % 8 == 0, "bits that are no bytes");
    expect(least > 0, "bits that need no height");
}

images::Bits of_waves(const WaveArray& waves, const IdArray& down, const IdArray& across,
                      std::int64_t least) {
    const std::size_t count = waves.shape(0), size = waves.shape(1);
    expect(size > 0 && size <= images::kMostParts, "no or too many parts");
    expect(down.size() == across.size(), "waves downwards without one across");
    expect_below(down, count, "waves that are not there");
    expect_below(across, count, "waves that are not there");
    expect_bits(down.size(), least);
    return {{size,
             count,
             {waves.data(), waves.data() + waves.size()},
             {down.data(), down.data() + down.size()},
             {across.data(), across.data() + across.size()}},
            least};
}

images::Bits of_steps(std::size_t rows, std::size_t columns, std::int64_t least) {
    expect(rows > 0 && rows <= images::kMostParts && columns > 1 && columns <= images::kMostParts,
           "no or too many parts");
    expect_bits(rows * (columns - 1), least);
    return {rows, columns, least};
}

std::size_t sign(const images::Bits& self, const SignatureArray& gray, const AxisTuple& rows,
                 const AxisTuple& columns, const OutputArray<std::uint8_t, 1>& signature) {
    const images::Blocks blocks{gray.data(), expect_axis(rows, gray.shape(0)),
                                expect_axis(columns, gray.shape(1))};
    expect(blocks.rows.pixels <= images::kMostPixels / blocks.columns.pixels,
           "an image of too many pixels");
    expect(signature.size() == self.count() / 8, "a signature of other bits");
    const nb::gil_scoped_release nogil;
    return self.sign(blocks, signature.data());
}

}  // namespace

void bind_images(nb::module_& module) {
    nb::class_<images::Bits>(module, "ImageBits")
        .def_static("of_waves", &of_waves, "waves"_a.noconvert(), "down"_a.noconvert(),
                    "across"_a.noconvert(), "least"_a)
        .def_static("of_steps", &of_steps, "rows"_a, "columns"_a, "least"_a)
        .def("sign", &sign, "gray"_a.noconvert(), "rows"_a, "columns"_a, "signature"_a.noconvert());
}

}  // namespace lookalike::bindings
