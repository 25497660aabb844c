// Shared by the tests of the core: counted checks, random data, reference distances.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/matrix.hpp"

namespace kw::test {

inline int passed = 0, failed = 0;

inline void check(bool holds, const std::string& what) {
    ++(holds ? passed : failed);
    if (!holds) std::printf("FAILED: %s\n", what.c_str());
}

inline void check_close(double found, double expected, double allowed, const std::string& what) {
    const bool holds = std::abs(found - expected) <= allowed;  // false for NaN
    ++(holds ? passed : failed);
    if (!holds) std::printf("FAILED: %s: found %.17g, expected %.17g\n", what.c_str(), found, expected);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline const std::vector<std::size_t> kSizes = {0, 1, 2, 16, 17, 65, 257};  // around blocks of 16, 64 and 256

[[nodiscard]] inline std::vector<double> normals(std::size_t n, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    std::vector<double> out(n);
    for (auto& x : out) x = normal(engine);
    return out;
}

[[nodiscard]] inline std::vector<std::int64_t> shuffled(std::size_t n, std::size_t keep, unsigned seed) {
    std::vector<std::int64_t> out(n);
    std::iota(out.begin(), out.end(), std::int64_t{0});
    std::shuffle(out.begin(), out.end(), std::mt19937_64(seed));
    out.resize(std::min(n, keep));
    return out;
}

// Squared distances between n rows of d normal features, row by row.
template <class T>
[[nodiscard]] std::vector<T> squared_distances(const std::vector<double>& X, std::size_t n, std::size_t d) {
    std::vector<T> out(n * n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k) {
            double sum = 0.0;
            for (std::size_t c = 0; c < d; ++c) {
                const double difference = X[i * d + c] - X[k * d + c];
                sum += difference * difference;
            }
            out[i * n + k] = static_cast<T>(sum);
        }
    return out;
}

[[nodiscard]] inline const char* name_of(float) { return "float"; }
[[nodiscard]] inline const char* name_of(double) { return "double"; }

[[nodiscard]] inline std::string at(const char* what, std::size_t n) {
    return std::string(what) + ", size " + std::to_string(n);
}

template <class T>
[[nodiscard]] Matrix<const T> as_matrix(const std::vector<T>& values, std::size_t rows, std::size_t columns) {
    return {values.data(), rows, columns};
}
template <class T>
[[nodiscard]] Matrix<T> as_matrix(std::vector<T>& values, std::size_t rows, std::size_t columns) {
    return {values.data(), rows, columns};
}

// One function per file of tests; those with a comment are run for several numbers of threads.
void test_parallel();
void test_vector_math();
void test_ladder();         // threads
void test_tiles();          // threads
void test_distances();      // threads
void test_cholesky();       // threads
void test_grams();          // threads
void test_bits();           // threads
void test_features();       // threads
void test_product_games();  // threads
void test_order_statistic();
void test_project();
void test_squared_lasso();
void test_bias();
void test_smo();
void test_bundle_model();
void test_ball();
void test_lattice();

}  // namespace kw::test
