// Tests of enclosing balls.
#include "core/ball.hpp"

#include "tests/check.hpp"

namespace kw::test {
namespace {

// Squared radius of the smallest circle around points in the plane: some two or three of them lie on it.
double smallest_circle(const std::vector<double>& X, std::size_t n) {
    const auto around = [&](double x, double y) {
        double far = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double dx = X[2 * i] - x, dy = X[2 * i + 1] - y;
            far = std::max(far, dx * dx + dy * dy);
        }
        return far;
    };
    double best = around(X[0], X[1]);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j) {
            best = std::min(best, around(0.5 * (X[2 * i] + X[2 * j]), 0.5 * (X[2 * i + 1] + X[2 * j + 1])));
            for (std::size_t k = 0; k < j; ++k) {
                const double ax = X[2 * i] - X[2 * k], ay = X[2 * i + 1] - X[2 * k + 1];
                const double bx = X[2 * j] - X[2 * k], by = X[2 * j + 1] - X[2 * k + 1];
                const double cross = 2.0 * (ax * by - ay * bx), a = ax * ax + ay * ay, b = bx * bx + by * by;
                const double x = (by * a - ay * b) / cross, y = (ax * b - bx * a) / cross;
                if (cross != 0.0) best = std::min(best, around(X[2 * k] + x, X[2 * k + 1] + y));
            }
        }
    return best;
}

template <class T>
struct Cloud {
    std::size_t n;
    std::vector<double> X, exact, diagonal, ridge;
    std::vector<T> K;

    // Points in the plane by their inner products, or Gaussians of them.
    Cloud(std::size_t rows, bool gaussian, double most_ridge, unsigned seed)
        : n(rows), X(normals(2 * rows, seed)), ridge(rows) {
        const auto D = squared_distances<double>(X, n, 2);
        K.resize(n * n);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k)
                K[i * n + k] = static_cast<T>(gaussian ? std::exp(-D[i * n + k])
                                                       : X[2 * i] * X[2 * k] + X[2 * i + 1] * X[2 * k + 1]);
        exact.assign(K.begin(), K.end());
        for (std::size_t i = 0; i < n; ++i) {
            diagonal.push_back(exact[i * n + i]);
            ridge[i] = most_ridge * static_cast<double>(i + 1) / static_cast<double>(n);
        }
    }

    [[nodiscard]] std::vector<double> product(const std::vector<double>& beta) const {
        std::vector<double> out(n, 0.0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k) out[i] += exact[i * n + k] * beta[k];
        return out;
    }

    [[nodiscard]] Ball<T> solver(const std::vector<double>& beta, bool lend = true) const {
        Ball<T> ball(diagonal, ridge);
        const auto fitted = product(beta);
        ball.start(beta, fitted);
        if (lend)
            for (std::size_t i = 0; i < n; ++i) ball.lend(i, as_matrix(K, n, n).row(i));
        return ball;
    }

    // Squared radius of the ball around the centre found, after a check of what the solver says.
    [[nodiscard]] double check_solution(const Ball<T>& ball, double tol, const std::string& what) const {
        const auto& beta = ball.beta();
        const auto f = product(beta);
        const auto said = ball.fitted();
        double sum = 0.0, inside = 0.0, linear = 0.0, far = -kInfinity, drift = 0.0;
        bool positive = true;
        for (std::size_t i = 0; i < n; ++i) {
            const double d = diagonal[i] + ridge[i], kb = f[i] + ridge[i] * beta[i];
            positive = positive && beta[i] >= 0.0;
            sum += beta[i], inside += beta[i] * kb, linear += beta[i] * d;
            far = std::max(far, d - 2.0 * kb);
            drift = std::max(drift, std::abs(f[i] - said[i]));
        }
        const double upper = far + inside, lower = linear - inside;
        check(positive, what + ": no negative weight");
        check_close(sum, 1.0, 1e-12, what + ": weights sum to one");
        check(drift <= 1e-11, what + ": fitted values");
        check(upper - lower <= tol * lower * (1.0 + 1e-6) + 1e-11, what + ": the gap");
        check(upper - lower >= -1e-11, what + ": bounds on their sides");
        return upper;
    }
};

template <class T>
void test_ball_of(std::size_t n, bool gaussian, double most_ridge) {
    const Cloud<T> cloud(n, gaussian, most_ridge, 60);
    const std::string what = at("ball", n) + ", " + name_of(T{});
    const std::vector<double> even(n, 1.0 / static_cast<double>(n));
    const double tol = 1e-7;
    auto ball = cloud.solver(even);
    check(ball.run(tol, 10'000'000) == Status::converged, what + ": converged");
    const double found = cloud.check_solution(ball, tol, what);
    if (!gaussian && most_ridge == 0.0 && n <= 65)
        check_close(found, smallest_circle(cloud.X, n), 1e-6 * found, what + ": the smallest circle");

    auto lazy = cloud.solver(even, false);
    std::vector<std::vector<T>> copies;  // rows at addresses of their own, so that reading beyond them is seen
    copies.reserve(n);
    auto status = lazy.run(tol, 10'000'000);
    for (std::size_t round = 0; status == Status::needs_rows && round <= n; ++round) {
        const auto wanted = lazy.wanted(round % 5);
        check(!wanted.empty(), what + ": a row is wanted");
        check(wanted.size() <= round % 5 + 1, what + ": no more rows than asked for");
        for (const auto row : wanted) {
            copies.emplace_back(cloud.K.begin() + row * static_cast<std::int64_t>(n),
                                cloud.K.begin() + (row + 1) * static_cast<std::int64_t>(n));
            lazy.lend(static_cast<std::size_t>(row), copies.back());
        }
        check(copies.size() <= n, what + ": no row is wanted twice");
        status = lazy.run(tol, 10'000'000);
    }
    check(status == Status::converged, what + ": rows on demand converge");
    check(lazy.beta() == ball.beta() && lazy.updates() == ball.updates(), what + ": rows on demand change nothing");

    auto paused = cloud.solver(even);
    check(paused.run(tol, 0) == Status::paused, what + ": no updates, a pause");
    while ((status = paused.run(tol, 1)) == Status::paused) {
    }
    check(status == Status::converged && paused.beta() == ball.beta(), what + ": pauses change nothing");

    auto again = cloud.solver(ball.beta());
    check(again.run(2.0 * tol, 10'000'000) == Status::converged, what + ": warm start");
    check(again.updates() == 0, what + ": a warm start has nothing to do");

    auto tight = cloud.solver(even);
    status = tight.run(0.0, 10'000'000);
    check(status == Status::converged || status == Status::stalled, what + ": tolerance zero ends");
    (void)cloud.check_solution(tight, 1e-6, what + ", tolerance zero");
}

}  // namespace

void test_ball() {
    for (const std::size_t n : {1, 2, 3, 17, 65, 257})
        for (const bool gaussian : {true, false})
            for (const double most_ridge : {0.0, 0.7}) {
                test_ball_of<double>(n, gaussian, most_ridge);
                test_ball_of<float>(n, gaussian, most_ridge);
            }
    // Points at right angles, and points that are all the same.
    const std::size_t n = 9;
    std::vector<double> identity(n * n, 0.0), first(n, 0.0);
    const std::vector<double> ones(n, 1.0), none(n, 0.0), same(n * n, 1.0);
    for (std::size_t i = 0; i < n; ++i) identity[i * n + i] = 1.0;
    first[0] = 1.0;
    Ball<double> cross(ones, none), point(ones, none);
    cross.start(first, first);
    point.start(first, ones);
    for (std::size_t i = 0; i < n; ++i) {
        cross.lend(i, as_matrix(identity, n, n).row(i));
        point.lend(i, as_matrix(same, n, n).row(i));
    }
    check(cross.run(1e-12, 1'000'000) == Status::converged, "points at right angles: converged");
    for (const double beta : cross.beta()) check_close(beta, 1.0 / 9.0, 1e-6, "points at right angles: equal weights");
    check(point.run(1e-12, 1000) == Status::converged && point.updates() == 0, "one point nine times");
    // Rows that are not those of a Gram matrix must end all the same.
    for (const double bad : {kNaN, kInfinity, -kInfinity, 1e308, -1e308, -1.0, 5.0}) {
        const std::vector<double> K(n * n, bad);
        Ball<double> ball(ones, none);
        ball.start(first, none);
        for (std::size_t i = 0; i < n; ++i) ball.lend(i, as_matrix(K, n, n).row(i));
        for (int round = 0; round < 3; ++round) (void)ball.run(1e-6, 1000);
        check(ball.updates() <= 3000, "rows that are not numbers end the run");
    }
}

}  // namespace kw::test
