// The smallest ball around points of a feature space, given rows of their Gram matrix on demand.
//
//   squared radius = max over beta of  beta'd - beta'(K + diag rho) beta,   beta >= 0, sum beta = 1,
//
// with d the diagonal of K + diag rho; the centre is sum_i beta_i phi_i. Weight moves from some point to the
// farthest one, chosen by its gain. The gap is max_i g_i - beta'g with g = d - 2 (K + diag rho) beta.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kw {

enum class BallStatus { converged = 0, paused = 1, needs_rows = 2, stalled = 3 };

template <class T>
class Ball {
  public:
    Ball(std::vector<double> diagonal, std::vector<double> ridge)
        : diagonal_(std::move(diagonal)), ridge_(std::move(ridge)), beta_(size(), 0.0), rows_(size(), nullptr) {
        for (std::size_t i = 0; i < size(); ++i) diagonal_[i] += ridge_[i];
        reach_ = diagonal_;
    }

    std::size_t size() const { return diagonal_.size(); }
    const std::vector<double>& beta() const { return beta_; }
    std::int64_t updates() const { return updates_; }
    void lend(std::size_t i, const T* row) { rows_[i] = row; }

    // K beta, without the ridge.
    std::vector<double> fitted() const {
        std::vector<double> out(size());
        for (std::size_t i = 0; i < size(); ++i) out[i] = 0.5 * (diagonal_[i] - reach_[i]) - ridge_[i] * beta_[i];
        return out;
    }

    void start(const double* beta, const double* fitted) {
        std::copy(beta, beta + size(), beta_.begin());
        for (std::size_t i = 0; i < size(); ++i) reach_[i] = diagonal_[i] - 2.0 * (fitted[i] + ridge_[i] * beta[i]);
    }

    // The row that is needed now, and those of the farthest other points that are not there yet.
    std::vector<std::int64_t> wanted(std::size_t how_many) const {
        std::vector<std::int64_t> rows;
        for (std::size_t i = 0; i < size(); ++i)
            if (!rows_[i] && i != needed_) rows.push_back(static_cast<std::int64_t>(i));
        how_many = std::min(how_many, rows.size());
        std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(how_many), rows.end(),
                          [&](std::int64_t a, std::int64_t b) {
                              const double ra = reach_[static_cast<std::size_t>(a)], rb = reach_[static_cast<std::size_t>(b)];
                              return ra != rb ? ra > rb : a < b;
                          });
        rows.resize(how_many);
        if (needed_ < size() && !rows_[needed_]) rows.insert(rows.begin(), static_cast<std::int64_t>(needed_));
        return rows;
    }

    BallStatus run(double tol, std::int64_t max_updates) {
        const std::size_t n = size();
        for (std::int64_t step = 0; step < max_updates; ++step) {
            const std::size_t i = static_cast<std::size_t>(std::max_element(reach_.begin(), reach_.end()) - reach_.begin());
            const double top = reach_[i];
            double mean = 0.0, value = 0.0;
            for (std::size_t k = 0; k < n; ++k) {
                mean += beta_[k] * reach_[k];
                value += 0.5 * beta_[k] * (diagonal_[k] + reach_[k]);
            }
            if (top - mean <= tol * value) return BallStatus::converged;
            if (top - mean <= 1e-15 * diagonal_[i]) return BallStatus::stalled;  // distances are not known closer
            if (!rows_[i]) {
                needed_ = i;
                return BallStatus::needs_rows;
            }
            const T* from = rows_[i];
            std::size_t j = n;
            double best_gain = 0.0, best_step = 0.0;
            for (std::size_t k = 0; k < n; ++k) {
                if (beta_[k] == 0.0 || k == i) continue;
                const double ahead = top - reach_[k];
                if (ahead <= 0.0) continue;
                const double size = diagonal_[i] + diagonal_[k];
                const double bend = std::max(size - 2.0 * static_cast<double>(from[k]), 1e-14 * size);
                const double move = std::min(ahead / (2.0 * bend), beta_[k]);
                const double gain = move * (ahead - move * bend);
                if (gain > best_gain) best_gain = gain, best_step = move, j = k;
            }
            if (j == n) return BallStatus::stalled;
            if (!rows_[j]) {
                needed_ = j;
                return BallStatus::needs_rows;
            }
            // The gain is quadratic in the gap, so it may be far below rounding while the gap still falls.
            small_ = best_gain <= 1e-28 * value ? small_ + 1 : 0;
            if (small_ > 100) return BallStatus::stalled;
            const T* to = rows_[j];
            for (std::size_t k = 0; k < n; ++k)
                reach_[k] -= 2.0 * best_step * (static_cast<double>(from[k]) - static_cast<double>(to[k]));
            reach_[i] -= 2.0 * best_step * ridge_[i];
            reach_[j] += 2.0 * best_step * ridge_[j];
            beta_[i] += best_step;
            beta_[j] = best_step < beta_[j] ? beta_[j] - best_step : 0.0;
            ++updates_;
        }
        return BallStatus::paused;
    }

  private:
    std::vector<double> diagonal_, ridge_, beta_;
    std::vector<double> reach_;  // squared distance from the centre, less a number that is the same for all
    std::vector<const T*> rows_;
    std::size_t needed_ = static_cast<std::size_t>(-1);
    std::int64_t updates_ = 0;
    int small_ = 0;
};

}  // namespace kw
