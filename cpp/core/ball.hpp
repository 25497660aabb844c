// The smallest enclosing ball of points of a feature space, given rows of their Gram matrix on demand.
//
//   squared radius = max over beta of  beta'd - beta'(K + diag rho) beta,   beta >= 0, sum beta = 1,
//
// with d the diagonal of K + diag rho; the centre is sum_i beta_i phi_i. Each step moves weight to the farthest point
// i from the point j with the largest gain, the pairwise (second-order) step of SMO applied to this dual
// (support vector data description: Tax and Duin 2004). With g = d - 2 (K + diag rho) beta, the duality gap is
// max_i g_i - beta'g.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "status.hpp"

namespace kw {

template <class T>
class Ball {
   public:
    Ball(std::vector<double> diagonal, std::vector<double> ridge)
        : diagonal_(std::move(diagonal)), ridge_(std::move(ridge)), beta_(size(), 0.0), rows_(size(), nullptr) {
        for (std::size_t i = 0; i < size(); ++i) diagonal_[i] += ridge_[i];
        reach_ = diagonal_;
    }

    [[nodiscard]] std::size_t size() const noexcept { return diagonal_.size(); }
    [[nodiscard]] const std::vector<double>& beta() const noexcept { return beta_; }
    [[nodiscard]] std::int64_t updates() const noexcept { return updates_; }

    // The row must outlive the solver.
    void lend(std::size_t i, std::span<const T> row) noexcept { rows_[i] = row.data(); }

    // K beta, without the ridge.
    [[nodiscard]] std::vector<double> fitted() const {
        std::vector<double> out(size());
        for (std::size_t i = 0; i < size(); ++i) out[i] = 0.5 * (diagonal_[i] - reach_[i]) - ridge_[i] * beta_[i];
        return out;
    }

    // Starts from weights on the simplex with fitted = K beta.
    void start(std::span<const double> beta, std::span<const double> fitted) noexcept {
        std::copy(beta.begin(), beta.end(), beta_.begin());
        for (std::size_t i = 0; i < size(); ++i) reach_[i] = diagonal_[i] - 2.0 * (fitted[i] + ridge_[i] * beta[i]);
    }

    // The row that is needed now, and those of the farthest other points that have not been lent yet.
    [[nodiscard]] std::vector<std::int64_t> wanted(std::size_t how_many) const {
        std::vector<std::int64_t> rows;
        for (std::size_t i = 0; i < size(); ++i)
            if (!rows_[i] && i != needed_) rows.push_back(static_cast<std::int64_t>(i));
        how_many = std::min(how_many, rows.size());
        std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(how_many), rows.end(),
                          [&](std::int64_t a, std::int64_t b) {
                              const double reach_a = reach_[static_cast<std::size_t>(a)];
                              const double reach_b = reach_[static_cast<std::size_t>(b)];
                              return reach_a != reach_b ? reach_a > reach_b : a < b;
                          });
        rows.resize(how_many);
        if (needed_ < size() && !rows_[needed_]) rows.insert(rows.begin(), static_cast<std::int64_t>(needed_));
        return rows;
    }

    // Runs until the duality gap is at most tol * squared radius, at most max_updates moves of weight.
    [[nodiscard]] Status run(double tol, std::int64_t max_updates) noexcept {
        const std::size_t n = size();
        for (std::int64_t step = 0; step < max_updates; ++step) {
            const auto i = static_cast<std::size_t>(std::max_element(reach_.begin(), reach_.end()) - reach_.begin());
            const double top = reach_[i];
            double mean = 0.0, value = 0.0;  // beta'g and the dual value
            for (std::size_t k = 0; k < n; ++k) {
                mean += beta_[k] * reach_[k];
                value += 0.5 * beta_[k] * (diagonal_[k] + reach_[k]);
            }
            if (top - mean <= tol * value) return Status::converged;
            if (top - mean <= 1e-15 * diagonal_[i]) return Status::stalled;  // within the rounding error of distances
            if (!rows_[i]) return lack(i);
            const auto [j, move, gain] = pick_donor(i, top);
            if (j == n) return Status::stalled;
            if (!rows_[j]) return lack(j);
            // The gain is quadratic in the gap, so it may be far below rounding while the gap still falls.
            small_ = gain <= 1e-28 * value ? small_ + 1 : 0;
            if (small_ > 100) return Status::stalled;
            const T *to = rows_[i], *from = rows_[j];
            for (std::size_t k = 0; k < n; ++k)
                reach_[k] -= 2.0 * move * (static_cast<double>(to[k]) - static_cast<double>(from[k]));
            reach_[i] -= 2.0 * move * ridge_[i];
            reach_[j] += 2.0 * move * ridge_[j];
            beta_[i] += move;
            beta_[j] = move < beta_[j] ? beta_[j] - move : 0.0;
            ++updates_;
        }
        return Status::paused;
    }

   private:
    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

    struct Donor {
        std::size_t index;  // n where no move gains
        double move, gain;
    };

    // The point that gives weight to i. Moving s from k to i gains s (g_i - g_k) - s^2 (d_i + d_k - 2 K_ik).
    [[nodiscard]] Donor pick_donor(std::size_t i, double top) const noexcept {
        const T* row = rows_[i];
        Donor best{size(), 0.0, 0.0};
        for (std::size_t k = 0; k < size(); ++k) {
            if (beta_[k] == 0.0 || k == i) continue;
            const double ahead = top - reach_[k];
            if (ahead <= 0.0) continue;
            const double sum = diagonal_[i] + diagonal_[k];
            const double curvature = std::max(sum - 2.0 * static_cast<double>(row[k]), 1e-14 * sum);
            const double move = std::min(ahead / (2.0 * curvature), beta_[k]);
            const double gain = move * (ahead - move * curvature);
            if (gain > best.gain) best = {k, move, gain};
        }
        return best;
    }

    Status lack(std::size_t i) noexcept {
        needed_ = i;
        return Status::needs_rows;
    }

    std::vector<double> diagonal_, ridge_, beta_;
    std::vector<double> reach_;   // g: squared distance from the centre, up to a constant
    std::vector<const T*> rows_;  // null: not lent yet
    std::size_t needed_ = kNone;  // the row that the last run lacked
    std::int64_t updates_ = 0;
    int small_ = 0;  // consecutive moves with a gain below rounding
};

}  // namespace kw
