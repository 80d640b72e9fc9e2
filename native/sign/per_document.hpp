// One task is a run of documents; each worker has a state of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "bits/operation.hpp"
#include "sign/signers.hpp"

namespace lookalike::sign {

constexpr std::size_t kDocumentsPerTask = 64;

// Calls work_on(state, document) for every document below `count`, on `work.threads` threads.
template <class State, class WorkOn>
void per_document(std::size_t count, Work work, const State& initial, WorkOn work_on) {
    const std::size_t tasks = (count + kDocumentsPerTask - 1) / kDocumentsPerTask;
    std::vector<State> states(std::max<std::size_t>(1, std::min(work.threads, tasks)), initial);
    bits::share_out(
        tasks, states.size(), work.checkpoint, [&](std::size_t worker, std::size_t task) {
            const std::size_t end = std::min(count, (task + 1) * kDocumentsPerTask);
            for (std::size_t document = task * kDocumentsPerTask; document < end; ++document) {
                bits::stop_if_canceled();  // documents may be long
                work_on(states[worker], document);
            }
        });
}

// What reading takes.
struct Reader {
    text::Scratch scratch;
    Bag bag;

    const Bag& read(const Source& source, std::size_t document) {
        source.read(document, scratch, bag);
        return bag;
    }
};

}  // namespace lookalike::sign
