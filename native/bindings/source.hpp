// Documents that can be read as features, as the bindings of signers and of joins see them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "sign/bag.hpp"

namespace lookalike::bindings {

// A source as Python holds it; keeps alive what it reads from.
struct BoundSource {
    std::unique_ptr<sign::Source> source;
    nanobind::object first, second, third;
};

}  // namespace lookalike::bindings
