// Products with a tall matrix of features, and coordinate descent on the dual problem in feature space.
//
// Storage may be float; sums are always double, over panels of fixed size and in fixed order, so that results do not
// depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

constexpr std::size_t kFeaturePanel = 2048;  // rows

// out = Z W, with W given transposed: one row per output.
template <class T>
void feature_times(Matrix<const T> Z, Matrix<const double> W, Matrix<double> out) {
    parallel_blocks(Z.rows, kFeaturePanel, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i)
            for (std::size_t t = 0; t < W.rows; ++t) out(i, t) = dot(Z.row(i), W.row(t));
    });
}

// out += by[0] a + by[1] b + by[2] c + by[3] d: four rows at a time, so that the sums are loaded and stored a quarter
// as often.
template <class T>
KW_CLONES static inline void add_four(std::span<double> out, const T* a, const T* b, const T* c, const T* d,
                                      const double* by) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k)
        out[k] += (by[0] * static_cast<double>(a[k]) + by[1] * static_cast<double>(b[k])) +
                  (by[2] * static_cast<double>(c[k]) + by[3] * static_cast<double>(d[k]));
}

// out = V' Z, one row per output. Rows of zeros are skipped.
template <class T>
void feature_sums(Matrix<const T> Z, Matrix<const double> V, Matrix<double> out) {
    std::vector<double> parts(n_blocks(Z.rows, kFeaturePanel) * out.size(), 0.0);
    parallel_blocks(Z.rows, kFeaturePanel, [&](std::size_t first, std::size_t last) {
        const Matrix<double> part{parts.data() + first / kFeaturePanel * out.size(), out.rows, out.columns};
        std::vector<std::size_t> used;
        for (std::size_t t = 0; t < V.columns; ++t) {
            const std::span<double> sums = part.row(t);
            used.clear();
            for (std::size_t i = first; i < last; ++i)
                if (V(i, t) != 0.0) used.push_back(i);
            std::size_t k = 0;
            for (; k + 4 <= used.size(); k += 4) {
                std::array<double, 4> by{};
                std::array<const T*, 4> rows{};
                for (std::size_t j = 0; j < 4; ++j) {
                    by[j] = V(used[k + j], t);
                    rows[j] = Z.row(used[k + j]).data();
                }
                add_four(sums, rows[0], rows[1], rows[2], rows[3], by.data());
            }
            for (; k < used.size(); ++k) add_scaled(sums, Z.row(used[k]), V(used[k], t));
        }
    });
    std::fill(out.entries().begin(), out.entries().end(), 0.0);
    for (std::size_t start = 0; start < parts.size(); start += out.size())
        add_scaled(out.entries(), std::span(parts).subspan(start, out.size()), 1.0);
}

// The dual of one output: min 1/2 |D Z't|^2 - y't + e|t| + sum d t^2/2 with t in boxes. With an intercept, an
// augmented Lagrangian holds the sum of t near zero: a multiplier `bias` and a penalty `stiff`.
struct BoxDual {
    std::span<const double> target, lower, upper, ridge;  // y, box, d
    double dead_zone = 0.0;                               // e
    double stiff = 0.0;                                   // zero: no intercept
};

template <class T>
[[nodiscard]] KW_CLONES static inline double weighted_square(std::span<const T> z,
                                                             std::span<const double> squares) noexcept {
    double sum = 0.0;
    KW_SIMD(reduction(+ : sum))
    for (std::size_t k = 0; k < z.size(); ++k) {
        const double value = static_cast<double>(z[k]);
        sum += squares[k] * value * value;
    }
    return sum;
}

template <class T>
KW_CLONES static inline void add_weighted(std::span<double> out, std::span<const T> z, std::span<const double> squares,
                                          double scale) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += scale * squares[k] * static_cast<double>(z[k]);
}

// A permutation of n rows that depends on the seed only.
[[nodiscard]] inline std::vector<std::uint32_t> shuffled_rows(std::size_t n, std::uint64_t seed) {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 0x2545F4914F6CDD1DULL;
    for (std::size_t i = n; i > 1; --i) {  // xorshift is random enough for an order, and the same everywhere
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::swap(order[i - 1], order[state % i]);
    }
    return order;
}

// One epoch of coordinate descent (Hsieh, Chang, Lin, Keerthi and Sundararajan 2008) over the rows of one block in an
// order that depends on `seed` only. `v` is D^2 Z't over all blocks with D^2 = diag(squares), `total` the sum of all
// t; both are kept up to date. Returns the largest change of a coefficient in units of its box.
template <class T>
[[nodiscard]] double descend_box(Matrix<const T> Z, std::span<const double> squares, const BoxDual& dual,
                                 std::uint64_t seed, double bias, std::span<double> t, std::span<double> v,
                                 double& total) {
    double largest = 0.0;
    for (const std::uint32_t i : shuffled_rows(Z.rows, seed)) {
        const double low = dual.lower[i], high = dual.upper[i];
        if (!(high > low)) continue;
        const std::span<const T> z = Z.row(i);
        const double curvature = weighted_square(z, squares) + dual.ridge[i] + dual.stiff;
        if (!(curvature > 0.0)) continue;
        const double force = dual.target[i] - dot(z, v) - dual.ridge[i] * t[i] - bias - dual.stiff * total;
        // The minimiser of the objective along one coefficient, soft-thresholded by e, clipped to the box.
        const double wanted = curvature * t[i] + force;
        const double shrunk = std::copysign(std::max(std::abs(wanted) - dual.dead_zone, 0.0), wanted);
        const double next = std::clamp(shrunk / curvature, low, high);
        const double step = next - t[i];
        if (step == 0.0) continue;
        t[i] = next;
        total += step;
        add_weighted(v, z, squares, step);
        largest = std::max(largest, std::abs(step) / (high - low));
    }
    return largest;
}

}  // namespace kw
