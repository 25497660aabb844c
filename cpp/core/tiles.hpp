// Kernels exp(-rate * distance) between rows of a table, computed from the rows on demand and never stored.
//
// A tile of distances (squared Euclidean or absolute) is summed in registers from differences, which have no
// cancellation, and gives the kernels of all rates while it is in cache. Real is the type of the arithmetic: float
// where the caller has bounded its error, double for values that count. Sums over rows are double.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "ladder.hpp"
#include "matrix.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace kw {

enum class Metric { squared, absolute };

constexpr std::size_t kStrip = 4;      // rows of a tile whose distances are summed in registers together
constexpr std::size_t kTileRows = 32;  // rows per task; part of the summation order of forms

// Points in groups of kLanes: one vector of 64 bytes for every column of a group, padded with zeros.
template <class Real>
constexpr std::size_t kLanes = 64 / sizeof(Real);

// Some rows of a table in the two layouts of a tile: by strips of rows, and by groups of lanes.
template <class Real>
class Panel {
   public:
    Panel(Matrix<const Real> table, Index index) : size_(index.size()), columns_(table.columns) {
        constexpr std::size_t lanes = kLanes<Real>;
        values_.assign(n_blocks(size_, lanes) * lanes * columns_, Real{0});
        for (std::size_t k = 0; k < size_; ++k) {
            const auto row = table.row(row_at(index, k));
            Real* group = values_.data() + k / lanes * lanes * columns_ + k % lanes;
            for (std::size_t c = 0; c < columns_; ++c) group[c * lanes] = row[c];
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
    // The group that holds point k, a multiple of kLanes.
    [[nodiscard]] const Real* group(std::size_t k) const noexcept { return values_.data() + k * columns_; }
    [[nodiscard]] Real at(std::size_t k, std::size_t c) const noexcept {
        constexpr std::size_t lanes = kLanes<Real>;
        return values_[(k / lanes * columns_ + c) * lanes + k % lanes];
    }

   private:
    std::size_t size_, columns_;
    std::vector<Real> values_;
};

// out[r * kSegment + k] = distance between row r of a strip (kStrip rows, interleaved by column) and point k of
// n_groups groups.
#if defined(__GNUC__)
template <class Real, Metric kMetric>
KW_CLONES static inline void strip_distances(const Real* strip, std::size_t n_columns, const Real* groups,
                                             std::size_t n_groups, Real* out) noexcept {
    typedef Real Pack __attribute__((vector_size(64)));
    constexpr std::size_t lanes = kLanes<Real>;
    for (std::size_t g = 0; g < n_groups; ++g) {
        Pack s0{}, s1{}, s2{}, s3{};
        const Real* group = groups + g * n_columns * lanes;
        for (std::size_t c = 0; c < n_columns; ++c) {
            Pack b;
            std::memcpy(&b, group + c * lanes, sizeof b);
            const Real* a = strip + c * kStrip;
            const Pack d0 = b - a[0], d1 = b - a[1], d2 = b - a[2], d3 = b - a[3];
            if constexpr (kMetric == Metric::squared) {
                s0 += d0 * d0;
                s1 += d1 * d1;
                s2 += d2 * d2;
                s3 += d3 * d3;
            } else {
                s0 += d0 > -d0 ? d0 : -d0;  // a maximum, which is one instruction
                s1 += d1 > -d1 ? d1 : -d1;
                s2 += d2 > -d2 ? d2 : -d2;
                s3 += d3 > -d3 ? d3 : -d3;
            }
        }
        Real* to = out + g * lanes;
        std::memcpy(to, &s0, sizeof s0);
        std::memcpy(to + kSegment, &s1, sizeof s1);
        std::memcpy(to + 2 * kSegment, &s2, sizeof s2);
        std::memcpy(to + 3 * kSegment, &s3, sizeof s3);
    }
}
#else
template <class Real, Metric kMetric>
void strip_distances(const Real* strip, std::size_t n_columns, const Real* groups, std::size_t n_groups,
                     Real* out) noexcept {
    constexpr std::size_t lanes = kLanes<Real>;
    for (std::size_t r = 0; r < kStrip; ++r)
        for (std::size_t g = 0; g < n_groups; ++g) {
            Real* sums = out + r * kSegment + g * lanes;
            std::fill(sums, sums + lanes, Real{0});
            for (std::size_t c = 0; c < n_columns; ++c)
                for (std::size_t k = 0; k < lanes; ++k) {
                    const Real d = groups[(g * n_columns + c) * lanes + k] - strip[c * kStrip + r];
                    sums[k] += kMetric == Metric::squared ? d * d : std::abs(d);
                }
        }
}
#endif

// Kernels of one table of points with several rates.
template <class Real>
struct PointKernels {
    Matrix<const Real> table;
    Metric metric = Metric::squared;
    std::span<const LadderStep> steps;

    [[nodiscard]] Panel<Real> take(Index index) const { return {table, index}; }

    // Calls use(row, start, segment) with the kernels of each of the rows first..last-1 and of kSegment points from
    // `start` on, for all points from `begin` (a multiple of kLanes) on; the segments of a row are in order.
    template <class Use>
    void each_segment(const Panel<Real>& rows, std::size_t first, std::size_t last, const Panel<Real>& points,
                      std::size_t begin, Use&& use) const {
        const std::size_t n_columns = table.columns;
        std::vector<Real> strips(n_blocks(last - first, kStrip) * kStrip * n_columns, Real{0});
        for (std::size_t i = first; i < last; ++i)
            for (std::size_t c = 0; c < n_columns; ++c)
                strips[((i - first) / kStrip * n_columns + c) * kStrip + (i - first) % kStrip] = rows.at(i, c);
        LadderSegment<Real> segment(steps);
        std::vector<Real> distances(kStrip * kSegment);
        for (std::size_t start = begin; start < points.size(); start += kSegment) {
            const std::size_t length = std::min(kSegment, points.size() - start);
            const std::size_t n_groups = n_blocks(length, kLanes<Real>);
            for (std::size_t top = first; top < last; top += kStrip) {
                const Real* strip = strips.data() + (top - first) * n_columns;
                if (metric == Metric::squared)
                    strip_distances<Real, Metric::squared>(strip, n_columns, points.group(start), n_groups,
                                                           distances.data());
                else
                    strip_distances<Real, Metric::absolute>(strip, n_columns, points.group(start), n_groups,
                                                            distances.data());
                for (std::size_t i = top; i < std::min(top + kStrip, last); ++i) {
                    segment.compute({distances.data() + (i - top) * kSegment, length});
                    use(i, start, segment);
                }
            }
        }
    }
};

// out(i, k) = sum_j weights_j K_j(rows_i, points_k), added to what is there if `add`.
template <class Real, class Out>
void tile_sums(const PointKernels<Real>& kernels, std::span<const double> weights, Index rows, Index points, bool add,
               Matrix<Out> out) {
    const auto A = kernels.take(rows), B = kernels.take(points);
    parallel_blocks(rows.size(), kTileRows, [&](std::size_t first, std::size_t last) {
        std::array<Real, kSegment> buffer;
        kernels.each_segment(A, first, last, B, 0, [&](std::size_t i, std::size_t start, const auto& segment) {
            const auto sum = std::span(buffer).first(segment.length());
            segment.sum(sum, weights);
            const auto target = out.row(i).subspan(start, sum.size());
            if (add) add_values(target, std::span<const Real>(sum));
            else
                std::transform(sum.begin(), sum.end(), target.begin(),
                               [](Real value) { return static_cast<Out>(value); });
        });
    });
}

// out(i, o) = sum over j, k of weights_j K_j(rows_i, points_k) V(k, o).
template <class Real>
void tile_products(const PointKernels<Real>& kernels, std::span<const double> weights, Index rows, Index points,
                   Matrix<const double> V, Matrix<double> out) {
    const auto A = kernels.take(rows), B = kernels.take(points);
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), V.columns, V.rows};
    parallel_blocks(rows.size(), kTileRows, [&](std::size_t first, std::size_t last) {
        std::array<Real, kSegment> buffer;
        for (std::size_t i = first; i < last; ++i) std::fill(out.row(i).begin(), out.row(i).end(), 0.0);
        kernels.each_segment(A, first, last, B, 0, [&](std::size_t i, std::size_t start, const auto& segment) {
            const auto sum = std::span(buffer).first(segment.length());
            segment.sum(sum, weights);
            for (std::size_t o = 0; o < V.columns; ++o)
                out(i, o) += dot(std::span<const Real>(sum), by_output.row(o).subspan(start, sum.size()));
        });
    });
}

// out[j, i, o] = sum over k of K_j(rows_i, points_k) V(k, o): the products of every kernel.
template <class Real>
void tile_kernel_products(const PointKernels<Real>& kernels, Index rows, Index points, Matrix<const double> V,
                          std::span<double> out) {
    const auto A = kernels.take(rows), B = kernels.take(points);
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), V.columns, V.rows};
    const std::size_t n_kernels = kernels.steps.size();
    std::fill(out.begin(), out.end(), 0.0);
    parallel_blocks(rows.size(), kTileRows, [&](std::size_t first, std::size_t last) {
        kernels.each_segment(A, first, last, B, 0, [&](std::size_t i, std::size_t start, const auto& segment) {
            for (std::size_t j = 0; j < n_kernels; ++j)
                for (std::size_t o = 0; o < V.columns; ++o)
                    out[(j * rows.size() + i) * V.columns + o] +=
                        dot(segment.kernel(j), by_output.row(o).subspan(start, segment.length()));
        });
    });
}

// forms[j] = sum over i, k of K_j(points_i, points_k) <V_i, V_k>: the diagonal once, each pair twice.
template <class Real>
void tile_forms(const PointKernels<Real>& kernels, Index points, Matrix<const double> V, std::span<double> forms) {
    const auto A = kernels.take(points);
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), V.columns, V.rows};
    const std::size_t n_kernels = kernels.steps.size();
    std::vector<double> partial(n_blocks(points.size(), kTileRows) * n_kernels, 0.0);
    parallel_blocks(points.size(), kTileRows, [&](std::size_t first, std::size_t last) {
        const auto sums = std::span(partial).subspan(first / kTileRows * n_kernels, n_kernels);
        std::array<double, kSegment> buffer;
        // kTileRows is a multiple of kLanes, so that the tiles left of the diagonal are passed over.
        kernels.each_segment(A, first, last, A, first, [&](std::size_t i, std::size_t start, const auto& segment) {
            const auto products = std::span(buffer).first(segment.length());  // 2 <V_i, V_k>
            std::fill(products.begin(), products.end(), 0.0);
            for (std::size_t o = 0; o < V.columns; ++o)
                add_scaled(products, by_output.row(o).subspan(start, products.size()), 2.0 * V(i, o));
            for (std::size_t k = start; k < std::min(i + 1, start + products.size()); ++k)
                products[k - start] *= k == i ? 0.5 : 0.0;
            for (std::size_t j = 0; j < n_kernels; ++j) sums[j] += dot(segment.kernel(j), products);
        });
    });
    std::fill(forms.begin(), forms.end(), 0.0);
    for (std::size_t k = 0; k < partial.size(); ++k) forms[k % n_kernels] += partial[k];
}

}  // namespace kw
