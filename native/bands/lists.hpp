// Lists of rows in one piece of memory, each as long as a power of two: a list that many rows share
// grows in amortized constant time, and reading it is reading on.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace lookalike::search {

class RowLists {
  public:
    using List = std::uint32_t;
    static constexpr List kMostLists = 0x7fffffffu;

    List make(std::uint32_t first, std::uint32_t second) {
        const List list = block(kSmallest);
        std::uint32_t* const words = at(list);
        words[0] = 2, words[1] = first, words[2] = second;
        return list;
    }

    // Returns where the list is from now on.
    List append(List list, std::uint32_t row) {
        const std::uint32_t count = at(list)[0];
        if (std::has_single_bit(count + 1) && count + 1 >= kSmallest) {  // its block is full
            const List larger = block(2 * std::size_t{count + 1});
            std::copy_n(at(list), count + 1, at(larger));
            free_[class_of(count + 1)].push_back(list);
            list = larger;
        }
        std::uint32_t* const words = at(list);
        words[++words[0]] = row;
        return list;
    }

    std::span<const std::uint32_t> rows(List list) const {
        const std::uint32_t* const words = words_.data() + kSmallest * std::size_t{list};
        return {words + 1, words[0]};
    }

    std::size_t memory_bytes() const { return words_.capacity() * sizeof(std::uint32_t); }

  private:
    static constexpr std::size_t kSmallest = 4;  // words: the length, then rows

    static std::size_t class_of(std::size_t words) {
        return static_cast<std::size_t>(std::bit_width(words / kSmallest)) - 1;
    }
    std::uint32_t* at(List list) { return words_.data() + kSmallest * std::size_t{list}; }

    // A block of this number of words, a power of two.
    List block(std::size_t words) {
        std::vector<List>& unused = free_[class_of(words)];
        if (!unused.empty()) {
            const List list = unused.back();
            unused.pop_back();
            return list;
        }
        const std::size_t list = words_.size() / kSmallest;
        if (list >= kMostLists)
            throw std::length_error("more rows with equal bands than can be numbered");
        words_.resize(words_.size() + words);
        return static_cast<List>(list);
    }

    std::vector<std::uint32_t> words_;
    std::array<std::vector<List>, 32> free_;  // blocks that were outgrown, by size
};

}  // namespace lookalike::search
