#include "tables/sorted_table.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "bits/operation.hpp"

namespace lookalike::search {

namespace {

// Entries are first dealt out by their leading header bits, in one pass that writes to as many
// places at once as caches can follow; each part is then small enough to be sorted in a cache.
constexpr std::size_t kPartBits = 9;
constexpr std::size_t kPieces = 16;  // of the collection, dealt out by threads

struct Entry64 {
    std::uint64_t signature;
    std::uint32_t row;
    std::uint32_t header;

    friend bool operator<(const Entry64& a, const Entry64& b) {
        return a.signature != b.signature ? a.signature < b.signature : a.row < b.row;
    }
};

struct Entry {
    std::uint32_t row;
    std::uint32_t header;
};

// Places of `values` of equal header are contiguous after this; `ends[h]` is behind those of h.
template <class Item>
void sort_part(Item* items, std::size_t count, Item* spare, std::uint32_t first_header,
               std::size_t headers, std::uint32_t begin, std::uint32_t* offsets) {
    // offsets[h] counts, then becomes where h begins, then where the next one of h goes.
    std::fill(offsets, offsets + headers, 0);
    for (std::size_t at = 0; at < count; ++at)
        ++offsets[items[at].header - first_header];
    std::uint32_t next = 0;
    for (std::size_t header = 0; header < headers; ++header) {
        const std::uint32_t size = offsets[header];
        offsets[header] = next;
        next += size;
    }
    for (std::size_t at = 0; at < count; ++at)
        spare[offsets[items[at].header - first_header]++] = items[at];
    // Now each is where the next one begins: move on by one.
    for (std::size_t header = headers; header-- > 1;)
        offsets[header] = begin + offsets[header - 1];
    if (headers != 0)
        offsets[0] = begin;
}

}  // namespace

Header::Header(std::size_t signature_bytes, std::vector<Run> runs)
    : bytes_(signature_bytes), runs_(std::move(runs)) {
    for (const Run& run : runs_) {
        bits_ += run.width;
        if (run.from + run.width <= 64 && run.width != 0)
            mask_ |= (~std::uint64_t{0} >> (64 - run.width)) << run.from;
    }
}

void build_table(const Header& header, const Signatures& signatures, std::size_t threads,
                 const bits::Checkpoint& checkpoint, std::uint8_t* sorted, std::uint32_t* rows,
                 std::uint32_t* offsets) {
    const std::size_t count = signatures.count, bytes = signatures.bytes;
    const std::size_t part_bits = std::min(kPartBits, header.bits());
    const std::size_t rest_bits = header.bits() - part_bits;
    const std::size_t parts = std::size_t{1} << part_bits;
    const std::size_t pieces = count < (1 << 16) ? 1 : kPieces;
    const auto piece_begin = [&](std::size_t piece) { return piece * count / pieces; };

    const auto sort_all = [&]<class Item>(Item*) {
        std::unique_ptr<Item[]> items(new Item[std::max<std::size_t>(1, count)]);
        std::vector<std::uint32_t> headers(count);
        std::vector<std::vector<std::size_t>> places(pieces, std::vector<std::size_t>(parts, 0));
        bits::Stages stages(3);
        stages.next();
        bits::share_out(pieces, threads, checkpoint, [&](std::size_t, std::size_t piece) {
            auto& counts = places[piece];
            for (std::size_t row = piece_begin(piece); row < piece_begin(piece + 1); ++row) {
                headers[row] = static_cast<std::uint32_t>(header.value(signatures.row(row)));
                ++counts[headers[row] >> rest_bits];
            }
        });
        std::vector<std::size_t> starts(parts + 1, 0);
        std::size_t next = 0;
        for (std::size_t part = 0; part < parts; ++part) {
            starts[part] = next;
            for (std::size_t piece = 0; piece < pieces; ++piece) {
                const std::size_t size = places[piece][part];
                places[piece][part] = next;
                next += size;
            }
        }
        starts[parts] = count;
        stages.next();
        bits::share_out(pieces, threads, checkpoint, [&](std::size_t, std::size_t piece) {
            auto& next_place = places[piece];
            for (std::size_t row = piece_begin(piece); row < piece_begin(piece + 1); ++row) {
                Item& item = items[next_place[headers[row] >> rest_bits]++];
                item.row = static_cast<std::uint32_t>(row);
                item.header = headers[row];
                if constexpr (std::is_same_v<Item, Entry64>)
                    std::memcpy(&item.signature, signatures.row(row), 8);
            }
        });
        headers = {};
        std::vector<std::vector<Item>> spares(std::max<std::size_t>(1, threads));
        stages.next();
        bits::share_out(parts, threads, checkpoint, [&](std::size_t worker, std::size_t part) {
            const std::size_t begin = starts[part], size = starts[part + 1] - begin;
            std::vector<Item>& spare = spares[worker];
            if (spare.size() < size)
                spare.resize(size);
            const std::size_t headers_here = std::size_t{1} << rest_bits;
            std::uint32_t* const own = offsets + part * headers_here;
            sort_part(items.get() + begin, size, spare.data(),
                      static_cast<std::uint32_t>(part << rest_bits), headers_here,
                      static_cast<std::uint32_t>(begin), own);
            for (std::size_t from = 0, to; from < size; from = to) {
                for (to = from + 1; to < size && spare[to].header == spare[from].header;)
                    ++to;
                if (to - from == 1)
                    continue;
                if constexpr (std::is_same_v<Item, Entry64>)
                    std::sort(spare.begin() + static_cast<std::ptrdiff_t>(from),
                              spare.begin() + static_cast<std::ptrdiff_t>(to));
                else
                    std::sort(spare.begin() + static_cast<std::ptrdiff_t>(from),
                              spare.begin() + static_cast<std::ptrdiff_t>(to),
                              [&](const Item& a, const Item& b) {
                                  const int order = compare_signatures(
                                      signatures.row(a.row), signatures.row(b.row), bytes);
                                  return order != 0 ? order < 0 : a.row < b.row;
                              });
            }
            for (std::size_t at = 0; at < size; ++at) {
                rows[begin + at] = spare[at].row;
                if (sorted == nullptr)
                    continue;
                if constexpr (std::is_same_v<Item, Entry64>)
                    std::memcpy(sorted + (begin + at) * 8, &spare[at].signature, 8);
                else
                    std::memcpy(sorted + (begin + at) * bytes, signatures.row(spare[at].row),
                                bytes);
            }
        });
    };
    if (bytes == 8)
        sort_all(static_cast<Entry64*>(nullptr));
    else
        sort_all(static_cast<Entry*>(nullptr));
    offsets[header.buckets()] = static_cast<std::uint32_t>(count);
}

namespace {

// Whether signatures are in order, and for each header behind which place its last one is, at
// offsets[header + 1]; nothing is written for headers that there are none of. value(at) is a
// header, ascends(at) says whether the signature there is in order behind the one before it.
template <class Value, class Ascends>
bool mark_ends(std::size_t begin, std::size_t end, Value value, Ascends ascends,
               std::uint32_t* offsets) {
    bool in_order = true;
    for (std::size_t at = begin; at < end; ++at) {
        in_order &= at == 0 || ascends(at);
        offsets[value(at) + 1] = static_cast<std::uint32_t>(at + 1);
    }
    return in_order;
}

}  // namespace

bool find_offsets(const Header& header, const Signatures& sorted, std::size_t threads,
                  const bits::Checkpoint& checkpoint, std::uint32_t* offsets) {
    std::fill(offsets, offsets + header.buckets() + 1, 0);
    std::atomic<bool> ascending{true};
    const std::size_t pieces = sorted.count < (1 << 16) ? 1 : kPieces;
    // A header is in one piece, that of its first signature.
    std::vector<std::size_t> begins{0};
    for (std::size_t piece = 1; piece < pieces; ++piece) {
        std::size_t at = std::max(begins.back(), piece * sorted.count / pieces);
        while (at != 0 && at < sorted.count &&
               header.value(sorted.row(at)) == header.value(sorted.row(at - 1)))
            ++at;
        begins.push_back(at);
    }
    begins.push_back(sorted.count);
    bits::share_out(pieces, threads, checkpoint, [&](std::size_t, std::size_t piece) {
        const std::size_t begin = begins[piece], end = begins[piece + 1];
        bool in_order;
        const std::size_t rest = 64 - header.bits();
        if (sorted.bytes == 8 && rest != 64 && header.mask() == ~std::uint64_t{0} << rest) {
            // The upper bits of single words: nothing has to be put together.
            const std::uint8_t* const words = sorted.data;
            const auto word = [=](std::size_t at) {
                std::uint64_t own;
                std::memcpy(&own, words + 8 * at, 8);
                return own;
            };
            in_order = mark_ends(
                begin, end, [=](std::size_t at) { return word(at) >> rest; },
                [=](std::size_t at) { return word(at - 1) <= word(at); }, offsets);
        } else {
            in_order = mark_ends(
                begin, end, [&](std::size_t at) { return header.value(sorted.row(at)); },
                [&](std::size_t at) {
                    return compare_signatures(sorted.row(at - 1), sorted.row(at), sorted.bytes) <=
                           0;
                },
                offsets);
        }
        if (!in_order)
            ascending = false;
    });
    // A header that there is none of ends where the one before it does.
    std::uint32_t end = 0;
    for (std::size_t at = 1; at <= header.buckets(); ++at)
        offsets[at] = end = std::max(end, offsets[at]);
    return ascending;
}

namespace {

template <class Prefix>
void deal_out(const Signatures& signatures, std::size_t prefixes, Prefix prefix,
              std::uint8_t* ordered, std::uint32_t* rows, std::uint32_t* places) {
    const std::size_t bytes = signatures.bytes;
    std::vector<std::uint32_t> next(prefixes, 0);
    for (std::size_t row = 0; row < signatures.count; ++row)
        ++next[prefix(row)];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), 0u);
    for (std::size_t row = 0; row < signatures.count; ++row) {
        const std::uint32_t place = next[prefix(row)]++;
        if (bytes == 8)
            std::memcpy(ordered + std::size_t{place} * 8, signatures.row(row), 8);
        else
            std::memcpy(ordered + place * bytes, signatures.row(row), bytes);
        rows[place] = static_cast<std::uint32_t>(row);
        places[row] = place;
    }
}

}  // namespace

void order_by_prefix(const Signatures& signatures, std::uint8_t* ordered, std::uint32_t* rows,
                     std::uint32_t* places) {
    constexpr std::size_t kPrefixBits = 11;
    const std::size_t bytes = signatures.bytes, prefixes = std::size_t{1} << kPrefixBits;
    const std::size_t bits = std::min<std::size_t>(8 * bytes, 64);
    const std::size_t rest = bits - std::min(bits, kPrefixBits);
    if (bytes == 8) {
        const std::uint8_t* const words = signatures.data;
        const auto prefix = [=](std::size_t row) {
            std::uint64_t word;
            std::memcpy(&word, words + 8 * row, 8);
            return word >> rest;
        };
        return deal_out(signatures, prefixes, prefix, ordered, rows, places);
    }
    const auto prefix = [&](std::size_t row) {
        return signature_word(signatures.row(row), bytes, 0) >> rest;
    };
    deal_out(signatures, prefixes, prefix, ordered, rows, places);
}

}  // namespace lookalike::search
