// Tests of sequential minimal optimisation.
#include "core/smo.hpp"

#include "core/parallel.hpp"
#include "tests/check.hpp"
#include "tests/problems.hpp"

namespace kw::test {
namespace {

template <class T>
struct Task {
    std::size_t n;
    std::vector<double> y, exact, diagonal;
    std::vector<T> K;

    Task(std::size_t rows, Loss loss, unsigned seed) : n(rows) {
        const std::size_t d = 3;
        auto X = normals(n * d, seed);
        y = normals(n, seed + 1);
        for (std::size_t i = 0; i < n; ++i) {
            y[i] = std::sin(2.0 * X[i * d]) + 0.2 * y[i];
            if (loss == Loss::hinge) {
                y[i] = y[i] > 0.0 ? 1.0 : -1.0;
                X[i * d] += 0.7 * y[i];
            }
        }
        const auto D = squared_distances<double>(X, n, d);
        K.resize(n * n);
        for (std::size_t k = 0; k < n * n; ++k) K[k] = static_cast<T>(std::exp(-0.3 * D[k]));
        exact.assign(K.begin(), K.end());
        diagonal.assign(n, 1.0);
    }

    [[nodiscard]] Smo<T> solver(const SmoProblem& problem, bool lend = true) const {
        Smo<T> smo(problem, diagonal);
        if (lend)
            for (std::size_t i = 0; i < n; ++i) smo.lend(i, as_matrix(K, n, n).row(i));
        return smo;
    }

    [[nodiscard]] std::vector<double> product(const std::vector<double>& beta) const {
        std::vector<double> out(n, 0.0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k) out[i] += exact[i * n + k] * beta[k];
        return out;
    }

    void check_solution(const Smo<T>& smo, const SmoProblem& problem, double tol, const std::string& what) const {
        const auto& beta = smo.beta();
        const auto f = product(beta);
        double sum = 0.0, size = 0.0, quadratic = 0.0, linear = 0.0, losses = 0.0, drift = 0.0;
        bool inside = true;
        for (std::size_t i = 0; i < n; ++i) {
            inside = inside && beta[i] >= problem.lower[i] && beta[i] <= problem.upper[i];
            sum += beta[i];
            size += std::abs(beta[i]);
            quadratic += beta[i] * f[i];
            linear += problem.target[i] * beta[i] - problem.dead_zone * std::abs(beta[i]) -
                      0.5 * problem.ridge[i] * beta[i] * beta[i];
            losses += problem.loss(i, f[i] + smo.bias());
            drift = std::max(drift, std::abs(f[i] - smo.fitted()[i]));
        }
        const double primal = 0.5 * quadratic + losses, dual = linear - 0.5 * quadratic;
        const double scale = std::abs(primal) + 1e-300;
        check(inside, what + ": inside the boxes");
        if (problem.intercept) check(std::abs(sum) <= 1e-11 * size, what + ": balanced");
        check(drift <= 1e-9 * (1.0 + size), what + ": fitted values");
        check(primal - dual <= tol * scale * (1.0 + 1e-6) + 1e-12, what + ": the gap");
        check(primal - dual >= -1e-9 * scale, what + ": bounds on their sides");
        check(std::abs(primal - smo.primal()) <= 1e-8 * scale, what + ": the primal value");
    }
};

template <class T>
void test_smo_of(Loss loss, bool intercept, std::size_t n) {
    const Task<T> task(n, loss, 20);
    const auto problem = make_problem(task.y, 2.0, loss, intercept);
    const std::string what = at("SMO", n);
    auto smo = task.solver(problem);
    check(smo.run({1e-7, 0.0, 10'000'000, kInfinity}) == Status::converged, what + ": converged");
    task.check_solution(smo, problem, 1e-7, what);

    auto lazy = task.solver(problem, false);
    std::vector<std::vector<T>> copies;  // rows at addresses of their own, so that reading beyond them is seen
    copies.reserve(n);
    auto status = lazy.run({1e-7, 0.0, 10'000'000, kInfinity});
    for (std::size_t round = 0; status == Status::needs_rows && round <= n; ++round) {
        const auto wanted = lazy.wanted(1 + round % 5);
        check(!wanted.empty(), what + ": a row is wanted");
        for (const auto row : wanted) {
            const auto i = static_cast<std::size_t>(row);
            check(!lazy.has(i), what + ": a wanted row is missing");
            copies.emplace_back(task.K.begin() + row * static_cast<std::int64_t>(n),
                                task.K.begin() + (row + 1) * static_cast<std::int64_t>(n));
            lazy.lend(i, copies.back());
        }
        status = lazy.run({1e-7, 0.0, 10'000'000, kInfinity});
    }
    check(status == Status::converged, what + ": rows on demand converge");
    // Shrinking depends on where a run stops, so that bits may differ, but not the answer.
    check(std::abs(lazy.primal() - smo.primal()) <= 2e-7 * std::abs(smo.primal()) + 1e-12, what + ": the same answer");
    task.check_solution(lazy, problem, 1e-7, what + ", rows on demand");

    auto paused = task.solver(problem);
    status = paused.run({1e-6, 0.0, 3, kInfinity});
    for (int round = 0; status == Status::paused && round < 100'000; ++round)
        status = paused.run({1e-6, 0.0, 3, kInfinity});
    check(status == Status::converged, what + ": pauses end");
    task.check_solution(paused, problem, 1e-6, what + ", paused");

    auto again = task.solver(problem);
    const auto fitted = task.product(smo.beta());
    again.start(smo.beta(), fitted);
    check(again.run({1e-6, 0.0, 10'000'000, kInfinity}) == Status::converged, what + ": warm start");
    check(again.updates() <= smo.updates(), what + ": a warm start saves work");

    auto early = task.solver(problem);
    (void)early.run({1e-9, 0.0, 10'000'000, 0.5 * smo.dual()});
    check(early.dual() >= 0.5 * smo.dual() * (1.0 - 1e-9), what + ": enough");
}

}  // namespace

void test_smo() {
    for (const Loss loss : {Loss::hinge, Loss::tube, Loss::huber})
        for (const bool intercept : {true, false})
            for (const std::size_t n : {0, 1, 2, 3, 31, 100, 257}) {
                test_smo_of<double>(loss, intercept, n);
                test_smo_of<float>(loss, intercept, n);
            }
    // Large enough to shrink, in one run and with pauses.
    for (const bool intercept : {true, false}) {
        const Task<float> task(900, Loss::hinge, 30);
        const auto problem = make_problem(task.y, 20.0, Loss::hinge, intercept);
        auto smo = task.solver(problem);
        check(smo.run({1e-6, 0.0, 10'000'000, kInfinity}) == Status::converged, "shrinking: converged");
        check(smo.updates() > 1000, "shrinking: long enough to shrink");
        task.check_solution(smo, problem, 1e-6, "shrinking");
        auto paused = task.solver(problem);
        auto status = Status::paused;
        while (status == Status::paused) status = paused.run({1e-6, 0.0, 700, kInfinity});
        check(status == Status::converged, "shrinking with pauses: converged");
        task.check_solution(paused, problem, 1e-6, "shrinking with pauses");
    }
    // Problems that cannot be solved must end all the same.
    const std::vector<double> y = {1.0, -1.0, 1.0, -1.0, 1.0}, ones(5, 1.0);
    for (const double bad : {kNaN, kInfinity, -kInfinity, 1e308, -1e308})
        for (const bool intercept : {true, false}) {
            const std::vector<double> K(25, bad);
            Smo<double> smo(make_problem(y, 1.0, Loss::hinge, intercept), ones);
            for (std::size_t i = 0; i < 5; ++i) smo.lend(i, as_matrix(K, 5, 5).row(i));
            for (int round = 0; round < 3; ++round) (void)smo.run({1e-6, 0.0, 1000, kInfinity});
            check(smo.updates() <= 3000, "rows that are not numbers end the run");
        }
    for (const double scale : {1e-300, 1e-170, 1e-100, 1e100, 1e150})
        for (const bool intercept : {true, false}) {
            const Task<double> task(20, Loss::tube, 40);
            auto scaled = task.y;
            for (auto& value : scaled) value *= scale;
            auto problem = make_problem(scaled, 5.0 * scale, Loss::tube, intercept);
            problem.dead_zone = 0.0;
            auto smo = task.solver(problem);
            (void)smo.run({1e-6, 0.0, 100'000, kInfinity});
            check(std::isfinite(smo.bias()), "targets of any size end the run");
        }
    // One class, empty boxes, a zero kernel.
    const Task<double> task(20, Loss::hinge, 50);
    auto smo = task.solver(make_problem(std::vector<double>(20, 1.0), 1.0, Loss::hinge, true));
    check(smo.run({1e-9, 0.0, 1000, kInfinity}) == Status::converged && smo.primal() == 0.0, "one class");
    auto closed = task.solver(make_problem(task.y, 0.0, Loss::tube, true));
    check(closed.run({1e-9, 0.0, 1000, kInfinity}) == Status::converged, "empty boxes");
    const std::vector<double> zeros(400, 0.0);
    Smo<double> flat(make_problem(task.y, 1.0, Loss::hinge, true), std::vector<double>(20, 0.0));
    for (std::size_t i = 0; i < 20; ++i) flat.lend(i, as_matrix(zeros, 20, 20).row(i));
    check(flat.run({1e-9, 0.0, 100'000, kInfinity}) == Status::converged, "a zero kernel");
    // Several problems in threads, as the bindings run them.
    for (int threads = 1; threads <= 4; ++threads) {
        thread_limit = threads;
        std::vector<Smo<double>> several;
        for (const double C : {0.1, 1.0, 10.0})
            several.push_back(task.solver(make_problem(task.y, C, Loss::hinge, true)));
        parallel_for(several.size(), [&](std::size_t o) { (void)several[o].run({1e-8, 0.0, 1'000'000, kInfinity}); });
        for (const auto& solved : several)
            check(solved.primal() - solved.dual() <= 1e-8 * solved.primal(), "in threads");
    }
    thread_limit = 0;
}

}  // namespace kw::test
