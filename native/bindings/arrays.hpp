// Arrays across the border: in without copies, out with an owner.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
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

// A mistake of ours: arguments that do not fit together. Never a damaged file, never the user's.
struct BorderError : std::logic_error {
    using std::logic_error::logic_error;
};

inline void expect(bool fits, const char* what) {
    if (!fits)
        throw BorderError(std::string("the core was called with ") + what);
}

template <class Array>
void expect_shape(const Array& array, std::initializer_list<std::size_t> shape, const char* what) {
    expect(array.ndim() == shape.size() && std::equal(shape.begin(), shape.end(), array.shape_ptr(),
                                                      [](std::size_t wanted, std::int64_t given) {
                                                          return wanted ==
                                                                 static_cast<std::size_t>(given);
                                                      }),
           what);
}

// Every value is at least 0 and less than `below`.
template <class Array>
void expect_below(const Array& values, std::size_t below, const char* what) {
    std::size_t largest = 0;
    for (std::size_t index = 0; index < values.size(); ++index)  // a negative one becomes huge
        largest = std::max(largest, static_cast<std::size_t>(values.data()[index]));
    expect(values.size() == 0 || largest < below, what);
}

// Offsets of parts of something that has `size` elements: from 0 on, ascending, to no more than it.
inline void expect_offsets(const IdArray& offsets, std::size_t size, const char* what) {
    const auto *const begin = offsets.data(), *const end = begin + offsets.size();
    expect(offsets.size() > 0 && *begin >= 0 && std::is_sorted(begin, end) &&
               static_cast<std::size_t>(end[-1]) <= size,
           what);
}

inline search::Signatures signatures(const SignatureArray& array) {
    return {array.data(), array.shape(0), array.shape(1)};
}

inline search::MaskedQueries masked_queries(const SignatureArray& queries,
                                            const SignatureArray& masks) {
    expect_shape(masks, {queries.shape(0), queries.shape(1)},
                 "masks of another shape than queries");
    return {signatures(queries), masks.data()};
}

// Gives a vector to NumPy; the array keeps it alive.
template <class Value>
nb::ndarray<nb::numpy, Value, nb::ndim<1>> to_numpy(std::vector<Value> values) {
    auto* owned = new std::vector<Value>(std::move(values));
    nb::capsule owner(owned,
                      [](void* data) noexcept { delete static_cast<std::vector<Value>*>(data); });
    return {owned->data(), {owned->size()}, owner};
}

template <class... Values>
nb::tuple tuple_of(std::vector<Values>&... values) {
    return nb::make_tuple(to_numpy(std::move(values))...);
}
inline nb::tuple tuple_of(search::Matches matches) {
    return tuple_of(matches.offsets, matches.ids, matches.distances);
}
inline nb::tuple tuple_of(search::Pairs pairs) {
    return tuple_of(pairs.left, pairs.right, pairs.distances);
}

// What `work` gives, with the GIL released while it runs.
template <class Work>
auto without_gil(Work work) {
    const nb::gil_scoped_release nogil;
    return work();
}

// Lets Ctrl-C stop a search; to be called without the GIL.
inline void python_signals() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
}

}  // namespace lookalike::bindings
