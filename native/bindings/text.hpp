// Documents and how to read features from them, as the bindings of signers see them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bindings/arrays.hpp"
#include "bits/hash.hpp"
#include "text/features.hpp"

namespace lookalike::bindings {

// Texts, and what keeps their bytes alive: a list of strings or Arrow buffers.
struct Documents {
    std::vector<std::string_view> texts;
    std::shared_ptr<void> owner;
    nb::object list;
};

struct TextFeatures {
    text::FeatureOptions options;
    // Never changed, only replaced: sources that use the old ones keep them.
    std::shared_ptr<const text::Stems> stems = std::make_shared<text::Stems>();
};

}  // namespace lookalike::bindings
