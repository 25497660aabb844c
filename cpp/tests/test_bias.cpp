// Tests of the best bias.
#include "core/bias.hpp"

#include "tests/check.hpp"
#include "tests/problems.hpp"

namespace kw::test {
namespace {

// Best of a fine search over the bias, which is convex in it.
double searched_loss(const SmoProblem& problem, const std::vector<double>& fitted) {
    double low = -1e3, high = 1e3;
    const auto value = [&](double b) {
        double sum = -problem.held_sum * b;
        for (std::size_t i = 0; i < problem.size(); ++i) sum += problem.loss(i, fitted[i] + b);
        return sum;
    };
    for (int step = 0; step < 200; ++step) {
        const double a = low + (high - low) / 3.0, b = high - (high - low) / 3.0;
        (value(a) <= value(b) ? high : low) = value(a) <= value(b) ? b : a;
    }
    return value(0.5 * (low + high));
}

}  // namespace

void test_bias() {
    for (const Loss loss : {Loss::hinge, Loss::tube, Loss::huber})
        for (const std::size_t n : kSizes) {
            auto y = normals(n, 18);
            if (loss == Loss::hinge)
                for (auto& value : y) value = value > 0.0 ? 1.0 : -1.0;
            const auto problem = make_problem(y, 0.7, loss, true);
            const auto fitted = normals(n, 19);
            const double bias = best_bias(problem, fitted);
            check(std::isfinite(bias), at("a finite bias", n));
            double found = 0.0;
            for (std::size_t i = 0; i < n; ++i) found += problem.loss(i, fitted[i] + bias);
            check(found <= searched_loss(problem, fitted) + 1e-6, at("no bias is better", n));
            auto part = problem;  // other samples are held, with coefficients of this sum
            double least = 0.0, most = 0.0;
            for (std::size_t i = 0; i < n; ++i) {
                least -= problem.upper[i];
                most -= problem.lower[i];
            }
            part.held_sum = 0.3 * least + 0.7 * most;
            const double shifted = best_bias(part, fitted);
            check(part.total_loss(fitted, shifted) <= searched_loss(part, fitted) + 1e-6, at("nor with held ones", n));
        }
    // A NaN must not stop the walk over the breakpoints.
    const auto problem = make_problem({1.0, -1.0, 1.0}, 1.0, Loss::hinge, true);
    const std::vector<double> broken = {kNaN, kNaN, 0.0}, infinite = {kInfinity, -kInfinity, 0.0};
    (void)best_bias(problem, broken);
    (void)best_bias(problem, infinite);
    check(true, "best_bias ends on values that are not numbers");
}

}  // namespace kw::test
