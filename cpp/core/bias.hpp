// The bias that minimises the total loss of given fitted values.
//
// The negative derivative of the total loss in the bias b is sum_i t_i(b), with t_i the maximiser of the conjugate
// (smo_problem.hpp). Each t_i falls from hi_i to lo_i as b grows: by a jump at a breakpoint, or linearly over a width
// where the loss is smooth. The best bias is where this non-increasing piecewise linear sum crosses zero; held samples
// (smo_problem.hpp) add the constant sum of their coefficients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "smo_problem.hpp"

namespace kw {

class BiasSearch {
   public:
    BiasSearch(const SmoProblem& problem, std::span<const double> fitted) noexcept
        : problem_(problem), fitted_(fitted) {}

    // The best bias, the middle of the interval when it is not unique. Sorting all breakpoints of a large sample
    // would dominate the run time, so a subsample gives a bracket first.
    [[nodiscard]] double find() const {
        constexpr std::size_t large = 8000, subsample = 2000;
        const std::size_t n = problem_.size();
        if (n < large) return walk(-kInfinity, kInfinity, 1);
        const std::size_t step = n / subsample;
        const double guess = walk(-kInfinity, kInfinity, step);
        if (!std::isfinite(guess)) return walk(-kInfinity, kInfinity, 1);
        double width = 0.0;
        for (std::size_t i = 0; i < n; i += step) width += std::abs(problem_.target[i] - fitted_[i] - guess);
        width *= 0.05 / static_cast<double>(subsample);
        double scale = 0.0;
        for (std::size_t i = 0; i < n; ++i) scale += problem_.upper[i] - problem_.lower[i];
        const double zero = kRounding * scale;
        // Double the bracket around the guess until the sum has opposite signs at its ends.
        double from = guess, to = guess;
        bool below = false, above = false;
        for (int doubling = 0; doubling < 12 && !(below && above); ++doubling, width *= 2.0) {
            if (!below) below = dual_sum(from = guess - width) > zero;
            if (!above) above = dual_sum(to = guess + width) < -zero;
        }
        if (below && above) return walk(from, to, 1);
        return walk(-kInfinity, kInfinity, 1);
    }

    // Newton steps from a bias found by the walk: its running sum has the rounding error of all t at their bounds,
    // which hides residuals that are far smaller than the width of a smooth loss.
    [[nodiscard]] double refine(double b) const noexcept {
        constexpr int max_steps = 3;
        constexpr double exact = 1e-14;
        for (int step = 0; step < max_steps; ++step) {
            double sum = problem_.held_sum, size = std::abs(sum), slope = 0.0, loss = problem_.held_loss(b);
            for (std::size_t i = 0; i < problem_.size(); ++i) {
                const double d = problem_.ridge[i], r = problem_.target[i] - fitted_[i] - b;
                const double slack = std::abs(r) - problem_.dead_zone;
                loss += problem_.loss(i, fitted_[i] + b);
                if (!(slack > 0.0)) continue;
                const double limit = r > 0.0 ? problem_.upper[i] : -problem_.lower[i];
                const double t = d > 0.0 ? std::min(slack / d, limit) : limit;
                sum += r > 0.0 ? t : -t;
                size += t;
                if (d > 0.0 && slack < d * limit) slope += 1.0 / d;
            }
            if (!(std::abs(sum) > exact * size) || !(slope > 0.0)) return b;
            const double next = b + sum / slope;
            if (!(problem_.total_loss(fitted_, next) < loss)) return b;
            b = next;
        }
        return b;
    }

   private:
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static constexpr double kRounding = 1e-13;  // a sum of t within this share of all boxes counts as zero

    // A place where the sum of t jumps, or where its slope changes.
    struct Breakpoint {
        double place, jump, slope;
    };

    // Calls piece(place, drop, d) for the two parts of each t_i: a fall by `drop` at `place`, or over the width
    // `d * drop` beyond it.
    template <class Piece>
    void each_piece(std::size_t step, Piece&& piece) const {
        for (std::size_t i = 0; i < problem_.size(); i += step) {
            const double r = problem_.target[i] - fitted_[i], e = problem_.dead_zone, d = problem_.ridge[i];
            const double hi = problem_.upper[i], lo = problem_.lower[i];
            if (hi > 0.0) piece(r - e - d * hi, hi, d);
            if (lo < 0.0) piece(r + e, -lo, d);
        }
    }

    // sum_i t_i(b).
    [[nodiscard]] double dual_sum(double b) const {
        double sum = problem_.held_sum;
        for (std::size_t i = 0; i < problem_.size(); ++i) sum += problem_.lower[i];
        each_piece(1, [&](double place, double drop, double d) {
            if (b <= place) sum += drop;
            else if (place + d * drop > b) sum += drop - (b - place) / d;
        });
        return sum;
    }

    // The zero of the sum between `from` and `to`, over every step-th sample, by walking the sorted breakpoints that
    // lie there; the middle where it is an interval.
    [[nodiscard]] double walk(double from, double to, std::size_t step) const {
        std::vector<Breakpoint> breakpoints;
        double sum = problem_.held_sum / static_cast<double>(step), slope = 0.0, scale = 0.0;  // at `from`
        int open = 0;  // linear pieces that have begun and not ended; the slope is exactly zero when there are none
        for (std::size_t i = 0; i < problem_.size(); i += step) {
            sum += problem_.lower[i];
            scale += problem_.upper[i] - problem_.lower[i];
        }
        each_piece(step, [&](double place, double drop, double d) {
            const double end = place + d * drop;
            if (place >= from) sum += drop;
            if (end > place) {  // else the width is lost in rounding, or there is none
                if (place < from && end > from) {
                    sum += drop - (from - place) / d;
                    slope -= 1.0 / d;
                    ++open;
                } else if (place >= from && place <= to) {
                    breakpoints.push_back({place, 0.0, -1.0 / d});
                }
                if (end > from && end <= to) breakpoints.push_back({end, 0.0, 1.0 / d});
            } else if (place >= from && place <= to) {
                breakpoints.push_back({place, -drop, 0.0});
            }
        });
        if (breakpoints.empty()) {
            if (slope < 0.0) return from - sum / slope;
            return std::isfinite(from) ? from : 0.0;
        }
        std::sort(breakpoints.begin(), breakpoints.end(),
                  [](const Breakpoint& a, const Breakpoint& b) { return a.place < b.place; });
        const double zero = kRounding * scale;
        double at = std::isfinite(from) ? from : breakpoints.front().place;
        if (sum <= zero && !std::isfinite(from)) return at;  // no hi > 0: every b up to the first breakpoint is best
        for (std::size_t k = 0; k < breakpoints.size();) {
            const double place = breakpoints[k].place;
            const double before = sum + slope * (place - at);
            if (before < -zero) return at - sum / slope;  // the zero lies on the linear piece
            sum = before;
            at = place;
            do {  // at least one, so that a NaN cannot stop the walk
                sum += breakpoints[k].jump;
                slope += breakpoints[k].slope;
                if (breakpoints[k].slope < 0.0) ++open;
                if (breakpoints[k].slope > 0.0) --open;
                ++k;
            } while (k < breakpoints.size() && breakpoints[k].place == place);
            if (open == 0) slope = 0.0;
            if (sum < -zero) return at;  // the zero lies in the jump
            if (sum <= zero) return k < breakpoints.size() && slope == 0.0 ? 0.5 * (at + breakpoints[k].place) : at;
        }
        return slope < 0.0 ? std::min(at - sum / slope, to) : at;
    }

    const SmoProblem& problem_;
    std::span<const double> fitted_;
};

// The bias that minimises the total loss of `fitted + b`.
[[nodiscard]] inline double best_bias(const SmoProblem& problem, std::span<const double> fitted) {
    const BiasSearch search(problem, fitted);
    const double bias = search.find();
    const bool smooth = std::any_of(problem.ridge.begin(), problem.ridge.end(), [](double d) { return d > 0.0; });
    return smooth ? search.refine(bias) : bias;
}

}  // namespace kw
