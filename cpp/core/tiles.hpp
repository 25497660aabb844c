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
#include "vector_math.hpp"

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

// A kernel of a weighted sum: an exponential, or the kernel before it squared some times.
template <class Real>
struct SumStep {
    Real rate = 0, weight = 0;
    int squarings = 0;  // 0: an exponential
};

// Plans a weighted sum so that kernels by squaring follow those that they are squares of.
template <class Real>
[[nodiscard]] std::vector<SumStep<Real>> plan_sum(std::span<const LadderStep> steps, std::span<const double> weights) {
    std::vector<SumStep<Real>> plan;
    for (std::size_t root = 0; root < steps.size(); ++root) {
        if (steps[root].parent >= 0) continue;
        plan.push_back({static_cast<Real>(-steps[root].rate), static_cast<Real>(weights[root]), 0});
        int done = 0;
        for (int squarings = 1; squarings <= kMostSquarings; ++squarings) {
            double weight = 0.0;
            bool any = false;
            for (std::size_t j = 0; j < steps.size(); ++j)
                if (steps[j].parent == static_cast<std::ptrdiff_t>(root) && steps[j].squarings == squarings) {
                    weight += weights[j];
                    any = true;
                }
            if (!any) continue;
            plan.push_back({Real{0}, static_cast<Real>(weight), squarings - done});
            done = squarings;
        }
    }
    return plan;
}

// sum[k] = sum_j weights_j exp(-rate_j * distance[k]) for n_groups groups of lanes; no kernel is stored on the way.
#if defined(__GNUC__)
template <class Real>
KW_CLONES static inline void sum_segment(const Real* distance, std::size_t n_groups,
                                         std::span<const SumStep<Real>> plan, Real* sum) noexcept {
    typedef Real Pack __attribute__((vector_size(64)));
    constexpr std::size_t lanes = kLanes<Real>;
    for (std::size_t g = 0; g < n_groups; ++g) {
        Pack t, value{}, total{};
        std::memcpy(&t, distance + g * lanes, sizeof t);
        for (const auto& step : plan) {
            if (step.squarings == 0) exp_negative(Pack(step.rate * t), value);
            for (int s = 0; s < step.squarings; ++s) value *= value;
            total += step.weight * value;
        }
        std::memcpy(sum + g * lanes, &total, sizeof total);
    }
}
#else
template <class Real>
void sum_segment(const Real* distance, std::size_t n_groups, std::span<const SumStep<Real>> plan, Real* sum) noexcept {
    for (std::size_t k = 0; k < n_groups * kLanes<Real>; ++k) {
        Real value{0}, total{0};
        for (const auto& step : plan) {
            if (step.squarings == 0) value = exp_negative(step.rate * distance[k]);
            for (int s = 0; s < step.squarings; ++s) value *= value;
            total += step.weight * value;
        }
        sum[k] = total;
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

    // Calls use(row, start, distances) with those of each of the rows first..last-1 and of kSegment points from
    // `start` on, for all points from `begin` (a multiple of kLanes) on; the segments of a row are in order.
    template <class Use>
    void each_distances(const Panel<Real>& rows, std::size_t first, std::size_t last, const Panel<Real>& points,
                        std::size_t begin, Use&& use) const {
        const std::size_t n_columns = table.columns;
        std::vector<Real> strips(n_blocks(last - first, kStrip) * kStrip * n_columns, Real{0});
        for (std::size_t i = first; i < last; ++i)
            for (std::size_t c = 0; c < n_columns; ++c)
                strips[((i - first) / kStrip * n_columns + c) * kStrip + (i - first) % kStrip] = rows.at(i, c);
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
                for (std::size_t i = top; i < std::min(top + kStrip, last); ++i)
                    use(i, start, std::span<const Real>(distances.data() + (i - top) * kSegment, length));
            }
        }
    }

    // The same with use(row, start, segment), which holds every kernel.
    template <class Use>
    void each_segment(const Panel<Real>& rows, std::size_t first, std::size_t last, const Panel<Real>& points,
                      std::size_t begin, Use&& use) const {
        LadderSegment<Real> segment(steps);
        each_distances(rows, first, last, points, begin, [&](std::size_t i, std::size_t start, auto distances) {
            segment.compute(distances);
            use(i, start, segment);
        });
    }

    // The same with use(row, start, sum), a weighted sum of the kernels.
    template <class Use>
    void each_sum(std::span<const SumStep<Real>> plan, const Panel<Real>& rows, std::size_t first, std::size_t last,
                  const Panel<Real>& points, std::size_t begin, Use&& use) const {
        std::array<Real, kSegment> sum;
        each_distances(rows, first, last, points, begin, [&](std::size_t i, std::size_t start, auto distances) {
            sum_segment<Real>(distances.data(), n_blocks(distances.size(), kLanes<Real>), plan, sum.data());
            use(i, start, std::span<const Real>(sum).first(distances.size()));
        });
    }
};

// Writes values, or adds them.
template <class Real, class Out>
void put(std::span<const Real> values, std::span<Out> out, bool add) noexcept {
    if (add) add_values(out, values);
    else std::transform(values.begin(), values.end(), out.begin(), [](Real value) { return static_cast<Out>(value); });
}

// out(i, k) = sum_j weights_j K_j(rows_i, points_k), added to what is there if `add`.
template <class Real, class Out>
void tile_sums(const PointKernels<Real>& kernels, std::span<const double> weights, Index rows, Index points, bool add,
               Matrix<Out> out) {
    const auto A = kernels.take(rows), B = kernels.take(points);
    const auto plan = plan_sum<Real>(kernels.steps, weights);
    parallel_blocks(rows.size(), kTileRows, [&](std::size_t first, std::size_t last) {
        kernels.each_sum(plan, A, first, last, B, 0, [&](std::size_t i, std::size_t start, auto sum) {
            put<Real, Out>(sum, out.row(i).subspan(start, sum.size()), add);
        });
    });
}

constexpr std::size_t kTileStride = kSegment + 16;  // so that the rows of a tile do not share cache sets

// out(k, a) = tile(a, k), added to what is there if `add`; the rows of the tile are kTileStride apart.
template <class Real, class Out>
KW_CLONES static inline void mirror_tile(const Matrix<const Real>& tile, Out* out, std::size_t stride,
                                         bool add) noexcept {
    for (std::size_t k = 0; k < tile.columns; ++k) {
        Out* to = out + k * stride;
        if (add) {
            KW_SIMD()
            for (std::size_t a = 0; a < tile.rows; ++a) to[a] += static_cast<Out>(tile.data[a * kTileStride + k]);
        } else {
            KW_SIMD()
            for (std::size_t a = 0; a < tile.rows; ++a) to[a] = static_cast<Out>(tile.data[a * kTileStride + k]);
        }
    }
}

// The square matrix of tile_sums over the same rows and points, of which the first `known` have been written; each
// value of a pair is computed once. `stride` is the distance of two rows in memory.
template <class Real, class Out>
void tile_square(const PointKernels<Real>& kernels, std::span<const double> weights, Index points, std::size_t known,
                 bool add, Out* out, std::size_t stride) {
    const auto fresh = points.subspan(known);
    const auto A = kernels.take(points), B = kernels.take(fresh);
    const auto plan = plan_sum<Real>(kernels.steps, weights);
    // Rows first..last-1 and the new points from `begin` on, and the mirror image of that.
    const auto fill = [&](std::size_t first, std::size_t last, std::size_t begin) {
        std::vector<Real> tile(kTileRows * kTileStride);
        kernels.each_sum(plan, A, first, last, B, begin, [&](std::size_t i, std::size_t start, auto sum) {
            std::copy(sum.begin(), sum.end(), tile.begin() + static_cast<std::ptrdiff_t>((i - first) * kTileStride));
            put<Real, Out>(sum, {out + i * stride + known + start, sum.size()}, add);
            if (i + 1 < last) return;
            // Inside the tile on the diagonal, both halves are there already.
            const std::size_t done = std::max(last, known + start) - (known + start);
            if (done < sum.size())
                mirror_tile<Real, Out>({tile.data() + done, last - first, sum.size() - done},
                                       out + (known + start + done) * stride + first, stride, add);
        });
    };
    const std::size_t n_old = n_blocks(known, kTileRows);
    parallel_for(n_old + n_blocks(fresh.size(), kTileRows), [&](std::size_t task) {
        if (task < n_old) return fill(task * kTileRows, std::min(known, (task + 1) * kTileRows), 0);
        const std::size_t begin = (task - n_old) * kTileRows;
        fill(known + begin, std::min(points.size(), known + begin + kTileRows), begin);
    });
}

// out(i, o) = sum over j, k of weights_j K_j(rows_i, points_k) V(k, o).
template <class Real>
void tile_products(const PointKernels<Real>& kernels, std::span<const double> weights, Index rows, Index points,
                   Matrix<const double> V, Matrix<double> out) {
    const auto A = kernels.take(rows), B = kernels.take(points);
    const auto plan = plan_sum<Real>(kernels.steps, weights);
    const auto columns = transposed(V);
    const Matrix<const double> by_output{columns.data(), V.columns, V.rows};
    parallel_blocks(rows.size(), kTileRows, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) std::fill(out.row(i).begin(), out.row(i).end(), 0.0);
        kernels.each_sum(plan, A, first, last, B, 0, [&](std::size_t i, std::size_t start, auto sum) {
            for (std::size_t o = 0; o < V.columns; ++o)
                out(i, o) += dot(sum, by_output.row(o).subspan(start, sum.size()));
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
