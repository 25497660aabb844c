// Least squares with half the square of a weighted sum of norms as penalty, by coordinate descent on Gram matrices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.hpp"

namespace kw {

struct SquaredLasso {
    std::span<const Matrix<const double>> grams;  // one per output, positive semi-definite
    Matrix<const double> linear;                  // one row per coefficient, one column per output
    std::span<const double> costs;                // of the norm of every coefficient, positive
    std::span<const std::int8_t> signs;           // 1: not negative, -1: not positive, 0: free; empty: all free
    double tol = 0.0;                             // decrease of the objective over a sweep at which it stops
    std::size_t max_sweeps = 1000;
};

// Minimises sum_t (1/2 f_t' G_t f_t - c_t' f_t) + 1/2 (sum_w d_w |f_w|)^2 from the given point; returns the sweeps.
//
// The penalty is an increasing smooth function of a separable one, so that a point that no coordinate improves is
// optimal. With several outputs a step minimises a bound in which all have the largest curvature among them.
inline std::size_t solve_squared_lasso(const SquaredLasso& problem, Matrix<double> f) {
    const std::size_t n = f.rows, n_outputs = f.columns;
    std::vector<double> residual(n * n_outputs);  // c_t - G_t f_t, one row per output
    for (std::size_t t = 0; t < n_outputs; ++t)
        for (std::size_t w = 0; w < n; ++w) {
            const auto row = problem.grams[t].row(w);
            double sum = problem.linear(w, t);
            for (std::size_t v = 0; v < n; ++v) sum -= row[v] * f(v, t);
            residual[t * n + w] = sum;
        }
    const auto norm_of = [&](std::size_t w) {
        double sum = 0.0;
        for (std::size_t t = 0; t < n_outputs; ++t) sum += f(w, t) * f(w, t);
        return std::sqrt(sum);
    };
    std::vector<double> target(n_outputs);
    std::size_t sweep = 0;
    while (sweep < problem.max_sweeps) {
        ++sweep;
        double omega = 0.0, decrease = 0.0;  // afresh in every sweep: running sums drift
        for (std::size_t w = 0; w < n; ++w) omega += problem.costs[w] * norm_of(w);
        for (std::size_t w = 0; w < n; ++w) {
            const double cost = problem.costs[w], before = norm_of(w);
            const std::int8_t sign = problem.signs.empty() ? std::int8_t{0} : problem.signs[w];
            double curvature = 0.0, size = 0.0;
            for (std::size_t t = 0; t < n_outputs; ++t) curvature = std::max(curvature, problem.grams[t](w, w));
            for (std::size_t t = 0; t < n_outputs; ++t) {
                target[t] = residual[t * n + w] + curvature * f(w, t);
                if (sign * target[t] < 0.0) target[t] = 0.0;
                size += target[t] * target[t];
            }
            size = std::sqrt(size);
            const double others = std::max(0.0, omega - cost * before);
            const double stiff = curvature + cost * cost;
            const double length = std::max(0.0, size - others * cost) / stiff;
            if (length <= 0.0 && before <= 0.0) continue;
            double moved = 0.0;
            for (std::size_t t = 0; t < n_outputs; ++t) {
                const double step = (size > 0.0 ? length * target[t] / size : 0.0) - f(w, t);
                if (step == 0.0) continue;
                f(w, t) += step;
                moved += step * step;
                const auto row = problem.grams[t].row(w);
                double* own = residual.data() + t * n;
                for (std::size_t v = 0; v < n; ++v) own[v] -= step * row[v];
            }
            omega = others + cost * length;
            decrease += 0.5 * stiff * moved;
        }
        if (decrease <= problem.tol) break;
    }
    return sweep;
}

}  // namespace kw
