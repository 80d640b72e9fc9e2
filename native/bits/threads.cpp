#include "bits/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "bits/operation.hpp"

namespace lookalike::bits {

namespace {

constexpr std::chrono::milliseconds kBetweenCheckpoints{20};
constexpr double kBytesPerThread = 1 << 20;  // about 50 microseconds of reading

}  // namespace

void share_out(std::size_t count, std::size_t threads, const Checkpoint& checkpoint,
               const std::function<void(std::size_t, std::size_t)>& task) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const CurrentOperation caller = current_operation;

    const auto work = [&](std::size_t worker) {
        try {
            current_operation = caller;  // helpers share out work, too
            current_operation.width = 0;
            auto last_checkpoint = std::chrono::steady_clock::now();
            while (!stop.load(std::memory_order_relaxed)) {
                const std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
                if (index >= count)
                    return;
                caller.stop_if_canceled();
                if (worker == 0)
                    caller.report(index, count);
                task(worker, index);
                if (worker != 0)
                    continue;
                const auto now = std::chrono::steady_clock::now();
                if (now - last_checkpoint > kBetweenCheckpoints) {
                    checkpoint();
                    last_checkpoint = now;
                }
            }
        } catch (...) {
            const std::scoped_lock lock(failure_mutex);
            if (!failure)
                failure = std::current_exception();
            stop = true;
        }
    };

    std::vector<std::jthread> helpers;
    try {
        for (std::size_t worker = 1; worker < std::min(threads, count); ++worker)
            helpers.emplace_back(work, worker);
    } catch (const std::system_error&) {
        // The system gives no more threads: the ones there are do all the work.
    }
    work(0);
    current_operation = caller;
    helpers.clear();
    if (failure)
        std::rethrow_exception(failure);
}

void share_out_runs(std::size_t count, std::size_t most, std::size_t threads,
                    const Checkpoint& checkpoint,
                    const std::function<void(std::size_t, std::size_t, std::size_t)>& task) {
    share_out((count + most - 1) / most, threads, checkpoint,
              [&](std::size_t worker, std::size_t index) {
                  task(worker, index * most, std::min(count, (index + 1) * most));
              });
}

std::size_t worthwhile_threads(std::size_t threads, double bytes) {
    const double most = std::max(1.0, bytes / kBytesPerThread);
    return most < static_cast<double>(threads) ? static_cast<std::size_t>(most) : threads;
}

}  // namespace lookalike::bits
