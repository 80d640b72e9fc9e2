#include "slices/lists.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace lookalike::search {

namespace {

// Positions that are filled in one pass over the signatures: their bytes share cache lines.
constexpr std::size_t kPositionsPerPass = 8;

// A position, with all that its values need worked out beforehand.
template <class Row>
struct Column {
    std::size_t position;
    std::size_t byte, shift;
    std::uint32_t mask;
    Row* offsets;
    Row* rows;
    std::uint16_t* sketches;  // or null
};

// The bits of a slice that tell which lists a row is in.
std::uint32_t told_value(const Slicing& slicing, const std::uint8_t* signature,
                         std::size_t position) {
    return slicing.value(signature, position) >> slicing.untold(position);
}

// Puts rows whose values have the same told bits in the order of their values, and writes those.
// Rows of a value keep their order.
template <class Row>
void order_by_value(const Slicing& slicing, const Signatures& signatures, std::size_t position,
                    std::size_t count, Row* rows, std::uint16_t* sketches, std::uint32_t* values) {
    std::vector<std::pair<std::uint32_t, Row>> both;
    for (std::size_t at = 0; at < count; ++at)
        both.emplace_back(slicing.value(signatures.row(rows[at]), position), rows[at]);
    std::sort(both.begin(), both.end());  // rows ascend
    for (std::size_t at = 0; at < count; ++at) {
        std::tie(values[at], rows[at]) = both[at];
        if (sketches)
            sketches[at] = slicing.sketch(signatures.row(rows[at]), position);
    }
}

}  // namespace

template <class Row>
void build_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, Row* offsets, Row* rows,
                 std::uint16_t* sketches, std::uint32_t* values) {
    const std::size_t positions = slicing.count();
    // At least one task a thread, even if a pass then has fewer positions.
    const std::size_t per_task = std::clamp<std::size_t>(
        positions / std::max<std::size_t>(1, threads), 1, kPositionsPerPass);
    const std::size_t tasks = (positions + per_task - 1) / per_task;
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t first = task * per_task, end = std::min(positions, first + per_task);
        std::vector<Column<Row>> columns;
        for (std::size_t position = first; position < end; ++position) {
            const std::size_t start = slicing.start(position) + slicing.untold(position);
            columns.push_back({position, start / 8, start % 8,
                               low_bits(slicing.width(position) - slicing.untold(position)),
                               offsets + slicing.lists_before(position),
                               rows + position * signatures.count,
                               sketches ? sketches + position * signatures.count : nullptr});
        }
        const std::uint8_t* const last = signatures.data + signatures.count * signatures.bytes - 8;
        const auto value = [&](std::size_t row, const Column<Row>& column) {
            const std::uint8_t* const from = signatures.row(row) + column.byte;
            if (from > last) [[unlikely]]  // eight bytes from here would leave the collection
                return told_value(slicing, signatures.row(row), column.position);
            std::uint64_t word;
            std::memcpy(&word, from, 8);
            return static_cast<std::uint32_t>(word >> column.shift) & column.mask;
        };

        std::fill(offsets + slicing.lists_before(first), offsets + slicing.lists_before(end), 0);
        for (std::size_t row = 0; row < signatures.count; ++row)
            for (const Column<Row>& column : columns)
                ++column.offsets[value(row, column)];
        for (const Column<Row>& column : columns) {
            Row sum = 0;  // counts become the ends of lists
            for (std::size_t at = 0; at <= column.mask; ++at)
                column.offsets[at] = sum += column.offsets[at];
        }
        // From the last row to the first, so that ends become beginnings and rows ascend.
        for (std::size_t row = signatures.count; row-- > 0;)
            for (const Column<Row>& column : columns) {
                const Row place = --column.offsets[value(row, column)];
                column.rows[place] = static_cast<Row>(row);
                if (column.sketches)
                    column.sketches[place] = slicing.sketch(signatures.row(row), column.position);
            }
        for (const Column<Row>& column : columns) {
            if (values == nullptr)
                break;
            std::uint32_t* const own = values + column.position * signatures.count;
            for (std::size_t at = 0; at <= column.mask; ++at) {
                const std::size_t begin = column.offsets[at];
                const std::size_t stop =
                    at == column.mask ? signatures.count : column.offsets[at + 1];
                order_by_value(slicing, signatures, column.position, stop - begin,
                               column.rows + begin,
                               column.sketches ? column.sketches + begin : nullptr, own + begin);
            }
        }
    });
}

template <class Row>
void count_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, Row* offsets) {
    // Several positions in one pass, because signatures may come from a disk each time.
    const std::size_t tasks = std::min(std::max<std::size_t>(1, threads), slicing.count());
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t first = slicing.count() * task / tasks;
        const std::size_t end = slicing.count() * (task + 1) / tasks;
        std::fill(offsets + slicing.lists_before(first), offsets + slicing.lists_before(end), 0);
        for (std::size_t row = 0; row < signatures.count; ++row)
            for (std::size_t position = first; position < end; ++position)
                ++offsets[slicing.lists_before(position) +
                          told_value(slicing, signatures.row(row), position)];
        for (std::size_t position = first; position < end; ++position)
            std::exclusive_scan(offsets + slicing.lists_before(position),
                                offsets + slicing.lists_before(position + 1),
                                offsets + slicing.lists_before(position), Row{0});
    });
}

template <class Row>
void fill_lists(const Slicing& slicing, const Signatures& signatures, std::size_t threads,
                const bits::Checkpoint& checkpoint, const Row* offsets, std::size_t first,
                std::size_t end, Row* rows, std::size_t room, std::uint16_t* sketches,
                std::uint32_t* values) {
    // Positions that have some of the lists, and the place of their first posting.
    struct Part {
        std::size_t position, first, end, place;  // lists of the position, by value
    };
    std::vector<Part> parts;
    std::size_t place = 0;
    for (std::size_t position = 0; position < slicing.count(); ++position) {
        const std::size_t before = slicing.lists_before(position);
        const std::size_t values = slicing.lists_before(position + 1) - before;
        const std::size_t from = std::clamp(first, before, before + values) - before;
        const std::size_t to = std::clamp(end, before, before + values) - before;
        if (from == to)
            continue;
        parts.push_back({position, from, to, place});
        place += (to == values ? signatures.count : offsets[before + to]) - offsets[before + from];
    }
    const std::size_t tasks = std::min(std::max<std::size_t>(1, threads), parts.size());
    bits::share_out(tasks, threads, checkpoint, [&](std::size_t, std::size_t task) {
        const std::size_t first_part = parts.size() * task / tasks;
        const std::size_t end_part = parts.size() * (task + 1) / tasks;
        std::vector<std::vector<std::size_t>> places;  // where the next row of each list goes
        for (std::size_t at = first_part; at < end_part; ++at) {
            const Part& part = parts[at];
            const Row* const from = offsets + slicing.lists_before(part.position);
            std::vector<std::size_t>& next = places.emplace_back();
            next.reserve(part.end - part.first);
            for (std::size_t value = part.first; value < part.end; ++value)
                next.push_back(part.place + (from[value] - from[part.first]));
        }
        for (std::size_t row = 0; row < signatures.count; ++row)
            for (std::size_t at = first_part; at < end_part; ++at) {
                const Part& part = parts[at];
                const std::size_t value = told_value(slicing, signatures.row(row), part.position);
                if (value < part.first || value >= part.end)
                    continue;
                const std::size_t to = places[at - first_part][value - part.first]++;
                if (to >= room)
                    throw CorruptLists();  // the signatures have changed since they were counted
                rows[to] = static_cast<Row>(row);
                if (sketches)
                    sketches[to] = slicing.sketch(signatures.row(row), part.position);
            }
        for (std::size_t at = first_part; values != nullptr && at < end_part; ++at) {
            const Part& part = parts[at];
            std::size_t begin = part.place;
            for (const std::size_t stop : places[at - first_part]) {  // where its list has ended
                order_by_value(slicing, signatures, part.position, stop - begin, rows + begin,
                               sketches ? sketches + begin : nullptr, values + begin);
                begin = stop;
            }
        }
    });
}

template <class Row>
void merge_lists(const Slicing& slicing, const std::vector<SliceLists<Row>>& parts,
                 std::size_t threads, const bits::Checkpoint& checkpoint, Row* offsets, Row* rows,
                 std::uint16_t* sketches) {
    std::size_t count = 0;
    for (const auto& part : parts)
        count += part.count;
    bits::share_out(slicing.count(), threads, checkpoint, [&](std::size_t, std::size_t position) {
        std::size_t at = 0;
        const std::size_t values =
            slicing.lists_before(position + 1) - slicing.lists_before(position);
        for (std::size_t value = 0; value < values; ++value) {
            offsets[slicing.lists_before(position) + value] = static_cast<Row>(at);
            std::size_t shift = 0;
            for (const auto& part : parts) {
                const auto list = part.list(position, static_cast<std::uint32_t>(value));
                if (at + list.size > count)
                    throw CorruptLists();
                if (sketches)
                    std::copy_n(part.sketches_of(list), list.size,
                                sketches + position * count + at);
                for (std::size_t index = 0; index < list.size; ++index)
                    rows[position * count + at++] = static_cast<Row>(list.begin[index] + shift);
                shift += part.count;
            }
        }
    });
}

template void build_lists(const Slicing&, const Signatures&, std::size_t, const bits::Checkpoint&,
                          std::uint32_t*, std::uint32_t*, std::uint16_t*, std::uint32_t*);
template void build_lists(const Slicing&, const Signatures&, std::size_t, const bits::Checkpoint&,
                          std::uint64_t*, std::uint64_t*, std::uint16_t*, std::uint32_t*);
template void count_lists(const Slicing&, const Signatures&, std::size_t, const bits::Checkpoint&,
                          std::uint32_t*);
template void count_lists(const Slicing&, const Signatures&, std::size_t, const bits::Checkpoint&,
                          std::uint64_t*);
template void fill_lists(const Slicing&, const Signatures&, std::size_t, const bits::Checkpoint&,
                         const std::uint32_t*, std::size_t, std::size_t, std::uint32_t*,
                         std::size_t, std::uint16_t*, std::uint32_t*);
template void fill_lists(const Slicing&, const Signatures&, std::size_t, const bits::Checkpoint&,
                         const std::uint64_t*, std::size_t, std::size_t, std::uint64_t*,
                         std::size_t, std::uint16_t*, std::uint32_t*);
template void merge_lists(const Slicing&, const std::vector<SliceLists<std::uint32_t>>&,
                          std::size_t, const bits::Checkpoint&, std::uint32_t*, std::uint32_t*,
                          std::uint16_t*);
template void merge_lists(const Slicing&, const std::vector<SliceLists<std::uint64_t>>&,
                          std::size_t, const bits::Checkpoint&, std::uint64_t*, std::uint64_t*,
                          std::uint16_t*);

}  // namespace lookalike::search
