// Rows of a sparse matrix times a dense matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/threads.hpp"

namespace lookalike::vectors {

// Row i has the entries offsets[i] to offsets[i + 1]: columns, and values. `matrix` has a row of
// `width` numbers for each column; so has the product for each row. Products are summed in the
// order of the entries, so they do not depend on the number of threads.
void multiply_rows(const std::int64_t* offsets, std::size_t rows, const std::int64_t* columns,
                   const float* values, const float* matrix, std::size_t width, std::size_t threads,
                   const bits::Checkpoint& checkpoint, float* product);

}  // namespace lookalike::vectors
