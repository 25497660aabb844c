// Tests of distances between rows.
#include "core/distances.hpp"

#include "tests/check.hpp"

namespace kw::test {
namespace {

// Rows around an offset, with an equal pair: inner products alone lose the digits of their distances.
void test_squared_distances_of(std::size_t n, double offset) {
    const std::size_t d = 3;
    std::vector<double> X = normals(n * d, 7);
    for (double& value : X) value += offset;
    for (std::size_t c = 0; c < d; ++c) X[(n - 1) * d + c] = X[c];
    std::vector<double> products(n * n), norms(n, 0.0);
    const std::vector<double> scales(d, 0.5);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t c = 0; c < d; ++c) norms[i] += 0.25 * X[i * d + c] * X[i * d + c];
        for (std::size_t k = 0; k < n; ++k)
            for (std::size_t c = 0; c < d; ++c) products[i * n + k] += 0.25 * X[i * d + c] * X[k * d + c];
    }
    auto whole = products, upper = products;
    const ScaledRows rows{as_matrix(X, n, d), as_matrix(X, n, d), scales, norms, norms};
    squared_distances_from_products(as_matrix(whole, n, n), rows, false);
    squared_distances_from_products(as_matrix(upper, n, n), rows, true);
    const auto expected = squared_distances<double>(X, n, d);
    double worst = 0.0;
    bool same = true;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k) {
            const double right = 0.25 * expected[i * n + k];
            worst = std::max(worst, std::abs(whole[i * n + k] - right) / (right > 0.0 ? right : 1.0));
            same = same && upper[i * n + k] == (k < i ? products : whole)[i * n + k];
        }
    check(worst <= 1e-12, "squared distances" + at("", n));
    check(same, "the upper triangle of squared distances" + at("", n));
    check(whole[n - 1] == 0.0, "equal rows" + at("", n));
}

template <class T>
void test_distances_of(std::size_t n) {
    const std::size_t d = 3;
    const auto X = normals(n * d, 7);
    const std::string suffix = at(name_of(T{}), n);
    double worst = 0.0;

    const std::size_t other = n / 2 + 1;
    const auto Z = normals(other * d, 8);
    std::vector<T> absolute(n * other, T(-1));
    absolute_distances(as_matrix(X, n, d), as_matrix(Z, other, d), as_matrix(absolute, n, other));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < other; ++k) {
            double sum = 0.0;
            for (std::size_t c = 0; c < d; ++c) sum += std::abs(X[i * d + c] - Z[k * d + c]);
            worst = std::max(worst, std::abs(static_cast<double>(absolute[i * other + k]) - sum));
        }
    check(worst <= (sizeof(T) == 4 ? 1e-5 : 1e-13), "absolute distances " + suffix);
}

// Ties, as between a row and itself, count as zero.
void test_signed_sums_of(std::size_t n) {
    const std::size_t d = 3, other = n / 2 + 1;
    const auto X = normals(n * d, 7), V = normals(n * other, 9);
    auto Z = normals(other * d, 8);
    for (std::size_t c = 0; c < d && n > 0; ++c) Z[c] = X[c];
    std::vector<double> sums(n * d, -1.0);
    signed_sums(as_matrix(X, n, d), as_matrix(Z, other, d), as_matrix(V, n, other), as_matrix(sums, n, d));
    double worst = 0.0;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < d; ++c) {
            double sum = 0.0;
            for (std::size_t k = 0; k < other; ++k) {
                const double difference = X[i * d + c] - Z[k * d + c];
                if (difference != 0.0) sum += V[i * other + k] * (difference > 0.0 ? 1.0 : -1.0);
            }
            worst = std::max(worst, std::abs(sums[i * d + c] - sum));
        }
    check(worst <= 1e-11, "signed sums" + at("", n));
}

}  // namespace

void test_distances() {
    for (const std::size_t n : kSizes) {
        for (const double offset : {0.0, 1e8})
            if (n > 1) test_squared_distances_of(n, offset);
        test_distances_of<double>(n);
        test_distances_of<float>(n);
        test_signed_sums_of(n);
    }
}

}  // namespace kw::test
