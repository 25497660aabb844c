// Factors of product games, in the order in which the games read them: terms are the vector lane.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/matrix.hpp"
#include "core/parallel.hpp"

namespace kw {

inline constexpr std::size_t kTerms = 32;  // terms handled together

struct alignas(64) Lane : std::array<double, kTerms> {};
struct alignas(64) SingleLane : std::array<float, kTerms> {};

// Eight numbers in registers; their products are taken one by one where the compiler has no vector types.
inline constexpr std::size_t kPack = 8;
#if defined(__GNUC__)
typedef double Pack __attribute__((vector_size(64), may_alias));
#else
struct Pack {
    double x[kPack];
    friend Pack operator*(Pack a, const Pack& b) {
        for (std::size_t i = 0; i < kPack; ++i) a.x[i] *= b.x[i];
        return a;
    }
    friend Pack operator*(double a, Pack b) {
        for (double& x : b.x) x *= a;
        return b;
    }
    friend Pack operator+(Pack a, const Pack& b) {
        for (std::size_t i = 0; i < kPack; ++i) a.x[i] += b.x[i];
        return a;
    }
    friend Pack operator-(Pack a, const Pack& b) {
        for (std::size_t i = 0; i < kPack; ++i) a.x[i] -= b.x[i];
        return a;
    }
};
#endif

// Products of series: coefficient k receives left[i] * right[j].
struct SeriesStep {
    std::size_t left, right, to;
};

// Factors of all players for a block of terms; arrays of shape (n_players, n_coefficients, n_rows, n_terms).
struct GameBlock {
    const double* inside = nullptr;   // for the rows that are explained
    const double* outside = nullptr;  // for the rows of the background
    const double* extra = nullptr;    // (n_inside, n_outside, n_terms), multiplies the games; null: one
    std::size_t n_players = 0, n_coefficients = 1, n_inside = 0, n_outside = 0, n_terms = 0;
    Matrix<const double> coef;                    // (n_terms, n_outputs)
    std::span<const double> start;                // (n_coefficients,): a series that multiplies all games
    std::span<const SeriesStep> steps;            // of a product of two series
    std::span<const double> nodes, node_weights;  // of the quadrature on [0, 1]
    double least = 0.0;  // terms of plain factors whose value is below this for all coalitions are left out

    [[nodiscard]] std::size_t n_outputs() const noexcept { return coef.columns; }
    [[nodiscard]] std::size_t width() const noexcept { return n_players * n_coefficients; }
};

inline constexpr Lane kOnes = [] {
    Lane lane{};
    for (double& x : lane) x = 1.0;
    return lane;
}();

// Factors of one side in the order in which games read them: rows, groups of 32 terms, players, coefficients. Lanes are
// filled with zeros beyond the last term.
template <class LaneType = Lane>
class PackedFactors {
   public:
    PackedFactors(const double* factors, std::size_t n_rows, std::size_t n_terms, std::size_t width)
        : n_groups_(n_blocks(n_terms, kTerms)), width_(width), lanes_(n_rows * n_groups_ * width) {
        parallel_for(n_rows, [&](std::size_t row) {
            for (std::size_t k = 0; k < width; ++k) {
                const double* from = factors + (k * n_rows + row) * n_terms;
                for (std::size_t i = 0; i < n_terms; ++i)
                    lanes_[(row * n_groups_ + i / kTerms) * width + k][i % kTerms] =
                        static_cast<typename LaneType::value_type>(from[i]);
            }
        });
    }
    [[nodiscard]] std::span<const LaneType> operator()(std::size_t row, std::size_t group) const noexcept {
        return std::span<const LaneType>(lanes_).subspan((row * n_groups_ + group) * width_, width_);
    }
    [[nodiscard]] std::size_t n_groups() const noexcept { return n_groups_; }

   private:
    std::size_t n_groups_, width_;
    std::vector<LaneType> lanes_;
};

}  // namespace kw
