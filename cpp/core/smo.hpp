// Sequential minimal optimisation for every loss of the library on one Gram matrix.
//
//   min over beta   1/2 beta'(K + diag d) beta - y'beta + e |beta|_1,   lo <= beta <= hi,   sum beta = 0
//
// (the last only with an intercept). The loss that belongs to it is the conjugate
// loss_i(f) = max over t in [lo_i, hi_i] of t (y_i - f) - e |t| - d_i t^2 / 2: hinge, epsilon-insensitive and
// Huber differ only in (y, lo, hi, d, e), so primal value, best bias and gap need no case distinction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "vector_math.hpp"

namespace kw {

struct SmoProblem {
    std::vector<double> target, lower, upper, ridge;  // y, lo <= 0 <= hi, d
    double dead_zone = 0.0;                           // e
    bool intercept = true;

    std::size_t size() const { return target.size(); }

    double loss(std::size_t i, double fitted) const {
        const double r = target[i] - fitted;
        const double slack = std::abs(r) - dead_zone;
        if (slack <= 0.0) return 0.0;
        const double limit = r > 0.0 ? upper[i] : -lower[i];
        const double t = ridge[i] > 0.0 ? std::min(slack / ridge[i], limit) : limit;
        return t * slack - 0.5 * ridge[i] * t * t;
    }
};

// A row pulls the bias up by its upper bound where the bias is low, and down by its lower bound where it is high; each
// falls off at a kink, or over a width where the loss is rounded. The bias that minimises the loss is where the total,
// a non-increasing piecewise linear function, crosses zero.
struct BiasKinks {
    struct Kink {
        double place, jump, slope;
    };
    const SmoProblem& problem;
    const double* fitted;

    // Calls piece(place, drop, d): a pull that falls by `drop` at `place`, or over the `d * drop` beyond it.
    template <class Piece>
    void each_piece(std::size_t first, std::size_t step, Piece&& piece) const {
        for (std::size_t i = first; i < problem.size(); i += step) {
            const double r = problem.target[i] - fitted[i], e = problem.dead_zone, d = problem.ridge[i];
            const double hi = problem.upper[i], lo = problem.lower[i];
            if (hi > 0.0) piece(r - e - d * hi, hi, d);
            if (lo < 0.0) piece(r + e, -lo, d);
        }
    }

    double pull_at(double b) const {
        double pull = 0.0;
        for (std::size_t i = 0; i < problem.size(); ++i) pull += problem.lower[i];
        each_piece(0, 1, [&](double place, double drop, double d) {
            if (b <= place) pull += drop;
            else if (place + d * drop > b) pull += drop - (b - place) / d;
        });
        return pull;
    }

    // Newton steps from a bias that a walk has found: its sums have the rounding error of all pulls at their bounds,
    // which hides residuals that are far smaller than the width of a smooth loss.
    double refine(double b) const {
        constexpr int steps = 3;
        constexpr double exact = 1e-14;
        for (int step = 0; step < steps; ++step) {
            double pull = 0.0, size = 0.0, slope = 0.0, here = 0.0;
            for (std::size_t i = 0; i < problem.size(); ++i) {
                const double d = problem.ridge[i], r = problem.target[i] - fitted[i] - b;
                const double slack = std::abs(r) - problem.dead_zone;
                here += problem.loss(i, fitted[i] + b);
                if (!(slack > 0.0)) continue;
                const double limit = r > 0.0 ? problem.upper[i] : -problem.lower[i];
                const double t = d > 0.0 ? std::min(slack / d, limit) : limit;
                pull += r > 0.0 ? t : -t;
                size += t;
                if (d > 0.0 && slack < d * limit) slope += 1.0 / d;
            }
            if (!(std::abs(pull) > exact * size) || !(slope > 0.0)) return b;
            const double next = b + pull / slope;
            double there = 0.0;
            for (std::size_t i = 0; i < problem.size(); ++i) there += problem.loss(i, fitted[i] + next);
            if (!(there < here)) return b;
            b = next;
        }
        return b;
    }

    // The zero between `from` and `to`, by walking the kinks that lie there; the middle where it is an interval.
    double walk(double from, double to, std::size_t step) const {
        std::vector<Kink> kinks;
        double pull = 0.0, slope = 0.0, scale = 0.0;
        int open = 0;  // linear pieces under way; the slope is exactly zero when there are none
        for (std::size_t i = 0; i < problem.size(); i += step) {
            pull += problem.lower[i];
            scale += problem.upper[i] - problem.lower[i];
        }
        each_piece(0, step, [&](double place, double drop, double d) {
            const double end = place + d * drop;
            if (place >= from) pull += drop;
            if (end > place) {  // else the width is lost in rounding, or there is none
                if (place < from && end > from) {
                    pull += drop - (from - place) / d;
                    slope -= 1.0 / d;
                    ++open;
                } else if (place >= from && place <= to) {
                    kinks.push_back({place, 0.0, -1.0 / d});
                }
                if (end > from && end <= to) kinks.push_back({end, 0.0, 1.0 / d});
            } else if (place >= from && place <= to) {
                kinks.push_back({place, -drop, 0.0});
            }
        });
        if (kinks.empty()) return slope < 0.0 ? from - pull / slope : std::isfinite(from) ? from : 0.0;
        std::sort(kinks.begin(), kinks.end(), [](const Kink& a, const Kink& b) { return a.place < b.place; });
        const double zero = 1e-13 * scale;
        double at = std::isfinite(from) ? from : kinks.front().place;
        if (pull <= zero && !std::isfinite(from)) return at;  // nothing pulls up: every b below the first kink is best
        for (std::size_t k = 0; k < kinks.size();) {
            const double place = kinks[k].place;
            const double before = pull + slope * (place - at);
            if (before < -zero) return at - pull / slope;
            pull = before;
            at = place;
            do {  // at least one, so that a NaN cannot hold up the walk
                pull += kinks[k].jump;
                slope += kinks[k].slope;
                open += kinks[k].slope < 0.0 ? 1 : kinks[k].slope > 0.0 ? -1 : 0;
            } while (++k < kinks.size() && kinks[k].place == place);
            if (open == 0) slope = 0.0;
            if (pull < -zero) return at;
            if (pull <= zero) return k < kinks.size() && slope == 0.0 ? 0.5 * (at + kinks[k].place) : at;
        }
        return slope < 0.0 ? std::min(at - pull / slope, to) : at;
    }
};

// The bias that minimises the total loss of `fitted + b`, the middle of the interval when it is not unique. Sorting
// all kinks of many rows would take longer than anything else here, so a sample of rows says where to look.
inline double find_bias(const SmoProblem& problem, const double* fitted) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::size_t many = 8000, sample = 2000;
    const BiasKinks kinks{problem, fitted};
    const std::size_t n = problem.size();
    if (n < many) return kinks.walk(-infinity, infinity, 1);
    const double guess = kinks.walk(-infinity, infinity, n / sample);
    if (!std::isfinite(guess)) return kinks.walk(-infinity, infinity, 1);
    double width = 0.0;
    for (std::size_t i = 0; i < n; i += n / sample) width += std::abs(problem.target[i] - fitted[i] - guess);
    width *= 0.05 / static_cast<double>(sample);
    double scale = 0.0;
    for (std::size_t i = 0; i < n; ++i) scale += problem.upper[i] - problem.lower[i];
    const double zero = 1e-13 * scale;
    double from = guess, to = guess;
    bool below = false, above = false;
    for (int doubling = 0; doubling < 12 && !(below && above); ++doubling, width *= 2.0) {
        if (!below) below = kinks.pull_at(from = guess - width) > zero;
        if (!above) above = kinks.pull_at(to = guess + width) < -zero;
    }
    if (below && above) return kinks.walk(from, to, 1);
    return kinks.walk(-infinity, infinity, 1);
}

inline double best_bias(const SmoProblem& problem, const double* fitted) {
    const double bias = find_bias(problem, fitted);
    const bool smooth = std::any_of(problem.ridge.begin(), problem.ridge.end(), [](double d) { return d > 0.0; });
    return smooth ? BiasKinks{problem, fitted}.refine(bias) : bias;
}

namespace smo_loops {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// v -= di K_i + dj K_j; returns the largest of v - up.
template <class T>
KW_INLINE double update(double* v, const double* up, const T* row_i, double di, const T* row_j, double dj,
                        std::size_t n) {
    double best = -kInfinity;
#pragma omp simd reduction(max : best)
    for (std::size_t k = 0; k < n; ++k) {
        v[k] -= di * static_cast<double>(row_i[k]) + dj * static_cast<double>(row_j[k]);
        const double value = v[k] - up[k];
        best = value > best ? value : best;
    }
    return best;
}

// scores: decrease of the objective for each partner; returns the largest, and the smallest lowering value.
template <class T>
KW_INLINE double score(const double* v, const double* down, const double* diagonal, const T* row, double own,
                       double best, std::size_t n, double* scores, double& lowest) {
    double highest = 0.0, low = kInfinity;
#pragma omp simd reduction(max : highest) reduction(min : low)
    for (std::size_t k = 0; k < n; ++k) {
        const double value = v[k] - down[k];
        low = value < low ? value : low;
        const double difference = best - value > 0.0 ? best - value : 0.0;
        const double sum = own + diagonal[k];
        const double raw = sum - 2.0 * static_cast<double>(row[k]);
        const double floored = raw > 1e-12 * sum ? raw : 1e-12 * sum;
        const double curvature = floored > 1e-300 ? floored : 1e-300;
        const double value_score = difference * (difference / curvature);
        scores[k] = value_score;
        highest = value_score > highest ? value_score : highest;
    }
    lowest = low;
    return highest;
}

// Function multiversioning wants plain functions, hence one overload per storage type.
KW_CLONES static inline double update_block(double* v, const double* up, const double* row_i, double di,
                                            const double* row_j, double dj, std::size_t n) {
    return update(v, up, row_i, di, row_j, dj, n);
}
KW_CLONES static inline double update_block(double* v, const double* up, const float* row_i, double di,
                                            const float* row_j, double dj, std::size_t n) {
    return update(v, up, row_i, di, row_j, dj, n);
}
KW_CLONES static inline double score_block(const double* v, const double* down, const double* diagonal,
                                           const double* row, double own, double best, std::size_t n,
                                           double* scores, double& lowest) {
    return score(v, down, diagonal, row, own, best, n, scores, lowest);
}
KW_CLONES static inline double score_block(const double* v, const double* down, const double* diagonal,
                                           const float* row, double own, double best, std::size_t n,
                                           double* scores, double& lowest) {
    return score(v, down, diagonal, row, own, best, n, scores, lowest);
}

}  // namespace smo_loops

enum class SmoStatus { converged, paused, needs_rows, stalled };

// One problem being solved. Rows of K are lent by the caller, all at once or when `wanted` asks for them.
template <class T>
class Smo {
   public:
    Smo(SmoProblem problem, const double* diagonal)
        : problem_(std::move(problem)),
          n_(problem_.size()),
          diagonal_(diagonal, diagonal + n_),
          rows_(n_, nullptr),
          beta_(n_, 0.0),
          v_(problem_.target),
          up_(n_),
          down_(n_),
          active_(n_) {
        for (std::size_t i = 0; i < n_; ++i) diagonal_[i] += problem_.ridge[i];
        std::iota(active_.begin(), active_.end(), std::size_t{0});
        for (std::size_t i = 0; i < n_; ++i) refresh(i);
    }

    // Starts from a feasible beta with fitted = K beta.
    void start(const double* beta, const double* fitted) {
        std::copy(beta, beta + n_, beta_.begin());
        active_.resize(n_);
        std::iota(active_.begin(), active_.end(), std::size_t{0});
        for (std::size_t i = 0; i < n_; ++i) {
            v_[i] = problem_.target[i] - fitted[i] - problem_.ridge[i] * beta_[i];
            refresh(i);
        }
    }

    void lend(std::size_t i, const T* row) { rows_[i] = row; }
    bool has(std::size_t i) const { return rows_[i] != nullptr; }

    // Runs until the duality gap is at most max(tol * primal, floor), at most max_updates pair updates. A dual
    // value of `enough` ends it too: the caller then knows what it wanted to know.
    SmoStatus run(double tol, double floor, std::int64_t max_updates, double enough) {
        std::int64_t left = max_updates;
        enough_ = enough;
        if (target_violation_ <= 0.0) {
            evaluate();
            if (gap() <= allowed(tol, floor)) return SmoStatus::converged;
            if (!std::isfinite(gap())) return SmoStatus::stalled;
            target_violation_ = 2.0 * allowed(tol, floor) / std::max(absolute_sum(), 1e-300);
            if (absolute_sum() == 0.0) target_violation_ = 1.0;
        }
        while (true) {
            const SmoStatus status = problem_.intercept ? pair_steps(left) : single_steps(left);
            if (status == SmoStatus::needs_rows) return status;
            if (dual_ >= enough_) {
                unshrink();
                evaluate();
                return SmoStatus::converged;
            }
            if (status == SmoStatus::paused) {
                unshrink();
                evaluate();
                if (gap() <= allowed(tol, floor)) return SmoStatus::converged;
                return status;
            }
            if (unshrink()) continue;  // optimal on the active rows only
            evaluate();
            if (!std::isfinite(gap())) return SmoStatus::stalled;  // rows that are not numbers
            const double wanted_gap = allowed(tol, floor);
            if (gap() <= wanted_gap) return SmoStatus::converged;
            if (violation_ <= 1e-14 * violation_scale()) return SmoStatus::stalled;
            target_violation_ = std::min(target_violation_, violation_) *
                                std::clamp(0.8 * wanted_gap / gap(), 0.1, 0.5);
        }
    }

    // Rows that the next updates want: the missing one first, then the most violating ones.
    std::vector<std::int64_t> wanted(std::size_t how_many) const {
        std::vector<std::pair<double, std::int64_t>> order;
        double top = -kInfinity, bottom = kInfinity;
        for (const auto i : active_) {
            top = std::max(top, v_[i] - up_[i]);
            bottom = std::min(bottom, v_[i] - down_[i]);
        }
        for (const auto i : active_) {
            if (rows_[i]) continue;
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

    const std::vector<double>& beta() const { return beta_; }
    std::vector<double> fitted() const {
        std::vector<double> f(n_);
        for (std::size_t i = 0; i < n_; ++i) f[i] = fitted_at(i);
        return f;
    }
    double bias() const { return bias_; }
    double primal() const { return primal_; }
    double dual() const { return dual_; }
    std::int64_t updates() const { return updates_; }

   private:
    static constexpr double kInfinity = smo_loops::kInfinity;
    static constexpr std::size_t kBlock = 256;

    double gap() const { return primal_ - dual_; }
    double allowed(double tol, double floor) const { return std::max(tol * std::abs(primal_), floor); }
    double fitted_at(std::size_t i) const { return problem_.target[i] - v_[i] - problem_.ridge[i] * beta_[i]; }
    double absolute_sum() const {
        double sum = 0.0;
        for (const double b : beta_) sum += std::abs(b);
        return sum;
    }
    double violation_scale() const {
        double top = 0.0;
        for (std::size_t i = 0; i < n_; ++i) top = std::max({top, std::abs(v_[i]), std::abs(problem_.target[i])});
        return top;
    }

    // up_: what is taken from v for a raise, +inf when none is possible; down_ likewise for a lowering.
    void refresh(std::size_t i) {
        const double e = problem_.dead_zone, b = beta_[i];
        up_[i] = b < problem_.upper[i] ? (b >= 0.0 ? e : -e) : kInfinity;
        down_[i] = b > problem_.lower[i] ? (b > 0.0 ? e : -e) : -kInfinity;
    }

    void evaluate() {
        std::vector<double> f = fitted();
        bias_ = problem_.intercept ? best_bias(problem_, f.data()) : 0.0;
        double quadratic = 0.0, linear = 0.0, losses = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            quadratic += beta_[i] * f[i];
            linear += problem_.target[i] * beta_[i] - problem_.dead_zone * std::abs(beta_[i]) -
                      0.5 * problem_.ridge[i] * beta_[i] * beta_[i];
            losses += problem_.loss(i, f[i] + bias_);
        }
        quadratic = std::max(quadratic, 0.0);
        primal_ = 0.5 * quadratic + losses;
        dual_ = linear - 0.5 * quadratic;
    }

    void move(std::size_t i, double step) {
        const double b = beta_[i];
        double next = b + step;
        const double limit = step > 0.0 ? problem_.upper[i] : problem_.lower[i];
        // Land exactly on a bound or on the kink at zero, never beside it.
        if ((step > 0.0 && next >= limit) || (step < 0.0 && next <= limit)) next = limit;
        const bool crosses = (b > 0.0 && next < 0.0) || (b < 0.0 && next > 0.0);
        if (problem_.dead_zone > 0.0 && crosses) next = 0.0;  // steps end at the kink, but for rounding
        if (std::abs(next) <= 1e-15 * std::abs(b)) next = 0.0;
        if (std::abs(next - limit) <= 1e-15 * std::abs(limit)) next = limit;
        beta_[i] = next;
    }

    double room_up(std::size_t i) const {
        const double b = beta_[i];
        return problem_.dead_zone > 0.0 && b < 0.0 ? -b : problem_.upper[i] - b;
    }
    double room_down(std::size_t i) const {
        const double b = beta_[i];
        return problem_.dead_zone > 0.0 && b > 0.0 ? b : b - problem_.lower[i];
    }

    bool all_active() const { return active_.size() == n_; }

    SmoStatus pair_steps(std::int64_t& left) {
        std::int64_t until_shrink = shrink_period();
        std::size_t i = n_;
        double best = pick_raise(i);
        while (true) {
            if (i == n_) {
                violation_ = 0.0;
                return SmoStatus::converged;
            }
            if (!rows_[i]) return lack(i);
            std::size_t j = n_;
            double lowest = kInfinity;
            pick_lower(i, best, j, lowest);
            if (j == n_) {
                violation_ = 0.0;  // no pair gains anything that the arithmetic can see
                return SmoStatus::converged;
            }
            violation_ = std::max(0.0, best - lowest);
            if (violation_ <= target_violation_) return SmoStatus::converged;
            if (!rows_[j]) return lack(j);
            if (left-- <= 0 || dual_ >= enough_) return SmoStatus::paused;
            if (--until_shrink <= 0) {
                shrink(best, lowest);
                until_shrink = shrink_period();
            }
            const double difference = best - (v_[j] - down_[j]);
            const double kij = static_cast<double>(rows_[i][j]);
            const double sum = diagonal_[i] + diagonal_[j];
            const double curvature = std::max(sum - 2.0 * kij, 1e-12 * sum);
            double step = curvature > 0.0 ? difference / curvature : kInfinity;
            step = std::min({step, room_up(i), room_down(j)});
            const double before_i = beta_[i], before_j = beta_[j];
            move(i, step);
            move(j, -step);
            const double di = beta_[i] - before_i, dj = beta_[j] - before_j;
            if (di == 0.0 && dj == 0.0) {
                violation_ = 0.0;  // below the resolution of the arithmetic
                return SmoStatus::converged;
            }
            ++updates_;
            dual_ += di * (difference - 0.5 * di * (sum - 2.0 * kij));
            v_[i] -= problem_.ridge[i] * di;
            v_[j] -= problem_.ridge[j] * dj;
            refresh(i);
            refresh(j);
            note_change(i);
            note_change(j);
            best = update_and_pick(rows_[i], di, rows_[j], dj, i);
        }
    }

    SmoStatus single_steps(std::int64_t& left) {
        std::int64_t until_shrink = shrink_period();
        while (true) {
            std::size_t i = n_;
            double gain = 0.0, worst = 0.0;
            for (const auto k : active_) {
                const double raise = v_[k] - up_[k], lower = down_[k] - v_[k];
                const double force = std::max(raise, lower);
                if (force <= 0.0) continue;
                worst = std::max(worst, force);
                const double value = force * (force / std::max(diagonal_[k], 1e-300));
                if (value > gain) gain = value, i = k;
            }
            violation_ = i == n_ ? 0.0 : worst;
            if (violation_ <= target_violation_) return SmoStatus::converged;
            if (!rows_[i]) return lack(i);
            if (left-- <= 0) return SmoStatus::paused;
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
                return SmoStatus::converged;
            }
            ++updates_;
            v_[i] -= problem_.ridge[i] * change;
            refresh(i);
            note_change(i);
            std::size_t ignored = n_;
            update_and_pick(rows_[i], change, rows_[i], 0.0, ignored);
        }
    }

    SmoStatus lack(std::size_t i) {
        missing_ = i;
        return SmoStatus::needs_rows;
    }

    std::int64_t shrink_period() const { return static_cast<std::int64_t>(std::max<std::size_t>(n_ / 2, 500)); }

    // Loops below run over all rows when nothing is shrunk (contiguous, vectorised) and over the list otherwise.

    double pick_raise(std::size_t& i) const {
        double best = -kInfinity;
        i = n_;
        for (const auto k : active_) {
            const double value = v_[k] - up_[k];
            if (value > best) best = value, i = k;
        }
        return best;
    }

    // v -= di K_i + dj K_j, and the largest raising value of the result.
    double update_and_pick(const T* row_i, double di, const T* row_j, double dj, std::size_t& i) {
        if (!all_active()) {
            for (const auto k : active_)
                v_[k] -= di * static_cast<double>(row_i[k]) + dj * static_cast<double>(row_j[k]);
            return pick_raise(i);
        }
        double best = -kInfinity;
        i = n_;
        for (std::size_t start = 0; start < n_; start += kBlock) {
            const std::size_t length = std::min(kBlock, n_ - start);
            const double top = smo_loops::update_block(v_.data() + start, up_.data() + start, row_i + start, di,
                                            row_j + start, dj, length);
            if (top > best) {
                best = top;
                for (std::size_t k = start; k < start + length; ++k)
                    if (v_[k] - up_[k] == top) {
                        i = k;
                        break;
                    }
            }
        }
        return best;
    }

    // Second-order choice of the partner: the largest decrease of the objective. `lowest` is the smallest
    // lowering value, which measures how far from optimal the pair (i, anything) is.
    void pick_lower(std::size_t i, double best, std::size_t& j, double& lowest) const {
        const T* row = rows_[i];
        const double own = diagonal_[i];
        double gain = 0.0;
        j = n_;
        if (!all_active()) {
            for (const auto k : active_) {
                const double value = v_[k] - down_[k];
                lowest = std::min(lowest, value);
                const double difference = best - value;
                if (!(difference > 0.0)) continue;
                const double sum = own + diagonal_[k];
                const double curvature = std::max(sum - 2.0 * static_cast<double>(row[k]), 1e-12 * sum);
                const double score = difference * (difference / std::max(curvature, 1e-300));
                if (score > gain) gain = score, j = k;
            }
            return;
        }
        double scores[kBlock];
        for (std::size_t start = 0; start < n_; start += kBlock) {
            const std::size_t length = std::min(kBlock, n_ - start);
            double low = kInfinity;
            const double top =
                smo_loops::score_block(v_.data() + start, down_.data() + start, diagonal_.data() + start,
                                       row + start, own, best, length, scores, low);
            lowest = std::min(lowest, low);
            if (top > gain) {
                gain = top;
                for (std::size_t k = 0; k < length; ++k)
                    if (scores[k] == top) {
                        j = start + k;
                        break;
                    }
            }
        }
    }

    // Shrinking. Rows at a bound that cannot take part in any violating pair leave the active list; their v is
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
        // Indirect access is slower than a contiguous sweep, so only a real reduction is worth it.
        if (2 * kept.size() > n_ || kept.size() < 2) return;
        at_shrink_ = beta_;
        changed_.assign(n_, false);
        active_ = std::move(kept);
    }

    void note_change(std::size_t i) {
        if (!all_active()) changed_[i] = true;
    }

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
        active_.resize(n_);
        std::iota(active_.begin(), active_.end(), std::size_t{0});
        return true;
    }

    SmoProblem problem_;
    std::size_t n_;
    std::vector<double> diagonal_;
    std::vector<const T*> rows_;
    std::vector<double> beta_, v_, up_, down_;  // v = y - K beta - d beta
    std::vector<std::size_t> active_;
    std::vector<double> at_shrink_;
    std::vector<bool> changed_;
    std::size_t missing_ = 0;
    double bias_ = 0.0, primal_ = 0.0, dual_ = 0.0;
    double violation_ = 0.0, target_violation_ = 0.0, enough_ = kInfinity;
    std::int64_t updates_ = 0;
};

}  // namespace kw
