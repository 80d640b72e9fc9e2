// A mutex for what the whole process shares.
#pragma once

#include <mutex>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace lookalike::bits {

// The one mutex of `Owner`. Forks wait for it: in a child, a mutex that another thread held at that
// moment would stay locked for ever. A thread that holds one must not lock that of another owner.
template <class Owner>
std::mutex& process_mutex() {
    static std::mutex mutex;
#if defined(__unix__) || defined(__APPLE__)
    [[maybe_unused]] static const int registered = ::pthread_atfork(
        [] { process_mutex<Owner>().lock(); }, [] { process_mutex<Owner>().unlock(); },
        [] { process_mutex<Owner>().unlock(); });
#endif
    return mutex;
}

}  // namespace lookalike::bits
