// The quadratic program of a bundle step by a primal-dual interior point method:
//
//   min over x on the simplex, t   t + 1/2 (x - centre)' M (x - centre),   t >= cuts_i + slopes_i . x
//
// With multipliers z of x >= 0 (reduced costs), lambda of the cuts and nu of sum x = 1, the optimality conditions are
// M (x - centre) + sum_i lambda_i slopes_i - z + nu = 0, sum lambda = 1, x_j z_j = 0 and slack_i lambda_i = 0.
// Mehrotra's predictor-corrector (1992; Nocedal and Wright 2006, Algorithm 16.4) follows x_j z_j = slack_i lambda_i =
// mu to zero. With a few dozen unknowns, an iteration is a few loops without calls and allocations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "matrix.hpp"
#include "vector_math.hpp"

namespace kw {

struct BundleModel {
    std::span<const double> cuts;
    Matrix<const double> slopes;     // one row per cut, one column per weight
    Matrix<const double> M;          // positive definite, one row per weight
    std::span<const double> centre;  // on the simplex
};

class InteriorPoint {
   public:
    explicit InteriorPoint(const BundleModel& model)
        : model_(model),
          k_(model.centre.size()),
          c_(model.cuts.size()),
          x_(k_),
          reduced_(k_, 1.0),
          slack_(c_),
          multipliers_(c_, 1.0 / static_cast<double>(c_)),
          off_(c_),
          gradient_(k_ + 1),
          border_(k_ + 1),
          moved_(k_),
          factor_((k_ + 1) * (k_ + 1)) {
        // A point inside: x a tenth of the way to the middle of the simplex, t above every cut.
        for (std::size_t j = 0; j < k_; ++j) x_[j] = 0.9 * model.centre[j] + 0.1 / static_cast<double>(k_);
        t_ = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < c_; ++i) t_ = std::max(t_, height(i, x_) + 1.0);
        for (std::size_t i = 0; i < c_; ++i) slack_[i] = t_ - height(i, x_);
    }

    // Iterates until the conditions hold to rounding, or until rounding error prevents further progress.
    void run() {
        Direction affine(k_, c_), step(k_, c_);
        std::vector<double> target_x(k_), target_s(c_);
        const double pairs = static_cast<double>(k_ + c_);
        for (int iteration = 0; iteration < 50; ++iteration) {
            const double mu = (dot(x_, reduced_) + dot(slack_, multipliers_)) / pairs;
            evaluate();
            double worst = 0.0;
            for (const double g : gradient_) worst = std::max(worst, std::abs(g));
            if (mu < 1e-14 && worst < 1e-11 && std::abs(balance_) < 1e-13) return;
            if (!factorise()) return;
            // Predictor: the step to products of zero. Mehrotra's target is mu * (mu after it / mu)^3.
            std::fill(target_x.begin(), target_x.end(), 0.0);
            std::fill(target_s.begin(), target_s.end(), 0.0);
            find_direction(target_x, target_s, affine);
            const auto [ahead, back] = step_lengths(affine);
            double after = 0.0;
            for (std::size_t j = 0; j < k_; ++j)
                after += (x_[j] + ahead * affine.x[j]) * (reduced_[j] + back * affine.reduced[j]);
            for (std::size_t i = 0; i < c_; ++i)
                after += (slack_[i] + ahead * affine.slack[i]) * (multipliers_[i] + back * affine.multipliers[i]);
            const double ratio = after / (pairs * mu), target = mu * ratio * ratio * ratio;
            // Corrector: the products of the predictor's own changes are subtracted from the target.
            for (std::size_t j = 0; j < k_; ++j) target_x[j] = target - affine.x[j] * affine.reduced[j];
            for (std::size_t i = 0; i < c_; ++i) target_s[i] = target - affine.slack[i] * affine.multipliers[i];
            find_direction(target_x, target_s, step);
            if (!step.is_finite()) return;
            apply(step);
        }
    }

    [[nodiscard]] const std::vector<double>& x() const noexcept { return x_; }
    [[nodiscard]] const std::vector<double>& reduced() const noexcept { return reduced_; }  // multipliers of x >= 0
    [[nodiscard]] const std::vector<double>& slack() const noexcept { return slack_; }
    [[nodiscard]] const std::vector<double>& multipliers() const noexcept { return multipliers_; }

   private:
    struct Direction {
        Direction(std::size_t k, std::size_t c) : x(k + 1), reduced(k), slack(c), multipliers(c) {}

        [[nodiscard]] bool is_finite() const noexcept {
            double sum = nu;  // not finite as soon as one term is not
            for (const auto* part : {&x, &reduced, &slack, &multipliers})
                for (const double value : *part) sum += std::abs(value);
            return std::isfinite(sum);
        }

        std::vector<double> x;  // and t behind it
        std::vector<double> reduced, slack, multipliers;
        double nu = 0.0;
    };

    [[nodiscard]] double slope_along(std::size_t i, std::span<const double> v) const noexcept {
        return dot(model_.slopes.row(i), v.first(k_));
    }
    [[nodiscard]] double height(std::size_t i, std::span<const double> x) const noexcept {
        return model_.cuts[i] + slope_along(i, x);
    }

    // Residuals of the optimality conditions.
    void evaluate() noexcept {
        balance_ = -1.0;
        for (std::size_t j = 0; j < k_; ++j) {
            moved_[j] = x_[j] - model_.centre[j];
            balance_ += x_[j];
        }
        for (std::size_t j = 0; j < k_; ++j) gradient_[j] = dot(model_.M.row(j), moved_) - reduced_[j] + nu_;
        gradient_[k_] = 1.0;
        for (std::size_t i = 0; i < c_; ++i) {
            off_[i] = t_ - height(i, x_) - slack_[i];
            add_cut(i, -multipliers_[i], gradient_);
        }
    }

    // side += scale * [-slopes_i, 1], the row of cut i.
    void add_cut(std::size_t i, double scale, std::span<double> side) const noexcept {
        const auto slope = model_.slopes.row(i);
        for (std::size_t j = 0; j < k_; ++j) side[j] -= scale * slope[j];
        side[k_] += scale;
    }

    [[nodiscard]] std::span<double> factor_row(std::size_t a) noexcept {
        return std::span(factor_).subspan(a * (k_ + 1), k_ + 1);
    }
    [[nodiscard]] std::span<const double> factor_row(std::size_t a) const noexcept {
        return std::span(factor_).subspan(a * (k_ + 1), k_ + 1);
    }

    // Cholesky factor of M + diag(reduced / x) + sum_i multipliers_i / slack_i (row of cut i)(row of cut i)', what is
    // left of the Newton system after reduced costs, slacks and multipliers are eliminated; false if it is singular.
    [[nodiscard]] bool factorise() noexcept {
        for (std::size_t a = 0; a < k_; ++a) {
            const auto lower = model_.M.row(a).first(a + 1);
            std::copy(lower.begin(), lower.end(), factor_row(a).begin());
            factor_row(a)[a] += reduced_[a] / x_[a];
        }
        const auto last = factor_row(k_);
        std::fill(last.begin(), last.end(), 0.0);
        for (std::size_t i = 0; i < c_; ++i) {
            const double ratio = multipliers_[i] / slack_[i];
            const auto slope = model_.slopes.row(i);
            for (std::size_t a = 0; a < k_; ++a) add_scaled(factor_row(a).first(a + 1), slope, ratio * slope[a]);
            add_scaled(last.first(k_), slope, -ratio);
            last[k_] += ratio;
        }
        for (std::size_t a = 0; a <= k_; ++a) {
            const auto row = factor_row(a);
            for (std::size_t b = 0; b < a; ++b) {
                const auto other = factor_row(b);
                row[b] = (row[b] - dot(row, other.first(b))) / other[b];
            }
            const double pivot = row[a] - dot(row, row.first(a));
            if (!(pivot > 0.0) || !std::isfinite(pivot)) return false;
            row[a] = std::sqrt(pivot);
        }
        // The border of sum x = 1, [1, ..., 1, 0], solved once per factor.
        std::fill(border_.begin(), border_.end(), 1.0);
        border_[k_] = 0.0;
        solve(border_);
        return true;
    }

    // Forward and back substitution.
    void solve(std::span<double> side) const noexcept {
        for (std::size_t a = 0; a <= k_; ++a) {
            const auto row = factor_row(a);
            side[a] = (side[a] - dot(row, side.first(a))) / row[a];
        }
        for (std::size_t a = k_ + 1; a-- > 0;) {
            const auto row = factor_row(a);
            side[a] /= row[a];
            add_scaled(side.first(a), row, -side[a]);
        }
    }

    // The step that takes products x_j reduced_j and slack_i multipliers_i to the targets, to first order.
    void find_direction(std::span<const double> target_x, std::span<const double> target_s,
                        Direction& out) const noexcept {
        auto& step = out.x;
        for (std::size_t j = 0; j < k_; ++j) step[j] = target_x[j] / x_[j] - reduced_[j] - gradient_[j];
        step[k_] = -gradient_[k_];
        for (std::size_t i = 0; i < c_; ++i)
            add_cut(i, (target_s[i] - multipliers_[i] * off_[i]) / slack_[i] - multipliers_[i], step);
        solve(step);
        double sum = balance_, border_sum = 0.0;
        for (std::size_t j = 0; j < k_; ++j) {
            sum += step[j];
            border_sum += border_[j];
        }
        out.nu = sum / border_sum;  // makes the step end at sum x = 1
        for (std::size_t j = 0; j <= k_; ++j) step[j] -= out.nu * border_[j];
        for (std::size_t j = 0; j < k_; ++j)
            out.reduced[j] = (target_x[j] - reduced_[j] * step[j]) / x_[j] - reduced_[j];
        for (std::size_t i = 0; i < c_; ++i) {
            out.slack[i] = step[k_] - slope_along(i, step) + off_[i];
            out.multipliers[i] = (target_s[i] - multipliers_[i] * out.slack[i]) / slack_[i] - multipliers_[i];
        }
    }

    // The largest primal and dual step lengths, at most one, that keep every value non-negative.
    [[nodiscard]] std::pair<double, double> step_lengths(const Direction& step) const noexcept {
        const auto until = [](std::span<const double> values, std::span<const double> change, double most) {
            for (std::size_t j = 0; j < values.size(); ++j)
                if (change[j] < 0.0) most = std::min(most, -values[j] / change[j]);
            return most;
        };
        return {until(slack_, step.slack, until(x_, step.x, 1.0)),
                until(multipliers_, step.multipliers, until(reduced_, step.reduced, 1.0))};
    }

    void apply(const Direction& step) noexcept {
        constexpr double inside = 0.995;  // share of the way to the boundary
        const auto [most_ahead, most_back] = step_lengths(step);
        const double ahead = inside * most_ahead, back = inside * most_back;
        for (std::size_t j = 0; j < k_; ++j) {
            x_[j] += ahead * step.x[j];
            reduced_[j] += back * step.reduced[j];
        }
        for (std::size_t i = 0; i < c_; ++i) {
            slack_[i] += ahead * step.slack[i];
            multipliers_[i] += back * step.multipliers[i];
        }
        t_ += ahead * step.x[k_];
        nu_ += back * step.nu;
    }

    BundleModel model_;
    std::size_t k_, c_;  // weights and cuts
    std::vector<double> x_, reduced_, slack_, multipliers_;
    std::vector<double> off_, gradient_, border_, moved_;
    std::vector<double> factor_;  // lower triangle, row by row
    double t_ = 0.0, nu_ = 0.0, balance_ = 0.0;
};

}  // namespace kw
