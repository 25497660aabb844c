// Deterministic parallel loops: the data fix the tasks, threads only decide who runs them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kw {

// Maximum number of threads of loops started by this thread; 0 = one per core. Each thread has its own limit, so
// concurrent calls do not disturb each other, and loops inside a task stay in its thread.
inline thread_local int thread_limit = 1;

// Called several times a second by the thread that started a loop, if it is set; may throw, which
// ends the loop. Never called in the helper threads.
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
    static inline thread_local bool helps = false;  // whether this is a helper thread

   private:
    static constexpr std::chrono::milliseconds kEvery{100};
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kEvery;
};

[[nodiscard]] inline int thread_count() noexcept {
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
        std::vector<Thread> threads;  // joined at the end of this block, also after an exception
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

[[nodiscard]] constexpr std::size_t n_blocks(std::size_t n, std::size_t block) noexcept {
    return (n + block - 1) / block;
}

// Runs work(first, last) on consecutive ranges of `block` of the n items; the last range may be shorter.
template <class Work>
void parallel_blocks(std::size_t n, std::size_t block, Work&& work) {
    parallel_for(n_blocks(n, block), [&](std::size_t task) { work(task * block, std::min(n, (task + 1) * block)); });
}

}  // namespace kw
