// The quadratic program of a bundle step by a primal-dual interior point method (Mehrotra's):
//
//   min over x on the simplex, t   t + 1/2 (x - centre)' M (x - centre),   t >= cuts_i + slopes_i . x
//
// A few dozen unknowns: what counts is that an iteration is a few loops without calls and allocations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "vector_math.hpp"

namespace kw {

struct BundleModel {
    std::size_t n_weights, n_cuts;
    const double* cuts;    // n_cuts
    const double* slopes;  // n_cuts x n_weights
    const double* M;       // n_weights x n_weights, positive definite
    const double* centre;  // n_weights, on the simplex
};

class InteriorPoint {
   public:
    explicit InteriorPoint(const BundleModel& model)
        : model_(model),
          k_(model.n_weights),
          c_(model.n_cuts),
          x_(k_),
          reduced_(k_, 1.0),
          slack_(c_),
          multipliers_(c_, 1.0 / static_cast<double>(c_)),
          off_(c_),
          gradient_(k_ + 1),
          border_(k_ + 1),
          moved_(k_),
          factor_((k_ + 1) * (k_ + 1)) {
        for (std::size_t j = 0; j < k_; ++j) x_[j] = 0.9 * model.centre[j] + 0.1 / static_cast<double>(k_);
        t_ = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < c_; ++i) t_ = std::max(t_, height(i, x_) + 1.0);
        for (std::size_t i = 0; i < c_; ++i) slack_[i] = t_ - height(i, x_);
    }

    // Iterates until the conditions hold to rounding, or as far as the arithmetic goes.
    void run() {
        Direction affine(k_, c_), step(k_, c_);
        std::vector<double> target_x(k_), target_s(c_);
        const double pairs = static_cast<double>(k_ + c_);
        for (int iteration = 0; iteration < 50; ++iteration) {
            const double mu = (dot(x_, reduced_) + dot(slack_, multipliers_)) / pairs;
            look();
            double worst = 0.0;
            for (const double g : gradient_) worst = std::max(worst, std::abs(g));
            if (mu < 1e-14 && worst < 1e-11 && std::abs(balance_) < 1e-13) return;
            if (!factorise()) return;
            std::fill(target_x.begin(), target_x.end(), 0.0);
            std::fill(target_s.begin(), target_s.end(), 0.0);
            direct(target_x, target_s, affine);
            const auto [ahead, back] = room(affine);
            double after = 0.0;
            for (std::size_t j = 0; j < k_; ++j)
                after += (x_[j] + ahead * affine.x[j]) * (reduced_[j] + back * affine.reduced[j]);
            for (std::size_t i = 0; i < c_; ++i)
                after += (slack_[i] + ahead * affine.slack[i]) * (multipliers_[i] + back * affine.multipliers[i]);
            const double ratio = after / (pairs * mu), target = mu * ratio * ratio * ratio;
            for (std::size_t j = 0; j < k_; ++j) target_x[j] = target - affine.x[j] * affine.reduced[j];
            for (std::size_t i = 0; i < c_; ++i) target_s[i] = target - affine.slack[i] * affine.multipliers[i];
            direct(target_x, target_s, step);
            if (!step.is_finite()) return;
            take(step);
        }
    }

    const std::vector<double>& x() const { return x_; }
    const std::vector<double>& reduced() const { return reduced_; }  // multipliers of x >= 0
    const std::vector<double>& slack() const { return slack_; }
    const std::vector<double>& multipliers() const { return multipliers_; }

   private:
    struct Direction {
        Direction(std::size_t k, std::size_t c) : x(k + 1), reduced(k), slack(c), multipliers(c) {}

        bool is_finite() const {
            double sum = nu;  // not finite as soon as one term is not
            for (const auto* part : {&x, &reduced, &slack, &multipliers})
                for (const double value : *part) sum += std::abs(value);
            return std::isfinite(sum);
        }

        std::vector<double> x;  // and t behind it
        std::vector<double> reduced, slack, multipliers;
        double nu = 0.0;
    };

    static double dot(const std::vector<double>& a, const std::vector<double>& b) {
        return kw::dot(a.data(), b.data(), b.size());
    }

    double slope_along(std::size_t i, const std::vector<double>& v) const {
        return kw::dot(model_.slopes + i * k_, v.data(), k_);
    }
    double height(std::size_t i, const std::vector<double>& x) const { return model_.cuts[i] + slope_along(i, x); }

    // How far the optimality conditions are from holding.
    void look() {
        balance_ = -1.0;
        for (std::size_t j = 0; j < k_; ++j) {
            moved_[j] = x_[j] - model_.centre[j];
            balance_ += x_[j];
        }
        for (std::size_t j = 0; j < k_; ++j)
            gradient_[j] = kw::dot(model_.M + j * k_, moved_.data(), k_) - reduced_[j] + nu_;
        gradient_[k_] = 1.0;
        for (std::size_t i = 0; i < c_; ++i) {
            off_[i] = t_ - height(i, x_) - slack_[i];
            add_cut(i, -multipliers_[i], gradient_.data());
        }
    }

    // side += scale * [-slopes_i, 1], the row of cut i.
    void add_cut(std::size_t i, double scale, double* side) const {
        const double* slope = model_.slopes + i * k_;
        for (std::size_t j = 0; j < k_; ++j) side[j] -= scale * slope[j];
        side[k_] += scale;
    }

    // Cholesky factor of M + diag(reduced / x) + sum_i multipliers_i / slack_i (row of cut i)(row of cut i)'.
    bool factorise() {
        const std::size_t size = k_ + 1;
        for (std::size_t a = 0; a < k_; ++a) {
            std::copy(model_.M + a * k_, model_.M + a * k_ + a + 1, factor_.data() + a * size);
            factor_[a * size + a] += reduced_[a] / x_[a];
        }
        std::fill(factor_.begin() + static_cast<std::ptrdiff_t>(k_ * size), factor_.end(), 0.0);
        for (std::size_t i = 0; i < c_; ++i) {
            const double ratio = multipliers_[i] / slack_[i];
            const double* slope = model_.slopes + i * k_;
            for (std::size_t a = 0; a < k_; ++a) add_scaled(factor_.data() + a * size, slope, ratio * slope[a], a + 1);
            add_scaled(factor_.data() + k_ * size, slope, -ratio, k_);
            factor_[k_ * size + k_] += ratio;
        }
        for (std::size_t a = 0; a < size; ++a) {
            double* row = factor_.data() + a * size;
            for (std::size_t b = 0; b < a; ++b) {
                const double* other = factor_.data() + b * size;
                row[b] = (row[b] - kw::dot(row, other, b)) / other[b];
            }
            const double pivot = row[a] - kw::dot(row, row, a);
            if (!(pivot > 0.0) || !std::isfinite(pivot)) return false;
            row[a] = std::sqrt(pivot);
        }
        std::fill(border_.begin(), border_.end(), 1.0);
        border_[k_] = 0.0;
        solve(border_);
        return true;
    }

    void solve(std::vector<double>& side) const {
        const std::size_t size = k_ + 1;
        for (std::size_t a = 0; a < size; ++a) {
            const double* row = factor_.data() + a * size;
            side[a] = (side[a] - kw::dot(row, side.data(), a)) / row[a];
        }
        for (std::size_t a = size; a-- > 0;) {
            const double* row = factor_.data() + a * size;
            side[a] /= row[a];
            add_scaled(side.data(), row, -side[a], a);
        }
    }

    // The step that takes products x_j reduced_j and slack_i multipliers_i to the targets, to first order.
    void direct(const std::vector<double>& target_x, const std::vector<double>& target_s, Direction& out) const {
        auto& step = out.x;
        for (std::size_t j = 0; j < k_; ++j) step[j] = target_x[j] / x_[j] - reduced_[j] - gradient_[j];
        step[k_] = -gradient_[k_];
        for (std::size_t i = 0; i < c_; ++i)
            add_cut(i, (target_s[i] - multipliers_[i] * off_[i]) / slack_[i] - multipliers_[i], step.data());
        solve(step);
        double sum = balance_, border_sum = 0.0;
        for (std::size_t j = 0; j < k_; ++j) sum += step[j], border_sum += border_[j];
        out.nu = sum / border_sum;
        for (std::size_t j = 0; j <= k_; ++j) step[j] -= out.nu * border_[j];
        for (std::size_t j = 0; j < k_; ++j)
            out.reduced[j] = (target_x[j] - reduced_[j] * step[j]) / x_[j] - reduced_[j];
        for (std::size_t i = 0; i < c_; ++i) {
            out.slack[i] = step[k_] - slope_along(i, step) + off_[i];
            out.multipliers[i] = (target_s[i] - multipliers_[i] * out.slack[i]) / slack_[i] - multipliers_[i];
        }
    }

    // How far a step may go before a value reaches zero, at most one: primal and dual apart.
    std::pair<double, double> room(const Direction& step) const {
        const auto until = [](const std::vector<double>& values, const std::vector<double>& change, double most) {
            for (std::size_t j = 0; j < values.size(); ++j)
                if (change[j] < 0.0) most = std::min(most, -values[j] / change[j]);
            return most;
        };
        return {until(slack_, step.slack, until(x_, step.x, 1.0)),
                until(multipliers_, step.multipliers, until(reduced_, step.reduced, 1.0))};
    }

    void take(const Direction& step) {
        const auto [most_ahead, most_back] = room(step);
        const double ahead = 0.995 * most_ahead, back = 0.995 * most_back;
        for (std::size_t j = 0; j < k_; ++j) x_[j] += ahead * step.x[j], reduced_[j] += back * step.reduced[j];
        for (std::size_t i = 0; i < c_; ++i)
            slack_[i] += ahead * step.slack[i], multipliers_[i] += back * step.multipliers[i];
        t_ += ahead * step.x[k_];
        nu_ += back * step.nu;
    }

    BundleModel model_;
    std::size_t k_, c_;
    std::vector<double> x_, reduced_, slack_, multipliers_;
    std::vector<double> off_, gradient_, border_, moved_;
    std::vector<double> factor_;  // lower triangle, row by row
    double t_ = 0.0, nu_ = 0.0, balance_ = 0.0;
};

}  // namespace kw
