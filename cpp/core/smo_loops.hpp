// The vector loops of sequential minimal optimisation over all samples.
//
// The first span gives the length; the pointers are to arrays of at least that length. Loops run by blocks: the vector
// loop of a block gives the extreme value, and only a block with a new extreme is searched for its place.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>

#include "simd.hpp"

namespace kw::smo_loops {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The curvature along a pair is at least this share of K_ii + K_jj (LIBSVM uses an absolute 1e-12 likewise), so that
// equal rows and rounding give finite steps.
constexpr double kLeastCurvature = 1e-12;
constexpr double kTiny = 1e-300;     // against division by zero where the diagonal is zero
constexpr std::size_t kBlock = 256;  // samples of a vector loop; its arrays stay in the first-level cache

struct Choice {
    std::size_t index;  // the number of samples where there is none
    double value;
};

// v -= di K_i + dj K_j; returns the largest of v - up.
template <class T>
[[nodiscard]] KW_CLONES static inline double update(std::span<double> v, const double* up, const T* row_i, double di,
                                                    const T* row_j, double dj) noexcept {
    double best = -kInfinity;
    KW_SIMD(reduction(max : best))
    for (std::size_t k = 0; k < v.size(); ++k) {
        v[k] -= di * static_cast<double>(row_i[k]) + dj * static_cast<double>(row_j[k]);
        const double value = v[k] - up[k];
        best = value > best ? value : best;
    }
    return best;
}

struct Scores {
    double highest, lowest;  // largest score, smallest v - down
};

// scores: twice the decrease of the objective for each partner of i, (best - v_k + down_k)^2 / (K_ii + K_kk - 2 K_ik),
// the second-order rule WSS 3 of Fan, Chen and Lin (2005). `own` is K_ii and `best` is v_i - up_i.
template <class T>
[[nodiscard]] KW_CLONES static inline Scores score(std::span<const double> v, const double* down,
                                                   const double* diagonal, const T* row, double own, double best,
                                                   double* scores) noexcept {
    double highest = 0.0, lowest = kInfinity;
    KW_SIMD(reduction(max : highest) reduction(min : lowest))
    for (std::size_t k = 0; k < v.size(); ++k) {
        const double value = v[k] - down[k];
        lowest = value < lowest ? value : lowest;
        const double difference = best - value > 0.0 ? best - value : 0.0;
        const double sum = own + diagonal[k];
        const double raw = sum - 2.0 * static_cast<double>(row[k]);
        const double floored = raw > kLeastCurvature * sum ? raw : kLeastCurvature * sum;
        const double curvature = floored > kTiny ? floored : kTiny;
        const double value_score = difference * (difference / curvature);
        scores[k] = value_score;
        highest = value_score > highest ? value_score : highest;
    }
    return {highest, lowest};
}

// v -= di K_i + dj K_j; the largest of v - up and its place.
template <class T>
[[nodiscard]] Choice update_all(std::span<double> v, const double* up, const T* row_i, double di, const T* row_j,
                                double dj) noexcept {
    std::size_t index = v.size();
    double best = -kInfinity;
    for (std::size_t start = 0; start < v.size(); start += kBlock) {
        const std::size_t length = std::min(kBlock, v.size() - start);
        const double top = update<T>(v.subspan(start, length), up + start, row_i + start, di, row_j + start, dj);
        if (!(top > best)) continue;
        best = top;
        for (std::size_t k = start; k < start + length; ++k)
            if (v[k] - up[k] == top) {
                index = k;
                break;
            }
    }
    return {index, best};
}

// The partner with the largest score; the value is the smallest v - down of all samples.
template <class T>
[[nodiscard]] Choice score_all(std::span<const double> v, const double* down, const double* diagonal, const T* row,
                               double own, double best) noexcept {
    std::size_t partner = v.size();
    double gain = 0.0, lowest = kInfinity;
    std::array<double, kBlock> scores;
    for (std::size_t start = 0; start < v.size(); start += kBlock) {
        const std::size_t length = std::min(kBlock, v.size() - start);
        const auto [highest, low] =
            score<T>(v.subspan(start, length), down + start, diagonal + start, row + start, own, best, scores.data());
        lowest = std::min(lowest, low);
        if (!(highest > gain)) continue;
        gain = highest;
        for (std::size_t k = 0; k < length; ++k)
            if (scores[k] == highest) {
                partner = start + k;
                break;
            }
    }
    return {partner, lowest};
}

}  // namespace kw::smo_loops
