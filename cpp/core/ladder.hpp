// Kernels exp(-rate * distance) of one distance matrix, several rates at once, never stored.
//
// One n x n matrix of distances serves every width of a view. An entry is read once and gives all its
// kernels while it is in cache: by one exponential each, or by squaring where one rate is a power of two
// times another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

struct LadderStep {
    double rate = 0.0;
    std::ptrdiff_t parent = -1;  // -1: exponential; else the kernel whose values are squared
    int squarings = 0;
};

constexpr int kMostSquarings = 4;  // each doubles the relative error

// Plans each kernel from a slower one where repeated squaring reaches it.
[[nodiscard]] inline std::vector<LadderStep> plan_ladder(std::span<const double> rates) {
    std::vector<LadderStep> steps(rates.size());
    std::vector<std::size_t> order(rates.size());
    for (std::size_t j = 0; j < rates.size(); ++j) order[j] = j;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rates[a] < rates[b]; });
    std::vector<std::size_t> roots;  // kernels computed by an exponential
    for (const std::size_t j : order) {
        steps[j] = {rates[j], -1, 0};
        for (const std::size_t i : roots) {
            const double ratio = rates[j] / rates[i];
            if (!std::isfinite(ratio)) continue;
            for (int power = 1; power <= kMostSquarings; ++power)
                if (std::abs(ratio - std::exp2(power)) <= 1e-15 * ratio)
                    steps[j] = {rates[j], static_cast<std::ptrdiff_t>(i), power};
        }
        if (steps[j].parent < 0) roots.push_back(j);
    }
    return steps;
}

constexpr std::size_t kSegment = 256;  // entries processed at a time; all kernels of them stay in cache
constexpr std::size_t kRowBlock = 16;  // rows per task; part of the summation order, so never thread-dependent

// values[j * kSegment + k] = exp(-rate_j * distance[k]). Roots first, then their squares.
template <class Real>
KW_CLONES static inline void ladder_segment(std::span<const Real> distance, std::span<const LadderStep> steps,
                                            Real* values) noexcept {
    const std::size_t length = distance.size();
    for (std::size_t j = 0; j < steps.size(); ++j) {
        if (steps[j].parent >= 0) continue;
        const Real rate = static_cast<Real>(-steps[j].rate);
        Real* out = values + j * kSegment;
        KW_SIMD()
        for (std::size_t k = 0; k < length; ++k) out[k] = exp_negative(rate * distance[k]);
    }
    for (std::size_t j = 0; j < steps.size(); ++j) {
        if (steps[j].parent < 0) continue;
        const Real* from = values + static_cast<std::size_t>(steps[j].parent) * kSegment;
        Real* out = values + j * kSegment;
        KW_SIMD()
        for (std::size_t k = 0; k < length; ++k) out[k] = from[k] * from[k];
        for (int s = 1; s < steps[j].squarings; ++s) {
            KW_SIMD()
            for (std::size_t k = 0; k < length; ++k) out[k] *= out[k];
        }
    }
}

// Workspace of one task: some distances, and all kernels of them, in the arithmetic of Real.
template <class Real = double>
class LadderSegment {
   public:
    explicit LadderSegment(std::span<const LadderStep> steps)
        : steps_(steps), values_(steps.size() * kSegment), distances_(kSegment) {}

    // Computes the kernels of at most kSegment distances.
    void compute(std::span<const Real> distances) noexcept {
        length_ = distances.size();
        ladder_segment<Real>(distances, steps_, values_.data());
    }

    // The same for distances that load(out) writes.
    template <class Load>
    void compute(std::size_t length, Load&& load) noexcept {
        const auto distances = std::span(distances_).first(length);
        load(distances);
        compute(distances);
    }

    [[nodiscard]] std::size_t length() const noexcept { return length_; }
    [[nodiscard]] std::span<const Real> kernel(std::size_t j) const noexcept {
        return {values_.data() + j * kSegment, length_};
    }

    // sum += sum_j weights_j K_j.
    void add_to(std::span<Real> sum, std::span<const double> weights) const noexcept {
        for (std::size_t j = 0; j < steps_.size(); ++j) add_scaled(sum, kernel(j), static_cast<Real>(weights[j]));
    }

   private:
    std::span<const LadderStep> steps_;
    std::vector<Real> values_, distances_;
    std::size_t length_ = 0;
};

// out[k] = row[k], in double precision.
template <class T>
void widen(std::span<const T> row, std::span<double> out) noexcept {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<double>(row[k]);
}

// out[k] = row[index[k]], in double precision.
template <class T>
void gather(std::span<const T> row, Index index, std::span<double> out) noexcept {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<double>(row[row_at(index, k)]);
}

// Quadratic forms: forms[j] = sum over i, k in `index` of K_j(i, k) * <V_i, V_k>; V has one row per entry of `index`.
template <class T>
void ladder_forms(Matrix<const T> distances, std::span<const LadderStep> steps, Index index, Matrix<const double> V,
                  std::span<double> forms) {
    const std::size_t n = index.size(), n_kernels = steps.size();
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), V.columns, n};
    std::vector<double> partial(n_blocks(n, kRowBlock) * n_kernels, 0.0);
    parallel_blocks(n, kRowBlock, [&](std::size_t first, std::size_t last) {
        LadderSegment<double> segment(steps);
        std::vector<double> products(kSegment);
        const auto sums = std::span(partial).subspan(first / kRowBlock * n_kernels, n_kernels);
        for (std::size_t a = first; a < last; ++a) {
            const auto row = distances.row(row_at(index, a));
            for (std::size_t start = a; start < n; start += kSegment) {
                const std::size_t length = std::min(kSegment, n - start);
                const auto product = std::span(products).first(length);  // 2 <V_a, V_k>
                std::fill(product.begin(), product.end(), 0.0);
                for (std::size_t o = 0; o < V.columns; ++o) {
                    const auto column = by_output.row(o).subspan(start, length);
                    for (std::size_t k = 0; k < length; ++k) product[k] += V(a, o) * column[k];
                }
                for (double& value : product) value *= 2.0;
                if (start == a) product[0] *= 0.5;  // the diagonal counts once, pairs twice
                segment.compute(length, [&](auto out) { gather(row, index.subspan(start, length), out); });
                for (std::size_t j = 0; j < n_kernels; ++j) sums[j] += dot(segment.kernel(j), product);
            }
        }
    });
    std::fill(forms.begin(), forms.end(), 0.0);
    for (std::size_t k = 0; k < partial.size(); ++k) forms[k % n_kernels] += partial[k];
}

// out[j, a, o] = sum over k in `index` of K_j(rows_a, index_k) * V[k, o].
template <class T>
void ladder_products(Matrix<const T> distances, std::span<const LadderStep> steps, Index rows, Index index,
                     Matrix<const double> V, std::span<double> out) {
    const std::size_t n_kernels = steps.size(), n_outputs = V.columns;
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), n_outputs, index.size()};
    parallel_blocks(rows.size(), kRowBlock, [&](std::size_t first, std::size_t last) {
        LadderSegment<double> segment(steps);
        std::vector<double> sums(n_kernels * n_outputs);
        for (std::size_t i = first; i < last; ++i) {
            const auto row = distances.row(row_at(rows, i));
            std::fill(sums.begin(), sums.end(), 0.0);
            for (std::size_t start = 0; start < index.size(); start += kSegment) {
                const std::size_t length = std::min(kSegment, index.size() - start);
                segment.compute(length, [&](auto to) { gather(row, index.subspan(start, length), to); });
                for (std::size_t j = 0; j < n_kernels; ++j)
                    for (std::size_t o = 0; o < n_outputs; ++o)
                        sums[j * n_outputs + o] += dot(segment.kernel(j), by_output.row(o).subspan(start, length));
            }
            for (std::size_t j = 0; j < n_kernels; ++j)
                for (std::size_t o = 0; o < n_outputs; ++o)
                    out[(j * rows.size() + i) * n_outputs + o] = sums[j * n_outputs + o];
        }
    });
}

// Adds sum_j weights_j K_j to each row of `out` from column first(row) on; load(row, start, distances) writes the
// distances of the entries from column `start` on.
template <class Out, class First, class Load>
void ladder_combine(std::span<const LadderStep> steps, std::span<const double> weights, Matrix<Out> out, First&& first,
                    Load&& load) {
    parallel_blocks(out.rows, kRowBlock, [&](std::size_t top, std::size_t bottom) {
        LadderSegment<double> segment(steps);
        std::vector<double> buffer(kSegment);
        for (std::size_t i = top; i < bottom; ++i)
            for (std::size_t start = first(i); start < out.columns; start += kSegment) {
                const std::size_t length = std::min(kSegment, out.columns - start);
                segment.compute(length, [&](std::span<double> distances) { load(i, start, distances); });
                const auto target = out.row(i).subspan(start, length);
                const auto sum = std::span(buffer).first(length);  // double, whatever the type of `out`
                widen<Out>(target, sum);
                segment.add_to(sum, weights);
                for (std::size_t k = 0; k < length; ++k) target[k] = static_cast<Out>(sum[k]);
            }
    });
}

// Adds sum_j weights_j K_j to the upper triangle of the square `out`; the lower one is left alone.
template <class T, class Out>
void ladder_combine_upper(Matrix<const T> distances, std::span<const LadderStep> steps, std::span<const double> weights,
                          Matrix<Out> out) {
    ladder_combine(
        steps, weights, out, [](std::size_t i) { return i; },
        [&](std::size_t i, std::size_t start, std::span<double> to) { widen(distances.row(i).subspan(start), to); });
}

// Adds the listed rows of sum_j weights_j K_j to `out`.
template <class T, class Out>
void ladder_combine_rows(Matrix<const T> distances, std::span<const LadderStep> steps, std::span<const double> weights,
                         Index index, Matrix<Out> out) {
    ladder_combine(
        steps, weights, out, [](std::size_t) { return std::size_t{0}; },
        [&](std::size_t a, std::size_t start, std::span<double> to) {
            widen(distances.row(row_at(index, a)).subspan(start), to);
        });
}

// Adds the block of the listed rows and columns of sum_j weights_j K_j to the upper triangle of `out`.
template <class T>
void ladder_combine_block(Matrix<const T> distances, std::span<const LadderStep> steps, std::span<const double> weights,
                          Index index, Matrix<double> out) {
    ladder_combine(
        steps, weights, out, [](std::size_t a) { return a; },
        [&](std::size_t a, std::size_t start, std::span<double> to) {
            gather(distances.row(row_at(index, a)), index.subspan(start), to);
        });
}

KW_CLONES static inline void add_squared_differences(std::span<double> out, std::span<const double> values,
                                                     double centre) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += (values[k] - centre) * (values[k] - centre);
}

// out(i, o) = sum over j, k of weights_j exp(-rate_j |x_i - z_k|^2) V(k, o), distances computed on the way.
// `features` and `kept` hold one feature per row (d x n and d x n_kept).
inline void gaussian_products(Matrix<const double> features, Matrix<const double> kept,
                              std::span<const LadderStep> steps, std::span<const double> weights,
                              Matrix<const double> V, Matrix<double> out) {
    const std::size_t n_outputs = V.columns;
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), n_outputs, kept.columns};
    parallel_blocks(features.columns, kRowBlock, [&](std::size_t first, std::size_t last) {
        LadderSegment<double> segment(steps);
        std::vector<double> distances(kSegment), buffer(kSegment);
        for (std::size_t i = first; i < last; ++i) {
            for (double& value : out.row(i)) value = 0.0;
            for (std::size_t start = 0; start < kept.columns; start += kSegment) {
                const std::size_t length = std::min(kSegment, kept.columns - start);
                const auto distance = std::span(distances).first(length), sum = std::span(buffer).first(length);
                std::fill(distance.begin(), distance.end(), 0.0);
                for (std::size_t c = 0; c < features.rows; ++c)
                    add_squared_differences(distance, kept.row(c).subspan(start, length), features(c, i));
                segment.compute(distance);
                std::fill(sum.begin(), sum.end(), 0.0);
                segment.add_to(sum, weights);
                for (std::size_t o = 0; o < n_outputs; ++o)
                    out(i, o) += dot(sum, by_output.row(o).subspan(start, length));
            }
        }
    });
}

}  // namespace kw
