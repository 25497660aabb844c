// The dual of a support vector problem with one fixed kernel, and the loss that belongs to it.
//
//   min over beta   1/2 beta'(K + diag d) beta - y'beta + e |beta|_1,   lo <= beta <= hi,   sum beta = 0
//
// (the last only with an intercept). The loss is the conjugate
// loss_i(f) = max over t in [lo_i, hi_i] of t (y_i - f) - e |t| - d_i t^2 / 2: hinge, epsilon-insensitive and
// Huber differ only in (y, lo, hi, d, e), so primal value, best bias and gap need no case distinction.
//
// A part of a larger problem has its other samples held: the sum of all coefficients stays zero, and the losses of the
// held samples are linear in the bias b, with slope -beta_i. The gap of a part is its share of the whole gap, which is
// the sum over the samples of loss_i(f_i + b) + beta_i (f_i + b) - y_i beta_i + e |beta_i| + d_i beta_i^2 / 2 >= 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace kw {

struct SmoProblem {
    std::vector<double> target, lower, upper, ridge;  // y, lo <= 0 <= hi, d
    double dead_zone = 0.0;                           // e
    bool intercept = true;
    bool is_part = false;   // whether other samples are held
    double held_sum = 0.0;  // of their coefficients

    [[nodiscard]] std::size_t size() const noexcept { return target.size(); }

    [[nodiscard]] double loss(std::size_t i, double fitted) const noexcept {
        const double r = target[i] - fitted;
        const double slack = std::abs(r) - dead_zone;
        if (slack <= 0.0) return 0.0;
        // The maximising t has the sign of r: t = slack / d, cut at the bound on its side.
        const double limit = r > 0.0 ? upper[i] : -lower[i];
        const double t = ridge[i] > 0.0 ? std::min(slack / ridge[i], limit) : limit;
        return t * slack - 0.5 * ridge[i] * t * t;
    }

    // Of the held samples, up to a constant.
    [[nodiscard]] double held_loss(double bias) const noexcept { return held_sum == 0.0 ? 0.0 : -held_sum * bias; }

    [[nodiscard]] double total_loss(std::span<const double> fitted, double bias) const noexcept {
        double sum = held_loss(bias);
        for (std::size_t i = 0; i < size(); ++i) sum += loss(i, fitted[i] + bias);
        return sum;
    }
};

}  // namespace kw
