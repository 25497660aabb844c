// Pivoted Cholesky factors of a Gram matrix, one column at a time, up to its numerical rank.
//
// Each step takes the row with the largest residual diagonal as the pivot and subtracts a rank-one term; the trace of
// the residual bounds the error of the factor (Fine and Scheinberg 2001; Harbrecht, Peters and Schneider 2012).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix.hpp"
#include "vector_math.hpp"

namespace kw {

struct Factor {
    bool complete = false;             // the tolerance was met within max_rank
    std::vector<double> columns;       // rank x n, each factor column contiguous: K ~ columns' * columns
    std::vector<std::int64_t> pivots;  // rows whose kernel columns are reproduced exactly
    std::vector<double> residual;      // diagonal of K - columns' * columns, never negative
};

KW_CLONES static inline void subtract_scaled(std::span<double> out, std::span<const double> values,
                                             double scale) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] -= scale * values[k];
}

// column *= inverse_root; residual -= column^2, cut at zero.
KW_CLONES static inline void finish_column(std::span<double> column, std::span<double> residual,
                                           double inverse_root) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < column.size(); ++k) {
        column[k] *= inverse_root;
        const double left = residual[k] - column[k] * column[k];
        residual[k] = left > 0.0 ? left : 0.0;
    }
}

// column(i, out) writes K(:, i). Pivots are the largest residual diagonals, ties to the lower row. Stops when
// the residual trace is at most tol * trace of the centred kernel (a model with an intercept depends on no more of a
// wide kernel than that), or when pivots are at rounding level (1e-14 of the first).
template <class Column>
[[nodiscard]] Factor pivoted_cholesky(std::span<const double> diagonal, double tol, std::size_t max_rank,
                                      Column&& column) {
    const std::size_t n = diagonal.size();
    Factor factor;
    factor.residual.assign(diagonal.begin(), diagonal.end());
    auto& residual = factor.residual;
    double centred_trace = 0.0, first_pivot = 0.0;
    constexpr std::size_t tile = 1024;  // rows updated while they are in cache
    for (std::size_t rank = 0;; ++rank) {
        double left = 0.0;
        for (const double value : residual) left += value;
        const auto pivot =
            static_cast<std::size_t>(std::max_element(residual.begin(), residual.end()) - residual.begin());
        const double size = n > 0 ? residual[pivot] : 0.0;
        if (rank == 0) first_pivot = size;
        if (left <= tol * centred_trace || size <= 1e-14 * first_pivot) {
            factor.complete = true;
            return factor;
        }
        if (rank == max_rank) return factor;
        factor.columns.resize((rank + 1) * n);
        const Matrix<double> columns{factor.columns.data(), rank + 1, n};
        const std::span<double> fresh = columns.row(rank);
        column(pivot, fresh);
        // K(:, pivot) less what the earlier columns reproduce of it.
        for (std::size_t start = 0; start < n; start += tile) {
            const std::size_t length = std::min(tile, n - start);
            for (std::size_t r = 0; r < rank; ++r)
                subtract_scaled(fresh.subspan(start, length), columns.row(r).subspan(start, length), columns(r, pivot));
        }
        // Earlier pivots are reproduced exactly: their entries in later columns are zero by definition.
        for (const auto earlier : factor.pivots) fresh[static_cast<std::size_t>(earlier)] = 0.0;
        fresh[pivot] = size;
        finish_column(fresh, residual, 1.0 / std::sqrt(size));
        for (const auto earlier : factor.pivots) residual[static_cast<std::size_t>(earlier)] = 0.0;
        residual[pivot] = 0.0;
        // The trace of the centred factor grows by |column|^2 - (sum column)^2 / n.
        double sum = 0.0, squares = 0.0;
        for (const double value : fresh) {
            sum += value;
            squares += value * value;
        }
        centred_trace += std::max(0.0, squares - sum * sum / static_cast<double>(n));
        factor.pivots.push_back(static_cast<std::int64_t>(pivot));
    }
}

// A column of exp(-rate * |x - x_i|^2); `features` holds one feature per row (d x n).
KW_CLONES static inline void gaussian_column(Matrix<const double> features, double rate, std::size_t i,
                                             std::span<double> out) noexcept {
    const std::size_t n = features.columns;
    for (std::size_t k = 0; k < n; ++k) out[k] = 0.0;
    for (std::size_t c = 0; c < features.rows; ++c) {
        const double* feature = features.data + c * n;
        const double centre = feature[i];
        KW_SIMD()
        for (std::size_t k = 0; k < n; ++k) {
            const double difference = feature[k] - centre;
            out[k] += difference * difference;
        }
    }
    KW_SIMD()
    for (std::size_t k = 0; k < n; ++k) out[k] = exp_negative(-rate * out[k]);
}

}  // namespace kw
