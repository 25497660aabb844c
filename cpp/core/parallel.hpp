// Deterministic parallel loops: tasks are fixed by the data, threads only decide who runs them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kw {

// Threads that loops started by this thread may use; 0 = one per core. Each thread has its own, so
// calls at the same time do not disturb each other, and loops inside a task stay in its thread.
inline thread_local int thread_limit = 1;

// Called several times a second by the thread that started a loop, if it is set; may throw, which
// ends the loop. Never called in the threads that help.
inline void (*poll)() = nullptr;

class Polling {
public:
    void operator()() {
        if (poll == nullptr || helps) return;
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        poll();
        next_ = now + kEvery;
    }
    static inline thread_local bool helps = false;

private:
    static constexpr std::chrono::milliseconds kEvery{100};
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kEvery;
};

inline int thread_count() {
    if (thread_limit > 0) return thread_limit;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Runs work(0..n_tasks-1). Each task must write to its own place; sums over tasks are then taken in
// task order by the caller, so results do not depend on the number of threads. Threads are made per
// call: there is no pool that a fork could leave half alive.
template <class Thread = std::jthread, class Work>
void parallel_for(std::size_t n_tasks, Work&& work) {
    const auto n_threads = std::min<std::size_t>(static_cast<std::size_t>(thread_count()), n_tasks);
    Polling polling;
    if (n_threads <= 1) {
        for (std::size_t task = 0; task < n_tasks; ++task, polling()) work(task);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex guard;
    auto run = [&] {
        try {
            for (std::size_t task = next++; task < n_tasks; task = next++, polling()) work(task);
        } catch (...) {
            const std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
            next = n_tasks;
        }
    };
    {
        std::vector<Thread> threads;  // joined at the end of this block, whatever happens in it
        threads.reserve(n_threads - 1);
        try {
            for (std::size_t t = 1; t < n_threads; ++t)
                threads.emplace_back([&run] {
                    Polling::helps = true;
                    run();
                });
        } catch (const std::exception&) {
            // No memory or no permission for another thread: those obtained do all tasks.
        }
        run();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace kw
