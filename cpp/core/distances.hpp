// Squared Euclidean and absolute distances between rows, exact to rounding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "matrix.hpp"
#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

// Share of |a|^2 + |b|^2 below which |a|^2 + |b|^2 - 2 a.b is no longer exact to 1e-12 of itself. Each of the three
// sums over d columns is off by at most d units of rounding u; for many columns the errors are of the order of
// sqrt(d) u (Higham and Mary, 2019, SIAM J. Sci. Comput. 41), and four times that is allowed for.
[[nodiscard]] inline double cancellation_limit(std::size_t n_columns) noexcept {
    const double d = static_cast<double>(n_columns), u = 0x1p-53;
    return 2.0 * (std::min(d, 4.0 * std::sqrt(d)) + 4.0) * u / 1e-12;
}

[[nodiscard]] KW_CLONES static inline double squared_difference(std::span<const double> a, std::span<const double> b,
                                                                const double* scales) noexcept {
    double sum = 0.0;
    KW_SIMD(reduction(+ : sum))
    for (std::size_t c = 0; c < a.size(); ++c) sum += ((a[c] - b[c]) * scales[c]) * ((a[c] - b[c]) * scales[c]);
    return sum;
}

// One row of squared distances from inner products; returns how many of them are inexact by cancellation.
[[nodiscard]] KW_CLONES static inline std::size_t distances_from_products(std::span<double> row, double squared_norm,
                                                                          std::span<const double> squared_norms,
                                                                          double limit) noexcept {
    std::size_t n_lost = 0;
    KW_SIMD(reduction(+ : n_lost))
    for (std::size_t k = 0; k < row.size(); ++k) {
        const double sum = squared_norm + squared_norms[k];
        row[k] = sum - 2.0 * row[k];
        n_lost += row[k] > limit * sum ? 0 : 1;  // a NaN after an overflow is inexact too
    }
    return n_lost;
}

// Rows of A and B, each column to be multiplied by its scale, and their squared norms after centring and scaling.
struct ScaledRows {
    Matrix<const double> A, B;
    std::span<const double> scales, a_norms, b_norms;
};

// Turns inner products of centred and scaled rows, in place, into the squared distances between rows of A and of B.
// Entries lost to cancellation are summed from the differences themselves, so that every distance is exact to 1e-12 of
// itself for any data, and zero between equal rows. With `upper`, entries left of the diagonal are passed over and the
// diagonal is zero.
inline void squared_distances_from_products(Matrix<double> products, const ScaledRows& rows, bool upper) {
    constexpr std::size_t row_block = 16, segment = 256;  // rows per task; entries per vector loop
    const double limit = cancellation_limit(rows.A.columns);
    parallel_blocks(rows.A.rows, row_block, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            const auto row = products.row(i);
            if (upper) row[i] = 0.0;
            for (std::size_t start = upper ? i + 1 : 0; start < row.size(); start += segment) {
                const std::size_t length = std::min(segment, row.size() - start);
                if (distances_from_products(row.subspan(start, length), rows.a_norms[i],
                                            rows.b_norms.subspan(start, length), limit) == 0)
                    continue;
                for (std::size_t k = start; k < start + length; ++k)
                    if (!(row[k] > limit * (rows.a_norms[i] + rows.b_norms[k])))
                        row[k] = squared_difference(rows.A.row(i), rows.B.row(k), rows.scales.data());
            }
        }
    });
}

// Adds |a - b_k| to every sum; each sum has its own order of columns, so that vector loops do not change it.
KW_CLONES static inline void add_absolute_differences(double a, std::span<const double> b,
                                                      std::span<double> sums) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < b.size(); ++k) sums[k] += std::abs(a - b[k]);
}

// out(i, k) = sum of absolute differences between row i of A and row k of B.
template <class T>
void absolute_distances(Matrix<const double> A, Matrix<const double> B, Matrix<T> out) {
    constexpr std::size_t row_block = 16, segment = 256;  // rows per task; entries per vector loop
    const auto columns = transposed(B);
    parallel_blocks(A.rows, row_block, [&](std::size_t first, std::size_t last) {
        std::array<double, segment> buffer;
        for (std::size_t start = 0; start < B.rows; start += segment) {
            const std::size_t length = std::min(segment, B.rows - start);
            const std::span<double> sums(buffer.data(), length);
            for (std::size_t i = first; i < last; ++i) {
                std::fill(sums.begin(), sums.end(), 0.0);
                for (std::size_t c = 0; c < A.columns; ++c)
                    add_absolute_differences(A(i, c), {columns.data() + c * B.rows + start, length}, sums);
                for (std::size_t k = 0; k < length; ++k) out(i, start + k) = static_cast<T>(sums[k]);
            }
        }
    });
}

// Adds v sign(a_c - b_c) to every sum; ties add nothing.
KW_CLONES static inline void add_signs(double v, std::span<const double> a, std::span<const double> b,
                                       std::span<double> sums) noexcept {
    KW_SIMD()
    for (std::size_t c = 0; c < a.size(); ++c) sums[c] += (a[c] > b[c] ? v : 0.0) - (a[c] < b[c] ? v : 0.0);
}

// out(i, c) = sum_k V(i, k) sign(A(i, c) - B(k, c)): gradients of product Laplacians, up to their weights.
inline void signed_sums(Matrix<const double> A, Matrix<const double> B, Matrix<const double> V, Matrix<double> out) {
    constexpr std::size_t row_block = 16;  // rows per task
    parallel_blocks(A.rows, row_block, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            std::fill(out.row(i).begin(), out.row(i).end(), 0.0);
            for (std::size_t k = 0; k < B.rows; ++k) add_signs(V(i, k), A.row(i), B.row(k), out.row(i));
        }
    });
}

// Copies the upper triangle of a square matrix to the lower one, by tiles that fit the cache.
template <class T>
void mirror_upper(Matrix<T> matrix) {
    constexpr std::size_t tile = 64;
    parallel_blocks(matrix.rows, tile, [&](std::size_t left, std::size_t right) {
        for (std::size_t first = 0; first <= left; first += tile)
            for (std::size_t k = left; k < right; ++k)
                for (std::size_t i = first; i < std::min(first + tile, k); ++i) matrix(k, i) = matrix(i, k);
    });
}

}  // namespace kw
