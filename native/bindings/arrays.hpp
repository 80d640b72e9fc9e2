// Arrays across the border: in without copies, out with an owner.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "bits/threads.hpp"
#include "scan/scan.hpp"

namespace lookalike::bindings {

namespace nb = nanobind;

// What the Python side promises: the right type, C order, in host memory. nanobind refuses
// everything else, and `noconvert` on each argument forbids it to copy.
using SignatureArray = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using IdArray = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WordArray = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ByteArray = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Value, std::size_t dimensions>
using OutputArray = nb::ndarray<Value, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

inline search::Signatures signatures(const SignatureArray& array) {
    return {array.data(), array.shape(0), array.shape(1)};
}

// Gives a vector to NumPy; the array keeps it alive.
template <class Value>
nb::ndarray<nb::numpy, Value, nb::ndim<1>> to_numpy(std::vector<Value> values) {
    auto* owned = new std::vector<Value>(std::move(values));
    nb::capsule owner(owned,
                      [](void* data) noexcept { delete static_cast<std::vector<Value>*>(data); });
    return {owned->data(), {owned->size()}, owner};
}

// Lets Ctrl-C stop a search; to be called without the GIL.
inline void python_signals() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
}

}  // namespace lookalike::bindings
