// Tests of products and coordinate descent in feature space.
#include "core/features.hpp"

#include "tests/check.hpp"

namespace kw::test {
namespace {

// Products of rows of features against plain loops, and coordinate descent against the conditions of its optimum.
template <class T>
void test_features_as(const char* name) {
    std::mt19937 random(17);
    std::normal_distribution<double> normal;
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
        const std::size_t rank = 5, n_outputs = 2;
        std::vector<T> Z(n * rank);
        for (auto& z : Z) z = static_cast<T>(normal(random));
        std::vector<double> W(rank * n_outputs), V(n * n_outputs), times(n * n_outputs), sums(rank * n_outputs);
        for (auto& w : W) w = normal(random);
        for (std::size_t k = 0; k < V.size(); ++k) V[k] = k % 3 == 0 ? 0.0 : normal(random);
        feature_times<T>(as_matrix(Z, n, rank), as_matrix(W, n_outputs, rank), as_matrix(times, n, n_outputs));
        feature_sums<T>(as_matrix(Z, n, rank), as_matrix(V, n, n_outputs), as_matrix(sums, n_outputs, rank));
        double worst = 0.0;
        for (std::size_t t = 0; t < n_outputs; ++t) {
            std::vector<double> expected(rank, 0.0);
            for (std::size_t i = 0; i < n; ++i) {
                double value = 0.0;
                for (std::size_t r = 0; r < rank; ++r) {
                    value += static_cast<double>(Z[i * rank + r]) * W[t * rank + r];
                    expected[r] += static_cast<double>(Z[i * rank + r]) * V[i * n_outputs + t];
                }
                worst = std::max(worst, std::abs(value - times[i * n_outputs + t]));
            }
            for (std::size_t r = 0; r < rank; ++r) worst = std::max(worst, std::abs(expected[r] - sums[t * rank + r]));
        }
        check_close(worst, 0.0, 1e-10, std::string("products of features, ") + name);
    }
    const std::size_t n = 60, rank = 4;
    std::vector<T> Z(n * rank);
    for (auto& z : Z) z = static_cast<T>(normal(random));
    std::vector<double> target(n), lower(n), upper(n), ridge(n, 0.3), squares(rank, 0.7), t(n, 0.0), v(rank, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        target[i] = normal(random);
        lower[i] = i % 7 == 0 ? 0.0 : -1.0;
        upper[i] = i % 7 == 0 ? 0.0 : 1.0;
    }
    const BoxDual dual{target, lower, upper, ridge, 0.05, 0.0};
    double total = 0.0, moved = 1.0;
    for (std::uint64_t epoch = 0; epoch < 3000 && moved > 1e-13; ++epoch)
        moved = descend_box<T>(as_matrix(Z, n, rank), squares, dual, epoch, 0.0, t, v, total);
    double sum = 0.0, off = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += t[i];
        double value = 0.0;
        for (std::size_t r = 0; r < rank; ++r) value += static_cast<double>(Z[i * rank + r]) * v[r];
        const double force = target[i] - value - 0.3 * t[i];  // what pulls the coefficient, less the dead zone
        if (lower[i] == upper[i]) check(t[i] == 0.0, "a row without a box stays at zero");
        else if (t[i] == 0.0) off = std::max(off, std::abs(force) - 0.05);
        else if (t[i] == upper[i]) off = std::max(off, 0.05 - force);
        else if (t[i] == lower[i]) off = std::max(off, 0.05 + force);
        else off = std::max(off, std::abs(force - std::copysign(0.05, t[i])));
    }
    check_close(sum, total, 1e-10, "the sum of coefficients is kept");
    check(off < 1e-9, std::string("coordinate descent ends at the optimum, ") + name);
}

}  // namespace

void test_features() {
    test_features_as<float>("float");
    test_features_as<double>("double");
}

}  // namespace kw::test
