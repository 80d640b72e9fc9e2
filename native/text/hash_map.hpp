// A map from 64-bit hashes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lookalike::text {

// A place for `key` in a table of `size` places, a power of two of at least 2. Multiplying brings
// the low bits to the top, so that keys which are no hashes but a caller's round numbers spread
// too.
inline std::size_t place_in_table(std::uint64_t key, std::size_t size) {
    return (key * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(size));
}

template <class Value>
class HashMap {
  public:
    std::size_t size() const { return size_; }

    const Value* find(std::uint64_t key) const {
        if (slots_.empty())
            return nullptr;
        const Slot& slot = slots_[place(key)];
        return slot.used ? &slot.value : nullptr;
    }

    // The value of `key`, made by `Value{}` if there was none.
    Value& operator[](std::uint64_t key) {
        if (2 * size_ >= slots_.size())
            grow(2 * slots_.size());
        Slot& slot = slots_[place(key)];
        if (!slot.used) {
            slot = {key, Value{}, true};
            ++size_;
        }
        return slot.value;
    }

    // Makes room for `count` keys. To be called before those of another map are put in: they come
    // in the order of places, and would be one behind the other at the beginning of a smaller
    // table.
    void reserve(std::size_t count) {
        if (2 * count >= slots_.size())
            grow(std::bit_ceil(2 * count + 1));
    }

    template <class Visit>
    void each(Visit visit) const {
        for (const Slot& slot : slots_)
            if (slot.used)
                visit(slot.key, slot.value);
    }

    void clear() {
        slots_.clear();
        size_ = 0;
    }

  private:
    struct Slot {
        std::uint64_t key;
        Value value;
        bool used;
    };

    // Where `key` is, or the free place where it belongs. At least half of the places are free.
    std::size_t place(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = place_in_table(key, slots_.size());
        while (slots_[at].used && slots_[at].key != key)
            at = (at + 1) & mask;
        return at;
    }

    void grow(std::size_t size) {
        std::vector<Slot> old(std::max<std::size_t>(64, size));
        old.swap(slots_);
        for (Slot& slot : old)
            if (slot.used)
                slots_[place(slot.key)] = slot;
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
};

}  // namespace lookalike::text
