// Euclidean projections onto the sets of kernel weights and dual variables.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace kw {

// Nearest point of {x >= 0, sum x = radius}: max(x - shift, 0), the shift found by sorting
// (Duchi, Shalev-Shwartz, Singer, Chandra 2008, Figure 1).
inline void project_simplex(std::span<const double> x, double radius, std::span<double> out) {
    std::vector<double> sorted(x.begin(), x.end());
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double sum = 0.0, shift = 0.0;
    for (std::size_t k = 0; k < x.size(); ++k) {
        sum += sorted[k];
        const double candidate = (sum - radius) / static_cast<double>(k + 1);
        if (sorted[k] <= candidate) break;
        shift = candidate;
    }
    for (std::size_t k = 0; k < x.size(); ++k) out[k] = std::max(0.0, x[k] - shift);
}

// Nearest point of {|x_i| <= upper_i, sum |x_i| <= cap}; signs are kept, so non-negative input stays so.
inline void project_capped_box(std::span<const double> x, std::span<const double> upper, double cap,
                               std::span<double> out) {
    const std::size_t n = x.size();
    // Optimality: |x_i| less one shift, the multiplier of the cap, clipped to the box.
    const auto clipped = [&](std::size_t i, double shift) { return std::clamp(std::abs(x[i]) - shift, 0.0, upper[i]); };
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) total += clipped(i, 0.0);
    double shift = 0.0;
    if (total > cap) {
        // The total falls piecewise linearly in the shift: walk its breakpoints from the left.
        std::vector<std::pair<double, double>> events;  // (shift, change of slope)
        double slope = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double size = std::abs(x[i]);
            if (size <= 0.0 || upper[i] <= 0.0) continue;
            const double begins = size - upper[i];
            if (begins > 0.0) events.emplace_back(begins, -1.0);
            else slope -= 1.0;
            events.emplace_back(size, 1.0);
        }
        std::sort(events.begin(), events.end());
        double at = 0.0;
        shift = events.empty() ? 0.0 : events.back().first;
        for (const auto& [place, change] : events) {
            const double next = total + slope * (place - at);
            if (next <= cap) {
                shift = slope < 0.0 ? at + (cap - total) / slope : place;
                break;
            }
            total = next;
            at = place;
            slope += change;
        }
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = std::copysign(clipped(i, shift), x[i]);
}

// The lp norm, scaled by the largest entry so that neither huge nor tiny ones overflow.
[[nodiscard]] inline double lp_norm(std::span<const double> values, double p) noexcept {
    double top = 0.0, sum = 0.0;
    for (const double value : values) top = std::max(top, std::abs(value));
    if (top == 0.0) return 0.0;
    for (const double value : values) sum += std::pow(std::abs(value) / top, p);
    return top * std::pow(sum, 1.0 / p);
}

// The root u of u + multiplier * u^(p-1) = size, p > 1, by Newton steps inside a bracket.
[[nodiscard]] inline double shrink_to_lp(double size, double multiplier, double p) noexcept {
    double low = 0.0, high = size;
    // Both are upper bounds of the root; Newton from far above is slow when p is large.
    double u = std::min(size, std::pow(size / multiplier, 1.0 / (p - 1.0)));
    for (int step = 0; step < 100; ++step) {
        const double value = u + multiplier * std::pow(u, p - 1.0) - size;
        (value > 0.0 ? high : low) = u;
        const double slope = 1.0 + multiplier * (p - 1.0) * std::pow(u, p - 2.0);
        double next = u - value / slope;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (std::abs(next - u) <= 1e-16 * size) break;
        u = next;
    }
    return u;
}

// Nearest point of {sum |x_i|^p <= radius^p}, p >= 1.
inline void project_lp_ball(std::span<const double> x, double p, double radius, std::span<double> out) {
    if (lp_norm(x, p) <= radius) {
        std::copy(x.begin(), x.end(), out.begin());
        return;
    }
    if (radius <= 0.0) {
        std::fill(out.begin(), out.end(), 0.0);
        return;
    }
    if (p == 1.0) {  // soft thresholding
        const std::vector<double> unbounded(x.size(), std::numeric_limits<double>::infinity());
        project_capped_box(x, unbounded, radius, out);
        return;
    }
    // Optimality in units of the radius: |x_i| = u_i + multiplier * u_i^(p-1); the norm of u falls in the multiplier.
    const auto apply = [&](double multiplier) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double size = std::abs(x[i]) / radius;
            out[i] = std::copysign(size > 0.0 ? radius * shrink_to_lp(size, multiplier, p) : 0.0, x[i]);
        }
        return lp_norm(out, p);
    };
    double low = 0.0, high = 1.0;
    while (apply(high) > radius && high < 1e300) {
        low = high;
        high *= 4.0;
    }
    for (int step = 0; step < 200 && high - low > 1e-16 * high; ++step) {
        const double middle = 0.5 * (low + high);
        (apply(middle) > radius ? low : high) = middle;
    }
    apply(high);
}

}  // namespace kw
