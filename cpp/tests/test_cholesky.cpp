// Tests of pivoted Cholesky factors.
#include "core/cholesky.hpp"

#include "tests/check.hpp"

namespace kw::test {
namespace {

std::vector<double> gaussian_gram(const std::vector<double>& features, std::size_t n, std::size_t d, double rate) {
    std::vector<double> K(n * n);
    for (std::size_t i = 0; i < n; ++i) gaussian_column(as_matrix(features, d, n), rate, i, as_matrix(K, n, n).row(i));
    return K;
}

Factor factor(const std::vector<double>& K, std::size_t n, double tol, std::size_t max_rank) {
    std::vector<double> diagonal(n);
    for (std::size_t i = 0; i < n; ++i) diagonal[i] = K[i * n + i];
    return pivoted_cholesky(diagonal, tol, max_rank, [&](std::size_t i, std::span<double> out) {
        for (std::size_t k = 0; k < n; ++k) out[k] = K[k * n + i];
    });
}

void check_factor(const std::vector<double>& K, std::size_t n, const Factor& factor, double tol,
                  const std::string& what) {
    const std::size_t rank = factor.pivots.size();
    check(factor.columns.size() == rank * n && factor.residual.size() == n, what + ": shapes");
    const auto held = [&](std::size_t i, std::size_t k) {
        double sum = 0.0;
        for (std::size_t r = 0; r < rank; ++r) sum += factor.columns[r * n + i] * factor.columns[r * n + k];
        return sum;
    };
    double scale = 0.0, trace = 0.0, left = 0.0, worst = 0.0;
    for (std::size_t i = 0; i < n; ++i) scale = std::max(scale, K[i * n + i]), trace += K[i * n + i];
    bool right = true;
    for (std::size_t i = 0; i < n; ++i) {
        left += factor.residual[i];
        right = right && factor.residual[i] >= 0.0;
        worst = std::max(worst, std::abs(K[i * n + i] - held(i, i) - factor.residual[i]));
    }
    check(right, what + ": residuals are not negative");
    check(worst <= 1e-12 * scale, what + ": the residual diagonal is exact");
    worst = 0.0;
    for (const auto pivot : factor.pivots)
        for (std::size_t i = 0; i < n; ++i) {
            const auto p = static_cast<std::size_t>(pivot);
            worst = std::max(worst, std::abs(held(i, p) - K[i * n + p]));
        }
    check(worst <= 1e-11 * scale, what + ": pivot columns are reproduced");
    bool triangular = true;
    for (std::size_t r = 0; r < rank; ++r)
        for (std::size_t q = 0; q < r; ++q)
            triangular = triangular && factor.columns[r * n + static_cast<std::size_t>(factor.pivots[q])] == 0.0;
    check(triangular, what + ": exact zeros at earlier pivots");
    if (factor.complete) check(left <= tol * trace + 1e-13 * trace, what + ": the tolerance is met");
}

}  // namespace

void test_cholesky() {
    for (const std::size_t n : kSizes)
        for (const std::size_t d : {std::size_t{1}, std::size_t{3}})
            for (const double tol : {1e-2, 1e-10}) {
                const auto features = normals(n * d, 15);
                const auto K = gaussian_gram(features, n, d, 0.5);
                const auto full = factor(K, n, tol, n);
                check(full.complete || n == 0, at("a full rank is complete", n));
                check_factor(K, n, full, tol, at("Gaussian factor", n));
                const auto cut = factor(K, n, tol, 2);
                check(cut.pivots.size() <= 2, at("max_rank is respected", n));
                check_factor(K, n, cut, tol, at("cut factor", n));
                check(factor(K, n, tol, 0).pivots.empty(), at("rank zero", n));
            }
    // Across the tile of rows that is updated together.
    const std::size_t n = 2100;
    const auto features = normals(n, 16);
    const std::vector<double> ones(n, 1.0);
    const auto wide = pivoted_cholesky(ones, 1e-8, 60, [&](std::size_t i, std::span<double> out) {
        gaussian_column(as_matrix(features, 1, n), 0.5, i, out);
    });
    check(wide.complete && wide.pivots.size() < 40, "a smooth kernel on one column has a small rank");
    const std::vector<double> zero(25, 0.0), constant(25, 3.0);
    check(factor(zero, 5, 1e-6, 5).complete, "the zero kernel is complete");
    check(factor(zero, 5, 1e-6, 5).pivots.empty(), "the zero kernel has no pivot");
    check(factor(constant, 5, 1e-6, 5).pivots.size() == 1, "the constant kernel has rank one");
    std::vector<double> identity(36, 0.0);
    for (std::size_t i = 0; i < 6; ++i) identity[7 * i] = 1.0;
    const auto ties = factor(identity, 6, 1e-12, 6);
    check(ties.pivots == std::vector<std::int64_t>({0, 1, 2, 3, 4, 5}), "ties go to the lower row");
    check(factor({}, 0, 1e-6, 3).pivots.empty(), "no rows");
}

}  // namespace kw::test
