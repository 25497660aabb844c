// Tests of parallel loops.
#include "core/parallel.hpp"

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "tests/check.hpp"

namespace kw::test {
namespace {

// A thread of which only `left` can be had, as where the system allows a process no more of them.
struct ScarceThread {
    static inline int left = 0;
    template <class Run>
    explicit ScarceThread(Run run)
        : thread(left-- > 0 ? std::jthread(run) : throw std::system_error(EAGAIN, std::generic_category())) {}
    std::jthread thread;
};

}  // namespace

void test_parallel() {
    for (int threads = 0; threads <= 4; ++threads) {
        thread_limit = threads;
        check(thread_count() >= 1, "at least one thread");
        for (const std::size_t n : kSizes) {
            std::vector<int> visits(n, 0);
            parallel_for(n, [&](std::size_t task) { ++visits[task]; });
            check(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }), at("each task once", n));
        }
        bool caught = false;
        try {
            parallel_for(100, [](std::size_t task) {
                if (task == 37) throw std::runtime_error("lost");
            });
        } catch (const std::runtime_error& error) {
            caught = std::string(error.what()) == "lost";
        }
        check(caught, "an exception of a task arrives");
        // Loops inside tasks must not deadlock.
        std::vector<int> inner(16, 0);
        parallel_for(4,
                     [&](std::size_t outer) { parallel_for(4, [&](std::size_t task) { ++inner[4 * outer + task]; }); });
        check(std::accumulate(inner.begin(), inner.end(), 0) == 16, "nested loops");
    }
    thread_limit = 4;
    for (const int available : {0, 1, 2}) {
        ScarceThread::left = available;
        std::vector<int> visits(1000, 0);
        parallel_for<ScarceThread>(visits.size(), [&](std::size_t task) { ++visits[task]; });
        check(ScarceThread::left == -1, "a thread was refused");
        check(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }),
              at("each task once with threads", std::size_t(available)));
    }
    int other = 0;
    std::jthread([&] { other = thread_limit; }).join();
    check(other == 1, "a new thread works alone");
    thread_limit = 0;
}

}  // namespace kw::test
