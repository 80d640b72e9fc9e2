// One band's keys in open addressing: a key has one row, or a list of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "bands/lists.hpp"
#include "bits/zeroed_memory.hpp"

namespace lookalike::search {

// Where a key's rows are: 0, nowhere; a row's number and one; or a list if the highest bit is set.
struct RowReference {
    static constexpr std::uint32_t kList = 0x80000000u;
    static constexpr std::uint32_t kMostRows = kList - 1;

    std::uint32_t value;

    static RowReference to_row(std::uint32_t row) { return {row + 1}; }
    static RowReference to_list(RowLists::List list) { return {list | kList}; }
    bool none() const { return value == 0; }
    bool is_list() const { return (value & kList) != 0; }
    std::uint32_t row() const { return value - 1; }
    RowLists::List list() const { return value & ~kList; }
};

// A key's place follows its order, so that growing reads and writes memory from front to back.
class KeySlots {
  public:
    // Makes room for `keys`, so that the table does not grow on the way.
    void reserve(std::size_t keys) {
        if (keys * 10 > capacity_ * 7)
            grow(std::max(keys * 10 / 7 + 8, 2 * capacity_));
    }

    [[gnu::always_inline]] void prefetch(std::uint32_t key) const {
        __builtin_prefetch(slots_ + place(key), 0, 3);
    }

    RowReference find(std::uint32_t key) const {
        for (std::size_t at = place(key);; at = next(at)) {
            const Slot& slot = slots_[at];
            if (slot.rows.none() || slot.key == key)
                return slot.rows;
        }
    }

    // There has to be room.
    void insert(std::uint32_t key, std::uint32_t row, RowLists& lists) {
        std::size_t at = place(key);
        while (!slots_[at].rows.none() && slots_[at].key != key)
            at = next(at);
        Slot& slot = slots_[at];
        if (slot.rows.none()) {
            slot = {key, RowReference::to_row(row)};
            ++keys_;
        } else if (slot.rows.is_list()) {
            slot.rows = RowReference::to_list(lists.append(slot.rows.list(), row));
        } else {
            slot.rows = RowReference::to_list(lists.make(slot.rows.row(), row));
        }
    }

    std::size_t size() const { return keys_; }
    std::size_t memory_bytes() const { return capacity_ * sizeof(Slot); }

  private:
    struct Slot {
        std::uint32_t key;
        RowReference rows;
    };

    std::size_t place(std::uint32_t key) const {
        return static_cast<std::size_t>(std::uint64_t{key} * capacity_ >> 32);
    }
    std::size_t next(std::size_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }

    void grow(std::size_t capacity) {
        bits::ZeroedMemory larger(capacity * sizeof(Slot));
        const Slot* const before = std::exchange(slots_, static_cast<Slot*>(larger.get()));
        const std::size_t slots = std::exchange(capacity_, capacity);
        for (std::size_t index = 0; index < slots; ++index) {
            const Slot slot = before[index];
            if (slot.rows.none())
                continue;
            std::size_t at = place(slot.key);
            while (!slots_[at].rows.none())
                at = next(at);
            slots_[at] = slot;
        }
        memory_ = std::move(larger);
    }

    bits::ZeroedMemory memory_;
    Slot* slots_ = nullptr;  // in it
    std::size_t capacity_ = 0, keys_ = 0;
};

}  // namespace lookalike::search
