#include "slices/sample.hpp"

#include <algorithm>
#include <vector>

namespace lookalike::search {

namespace {

// Ones in a word, without an instruction for it: a loop over this becomes one over vectors.
std::uint32_t ones(std::uint32_t word) {
    word -= word >> 1 & 0x55555555u;
    word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0fu;
    word += word >> 8;
    return (word + (word >> 16)) & 0x3fu;
}

// Calls visit(query, position, apart) for all slices: how many bits of it differ in each row.
template <class Visit>
void each_slice(const Slicing& slicing, const Signatures& rows, const Signatures& queries,
                Visit visit) {
    std::vector<std::uint32_t> values(rows.count), apart(rows.count);
    for (std::size_t position = 0; position < slicing.count(); ++position) {
        for (std::size_t row = 0; row < rows.count; ++row)
            values[row] = slicing.value(rows.row(row), position);
        for (std::size_t query = 0; query < queries.count; ++query) {
            const std::uint32_t value = slicing.value(queries.row(query), position);
            for (std::size_t row = 0; row < rows.count; ++row)
                apart[row] = ones(value ^ values[row]);
            visit(query, position, apart);
        }
    }
}

}  // namespace

void slice_levels(const Slicing& slicing, const Signatures& rows, const Signatures& queries,
                  std::uint32_t radius, std::int64_t* levels, std::int64_t* near) {
    const std::size_t places = slicing.widest() + 1;
    each_slice(
        slicing, rows, queries, [&](std::size_t query, std::size_t position, const auto& apart) {
            const std::size_t at = (query * slicing.count() + position) * places;
            for (const std::uint32_t one : apart)
                ++levels[at + one];
            if (!slicing.has_sketches()) {
                std::copy_n(levels + at, places, near + at);
                return;
            }
            const std::uint32_t sketch = slicing.sketch(queries.row(query), position);
            for (std::size_t row = 0; row < rows.count; ++row)
                if (apart[row] + ones(sketch ^ slicing.sketch(rows.row(row), position)) <= radius)
                    ++near[at + apart[row]];
        });
}

void slice_scores(const Slicing& slicing, const Signatures& rows, const Signatures& queries,
                  std::size_t most, std::int32_t* scores) {
    const std::size_t pairs = queries.count * rows.count;
    each_slice(
        slicing, rows, queries, [&](std::size_t query, std::size_t position, const auto& apart) {
            const auto width = static_cast<std::int32_t>(slicing.width(position));
            for (std::uint32_t expand = 0; expand <= most; ++expand) {
                std::int32_t* const own = scores + expand * pairs + query * rows.count;
                for (std::size_t row = 0; row < rows.count; ++row)
                    own[row] +=
                        apart[row] <= expand ? width - static_cast<std::int32_t>(apart[row]) : 0;
            }
        });
}

}  // namespace lookalike::search
