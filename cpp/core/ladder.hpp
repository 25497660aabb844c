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

KW_CLONES static inline void add_scaled(double* out, const double* values, double scale, std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] += scale * values[k];
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

// out += sum_j weights_j K_j for a symmetric matrix: each pair is computed once and mirrored by tiles.
template <class T, class Out>
void ladder_combine_square(Matrix<const T> distances, const std::vector<LadderStep>& steps, const double* weights,
                           Out* out) {
    constexpr std::size_t tile = 64;
    const std::size_t n_kernels = steps.size(), n = distances.rows, n_tiles = (n + tile - 1) / tile;
    parallel_for(n_tiles, [&](std::size_t tile_row) {
        std::vector<double> values(n_kernels * kSegment), widened(kSegment), sum(kSegment);
        const std::size_t first = tile_row * tile, last = std::min(n, first + tile);
        for (std::size_t tile_column = tile_row; tile_column < n_tiles; ++tile_column) {
            const std::size_t left = tile_column * tile, right = std::min(n, left + tile);
            for (std::size_t i = first; i < last; ++i) {
                const std::size_t start = std::max(left, i);
                if (start >= right) continue;
                const std::size_t length = right - start;
                const T* row = distances.row(i) + start;
                for (std::size_t k = 0; k < length; ++k) widened[k] = static_cast<double>(row[k]);
                ladder_segment(widened.data(), length, steps.data(), n_kernels, values.data());
                Out* target = out + i * n + start;
                for (std::size_t k = 0; k < length; ++k) sum[k] = static_cast<double>(target[k]);
                for (std::size_t j = 0; j < n_kernels; ++j)
                    add_scaled(sum.data(), values.data() + j * kSegment, weights[j], length);
                for (std::size_t k = 0; k < length; ++k) target[k] = static_cast<Out>(sum[k]);
            }
            for (std::size_t k = left; k < right; ++k)  // the tile is still in cache
                for (std::size_t i = first; i < std::min(last, k); ++i) out[k * n + i] = out[i * n + k];
        }
    });
}

// Turns inner products of centred rows into squared distances, in place: |x|^2 + |z|^2 - 2 x.z, never below
// zero, exactly symmetric, exact zeros on the diagonal.
template <class T>
void squared_distances_from_products(T* products, std::size_t n, const double* squared_norms) {
    constexpr std::size_t tile = 64;
    const std::size_t n_tiles = (n + tile - 1) / tile;
    parallel_for(n_tiles, [&](std::size_t tile_row) {
        const std::size_t first = tile_row * tile, last = std::min(n, first + tile);
        for (std::size_t tile_column = tile_row; tile_column < n_tiles; ++tile_column) {
            const std::size_t left = tile_column * tile, right = std::min(n, left + tile);
            for (std::size_t i = first; i < last; ++i) {
                T* row = products + i * n;
                for (std::size_t k = std::max(left, i + 1); k < right; ++k) {
                    const double d = squared_norms[i] + squared_norms[k] - 2.0 * static_cast<double>(row[k]);
                    row[k] = static_cast<T>(d > 0.0 ? d : 0.0);
                }
            }
            for (std::size_t k = left; k < right; ++k)
                for (std::size_t i = first; i < std::min(last, k); ++i) products[k * n + i] = products[i * n + k];
        }
        for (std::size_t i = first; i < last; ++i) products[i * n + i] = T(0);
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
