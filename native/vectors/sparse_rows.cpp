#include "vectors/sparse_rows.hpp"

#include <algorithm>

namespace lookalike::vectors {

namespace {

constexpr std::size_t kRowsPerRun = 256;

}  // namespace

void multiply_rows(const std::int64_t* offsets, std::size_t rows, const std::int64_t* columns,
                   const float* values, const float* matrix, std::size_t width, std::size_t threads,
                   const bits::Checkpoint& checkpoint, float* product) {
    bits::share_out_runs(rows, kRowsPerRun, threads, checkpoint,
                         [&](std::size_t, std::size_t begin, std::size_t end) {
                             std::fill(product + begin * width, product + end * width, 0.0f);
                             for (std::size_t row = begin; row < end; ++row) {
                                 float* const to = product + row * width;
                                 for (std::int64_t at = offsets[row]; at < offsets[row + 1]; ++at) {
                                     const float* const from =
                                         matrix + static_cast<std::size_t>(columns[at]) * width;
                                     const float value = values[at];
                                     for (std::size_t place = 0; place < width; ++place)
                                         to[place] += value * from[place];
                                 }
                             }
                         });
}

}  // namespace lookalike::vectors
