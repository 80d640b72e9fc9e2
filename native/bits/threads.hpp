// Work shared by threads that live as long as one call: nothing to start up, nothing to shut down,
// nothing left behind in a forked child. Starting them costs some 15 microseconds each.
#pragma once

#include <cstddef>
#include <functional>

namespace lookalike::bits {

// Called every so often by the thread that called `share_out`, and only by it; an exception stops
// the work and reaches the caller. This is how a caller interrupts a long search.
using Checkpoint = std::function<void()>;

// Runs task(worker, index) for every index below `count`. Each worker takes the next index when it
// is free, so one worker sees ascending indices. The first exception of any worker stops the
// others after their current task, and is rethrown here. So does canceling the operation of the
// calling thread, which also learns how many indexes are done: see operation.hpp.
void share_out(std::size_t count, std::size_t threads, const Checkpoint& checkpoint,
               const std::function<void(std::size_t worker, std::size_t index)>& task);

// The same for runs: task(worker, begin, end) for every `most` indices, or the rest of them.
void share_out_runs(
    std::size_t count, std::size_t most, std::size_t threads, const Checkpoint& checkpoint,
    const std::function<void(std::size_t worker, std::size_t begin, std::size_t end)>& task);

// No more threads than are worth starting to read `bytes` bytes of signatures.
std::size_t worthwhile_threads(std::size_t threads, double bytes);

}  // namespace lookalike::bits
