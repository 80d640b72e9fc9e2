// An operation can be canceled, and its progress read, by any thread while another works on it.
//
// A thread works on at most one operation. `share_out` hands it on to its helpers, checks it before
// each task and reports its progress, so loops that share out their work need no code for that.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>

namespace lookalike::bits {

struct Canceled : std::exception {
    const char* what() const noexcept override { return "the operation was canceled"; }
};

class Operation {
  public:
    // Ends the work; with `shielded_too` also the parts of it that others rely on.
    void cancel(bool shielded_too) {
        if (shielded_too)
            shielded_.store(true, std::memory_order_relaxed);
        work_.store(true, std::memory_order_relaxed);
    }
    bool canceled(bool shielded) const {
        return (shielded ? shielded_ : work_).load(std::memory_order_relaxed);
    }

    // The share that is done, from 0 to 1; negative until something is known.
    double done() const { return done_.load(std::memory_order_relaxed); }
    void set_done(double share) { done_.store(share, std::memory_order_relaxed); }

  private:
    std::atomic<bool> work_{false};
    std::atomic<bool> shielded_{false};
    std::atomic<double> done_{-1};
};

// The operation that a thread works on, and the part of it that its code does: from the share
// `begin` on, `width` of the whole; a width of 0 reports nothing.
struct CurrentOperation {
    Operation* operation = nullptr;
    bool shielded = false;
    double begin = 0;
    double width = 1;

    void stop_if_canceled() const {
        if (operation != nullptr && operation->canceled(shielded))
            throw Canceled();
    }

    // Reports that `done` of `count` pieces of this part are done.
    void report(std::size_t done, std::size_t count) const {
        if (operation != nullptr && width > 0)
            operation->set_done(begin +
                                width * static_cast<double>(done) / static_cast<double>(count));
    }
};

inline thread_local CurrentOperation current_operation;

// For loops that do not share out their work.
inline void stop_if_canceled() {
    current_operation.stop_if_canceled();
}

// Divides the current part of the operation into stages that follow each other; the first begins
// with `next`.
class Stages {
  public:
    explicit Stages(std::size_t count)
        : whole_(current_operation), width_(whole_.width / static_cast<double>(count)) {}
    ~Stages() { current_operation = whole_; }
    Stages(const Stages&) = delete;
    Stages& operator=(const Stages&) = delete;

    void next() {
        current_operation.begin = whole_.begin + width_ * static_cast<double>(begun_++);
        current_operation.width = width_;
    }

  private:
    const CurrentOperation whole_;
    const double width_;
    std::size_t begun_ = 0;
};

}  // namespace lookalike::bits
