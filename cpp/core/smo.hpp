// Sequential minimal optimisation for every loss of the library on one Gram matrix (see smo_problem.hpp).
//
// Steps change the pair (i, j), or one coefficient without an intercept. i has the largest gradient among those that
// can be raised; j is chosen by the decrease of the objective to second order. Samples at a bound that cannot take
// part are shrunk. The run ends on the duality gap, not on the violation of the optimality conditions.
//
// References: R.-E. Fan, P.-H. Chen, C.-J. Lin (2005), Working set selection using second order information for
// training support vector machines, JMLR 6 (rule WSS 3); T. Joachims (1999), Making large-scale SVM learning
// practical (shrinking).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "bias.hpp"
#include "simd.hpp"
#include "smo_loops.hpp"
#include "smo_problem.hpp"
#include "status.hpp"

namespace kw {

// When a run ends: at a duality gap of max(tol * primal, floor), after max_updates steps, or at a dual value that is
// enough for the caller.
struct SmoLimits {
    double tol = 0.0, floor = 0.0;
    std::int64_t max_updates = 0;
    double enough = smo_loops::kInfinity;
};

// One problem being solved. Rows of K are lent by the caller, all at once or when `wanted` asks for them.
template <class T>
class Smo {
   public:
    Smo(SmoProblem problem, std::span<const double> diagonal)
        : problem_(std::move(problem)),
          n_(problem_.size()),
          diagonal_(diagonal.begin(), diagonal.end()),
          rows_(n_, nullptr),
          beta_(n_, 0.0),
          v_(problem_.target),
          up_(n_),
          down_(n_),
          active_(n_) {
        for (std::size_t i = 0; i < n_; ++i) diagonal_[i] += problem_.ridge[i];
        activate_all();
        for (std::size_t i = 0; i < n_; ++i) refresh(i);
    }

    // Starts from a feasible beta with fitted = K beta.
    void start(std::span<const double> beta, std::span<const double> fitted) {
        std::copy(beta.begin(), beta.end(), beta_.begin());
        activate_all();
        for (std::size_t i = 0; i < n_; ++i) {
            v_[i] = problem_.target[i] - fitted[i] - problem_.ridge[i] * beta_[i];
            refresh(i);
        }
    }

    // Makes this a part of a larger problem, whose other samples have coefficients with this sum. beta is then one of
    // the samples here, and `fitted` are values by all coefficients.
    void hold(double sum) noexcept {
        problem_.is_part = true;
        problem_.held_sum = sum;
    }

    // The row must outlive the solver.
    void lend(std::size_t i, std::span<const T> row) noexcept { rows_[i] = row.data(); }
    [[nodiscard]] bool has(std::size_t i) const noexcept { return rows_[i] != nullptr; }

    [[nodiscard]] Status run(const SmoLimits& limits) {
        std::int64_t left = limits.max_updates;
        enough_ = limits.enough;
        if (target_violation_ <= 0.0) {
            evaluate();
            if (gap() <= allowed_gap(limits)) return Status::converged;
            if (!std::isfinite(gap())) return Status::stalled;
            // A first guess: the gap is of the order of violation * |beta|_1. Later targets follow the gap.
            target_violation_ = 2.0 * allowed_gap(limits) / std::max(absolute_sum(), smo_loops::kTiny);
            if (absolute_sum() == 0.0) target_violation_ = 1.0;
        }
        while (true) {
            const Status status = problem_.intercept ? pair_steps(left) : single_steps(left);
            if (status == Status::needs_rows) return status;
            if (dual_ >= enough_) {
                unshrink();
                evaluate();
                return Status::converged;
            }
            if (status == Status::paused) {
                unshrink();
                evaluate();
                return gap() <= allowed_gap(limits) ? Status::converged : status;
            }
            if (unshrink()) continue;  // optimal on the active samples only
            evaluate();
            if (!std::isfinite(gap())) return Status::stalled;  // rows with NaN or infinity
            const double allowed = allowed_gap(limits);
            if (gap() <= allowed) return Status::converged;
            if (violation_ <= 1e-14 * violation_scale()) return Status::stalled;
            // The gap falls about in proportion to the violation; 0.8 leaves a margin.
            target_violation_ = std::min(target_violation_, violation_) * std::clamp(0.8 * allowed / gap(), 0.1, 0.5);
        }
    }

    // Rows required by the next updates: the missing one first, then the most violating ones.
    [[nodiscard]] std::vector<std::int64_t> wanted(std::size_t how_many) const {
        std::vector<std::pair<double, std::int64_t>> order;
        double top = -kInfinity, bottom = kInfinity;
        for (const auto i : active_) {
            top = std::max(top, v_[i] - up_[i]);
            bottom = std::min(bottom, v_[i] - down_[i]);
        }
        for (const auto i : active_) {
            if (has(i)) continue;
            double urgency = std::max(v_[i] - up_[i] - bottom, top - (v_[i] - down_[i]));
            if (i == missing_) urgency = kInfinity;
            if (urgency > 0.0) order.emplace_back(-urgency, static_cast<std::int64_t>(i));
        }
        how_many = std::min(how_many, order.size());
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(how_many), order.end());
        std::vector<std::int64_t> chosen(how_many);
        for (std::size_t k = 0; k < how_many; ++k) chosen[k] = order[k].second;
        return chosen;
    }

    [[nodiscard]] std::size_t size() const noexcept { return n_; }
    [[nodiscard]] const std::vector<double>& beta() const noexcept { return beta_; }
    [[nodiscard]] std::vector<double> fitted() const {
        std::vector<double> f(n_);
        for (std::size_t i = 0; i < n_; ++i) f[i] = problem_.target[i] - v_[i] - problem_.ridge[i] * beta_[i];
        return f;
    }
    [[nodiscard]] double bias() const noexcept { return bias_; }
    [[nodiscard]] double primal() const noexcept { return primal_; }
    [[nodiscard]] double dual() const noexcept { return dual_; }
    [[nodiscard]] std::int64_t updates() const noexcept { return updates_; }

   private:
    static constexpr double kInfinity = smo_loops::kInfinity;
    using Choice = smo_loops::Choice;

    [[nodiscard]] double gap() const noexcept { return primal_ - dual_; }
    [[nodiscard]] double allowed_gap(const SmoLimits& limits) const noexcept {
        return std::max(limits.tol * std::abs(primal_), limits.floor);
    }
    [[nodiscard]] double absolute_sum() const noexcept {
        double sum = 0.0;
        for (const double b : beta_) sum += std::abs(b);
        return sum;
    }
    [[nodiscard]] double violation_scale() const noexcept {
        double top = 0.0;
        for (std::size_t i = 0; i < n_; ++i) top = std::max({top, std::abs(v_[i]), std::abs(problem_.target[i])});
        return top;
    }

    // The directional derivative of the dual is v_i - up_i when beta_i is raised and down_i - v_i when it is lowered.
    // up and down are the derivatives of e |beta_i|, infinite at a bound, which excludes the direction.
    void refresh(std::size_t i) noexcept {
        const double e = problem_.dead_zone, b = beta_[i];
        up_[i] = kInfinity;
        if (b < problem_.upper[i]) up_[i] = b >= 0.0 ? e : -e;
        down_[i] = -kInfinity;
        if (b > problem_.lower[i]) down_[i] = b > 0.0 ? e : -e;
    }

    // Primal and dual value at beta and the best bias.
    void evaluate() {
        const std::vector<double> f = fitted();
        bias_ = problem_.intercept ? best_bias(problem_, f) : 0.0;
        double quadratic = 0.0, linear = 0.0, losses = problem_.held_loss(bias_);
        for (std::size_t i = 0; i < n_; ++i) {
            quadratic += beta_[i] * f[i];
            linear += problem_.target[i] * beta_[i] - problem_.dead_zone * std::abs(beta_[i]) -
                      0.5 * problem_.ridge[i] * beta_[i] * beta_[i];
            losses += problem_.loss(i, f[i] + bias_);
        }
        if (!problem_.is_part) quadratic = std::max(quadratic, 0.0);  // the sum over a part may be negative
        primal_ = 0.5 * quadratic + losses;
        dual_ = linear - 0.5 * quadratic;
    }

    void move(std::size_t i, double step) noexcept {
        const double b = beta_[i];
        double next = b + step;
        const double limit = step > 0.0 ? problem_.upper[i] : problem_.lower[i];
        // End exactly at a bound or at zero, where |beta| is not differentiable, never beside it.
        if ((step > 0.0 && next >= limit) || (step < 0.0 && next <= limit)) next = limit;
        const bool crosses = (b > 0.0 && next < 0.0) || (b < 0.0 && next > 0.0);
        if (problem_.dead_zone > 0.0 && crosses) next = 0.0;  // steps end at zero, except for rounding
        if (std::abs(next) <= 1e-15 * std::abs(b)) next = 0.0;
        if (std::abs(next - limit) <= 1e-15 * std::abs(limit)) next = limit;
        beta_[i] = next;
    }

    // How far beta_i can move before it meets a bound, or zero where |beta| is not differentiable.
    [[nodiscard]] double room_up(std::size_t i) const noexcept {
        const double b = beta_[i];
        return problem_.dead_zone > 0.0 && b < 0.0 ? -b : problem_.upper[i] - b;
    }
    [[nodiscard]] double room_down(std::size_t i) const noexcept {
        const double b = beta_[i];
        return problem_.dead_zone > 0.0 && b > 0.0 ? b : b - problem_.lower[i];
    }

    // Steps in pairs keep sum beta = 0. Ends when the violation is at most the target.
    [[nodiscard]] Status pair_steps(std::int64_t& left) {
        std::int64_t until_shrink = shrink_period();
        Choice raised = pick_raise();
        while (true) {
            const std::size_t i = raised.index;
            const double best = raised.value;
            if (i == n_) {
                violation_ = 0.0;
                return Status::converged;
            }
            if (!has(i)) return lack(i);
            const auto [j, lowest] = pick_lower(i, best);
            if (j == n_) {
                violation_ = 0.0;  // no pair has a gain above rounding error
                return Status::converged;
            }
            violation_ = std::max(0.0, best - lowest);
            if (violation_ <= target_violation_) return Status::converged;
            if (!has(j)) return lack(j);
            if (left-- <= 0 || dual_ >= enough_) return Status::paused;
            if (--until_shrink <= 0) {
                shrink(best, lowest);
                until_shrink = shrink_period();
            }
            // Along beta_i + s, beta_j - s the dual gains s * difference - s^2 / 2 * curvature.
            const double difference = best - (v_[j] - down_[j]);
            const double kij = static_cast<double>(rows_[i][j]);
            const double sum = diagonal_[i] + diagonal_[j];
            const double curvature = std::max(sum - 2.0 * kij, smo_loops::kLeastCurvature * sum);
            double step = curvature > 0.0 ? difference / curvature : kInfinity;
            step = std::min({step, room_up(i), room_down(j)});
            const double before_i = beta_[i], before_j = beta_[j];
            move(i, step);
            move(j, -step);
            const double di = beta_[i] - before_i, dj = beta_[j] - before_j;
            if (di == 0.0 && dj == 0.0) {
                violation_ = 0.0;  // the step is lost in rounding
                return Status::converged;
            }
            ++updates_;
            dual_ += di * (difference - 0.5 * di * (sum - 2.0 * kij));
            v_[i] -= problem_.ridge[i] * di;
            v_[j] -= problem_.ridge[j] * dj;
            refresh(i);
            refresh(j);
            note_change(i);
            note_change(j);
            raised = update_and_pick(rows_[i], di, rows_[j], dj);
        }
    }

    // Without an intercept: steps of single coefficients.
    [[nodiscard]] Status single_steps(std::int64_t& left) {
        std::int64_t until_shrink = shrink_period();
        while (true) {
            const auto [i, worst] = pick_single();
            violation_ = i == n_ ? 0.0 : worst;
            if (violation_ <= target_violation_) return Status::converged;
            if (!has(i)) return lack(i);
            if (left-- <= 0) return Status::paused;
            if (--until_shrink <= 0) {
                shrink(0.0, 0.0);
                until_shrink = shrink_period();
            }
            const double raise = v_[i] - up_[i], lower = down_[i] - v_[i];
            double step = raise >= lower ? raise / diagonal_[i] : -lower / diagonal_[i];
            if (diagonal_[i] <= 0.0) step = raise >= lower ? kInfinity : -kInfinity;
            step = step > 0.0 ? std::min(step, room_up(i)) : -std::min(-step, room_down(i));
            const double before = beta_[i];
            move(i, step);
            const double change = beta_[i] - before;
            if (change == 0.0) {
                violation_ = 0.0;
                return Status::converged;
            }
            ++updates_;
            v_[i] -= problem_.ridge[i] * change;
            refresh(i);
            note_change(i);
            if (all_active()) update_and_pick(rows_[i], change, rows_[i], 0.0);
            else update_active(rows_[i], change, rows_[i], 0.0);
        }
    }

    Status lack(std::size_t i) noexcept {
        missing_ = i;
        return Status::needs_rows;
    }

    [[nodiscard]] std::int64_t shrink_period() const noexcept {
        return static_cast<std::int64_t>(std::max<std::size_t>(n_ / 2, 500));
    }

    // The loops below run over all samples when none is shrunk (contiguous, vectorised) and over the list otherwise.
    // They are not inlined, because their running maxima would be spilled to the stack of the caller.

    [[nodiscard]] bool all_active() const noexcept { return active_.size() == n_; }

    void activate_all() {
        active_.resize(n_);
        std::iota(active_.begin(), active_.end(), std::size_t{0});
    }

    // i: the largest derivative among the coefficients that can be raised.
    [[nodiscard]] KW_NOINLINE Choice pick_raise() const noexcept {
        std::size_t index = n_;
        double best = -kInfinity;
        for (const auto k : active_) {
            const double value = v_[k] - up_[k];
            if (value > best) {
                best = value;
                index = k;
            }
        }
        return {index, best};
    }

    // Without an intercept: the coefficient with the largest gain, force^2 / (2 K_ii); the value is the largest force.
    [[nodiscard]] KW_NOINLINE Choice pick_single() const noexcept {
        std::size_t index = n_;
        double gain = 0.0, worst = 0.0;
        for (const auto k : active_) {
            const double raise = v_[k] - up_[k], lower = down_[k] - v_[k];
            const double force = std::max(raise, lower);
            if (force <= 0.0) continue;
            worst = std::max(worst, force);
            const double value = force * (force / std::max(diagonal_[k], smo_loops::kTiny));
            if (value > gain) {
                gain = value;
                index = k;
            }
        }
        return {index, worst};
    }

    // v -= di K_i + dj K_j on the active samples.
    void update_active(const T* row_i, double di, const T* row_j, double dj) noexcept {
        for (const auto k : active_) v_[k] -= di * static_cast<double>(row_i[k]) + dj * static_cast<double>(row_j[k]);
    }

    // v -= di K_i + dj K_j, and pick_raise of the result.
    KW_NOINLINE Choice update_and_pick(const T* row_i, double di, const T* row_j, double dj) noexcept {
        if (!all_active()) {
            update_active(row_i, di, row_j, dj);
            return pick_raise();
        }
        return smo_loops::update_all<T>(v_, up_.data(), row_i, di, row_j, dj);
    }

    // j: the partner of i with the largest decrease of the objective (WSS 3 of Fan, Chen and Lin). The value is the
    // smallest derivative among the coefficients that can be lowered; best - value is the violation.
    [[nodiscard]] KW_NOINLINE Choice pick_lower(std::size_t i, double best) const noexcept {
        const T* row = rows_[i];
        const double own = diagonal_[i];
        if (all_active()) return smo_loops::score_all<T>(v_, down_.data(), diagonal_.data(), row, own, best);
        std::size_t partner = n_;
        double gain = 0.0, lowest = kInfinity;
        for (const auto k : active_) {
            const double value = v_[k] - down_[k];
            lowest = std::min(lowest, value);
            const double difference = best - value;
            if (!(difference > 0.0)) continue;
            const double sum = own + diagonal_[k];
            const double curvature =
                std::max(sum - 2.0 * static_cast<double>(row[k]), smo_loops::kLeastCurvature * sum);
            const double score = difference * (difference / std::max(curvature, smo_loops::kTiny));
            if (score > gain) {
                gain = score;
                partner = k;
            }
        }
        return {partner, lowest};
    }

    // Shrinking. Samples at a bound that cannot take part in any violating pair leave the active list. Their v is
    // brought up to date from the changes recorded since, when the active problem is solved.
    void shrink(double best, double lowest) {
        if (!all_active()) return;  // one level only: the record of changes starts with the shrinking
        std::vector<std::size_t> kept;
        for (const auto k : active_) {
            const bool raise_only = down_[k] == -kInfinity, lower_only = up_[k] == kInfinity;
            const double r = v_[k] - up_[k], l = v_[k] - down_[k];
            const bool idle = (raise_only && r < lowest) || (lower_only && l > best) || (raise_only && lower_only);
            if (!idle) kept.push_back(k);
        }
        // Indirect access is slower than a contiguous sweep, so the list must be at most half as long.
        if (2 * kept.size() > n_ || kept.size() < 2) return;
        at_shrink_ = beta_;
        changed_.assign(n_, false);
        active_ = std::move(kept);
    }

    void note_change(std::size_t i) {
        if (!all_active()) changed_[i] = true;
    }

    // Activates all samples; false if they already were.
    bool unshrink() {
        if (all_active()) return false;
        std::vector<bool> is_active(n_, false);
        for (const auto k : active_) is_active[k] = true;
        for (std::size_t i = 0; i < n_; ++i) {
            if (!changed_[i]) continue;
            const double change = beta_[i] - at_shrink_[i];
            if (change == 0.0) continue;
            const T* row = rows_[i];
            for (std::size_t k = 0; k < n_; ++k)
                if (!is_active[k]) v_[k] -= change * static_cast<double>(row[k]);
        }
        activate_all();
        return true;
    }

    SmoProblem problem_;
    std::size_t n_;
    std::vector<double> diagonal_;              // of K + diag d
    std::vector<const T*> rows_;                // null: not lent yet
    std::vector<double> beta_, v_, up_, down_;  // v = y - (K + diag d) beta
    std::vector<std::size_t> active_;
    std::vector<double> at_shrink_;  // beta when samples were shrunk
    std::vector<bool> changed_;      // since then
    std::size_t missing_ = 0;        // the row that the last run lacked
    double bias_ = 0.0, primal_ = 0.0, dual_ = 0.0;
    double violation_ = 0.0, target_violation_ = 0.0, enough_ = kInfinity;
    std::int64_t updates_ = 0;
};

}  // namespace kw
