// Working memory that is kept from one call to the next: asking the system for megabytes, and
// touching them for the first time, costs more than many a search.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "bits/process_mutex.hpp"

namespace lookalike::bits {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Asks the system for huge pages where memory is large; it may not have any.
inline void advise_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
    if (bytes >= 2 * kHugePage)
        ::madvise(reinterpret_cast<void*>(first), bytes - (first - begin), MADV_HUGEPAGE);
#endif
}

// Memory for std::free, in huge pages where it is large and the system has them.
inline void* allocate_pages(std::size_t bytes) {
    const std::size_t whole = (bytes / kHugePage + 1) * kHugePage;
    const bool large = bytes >= 2 * kHugePage;
    void* const memory = large ? std::aligned_alloc(kHugePage, whole) : std::malloc(bytes);
    if (memory == nullptr)
        throw std::bad_alloc();
    if (large)
        advise_huge_pages(memory, whole);
    return memory;
}

// An object of that type that is not in use elsewhere, and goes back when this one ends.
template <class Thing>
class Pooled {
  public:
    Pooled() : thing_(shelf().take()) {}
    Pooled(Pooled&&) noexcept = default;
    Pooled& operator=(Pooled&&) = delete;
    Pooled(const Pooled&) = delete;
    Pooled& operator=(const Pooled&) = delete;
    ~Pooled() {
        if (thing_)
            shelf().put_back(std::move(thing_));
    }

    // Frees objects that are not in use, for those that have grown large.
    static void free_unused() { shelf().clear(); }

    explicit operator bool() const { return thing_ != nullptr; }  // false after a move
    Thing& operator*() { return *thing_; }
    const Thing& operator*() const { return *thing_; }
    Thing* operator->() { return thing_.get(); }
    const Thing* operator->() const { return thing_.get(); }

  private:
    class Shelf {
      public:
        std::unique_ptr<Thing> take() {
            {
                const std::scoped_lock lock(process_mutex<Shelf>());
                if (!free_.empty()) {
                    std::unique_ptr<Thing> thing = std::move(free_.back());
                    free_.pop_back();
                    return thing;
                }
            }
            return std::make_unique<Thing>();
        }
        void put_back(std::unique_ptr<Thing> thing) {
            const std::scoped_lock lock(process_mutex<Shelf>());
            if (free_.size() < kMostKept)
                free_.push_back(std::move(thing));
        }
        void clear() {
            std::vector<std::unique_ptr<Thing>> unused;
            const std::scoped_lock lock(process_mutex<Shelf>());
            unused.swap(free_);
        }

      private:
        static constexpr std::size_t kMostKept = 32;

        std::vector<std::unique_ptr<Thing>> free_;
    };

    static Shelf& shelf() {
        static Shelf only;
        return only;
    }

    std::unique_ptr<Thing> thing_;
};

// An array whose places have no value until they are written; it only grows. Large ones are asked
// for in huge pages, without which going to and fro in them waits for addresses to be looked up.
template <class Value>
class Room {
    static_assert(std::is_trivially_copyable_v<Value>);

  public:
    // At least `count` places. What was in them is lost if there were fewer.
    Value* of(std::size_t count) {
        if (count > size_) {
            places_.reset();
            size_ = 0;
            const std::size_t wanted = count + count / 4;
            places_.reset(static_cast<Value*>(allocate_pages(wanted * sizeof(Value))));
            size_ = wanted;
        }
        return places_.get();
    }

  private:
    struct Free {
        void operator()(Value* places) const { std::free(places); }
    };

    std::unique_ptr<Value, Free> places_;
    std::size_t size_ = 0;
};

}  // namespace lookalike::bits
