// Pivoted Cholesky: the numerical rank of a kernel found by trying, one column of the Gram matrix at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vector_math.hpp"

namespace kw {

struct Factor {
    bool complete = false;             // the tolerance was met within max_rank
    std::vector<double> columns;       // rank x n, each factor column contiguous: K ~ columns' * columns
    std::vector<std::int64_t> pivots;  // rows whose kernel columns are reproduced exactly
    std::vector<double> residual;      // diagonal of what the factor leaves out, never negative
};

KW_CLONES static inline void subtract_scaled(double* out, const double* values, double scale, std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] -= scale * values[k];
}

KW_CLONES static inline void finish_column(double* column, double* residual, double inverse_root, std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) {
        column[k] *= inverse_root;
        const double left = residual[k] - column[k] * column[k];
        residual[k] = left > 0.0 ? left : 0.0;
    }
}

// column(i, out) writes K(:, i). Pivots are the largest remaining diagonals, ties to the lower row. Stops when
// the remaining trace is at most tol * trace of the centred kernel (a model with an intercept sees no more of a
// wide kernel than that), or when pivots are at rounding level (1e-14 of the first).
template <class Column>
Factor pivoted_cholesky(std::size_t n, const double* diagonal, double tol, std::size_t max_rank, Column&& column) {
    Factor factor;
    factor.residual.assign(diagonal, diagonal + n);
    auto& residual = factor.residual;
    double centred_trace = 0.0, first_pivot = 0.0;
    constexpr std::size_t tile = 1024;  // rows updated while they are in cache
    for (std::size_t rank = 0;; ++rank) {
        double left = 0.0;
        for (const double value : residual) left += value;
        const auto pivot = static_cast<std::size_t>(
            std::max_element(residual.begin(), residual.end()) - residual.begin());
        const double size = n > 0 ? residual[pivot] : 0.0;
        if (rank == 0) first_pivot = size;
        if (left <= tol * centred_trace || size <= 1e-14 * first_pivot) {
            factor.complete = true;
            return factor;
        }
        if (rank == max_rank) return factor;
        factor.columns.resize((rank + 1) * n);
        double* fresh = factor.columns.data() + rank * n;
        column(pivot, fresh);
        for (std::size_t start = 0; start < n; start += tile) {
            const std::size_t length = std::min(tile, n - start);
            for (std::size_t r = 0; r < rank; ++r) {
                const double* old = factor.columns.data() + r * n;
                subtract_scaled(fresh + start, old + start, old[pivot], length);
            }
        }
        // Earlier pivots are reproduced exactly: their entries in later columns are zero by definition.
        for (const auto earlier : factor.pivots) fresh[earlier] = 0.0;
        fresh[pivot] = size;
        finish_column(fresh, residual.data(), 1.0 / std::sqrt(size), n);
        for (const auto earlier : factor.pivots) residual[static_cast<std::size_t>(earlier)] = 0.0;
        residual[pivot] = 0.0;
        double sum = 0.0, squares = 0.0;
        for (std::size_t k = 0; k < n; ++k) sum += fresh[k], squares += fresh[k] * fresh[k];
        centred_trace += std::max(0.0, squares - sum * sum / static_cast<double>(n));
        factor.pivots.push_back(static_cast<std::int64_t>(pivot));
    }
}

// A column of exp(-rate * |x - x_i|^2); `features` holds each feature contiguous (d x n).
KW_CLONES static inline void gaussian_column(const double* features, std::size_t n, std::size_t d, double rate,
                                             std::size_t i, double* out) {
    for (std::size_t k = 0; k < n; ++k) out[k] = 0.0;
    for (std::size_t c = 0; c < d; ++c) {
        const double* feature = features + c * n;
        const double centre = feature[i];
#pragma omp simd
        for (std::size_t k = 0; k < n; ++k) {
            const double difference = feature[k] - centre;
            out[k] += difference * difference;
        }
    }
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] = exp_negative(-rate * out[k]);
}

}  // namespace kw
