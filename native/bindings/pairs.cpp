#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "pairs/bands.hpp"
#include "pairs/clusters.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using RowArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using KeyArray = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_pairing(nb::module_& module) {
    module.def(
        "band_keys",
        [](const SignatureArray& rows, std::size_t band_bytes, std::size_t first,
           const OutputArray<std::uint32_t, 2>& keys) {
            const nb::gil_scoped_release nogil;
            search::band_keys(rows.data(), rows.shape(0), rows.shape(1), keys.shape(0), band_bytes,
                              first, keys.shape(1), keys.data());
        },
        "rows"_a.noconvert(), "band_bytes"_a, "first"_a, "keys"_a.noconvert());

    module.def(
        "band_groups",
        [](const KeyArray& keys, std::size_t band) {
            search::Groups groups;
            {
                const nb::gil_scoped_release nogil;
                groups = search::band_groups(keys.data() + band * keys.shape(1), keys.shape(1));
            }
            return nb::make_tuple(to_numpy(std::move(groups.rows)),
                                  to_numpy(std::move(groups.offsets)));
        },
        "keys"_a.noconvert(), "band"_a);

    module.def(
        "group_pairs",
        [](const KeyArray& keys, const RowArray& large_keys, const IdArray& large_offsets,
           std::size_t band, const RowArray& rows, const IdArray& offsets, std::size_t most,
           std::size_t first_new, std::size_t threads) {
            search::RowPairs pairs;
            {
                const nb::gil_scoped_release nogil;
                pairs = search::group_pairs({keys.data(), keys.shape(1)},
                                            {large_keys.data(), large_offsets.data()}, band,
                                            rows.data(), offsets.data(), offsets.size() - 1, most,
                                            first_new, threads, python_signals);
            }
            return nb::make_tuple(to_numpy(std::move(pairs.left)),
                                  to_numpy(std::move(pairs.right)));
        },
        "keys"_a.noconvert(), "large_keys"_a.noconvert(), "large_offsets"_a.noconvert(), "band"_a,
        "rows"_a.noconvert(), "offsets"_a.noconvert(), "most"_a, "first_new"_a, "threads"_a);

    module.def(
        "equal_values_at",
        [](const SignatureArray& rows, std::size_t value_bytes, const IdArray& left,
           const IdArray& right, std::size_t threads, const OutputArray<std::int32_t, 1>& equal) {
            const nb::gil_scoped_release nogil;
            search::equal_values_at(rows.data(), rows.shape(1), value_bytes, left.data(),
                                    right.data(), left.size(), threads, python_signals,
                                    equal.data());
        },
        "rows"_a.noconvert(), "value_bytes"_a, "left"_a.noconvert(), "right"_a.noconvert(),
        "threads"_a, "equal"_a.noconvert());

    module.def(
        "components",
        [](const IdArray& left, const IdArray& right, const OutputArray<std::int64_t, 1>& labels) {
            const nb::gil_scoped_release nogil;
            search::components(labels.size(), left.data(), right.data(), left.size(),
                               labels.data());
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "labels"_a.noconvert());

    module.def(
        "stars",
        [](const IdArray& order, const IdArray& offsets, const IdArray& neighbours,
           const OutputArray<std::int64_t, 1>& labels) {
            const nb::gil_scoped_release nogil;
            search::stars(labels.size(), order.data(), offsets.data(), neighbours.data(),
                          labels.data());
        },
        "order"_a.noconvert(), "offsets"_a.noconvert(), "neighbours"_a.noconvert(),
        "labels"_a.noconvert());
}

}  // namespace lookalike::bindings
