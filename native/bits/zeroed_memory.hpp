// Memory full of zeros, in huge pages where it is large and the system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "bits/pool.hpp"

namespace lookalike::bits {

// Large memory comes from the system itself. std::calloc may give what was in use before, or write
// zeros: then it is in small pages by the time that huge ones are asked for, and going to and fro
// in it takes three times as long.
class ZeroedMemory {
  public:
    ZeroedMemory() = default;
    explicit ZeroedMemory(std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
        if (bytes >= 2 * kHugePage) {
            mapped_ = bytes + kHugePage;  // for a beginning where a huge page may begin
            memory_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0);
            if (memory_ == MAP_FAILED)
                throw std::bad_alloc();
            const auto begin = reinterpret_cast<std::uintptr_t>(memory_);
            begin_ = reinterpret_cast<void*>((begin + kHugePage - 1) / kHugePage * kHugePage);
            advise_huge_pages(begin_, bytes);
            return;
        }
#endif
        begin_ = memory_ = std::calloc(bytes, 1);
        if (memory_ == nullptr)
            throw std::bad_alloc();
    }
    ZeroedMemory(ZeroedMemory&& other) noexcept { swap(other); }
    ZeroedMemory& operator=(ZeroedMemory&& other) noexcept {
        swap(other);
        return *this;
    }
    ZeroedMemory(const ZeroedMemory&) = delete;
    ZeroedMemory& operator=(const ZeroedMemory&) = delete;
    ~ZeroedMemory() {
#if defined(MADV_HUGEPAGE)
        if (mapped_ > 0) {
            ::munmap(memory_, mapped_);
            return;
        }
#endif
        std::free(memory_);
    }

    void* get() const { return begin_; }

  private:
    void swap(ZeroedMemory& other) {
        std::swap(memory_, other.memory_);
        std::swap(begin_, other.begin_);
        std::swap(mapped_, other.mapped_);
    }

    void* memory_ = nullptr;
    void* begin_ = nullptr;
    std::size_t mapped_ = 0;  // bytes of the system's, or none
};

}  // namespace lookalike::bits
