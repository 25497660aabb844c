// Many rows of few features, row-major: products, and coordinate descent on the dual of a machine.
//
// Storage may be float; sums are always double, over panels of fixed size and in fixed order, so that results do not
// depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

constexpr std::size_t kFeaturePanel = 2048;  // rows

// out[i * n_outputs + t] = row i of Z times column t of W; W comes transposed, one output after the other.
template <class T>
void feature_times(const T* Z, std::size_t n, std::size_t rank, const double* W, std::size_t n_outputs, double* out) {
    parallel_for((n + kFeaturePanel - 1) / kFeaturePanel, [&](std::size_t panel) {
        const std::size_t stop = std::min(n, (panel + 1) * kFeaturePanel);
        for (std::size_t i = panel * kFeaturePanel; i < stop; ++i)
            for (std::size_t t = 0; t < n_outputs; ++t) out[i * n_outputs + t] = dot(Z + i * rank, W + t * rank, rank);
    });
}

// Four rows at a time, so that the sums are loaded and stored a quarter as often.
template <class T>
KW_CLONES static inline void add_four(double* out, const T* a, const T* b, const T* c, const T* d, const double* by,
                                      std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k)
        out[k] += (by[0] * static_cast<double>(a[k]) + by[1] * static_cast<double>(b[k])) +
                  (by[2] * static_cast<double>(c[k]) + by[3] * static_cast<double>(d[k]));
}

// out[t * rank + r] = sum_i V[i * n_outputs + t] Z[i, r]. Rows of zeros are skipped.
template <class T>
void feature_sums(const T* Z, std::size_t n, std::size_t rank, const double* V, std::size_t n_outputs, double* out) {
    const std::size_t n_panels = (n + kFeaturePanel - 1) / kFeaturePanel, size = rank * n_outputs;
    std::vector<double> parts(n_panels * size, 0.0);
    parallel_for(n_panels, [&](std::size_t panel) {
        const std::size_t first = panel * kFeaturePanel, stop = std::min(n, first + kFeaturePanel);
        std::vector<std::size_t> used;
        for (std::size_t t = 0; t < n_outputs; ++t) {
            double* sums = parts.data() + panel * size + t * rank;
            used.clear();
            for (std::size_t i = first; i < stop; ++i)
                if (V[i * n_outputs + t] != 0.0) used.push_back(i);
            std::size_t k = 0;
            for (; k + 4 <= used.size(); k += 4) {
                double by[4];
                for (std::size_t j = 0; j < 4; ++j) by[j] = V[used[k + j] * n_outputs + t];
                add_four(sums, Z + used[k] * rank, Z + used[k + 1] * rank, Z + used[k + 2] * rank, Z + used[k + 3] * rank,
                         by, rank);
            }
            for (; k < used.size(); ++k) add_scaled(sums, Z + used[k] * rank, V[used[k] * n_outputs + t], rank);
        }
    });
    std::fill(out, out + size, 0.0);
    for (std::size_t panel = 0; panel < n_panels; ++panel) add_scaled(out, parts.data() + panel * size, 1.0, size);
}

// The dual of one output: min 1/2 |D Z't|^2 - y't + e|t| + sum d t^2/2 with t in boxes, and the sum of t held near
// zero by a multiplier `bias` and a penalty `stiff` where there is an intercept.
struct BoxDual {
    const double* target;
    const double* lower;
    const double* upper;
    const double* ridge;
    double dead_zone;
    double stiff;  // zero: no intercept
};

template <class T>
KW_CLONES static inline double weighted_square(const T* z, const double* squares, std::size_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < n; ++k) {
        const double value = static_cast<double>(z[k]);
        sum += squares[k] * value * value;
    }
    return sum;
}

template <class T>
KW_CLONES static inline void add_weighted(double* out, const T* z, const double* squares, double scale, std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] += scale * squares[k] * static_cast<double>(z[k]);
}

// Epochs of coordinate descent over the rows of one block in an order that depends on `seed` only. `v` is
// D^2 Z't over all blocks, `total` the sum of all t; both are kept up to date. Returns the largest change of a
// coefficient in units of its box.
template <class T>
double descend_box(const T* Z, std::size_t n, std::size_t rank, const double* squares, const BoxDual& dual,
                   std::uint64_t seed, double bias, double* t, double* v, double& total) {
    std::vector<std::uint32_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull;
    for (std::size_t i = n; i > 1; --i) {  // xorshift is random enough for an order, and the same everywhere
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::swap(order[i - 1], order[state % i]);
    }
    double largest = 0.0;
    for (const std::uint32_t i : order) {
        const double low = dual.lower[i], high = dual.upper[i];
        if (!(high > low)) continue;
        const T* z = Z + static_cast<std::size_t>(i) * rank;
        const double curve = weighted_square(z, squares, rank) + dual.ridge[i] + dual.stiff;
        if (!(curve > 0.0)) continue;
        const double force = dual.target[i] - dot(z, v, rank) - dual.ridge[i] * t[i] - bias - dual.stiff * total;
        // The minimiser of the model along one coefficient, shrunk by the dead zone, clipped to the box.
        const double wanted = curve * t[i] + force;
        const double shrunk = std::copysign(std::max(std::abs(wanted) - dual.dead_zone, 0.0), wanted);
        const double next = std::clamp(shrunk / curve, low, high);
        const double step = next - t[i];
        if (step == 0.0) continue;
        t[i] = next;
        total += step;
        add_weighted(v, z, squares, step, rank);
        largest = std::max(largest, std::abs(step) / (high - low));
    }
    return largest;
}

}  // namespace kw
