// The Arrow C data interface: string columns of any library, without copies.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>
#include <vector>

namespace lookalike::bindings {

// Texts that live in Arrow buffers, and what keeps these alive.
struct ArrowTexts {
    std::vector<std::string_view> texts;
    std::shared_ptr<void> owner;
};

// Takes the column out of a capsule made by `__arrow_c_stream__`.
// Throws std::invalid_argument if it holds no strings, or a null.
ArrowTexts arrow_texts(nanobind::capsule stream);

}  // namespace lookalike::bindings
