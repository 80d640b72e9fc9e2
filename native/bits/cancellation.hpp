// Work that is abandoned stops: a flag that any thread may set, and the working thread looks at.
//
// A thread works under at most one cancellation. `share_out` hands it on to its helpers and looks
// at it before each task, so loops that share out their work need no checks of their own.
#pragma once

#include <atomic>
#include <exception>

namespace lookalike::bits {

struct Cancelled : std::exception {
    const char* what() const noexcept override { return "the work was cancelled"; }
};

class Cancellation {
  public:
    // Ends the work; with `shielded_too` also the parts of it that others rely on.
    void cancel(bool shielded_too) {
        if (shielded_too)
            shielded_.store(true, std::memory_order_relaxed);
        work_.store(true, std::memory_order_relaxed);
    }
    bool cancelled(bool shielded) const {
        return (shielded ? shielded_ : work_).load(std::memory_order_relaxed);
    }

  private:
    std::atomic<bool> work_{false};
    std::atomic<bool> shielded_{false};
};

// What the work of one thread is cancelled by; nothing by default.
struct CancelledBy {
    const Cancellation* cancellation = nullptr;
    bool shielded = false;

    void check() const {
        if (cancellation != nullptr && cancellation->cancelled(shielded))
            throw Cancelled();
    }
};

inline thread_local CancelledBy current_work;

// For loops that do not share out their work.
inline void stop_if_cancelled() {
    current_work.check();
}

}  // namespace lookalike::bits
