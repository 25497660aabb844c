// Kernels exp(-rate * distance) of one distance matrix, several rates at once, never stored.
//
// One n x n matrix of distances serves every width of a view. An entry is read once and gives all its
// kernels while it is in cache: by one exponential each, or by squaring where one rate is a power of two
// times another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

struct LadderStep {
    double rate;
    std::ptrdiff_t parent;  // -1: exponential; else the kernel whose values are squared
    int squarings;
};

// Plans each kernel from a slower one where repeated squaring reaches it. At most four squarings, because each
// doubles the relative error.
inline std::vector<LadderStep> plan_ladder(const double* rates, std::size_t n_kernels) {
    std::vector<LadderStep> steps(n_kernels);
    std::vector<std::size_t> order(n_kernels);
    for (std::size_t j = 0; j < n_kernels; ++j) order[j] = j;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rates[a] < rates[b]; });
    std::vector<std::size_t> roots;  // kernels computed by an exponential
    for (const std::size_t j : order) {
        steps[j] = {rates[j], -1, 0};
        for (const std::size_t i : roots) {
            const double ratio = rates[j] / rates[i];
            if (!std::isfinite(ratio)) continue;
            for (int power = 1; power <= 4; ++power)
                if (std::abs(ratio - std::exp2(power)) <= 1e-15 * ratio)
                    steps[j] = {rates[j], static_cast<std::ptrdiff_t>(i), power};
        }
        if (steps[j].parent < 0) roots.push_back(j);
    }
    return steps;
}

constexpr std::size_t kSegment = 256;  // entries worked on at a time; all kernels of them stay in cache

// values[j * kSegment + k] = exp(-rate_j * distance[k]), k < length. Roots first, then their squares.
KW_CLONES static inline void ladder_segment(const double* distance, std::size_t length, const LadderStep* steps,
                                            std::size_t n_kernels, double* values) {
    for (std::size_t j = 0; j < n_kernels; ++j) {
        if (steps[j].parent >= 0) continue;
        const double rate = -steps[j].rate;
        double* out = values + j * kSegment;
#pragma omp simd
        for (std::size_t k = 0; k < length; ++k) out[k] = exp_negative(rate * distance[k]);
    }
    for (std::size_t j = 0; j < n_kernels; ++j) {
        if (steps[j].parent < 0) continue;
        const double* from = values + static_cast<std::size_t>(steps[j].parent) * kSegment;
        double* out = values + j * kSegment;
#pragma omp simd
        for (std::size_t k = 0; k < length; ++k) out[k] = from[k] * from[k];
        for (int s = 1; s < steps[j].squarings; ++s) {
#pragma omp simd
            for (std::size_t k = 0; k < length; ++k) out[k] *= out[k];
        }
    }
}

KW_CLONES static inline void add_squared_differences(double* out, const double* values, double centre,
                                                     std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] += (values[k] - centre) * (values[k] - centre);
}

template <class T>
struct Matrix {
    T* data;
    std::size_t rows, columns;
    T* row(std::size_t i) const { return data + i * columns; }
};

constexpr std::size_t kRowBlock = 16;  // rows per task; part of the summation order, so never thread-dependent

// forms[j] = sum over i, k in `index` of K_j(i, k) * <V_i, V_k>; V has one row per entry of `index`.
template <class T>
void ladder_forms(Matrix<const T> distances, const std::vector<LadderStep>& steps, const std::int64_t* index,
                  std::size_t n_index, const double* V, std::size_t n_outputs, double* forms) {
    const std::size_t n_kernels = steps.size(), n_blocks = (n_index + kRowBlock - 1) / kRowBlock;
    std::vector<double> partial(n_blocks * n_kernels, 0.0);
    parallel_for(n_blocks, [&](std::size_t block) {
        std::vector<double> values(n_kernels * kSegment), gathered(kSegment), products(kSegment);
        double* sums = partial.data() + block * n_kernels;
        const std::size_t last = std::min(n_index, (block + 1) * kRowBlock);
        for (std::size_t a = block * kRowBlock; a < last; ++a) {
            const T* row = distances.row(static_cast<std::size_t>(index[a]));
            for (std::size_t start = a; start < n_index; start += kSegment) {
                const std::size_t length = std::min(kSegment, n_index - start);
                for (std::size_t k = 0; k < length; ++k) {
                    gathered[k] = static_cast<double>(row[index[start + k]]);
                    double product = 0.0;
                    for (std::size_t o = 0; o < n_outputs; ++o)
                        product += V[a * n_outputs + o] * V[(start + k) * n_outputs + o];
                    products[k] = 2.0 * product;
                }
                if (start == a) products[0] *= 0.5;  // the diagonal counts once, pairs twice
                ladder_segment(gathered.data(), length, steps.data(), n_kernels, values.data());
                for (std::size_t j = 0; j < n_kernels; ++j)
                    sums[j] += dot(values.data() + j * kSegment, products.data(), length);
            }
        }
    });
    for (std::size_t j = 0; j < n_kernels; ++j) forms[j] = 0.0;
    for (std::size_t block = 0; block < n_blocks; ++block)
        for (std::size_t j = 0; j < n_kernels; ++j) forms[j] += partial[block * n_kernels + j];
}

// out[j, a, o] = sum over k in `index` of K_j(rows_a, index_k) * V[k, o].
template <class T>
void ladder_products(Matrix<const T> distances, const std::vector<LadderStep>& steps, const std::int64_t* rows,
                     std::size_t n_rows, const std::int64_t* index, std::size_t n_index, const double* V,
                     std::size_t n_outputs, double* out) {
    const std::size_t n_kernels = steps.size();
    const std::size_t n_blocks = (n_rows + kRowBlock - 1) / kRowBlock;
    std::vector<double> by_output(n_outputs * n_index);  // contiguous columns of V
    for (std::size_t k = 0; k < n_index; ++k)
        for (std::size_t o = 0; o < n_outputs; ++o) by_output[o * n_index + k] = V[k * n_outputs + o];
    parallel_for(n_blocks, [&](std::size_t block) {
        std::vector<double> values(n_kernels * kSegment), gathered(kSegment), sums(n_kernels * n_outputs);
        const std::size_t last = std::min(n_rows, (block + 1) * kRowBlock);
        for (std::size_t i = block * kRowBlock; i < last; ++i) {
            const T* row = distances.row(static_cast<std::size_t>(rows[i]));
            std::fill(sums.begin(), sums.end(), 0.0);
            for (std::size_t start = 0; start < n_index; start += kSegment) {
                const std::size_t length = std::min(kSegment, n_index - start);
                for (std::size_t k = 0; k < length; ++k) gathered[k] = static_cast<double>(row[index[start + k]]);
                ladder_segment(gathered.data(), length, steps.data(), n_kernels, values.data());
                for (std::size_t j = 0; j < n_kernels; ++j)
                    for (std::size_t o = 0; o < n_outputs; ++o)
                        sums[j * n_outputs + o] +=
                            dot(values.data() + j * kSegment, by_output.data() + o * n_index + start, length);
            }
            for (std::size_t j = 0; j < n_kernels; ++j)
                for (std::size_t o = 0; o < n_outputs; ++o)
                    out[(j * n_rows + i) * n_outputs + o] = sums[j * n_outputs + o];
        }
    });
}

// Adds sum_j weights_j K_j(index_a, index_b) to the upper triangle of out(a, b).
template <class T>
void ladder_combine_block(Matrix<const T> distances, const std::vector<LadderStep>& steps, const double* weights,
                          const std::int64_t* index, std::size_t n_index, double* out) {
    const std::size_t n_kernels = steps.size();
    parallel_for((n_index + kRowBlock - 1) / kRowBlock, [&](std::size_t block) {
        std::vector<double> values(n_kernels * kSegment), gathered(kSegment);
        const std::size_t last = std::min(n_index, (block + 1) * kRowBlock);
        for (std::size_t a = block * kRowBlock; a < last; ++a) {
            const T* row = distances.row(static_cast<std::size_t>(index[a]));
            for (std::size_t start = a; start < n_index; start += kSegment) {
                const std::size_t length = std::min(kSegment, n_index - start);
                for (std::size_t k = 0; k < length; ++k) gathered[k] = static_cast<double>(row[index[start + k]]);
                ladder_segment(gathered.data(), length, steps.data(), n_kernels, values.data());
                for (std::size_t j = 0; j < n_kernels; ++j)
                    add_scaled(out + a * n_index + start, values.data() + j * kSegment, weights[j], length);
            }
        }
    });
}

// out(a, k) += sum_j weights_j K_j(index_a, k) for the listed rows.
template <class T, class Out>
void ladder_combine_rows(Matrix<const T> distances, const std::vector<LadderStep>& steps, const double* weights,
                         const std::int64_t* index, std::size_t n_index, Out* out) {
    const std::size_t n_kernels = steps.size(), n_columns = distances.columns;
    parallel_for((n_index + kRowBlock - 1) / kRowBlock, [&](std::size_t block) {
        std::vector<double> values(n_kernels * kSegment), widened(kSegment), sum(kSegment);
        const std::size_t last = std::min(n_index, (block + 1) * kRowBlock);
        for (std::size_t a = block * kRowBlock; a < last; ++a) {
            const T* row = distances.row(static_cast<std::size_t>(index[a]));
            for (std::size_t start = 0; start < n_columns; start += kSegment) {
                const std::size_t length = std::min(kSegment, n_columns - start);
                for (std::size_t k = 0; k < length; ++k) widened[k] = static_cast<double>(row[start + k]);
                ladder_segment(widened.data(), length, steps.data(), n_kernels, values.data());
                Out* target = out + a * n_columns + start;
                for (std::size_t k = 0; k < length; ++k) sum[k] = static_cast<double>(target[k]);
                for (std::size_t j = 0; j < n_kernels; ++j)
                    add_scaled(sum.data(), values.data() + j * kSegment, weights[j], length);
                for (std::size_t k = 0; k < length; ++k) target[k] = static_cast<Out>(sum[k]);
            }
        }
    });
}

// out(i, o) = sum over j, k of weights_j exp(-rate_j |x_i - z_k|^2) V(k, o), distances computed on the way.
// `features` and `kept` hold one feature per row (d x n and d x n_kept).
inline void gaussian_products(Matrix<const double> features, Matrix<const double> kept,
                              const std::vector<LadderStep>& steps, const double* weights, const double* V,
                              std::size_t n_outputs, double* out) {
    const std::size_t n_kernels = steps.size(), n = features.columns, n_kept = kept.columns;
    std::vector<double> by_output(n_outputs * n_kept);
    for (std::size_t k = 0; k < n_kept; ++k)
        for (std::size_t o = 0; o < n_outputs; ++o) by_output[o * n_kept + k] = V[k * n_outputs + o];
    parallel_for((n + kRowBlock - 1) / kRowBlock, [&](std::size_t block) {
        std::vector<double> values(n_kernels * kSegment), distance(kSegment), sum(kSegment);
        const std::size_t last = std::min(n, (block + 1) * kRowBlock);
        for (std::size_t i = block * kRowBlock; i < last; ++i) {
            for (std::size_t o = 0; o < n_outputs; ++o) out[i * n_outputs + o] = 0.0;
            for (std::size_t start = 0; start < n_kept; start += kSegment) {
                const std::size_t length = std::min(kSegment, n_kept - start);
                std::fill(distance.begin(), distance.end(), 0.0);
                for (std::size_t c = 0; c < features.rows; ++c)
                    add_squared_differences(distance.data(), kept.row(c) + start, features.row(c)[i], length);
                ladder_segment(distance.data(), length, steps.data(), n_kernels, values.data());
                std::fill(sum.begin(), sum.end(), 0.0);
                for (std::size_t j = 0; j < n_kernels; ++j)
                    add_scaled(sum.data(), values.data() + j * kSegment, weights[j], length);
                for (std::size_t o = 0; o < n_outputs; ++o)
                    out[i * n_outputs + o] += dot(sum.data(), by_output.data() + o * n_kept + start, length);
            }
        }
    });
}

constexpr std::size_t kTile = 64;

// Adds sum_j weights_j K_j to the upper triangle of the square `out`; the lower one is left alone.
template <class T, class Out>
void ladder_combine_upper(Matrix<const T> distances, const std::vector<LadderStep>& steps, const double* weights,
                          Out* out) {
    const std::size_t n_kernels = steps.size(), n = distances.rows;
    parallel_for((n + kRowBlock - 1) / kRowBlock, [&](std::size_t block) {
        std::vector<double> values(n_kernels * kSegment), widened(kSegment), sum(kSegment);
        const std::size_t last = std::min(n, (block + 1) * kRowBlock);
        for (std::size_t i = block * kRowBlock; i < last; ++i) {
            const T* row = distances.row(i);
            for (std::size_t start = i; start < n; start += kSegment) {
                const std::size_t length = std::min(kSegment, n - start);
                for (std::size_t k = 0; k < length; ++k) widened[k] = static_cast<double>(row[start + k]);
                ladder_segment(widened.data(), length, steps.data(), n_kernels, values.data());
                Out* target = out + i * n + start;
                for (std::size_t k = 0; k < length; ++k) sum[k] = static_cast<double>(target[k]);
                for (std::size_t j = 0; j < n_kernels; ++j)
                    add_scaled(sum.data(), values.data() + j * kSegment, weights[j], length);
                for (std::size_t k = 0; k < length; ++k) target[k] = static_cast<Out>(sum[k]);
            }
        }
    });
}

// Copies the upper triangle of a square matrix to the lower one, by tiles that fit the cache.
template <class T>
void mirror_upper(T* matrix, std::size_t n) {
    const std::size_t n_tiles = (n + kTile - 1) / kTile;
    parallel_for(n_tiles, [&](std::size_t tile) {
        const std::size_t left = tile * kTile, right = std::min(n, left + kTile);
        for (std::size_t first = 0; first <= left; first += kTile)
            for (std::size_t k = left; k < right; ++k)
                for (std::size_t i = first; i < std::min(first + kTile, k); ++i) matrix[k * n + i] = matrix[i * n + k];
    });
}

// Share of |a|^2 + |b|^2 below which |a|^2 + |b|^2 - 2 a.b is no longer right to 1e-12 of itself. Each of the three
// sums over d columns is off by at most d units of rounding u; for many columns the errors are of the order of
// sqrt(d) u (Higham and Mary, 2019, SIAM J. Sci. Comput. 41), and four times that is allowed for.
inline double cancellation_limit(std::size_t n_columns) {
    const double d = static_cast<double>(n_columns), u = 0x1p-53;
    return 2.0 * (std::min(d, 4.0 * std::sqrt(d)) + 4.0) * u / 1e-12;
}

KW_CLONES static inline double squared_difference(const double* a, const double* b, const double* scales,
                                                  std::size_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t c = 0; c < n; ++c) sum += ((a[c] - b[c]) * scales[c]) * ((a[c] - b[c]) * scales[c]);
    return sum;
}

// One row of squared distances from inner products; returns how many of them lost their digits.
KW_CLONES static inline std::size_t distances_from_products(double* row, double squared_norm,
                                                            const double* squared_norms, double limit, std::size_t n) {
    std::size_t n_lost = 0;
#pragma omp simd reduction(+ : n_lost)
    for (std::size_t k = 0; k < n; ++k) {
        const double sum = squared_norm + squared_norms[k];
        row[k] = sum - 2.0 * row[k];
        n_lost += row[k] > limit * sum ? 0 : 1;  // not a number, after an overflow, is lost too
    }
    return n_lost;
}

// Turns inner products of centred and scaled rows, in place, into the squared distances between rows of A and of B,
// each column multiplied by its scale. What cancellation spoils is summed from the differences themselves, so that
// every distance is right to 1e-12 of itself, whatever the rows, and zero between equal ones. With `upper`, entries
// left of the diagonal are passed over and the diagonal is zero.
inline void squared_distances_from_products(double* products, Matrix<const double> A, Matrix<const double> B,
                                            const double* scales, const double* a_norms, const double* b_norms,
                                            bool upper) {
    const double limit = cancellation_limit(A.columns);
    parallel_for((A.rows + kRowBlock - 1) / kRowBlock, [&](std::size_t block) {
        const std::size_t last = std::min(A.rows, (block + 1) * kRowBlock);
        for (std::size_t i = block * kRowBlock; i < last; ++i) {
            double* row = products + i * B.rows;
            if (upper) row[i] = 0.0;
            for (std::size_t start = upper ? i + 1 : 0; start < B.rows; start += kSegment) {
                const std::size_t length = std::min(kSegment, B.rows - start);
                if (!distances_from_products(row + start, a_norms[i], b_norms + start, limit, length)) continue;
                for (std::size_t k = start; k < start + length; ++k)
                    if (!(row[k] > limit * (a_norms[i] + b_norms[k])))
                        row[k] = squared_difference(A.row(i), B.row(k), scales, A.columns);
            }
        }
    });
}

// out(i, k) = sum of absolute differences between row i of A and row k of B.
template <class T>
void absolute_distances(Matrix<const double> A, Matrix<const double> B, T* out) {
    parallel_for((A.rows + kRowBlock - 1) / kRowBlock, [&](std::size_t block) {
        const std::size_t last = std::min(A.rows, (block + 1) * kRowBlock);
        for (std::size_t i = block * kRowBlock; i < last; ++i)
            for (std::size_t k = 0; k < B.rows; ++k) {
                double sum = 0.0;
                for (std::size_t c = 0; c < A.columns; ++c) sum += std::abs(A.row(i)[c] - B.row(k)[c]);
                out[i * B.rows + k] = static_cast<T>(sum);
            }
    });
}

}  // namespace kw
