// MinHash by functions that the caller gives, in place of random ones.
#pragma once

#include <cstdint>
#include <vector>

#include "sign/signers.hpp"
#include "text/hash_map.hpp"

namespace lookalike::sign {

// x -> (factor * x + term) modulo `modulus`, over whole features; or, if that is 0, what the table
// says of a feature. Values are below 2^32 - 1.
struct GivenHash {
    std::uint64_t factor = 0, term = 0;
    std::uint32_t modulus = 0;
    text::HashMap<std::uint32_t> table;
};

// The first document with a feature that a table does not have, and the first such table of those
// that do not have one of its features.
struct UnknownFeature {
    std::int64_t document, function;
};

// minima[p] is the least value of function p over the features of the document; 2^32 - 1 for one
// without any. {-1, -1} if all features are known; else the minima mean nothing.
UnknownFeature given_minima(const Source& source, const std::vector<GivenHash>& hashes, Work work,
                            std::uint32_t* minima);

}  // namespace lookalike::sign
