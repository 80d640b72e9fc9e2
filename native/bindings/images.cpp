#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "images/agreement.hpp"
#include "images/bits.hpp"
#include "images/pdq.hpp"
#include "images/points.hpp"

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

images::Blocks expect_blocks(const SignatureArray& gray, const AxisTuple& rows,
                             const AxisTuple& columns) {
    const images::Blocks blocks{gray.data(), expect_axis(rows, gray.shape(0)),
                                expect_axis(columns, gray.shape(1))};
    expect(blocks.rows.pixels <= images::kMostPixels / blocks.columns.pixels,
           "an image of too many pixels");
    return blocks;
}

std::size_t sign(const images::Bits& self, const SignatureArray& gray, const AxisTuple& rows,
                 const AxisTuple& columns, const OutputArray<std::uint8_t, 1>& signature) {
    const images::Blocks blocks = expect_blocks(gray, rows, columns);
    expect(signature.size() == self.count() / 8, "a signature of other bits");
    const nb::gil_scoped_release nogil;
    return self.sign(blocks, signature.data());
}

using PixelArray = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

images::Pdq make_pdq(std::size_t rows, std::size_t columns) {
    expect(rows > 0 && rows <= images::kPdqMostSide, "no or too many rows");
    expect(columns > 0 && columns <= images::kPdqMostSide, "no or too many columns");
    return {rows, columns};
}

void feed(images::Pdq& self, const PixelArray& pixels) {
    expect(pixels.shape(0) <= self.missing(), "more rows than the image has");
    expect(pixels.shape(1) == self.columns(), "rows of other columns");
    expect(pixels.shape(2) == 1 || pixels.shape(2) == 3, "pixels that are not gray or RGB");
    const nb::gil_scoped_release nogil;
    self.feed(pixels.data(), pixels.shape(0), pixels.shape(2));
}

int finish(images::Pdq& self, const OutputArray<std::uint8_t, 2>& signatures) {
    expect(self.missing() == 0, "an image that lacks rows");
    expect(signatures.shape(0) <= images::kPdqOrientations, "too many orientations");
    expect(signatures.shape(1) == images::kPdqBytes, "signatures of other bits");
    const nb::gil_scoped_release nogil;
    return self.finish(signatures.data(), signatures.shape(0));
}

using ThumbnailArray = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
constexpr std::size_t kPlacement = 4, kAgreement = 10, kPairsOfRun = 64;

void thumbnail(const SignatureArray& gray, const AxisTuple& rows, const AxisTuple& columns,
               const OutputArray<std::uint8_t, 2>& found) {
    const images::Blocks blocks = expect_blocks(gray, rows, columns);
    expect_shape(found, {images::kThumbnail, images::kThumbnail}, "a thumbnail of another size");
    const nb::gil_scoped_release nogil;
    images::thumbnail(blocks, found.data());
}

nb::tuple points(const SignatureArray& gray, const AxisTuple& rows, const AxisTuple& columns,
                 std::size_t parts_down, std::size_t parts_across, std::size_t most) {
    const images::Blocks blocks = expect_blocks(gray, rows, columns);
    for (const std::size_t parts : {parts_down, parts_across})
        expect(parts >= images::kLeastSide && parts <= images::kMostParts,
               "too few or too many parts");
    images::Points found =
        without_gil([&] { return images::points(blocks, parts_down, parts_across, most); });
    return tuple_of(found.words, found.across, found.down, found.sizes);
}

void compare(const ThumbnailArray& first, const ThumbnailArray& second, const IdArray& left,
             const IdArray& right, bool refine, std::size_t threads,
             const OutputArray<double, 2>& placements, const OutputArray<double, 2>& agreements) {
    for (const auto* const all : {&first, &second})
        expect(all->shape(1) == images::kThumbnail && all->shape(2) == images::kThumbnail,
               "thumbnails of another size");
    expect(right.size() == left.size(), "pairs without a second image");
    expect_below(left, first.shape(0), "images that are not there");
    expect_below(right, second.shape(0), "images that are not there");
    expect_shape(placements, {left.size(), kPlacement}, "placements of other pairs");
    expect_shape(agreements, {left.size(), kAgreement}, "room for other pairs");
    for (std::size_t at = 0; at < placements.size(); ++at)
        expect(at % 2 || placements.data()[at] > 0, "images without a size");
    constexpr std::size_t kBytes = images::kThumbnail * images::kThumbnail;
    const nb::gil_scoped_release nogil;
    bits::share_out_runs(
        left.size(), kPairsOfRun, threads, python_signals,
        [&](std::size_t, std::size_t begin, std::size_t end) {
            for (std::size_t pair = begin; pair < end; ++pair) {
                double* const at = placements.data() + pair * kPlacement;
                images::Placement placement{at[0], at[1], at[2], at[3]};
                const images::Agreement found = images::compare(
                    first.data() + static_cast<std::size_t>(left.data()[pair]) * kBytes,
                    second.data() + static_cast<std::size_t>(right.data()[pair]) * kBytes,
                    placement, refine);
                std::tie(at[0], at[1], at[2], at[3]) =
                    std::tie(placement.across_scale, placement.across_shift, placement.down_scale,
                             placement.down_shift);
                const std::array values = {found.correlation, found.windows,    found.agreeing,
                                           found.inside,      found.evidence,   found.slow,
                                           found.details,     found.difference, found.first_share,
                                           found.second_share};
                static_assert(values.size() == kAgreement);
                std::copy(values.begin(), values.end(), agreements.data() + pair * kAgreement);
            }
        });
}

}  // namespace

void bind_images(nb::module_& module) {
    nb::class_<images::Bits>(module, "ImageBits")
        .def_static("of_waves", &of_waves, "waves"_a.noconvert(), "down"_a.noconvert(),
                    "across"_a.noconvert(), "least"_a)
        .def_static("of_steps", &of_steps, "rows"_a, "columns"_a, "least"_a)
        .def("sign", &sign, "gray"_a.noconvert(), "rows"_a, "columns"_a, "signature"_a.noconvert());
    nb::class_<images::Pdq>(module, "Pdq")
        .def_static("of", &make_pdq, "rows"_a, "columns"_a)
        .def("feed", &feed, "pixels"_a.noconvert())
        .def("finish", &finish, "signatures"_a.noconvert());
    module.def("image_thumbnail", &thumbnail, "gray"_a.noconvert(), "rows"_a, "columns"_a,
               "thumbnail"_a.noconvert());
    module.def("image_points", &points, "gray"_a.noconvert(), "rows"_a, "columns"_a, "parts_down"_a,
               "parts_across"_a, "most"_a);
    module.def("compare_images", &compare, "first"_a.noconvert(), "second"_a.noconvert(),
               "left"_a.noconvert(), "right"_a.noconvert(), "refine"_a, "threads"_a,
               "placements"_a.noconvert(), "agreements"_a.noconvert());
}

}  // namespace lookalike::bindings
