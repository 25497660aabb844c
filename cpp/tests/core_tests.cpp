// Tests of the core without Python, meant to run under AddressSanitizer and UBSan (`make sanitize`).
//
// Each test compares a header with a plain loop that computes the same thing, for sizes around the block sizes and
// for several numbers of threads. The last line says how many checks passed; the exit code is zero if all did.
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/ball.hpp"
#include "core/bitset.hpp"
#include "core/bundle_model.hpp"
#include "core/cholesky.hpp"
#include "core/features.hpp"
#include "core/gram.hpp"
#include "core/ladder.hpp"
#include "core/lattice.hpp"
#include "core/parallel.hpp"
#include "core/project.hpp"
#include "core/smo.hpp"
#include "core/vector_math.hpp"

namespace {

int passed = 0, failed = 0;

void check(bool holds, const std::string& what) {
    ++(holds ? passed : failed);
    if (!holds) std::printf("FAILED: %s\n", what.c_str());
}

void check_close(double found, double expected, double allowed, const std::string& what) {
    const bool holds = std::abs(found - expected) <= allowed;  // false for NaN
    ++(holds ? passed : failed);
    if (!holds) std::printf("FAILED: %s: found %.17g, expected %.17g\n", what.c_str(), found, expected);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<std::size_t> kSizes = {0, 1, 2, 16, 17, 65, 257};  // around blocks of 16, 64 and 256

std::vector<double> normals(std::size_t n, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    std::vector<double> out(n);
    for (auto& x : out) x = normal(engine);
    return out;
}

std::vector<std::int64_t> shuffled(std::size_t n, std::size_t keep, unsigned seed) {
    std::vector<std::int64_t> out(n);
    std::iota(out.begin(), out.end(), std::int64_t{0});
    std::shuffle(out.begin(), out.end(), std::mt19937_64(seed));
    out.resize(std::min(n, keep));
    return out;
}

// Squared distances between n rows of d normal features, row by row.
template <class T>
std::vector<T> squared_distances(const std::vector<double>& X, std::size_t n, std::size_t d) {
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

const char* name_of(float) { return "float"; }
const char* name_of(double) { return "double"; }

std::string at(const char* what, std::size_t n) { return std::string(what) + ", size " + std::to_string(n); }

// --- parallel.hpp ---

// A thread of which only `left` can be had, as where the system allows a process no more of them.
struct ScarceThread {
    static inline int left = 0;
    template <class Run>
    explicit ScarceThread(Run&& run) : thread(left-- > 0 ? std::jthread(run) : throw std::system_error(EAGAIN, std::generic_category())) {}
    std::jthread thread;
};

void test_parallel() {
    for (int threads = 0; threads <= 4; ++threads) {
        kw::thread_limit = threads;
        check(kw::thread_count() >= 1, "at least one thread");
        for (const std::size_t n : kSizes) {
            std::vector<int> visits(n, 0);
            kw::parallel_for(n, [&](std::size_t task) { ++visits[task]; });
            check(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }), at("each task once", n));
        }
        bool caught = false;
        try {
            kw::parallel_for(100, [](std::size_t task) {
                if (task == 37) throw std::runtime_error("lost");
            });
        } catch (const std::runtime_error& error) {
            caught = std::string(error.what()) == "lost";
        }
        check(caught, "an exception of a task arrives");
        // Loops inside tasks must not deadlock.
        std::vector<int> inner(16, 0);
        kw::parallel_for(4, [&](std::size_t outer) {
            kw::parallel_for(4, [&](std::size_t task) { ++inner[4 * outer + task]; });
        });
        check(std::accumulate(inner.begin(), inner.end(), 0) == 16, "nested loops");
    }
    kw::thread_limit = 4;
    for (const int available : {0, 1, 2}) {
        ScarceThread::left = available;
        std::vector<int> visits(1000, 0);
        kw::parallel_for<ScarceThread>(visits.size(), [&](std::size_t task) { ++visits[task]; });
        check(ScarceThread::left == -1, "a thread was refused");
        check(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }), at("each task once with threads", std::size_t(available)));
    }
    int other = 0;
    std::jthread([&] { other = kw::thread_limit; }).join();
    check(other == 1, "a new thread works alone");
    kw::thread_limit = 0;
}

// --- vector_math.hpp ---

void test_vector_math() {
    double worst = 0.0;
    for (double x = 0.0; x > -708.0; x -= 0.0137) {
        const double expected = std::exp(x);
        worst = std::max(worst, std::abs(kw::exp_negative(x) - expected) / expected);
    }
    check(worst <= 5e-16, "exp_negative is accurate to two units in the last place");
    check(kw::exp_negative(0.0) == 1.0, "exp_negative(0) is exactly one");
    check(kw::exp_negative(-0.0) == 1.0, "exp_negative(-0) is exactly one");
    check(kw::exp_negative(-1e-300) == 1.0, "exp_negative of nearly nothing");
    check(kw::exp_negative(-709.0) == 0.0, "exp_negative below the range");
    check(kw::exp_negative(-1e308) == 0.0, "exp_negative far below the range");
    check(kw::exp_negative(-kInfinity) == 0.0, "exp_negative of minus infinity");
    check(std::isnan(kw::exp_negative(kNaN)), "exp_negative of NaN is NaN");
    for (const std::size_t n : kSizes) {
        const auto a = normals(n, 1), b = normals(n, 2);
        double expected = 0.0;
        for (std::size_t k = 0; k < n; ++k) expected += a[k] * b[k];
        check_close(kw::dot(a.data(), b.data(), n), expected, 1e-13 * (1.0 + static_cast<double>(n)), at("dot", n));
    }
}

// --- ladder.hpp ---

void test_plan() {
    const std::vector<double> rates = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 3.0, 6.0, 0.7};
    const auto steps = kw::plan_ladder(rates.data(), rates.size());
    check(steps.size() == rates.size(), "one step per rate");
    for (std::size_t j = 0; j < rates.size(); ++j) {
        check(steps[j].rate == rates[j], "a step keeps its rate");
        if (steps[j].parent < 0) continue;
        const auto parent = static_cast<std::size_t>(steps[j].parent);
        check(steps[parent].parent < 0, "parents are exponentials");
        check(steps[j].squarings >= 1 && steps[j].squarings <= 4, "one to four squarings");
        check(rates[parent] * std::exp2(steps[j].squarings) == rates[j], "squarings reach the rate");
    }
    check(steps[4].parent == 0 && steps[4].squarings == 4, "16 is 1 squared four times");
    check(steps[5].parent < 0 || rates[static_cast<std::size_t>(steps[5].parent)] > 1.0, "32 is not 1 squared five times");
    check(kw::plan_ladder(nullptr, 0).empty(), "no rates, no steps");
    const std::vector<double> odd = {0.0, 1.0, 1e-320, 1e308, 2.0};
    const auto plan = kw::plan_ladder(odd.data(), odd.size());
    for (std::size_t j = 0; j < odd.size(); ++j)
        if (plan[j].parent >= 0)
            check(odd[static_cast<std::size_t>(plan[j].parent)] * std::exp2(plan[j].squarings) == odd[j],
                  "extreme rates are squared only where that is right");
}

template <class T>
void test_ladder_of(std::size_t n) {
    const std::vector<double> rates = {0.5, 0.1, 0.2, 1.7}, weights = {0.3, 1.0, 0.0, 2.0};
    const std::size_t m = rates.size(), n_outputs = 2;
    const auto steps = kw::plan_ladder(rates.data(), m);
    const auto X = normals(n * 3, 3);
    const auto D = squared_distances<T>(X, n, 3);
    const kw::Matrix<const T> distances{D.data(), n, n};
    const auto index = shuffled(n, n / 2 + 1, 4), rows = shuffled(n, n / 3 + 1, 5);
    const auto V = normals(index.size() * n_outputs, 6);
    const auto kernel = [&](std::size_t j, std::size_t i, std::size_t k) {
        return std::exp(-rates[j] * static_cast<double>(D[i * n + k]));
    };
    const auto mixed = [&](std::size_t i, std::size_t k) {
        double sum = 0.0;
        for (std::size_t j = 0; j < m; ++j) sum += weights[j] * kernel(j, i, k);
        return sum;
    };
    const std::string suffix = at(name_of(T{}), n);
    const double size = 1.0 + static_cast<double>(n);

    std::vector<double> forms(m, kNaN);
    kw::ladder_forms<T>(distances, steps, index.data(), index.size(), V.data(), n_outputs, forms.data());
    for (std::size_t j = 0; j < m; ++j) {
        double expected = 0.0;
        for (std::size_t a = 0; a < index.size(); ++a)
            for (std::size_t b = 0; b < index.size(); ++b)
                for (std::size_t o = 0; o < n_outputs; ++o)
                    expected += kernel(j, static_cast<std::size_t>(index[a]), static_cast<std::size_t>(index[b])) *
                                V[a * n_outputs + o] * V[b * n_outputs + o];
        check_close(forms[j], expected, 1e-11 * size, "ladder_forms " + suffix);
    }

    std::vector<double> products(m * rows.size() * n_outputs, kNaN);
    kw::ladder_products<T>(distances, steps, rows.data(), rows.size(), index.data(), index.size(), V.data(), n_outputs,
                           products.data());
    double worst = 0.0;
    for (std::size_t j = 0; j < m; ++j)
        for (std::size_t a = 0; a < rows.size(); ++a)
            for (std::size_t o = 0; o < n_outputs; ++o) {
                double expected = 0.0;
                for (std::size_t b = 0; b < index.size(); ++b)
                    expected += kernel(j, static_cast<std::size_t>(rows[a]), static_cast<std::size_t>(index[b])) *
                                V[b * n_outputs + o];
                worst = std::max(worst, std::abs(products[(j * rows.size() + a) * n_outputs + o] - expected));
            }
    check(worst <= 1e-12 * size, "ladder_products " + suffix);

    std::vector<double> picked(rows.size() * n, 1.0), block(rows.size() * rows.size(), 1.0), upper(n * n, 1.0);
    std::vector<T> narrow(n * n, T(1));
    kw::ladder_combine_rows<T, double>(distances, steps, weights.data(), rows.data(), rows.size(), picked.data());
    kw::ladder_combine_block<T>(distances, steps, weights.data(), rows.data(), rows.size(), block.data());
    kw::ladder_combine_upper<T, double>(distances, steps, weights.data(), upper.data());
    kw::ladder_combine_upper<T, T>(distances, steps, weights.data(), narrow.data());
    double worst_rows = 0.0, worst_block = 0.0, worst_upper = 0.0, worst_narrow = 0.0;
    for (std::size_t a = 0; a < rows.size(); ++a) {
        const auto i = static_cast<std::size_t>(rows[a]);
        for (std::size_t k = 0; k < n; ++k)
            worst_rows = std::max(worst_rows, std::abs(picked[a * n + k] - 1.0 - mixed(i, k)));
        for (std::size_t b = 0; b < rows.size(); ++b) {
            const double expected = b >= a ? 1.0 + mixed(i, static_cast<std::size_t>(rows[b])) : 1.0;
            worst_block = std::max(worst_block, std::abs(block[a * rows.size() + b] - expected));
        }
    }
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k) {
            const double expected = k >= i ? 1.0 + mixed(i, k) : 1.0;
            worst_upper = std::max(worst_upper, std::abs(upper[i * n + k] - expected));
            worst_narrow = std::max(worst_narrow, std::abs(static_cast<double>(narrow[i * n + k]) - expected));
        }
    check(worst_rows <= 1e-13, "ladder_combine_rows " + suffix);
    check(worst_block <= 1e-13, "ladder_combine_block " + suffix);
    check(worst_upper <= 1e-13, "ladder_combine_upper " + suffix);
    check(worst_narrow <= 1e-5, "ladder_combine_upper in the storage type " + suffix);
    kw::mirror_upper(upper.data(), n);
    bool symmetric = true;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k) symmetric = symmetric && upper[i * n + k] == upper[k * n + i];
    check(symmetric, "mirror_upper " + suffix);
}

// Rows around an offset, with an equal pair: inner products alone lose the digits of their distances.
void test_squared_distances_of(std::size_t n, double offset) {
    const std::size_t d = 3;
    auto X = normals(n * d, 7);
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
    const kw::Matrix<const double> rows{X.data(), n, d};
    kw::squared_distances_from_products(whole.data(), rows, rows, scales.data(), norms.data(), norms.data(), false);
    kw::squared_distances_from_products(upper.data(), rows, rows, scales.data(), norms.data(), norms.data(), true);
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
    kw::absolute_distances<T>({X.data(), n, d}, {Z.data(), other, d}, absolute.data());
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < other; ++k) {
            double sum = 0.0;
            for (std::size_t c = 0; c < d; ++c) sum += std::abs(X[i * d + c] - Z[k * d + c]);
            worst = std::max(worst, std::abs(static_cast<double>(absolute[i * other + k]) - sum));
        }
    check(worst <= (sizeof(T) == 4 ? 1e-5 : 1e-13), "absolute distances " + suffix);
}

void test_gaussian_products(std::size_t n, std::size_t n_kept) {
    const std::size_t d = 2, n_outputs = 3;
    const std::vector<double> rates = {0.2, 0.4, 3.0}, weights = {1.0, 0.5, 2.0};
    const auto features = normals(d * n, 9), kept = normals(d * n_kept, 10), V = normals(n_kept * n_outputs, 11);
    std::vector<double> out(n * n_outputs, kNaN);
    kw::gaussian_products({features.data(), d, n}, {kept.data(), d, n_kept}, kw::plan_ladder(rates.data(), 3),
                          weights.data(), V.data(), n_outputs, out.data());
    double worst = 0.0;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t o = 0; o < n_outputs; ++o) {
            double expected = 0.0;
            for (std::size_t k = 0; k < n_kept; ++k) {
                double distance = 0.0;
                for (std::size_t c = 0; c < d; ++c) {
                    const double difference = features[c * n + i] - kept[c * n_kept + k];
                    distance += difference * difference;
                }
                for (std::size_t j = 0; j < 3; ++j)
                    expected += weights[j] * std::exp(-rates[j] * distance) * V[k * n_outputs + o];
            }
            worst = std::max(worst, std::abs(out[i * n_outputs + o] - expected));
        }
    check(worst <= 1e-11, at("gaussian_products", n));
}

void test_ladder() {
    test_plan();
    for (const std::size_t n : kSizes) {
        test_ladder_of<double>(n);
        test_ladder_of<float>(n);
        for (const double offset : {0.0, 1e8})
            if (n > 1) test_squared_distances_of(n, offset);
        test_distances_of<double>(n);
        test_distances_of<float>(n);
        test_gaussian_products(n, n / 2);
    }
    test_gaussian_products(5, 600);
    // Bits must not depend on the number of threads.
    const std::size_t n = 300;
    const auto D = squared_distances<double>(normals(n * 2, 12), n, 2);
    const std::vector<double> rates = {0.3, 0.6, 0.9};
    const auto steps = kw::plan_ladder(rates.data(), 3);
    const auto V = normals(n, 13);
    const auto everything = shuffled(n, n, 14);
    std::vector<double> first;
    for (int threads = 1; threads <= 4; ++threads) {
        kw::thread_limit = threads;
        std::vector<double> forms(3), products(3 * n), upper(n * n, 0.0);
        const kw::Matrix<const double> distances{D.data(), n, n};
        kw::ladder_forms<double>(distances, steps, everything.data(), n, V.data(), 1, forms.data());
        kw::ladder_products<double>(distances, steps, everything.data(), n, everything.data(), n, V.data(), 1,
                                    products.data());
        kw::ladder_combine_upper<double, double>(distances, steps, rates.data(), upper.data());
        kw::mirror_upper(upper.data(), n);
        std::vector<double> all(forms);
        all.insert(all.end(), products.begin(), products.end());
        all.insert(all.end(), upper.begin(), upper.end());
        if (threads == 1) first = all;
        check(all == first, "the same bits for every number of threads");
    }
    kw::thread_limit = 0;
}

// --- cholesky.hpp ---

std::vector<double> gaussian_gram(const std::vector<double>& features, std::size_t n, std::size_t d, double rate) {
    std::vector<double> K(n * n);
    for (std::size_t i = 0; i < n; ++i) kw::gaussian_column(features.data(), n, d, rate, i, K.data() + i * n);
    return K;
}

kw::Factor factor(const std::vector<double>& K, std::size_t n, double tol, std::size_t max_rank) {
    std::vector<double> diagonal(n);
    for (std::size_t i = 0; i < n; ++i) diagonal[i] = K[i * n + i];
    return kw::pivoted_cholesky(n, diagonal.data(), tol, max_rank, [&](std::size_t i, double* out) {
        for (std::size_t k = 0; k < n; ++k) out[k] = K[k * n + i];
    });
}

void check_factor(const std::vector<double>& K, std::size_t n, const kw::Factor& factor, double tol,
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
    const auto wide = kw::pivoted_cholesky(n, ones.data(), 1e-8, 60, [&](std::size_t i, double* out) {
        kw::gaussian_column(features.data(), n, 1, 0.5, i, out);
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

// --- project.hpp ---

void test_project() {
    for (const std::size_t n : kSizes) {
        const auto x = normals(n, 17);
        std::vector<double> out(n, kNaN);
        if (n > 0) {
            kw::project_simplex(x.data(), n, 1.0, out.data());
            check_close(std::accumulate(out.begin(), out.end(), 0.0), 1.0, 1e-12, at("simplex sum", n));
            check(std::all_of(out.begin(), out.end(), [](double v) { return v >= 0.0; }), at("simplex sign", n));
        }
        std::vector<double> upper(n, 0.5);
        if (n > 1) upper[1] = 0.0;
        if (n > 2) upper[2] = kInfinity;
        for (const double cap : {0.0, 0.3, 2.0, 1e9, kInfinity}) {
            kw::project_capped_box(x.data(), upper.data(), n, cap, out.data());
            double total = 0.0;
            bool inside = true;
            for (std::size_t i = 0; i < n; ++i) {
                total += std::abs(out[i]);
                inside = inside && std::abs(out[i]) <= upper[i] && out[i] * x[i] >= 0.0;
            }
            check(inside, at("capped box", n));
            check(total <= cap * (1.0 + 1e-12) + 1e-12, at("cap", n));
        }
        for (const double p : {1.0, 1.01, 1.5, 2.0, 3.0, 50.0})
            for (const double radius : {0.0, 0.1, 1.0, 1e6}) {
                kw::project_lp_ball(x.data(), n, p, radius, out.data());
                double sum = 0.0, before = 0.0;
                bool kept = true;
                for (std::size_t i = 0; i < n; ++i) {
                    sum += std::pow(std::abs(out[i]), p);
                    before += std::pow(std::abs(x[i]), p);
                    kept = kept && out[i] * x[i] >= 0.0 && std::abs(out[i]) <= std::abs(x[i]);
                }
                check(kept, at("ball keeps signs and shrinks", n));
                const double norm = std::pow(sum, 1.0 / p);
                check(norm <= radius * (1.0 + 1e-9), at("inside the ball", n));
                if (std::pow(before, 1.0 / p) > radius)
                    check_close(norm, radius, 1e-7 * radius, at("on the boundary", n));
            }
    }
    const std::vector<double> x = {3.0, 1.0, -2.0};
    std::vector<double> out(3);
    kw::project_simplex(x.data(), 3, 1.0, out.data());
    check(out == std::vector<double>({1.0, 0.0, 0.0}), "a vertex of the simplex");
    kw::project_lp_ball(x.data(), 3, 1.0, 2.0, out.data());
    check_close(out[0], 1.5, 1e-12, "soft threshold");
    check_close(out[2], -0.5, 1e-12, "soft threshold of a negative entry");
}

// --- smo.hpp ---

enum class Loss { hinge, tube, huber };

kw::SmoProblem make_problem(const std::vector<double>& y, double C, Loss loss, bool intercept) {
    const std::size_t n = y.size();
    kw::SmoProblem problem;
    problem.target = y;
    problem.ridge.assign(n, loss == Loss::huber ? 1.0 / C : 0.0);
    problem.dead_zone = loss == Loss::tube ? 0.1 : 0.0;
    problem.intercept = intercept;
    for (const double value : y) {
        problem.lower.push_back(loss == Loss::hinge && value > 0.0 ? 0.0 : -C);
        problem.upper.push_back(loss == Loss::hinge && value < 0.0 ? 0.0 : C);
    }
    return problem;
}

// Best of a fine search over the bias, which is convex in it.
double searched_loss(const kw::SmoProblem& problem, const std::vector<double>& fitted) {
    double low = -1e3, high = 1e3;
    const auto value = [&](double b) {
        double sum = 0.0;
        for (std::size_t i = 0; i < problem.size(); ++i) sum += problem.loss(i, fitted[i] + b);
        return sum;
    };
    for (int step = 0; step < 200; ++step) {
        const double a = low + (high - low) / 3.0, b = high - (high - low) / 3.0;
        (value(a) <= value(b) ? high : low) = value(a) <= value(b) ? b : a;
    }
    return value(0.5 * (low + high));
}

void test_bias() {
    for (const Loss loss : {Loss::hinge, Loss::tube, Loss::huber})
        for (const std::size_t n : kSizes) {
            auto y = normals(n, 18);
            if (loss == Loss::hinge)
                for (auto& value : y) value = value > 0.0 ? 1.0 : -1.0;
            const auto problem = make_problem(y, 0.7, loss, true);
            const auto fitted = normals(n, 19);
            const double bias = kw::best_bias(problem, fitted.data());
            check(std::isfinite(bias), at("a finite bias", n));
            double found = 0.0;
            for (std::size_t i = 0; i < n; ++i) found += problem.loss(i, fitted[i] + bias);
            check(found <= searched_loss(problem, fitted) + 1e-6, at("no bias is better", n));
        }
    // A NaN must not hold up the walk over the kinks.
    const auto problem = make_problem({1.0, -1.0, 1.0}, 1.0, Loss::hinge, true);
    const std::vector<double> broken = {kNaN, kNaN, 0.0}, infinite = {kInfinity, -kInfinity, 0.0};
    (void)kw::best_bias(problem, broken.data());
    (void)kw::best_bias(problem, infinite.data());
    check(true, "best_bias ends on values that are not numbers");
}

template <class T>
struct Task {
    std::size_t n;
    std::vector<double> y, exact, diagonal;
    std::vector<T> K;

    Task(std::size_t rows, Loss loss, unsigned seed) : n(rows) {
        const std::size_t d = 3;
        auto X = normals(n * d, seed);
        y = normals(n, seed + 1);
        for (std::size_t i = 0; i < n; ++i) {
            y[i] = std::sin(2.0 * X[i * d]) + 0.2 * y[i];
            if (loss == Loss::hinge) {
                y[i] = y[i] > 0.0 ? 1.0 : -1.0;
                X[i * d] += 0.7 * y[i];
            }
        }
        const auto D = squared_distances<double>(X, n, d);
        K.resize(n * n);
        for (std::size_t k = 0; k < n * n; ++k) K[k] = static_cast<T>(std::exp(-0.3 * D[k]));
        exact.assign(K.begin(), K.end());
        diagonal.assign(n, 1.0);
    }

    kw::Smo<T> solver(const kw::SmoProblem& problem, bool lend = true) const {
        kw::Smo<T> smo(problem, diagonal.data());
        if (lend)
            for (std::size_t i = 0; i < n; ++i) smo.lend(i, K.data() + i * n);
        return smo;
    }

    std::vector<double> product(const std::vector<double>& beta) const {
        std::vector<double> out(n, 0.0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k) out[i] += exact[i * n + k] * beta[k];
        return out;
    }

    void check_solution(const kw::Smo<T>& smo, const kw::SmoProblem& problem, double tol, const std::string& what) const {
        const auto& beta = smo.beta();
        const auto f = product(beta);
        double sum = 0.0, size = 0.0, quadratic = 0.0, linear = 0.0, losses = 0.0, drift = 0.0;
        bool inside = true;
        for (std::size_t i = 0; i < n; ++i) {
            inside = inside && beta[i] >= problem.lower[i] && beta[i] <= problem.upper[i];
            sum += beta[i];
            size += std::abs(beta[i]);
            quadratic += beta[i] * f[i];
            linear += problem.target[i] * beta[i] - problem.dead_zone * std::abs(beta[i]) -
                      0.5 * problem.ridge[i] * beta[i] * beta[i];
            losses += problem.loss(i, f[i] + smo.bias());
            drift = std::max(drift, std::abs(f[i] - smo.fitted()[i]));
        }
        const double primal = 0.5 * quadratic + losses, dual = linear - 0.5 * quadratic;
        const double scale = std::abs(primal) + 1e-300;
        check(inside, what + ": inside the boxes");
        if (problem.intercept) check(std::abs(sum) <= 1e-11 * size, what + ": balanced");
        check(drift <= 1e-9 * (1.0 + size), what + ": fitted values");
        check(primal - dual <= tol * scale * (1.0 + 1e-6) + 1e-12, what + ": the gap");
        check(primal - dual >= -1e-9 * scale, what + ": bounds on their sides");
        check(std::abs(primal - smo.primal()) <= 1e-8 * scale, what + ": the primal value");
    }
};

template <class T>
void test_smo_of(Loss loss, bool intercept, std::size_t n) {
    const Task<T> task(n, loss, 20);
    const auto problem = make_problem(task.y, 2.0, loss, intercept);
    const std::string what = at("SMO", n);
    auto smo = task.solver(problem);
    check(smo.run(1e-7, 0.0, 10'000'000, kInfinity) == kw::SmoStatus::converged, what + ": converged");
    task.check_solution(smo, problem, 1e-7, what);

    auto lazy = task.solver(problem, false);
    std::vector<std::vector<T>> copies;  // rows at addresses of their own, so that reading beyond them is seen
    copies.reserve(n);
    auto status = lazy.run(1e-7, 0.0, 10'000'000, kInfinity);
    for (std::size_t round = 0; status == kw::SmoStatus::needs_rows && round <= n; ++round) {
        const auto wanted = lazy.wanted(1 + round % 5);
        check(!wanted.empty(), what + ": a row is wanted");
        for (const auto row : wanted) {
            const auto i = static_cast<std::size_t>(row);
            check(!lazy.has(i), what + ": a wanted row is missing");
            copies.emplace_back(task.K.begin() + row * static_cast<std::int64_t>(n),
                                task.K.begin() + (row + 1) * static_cast<std::int64_t>(n));
            lazy.lend(i, copies.back().data());
        }
        status = lazy.run(1e-7, 0.0, 10'000'000, kInfinity);
    }
    check(status == kw::SmoStatus::converged, what + ": rows on demand converge");
    // Shrinking depends on where a run stops, so that bits may differ, but not the answer.
    check(std::abs(lazy.primal() - smo.primal()) <= 2e-7 * std::abs(smo.primal()) + 1e-12, what + ": the same answer");
    task.check_solution(lazy, problem, 1e-7, what + ", rows on demand");

    auto paused = task.solver(problem);
    status = paused.run(1e-6, 0.0, 3, kInfinity);
    for (int round = 0; status == kw::SmoStatus::paused && round < 100'000; ++round)
        status = paused.run(1e-6, 0.0, 3, kInfinity);
    check(status == kw::SmoStatus::converged, what + ": pauses end");
    task.check_solution(paused, problem, 1e-6, what + ", paused");

    auto again = task.solver(problem);
    const auto fitted = task.product(smo.beta());
    again.start(smo.beta().data(), fitted.data());
    check(again.run(1e-6, 0.0, 10'000'000, kInfinity) == kw::SmoStatus::converged, what + ": warm start");
    check(again.updates() <= smo.updates(), what + ": a warm start saves work");

    auto early = task.solver(problem);
    early.run(1e-9, 0.0, 10'000'000, 0.5 * smo.dual());
    check(early.dual() >= 0.5 * smo.dual() * (1.0 - 1e-9), what + ": enough");
}

void test_smo() {
    for (const Loss loss : {Loss::hinge, Loss::tube, Loss::huber})
        for (const bool intercept : {true, false})
            for (const std::size_t n : {0, 1, 2, 3, 31, 100, 257}) {
                test_smo_of<double>(loss, intercept, n);
                test_smo_of<float>(loss, intercept, n);
            }
    // Large enough to shrink, in one run and with pauses.
    for (const bool intercept : {true, false}) {
        const Task<float> task(900, Loss::hinge, 30);
        const auto problem = make_problem(task.y, 20.0, Loss::hinge, intercept);
        auto smo = task.solver(problem);
        check(smo.run(1e-6, 0.0, 10'000'000, kInfinity) == kw::SmoStatus::converged, "shrinking: converged");
        check(smo.updates() > 1000, "shrinking: long enough to shrink");
        task.check_solution(smo, problem, 1e-6, "shrinking");
        auto paused = task.solver(problem);
        auto status = kw::SmoStatus::paused;
        while (status == kw::SmoStatus::paused) status = paused.run(1e-6, 0.0, 700, kInfinity);
        check(status == kw::SmoStatus::converged, "shrinking with pauses: converged");
        task.check_solution(paused, problem, 1e-6, "shrinking with pauses");
    }
    // Problems that cannot be solved must end all the same.
    const std::vector<double> y = {1.0, -1.0, 1.0, -1.0, 1.0}, ones(5, 1.0);
    for (const double bad : {kNaN, kInfinity, -kInfinity, 1e308, -1e308})
        for (const bool intercept : {true, false}) {
            const std::vector<double> K(25, bad);
            kw::Smo<double> smo(make_problem(y, 1.0, Loss::hinge, intercept), ones.data());
            for (std::size_t i = 0; i < 5; ++i) smo.lend(i, K.data() + 5 * i);
            for (int round = 0; round < 3; ++round) (void)smo.run(1e-6, 0.0, 1000, kInfinity);
            check(smo.updates() <= 3000, "rows that are not numbers end the run");
        }
    for (const double scale : {1e-300, 1e-170, 1e-100, 1e100, 1e150})
        for (const bool intercept : {true, false}) {
            const Task<double> task(20, Loss::tube, 40);
            auto scaled = task.y;
            for (auto& value : scaled) value *= scale;
            auto problem = make_problem(scaled, 5.0 * scale, Loss::tube, intercept);
            problem.dead_zone = 0.0;
            auto smo = task.solver(problem);
            (void)smo.run(1e-6, 0.0, 100'000, kInfinity);
            check(std::isfinite(smo.bias()), "targets of any size end the run");
        }
    // One class, empty boxes, a zero kernel.
    const Task<double> task(20, Loss::hinge, 50);
    auto smo = task.solver(make_problem(std::vector<double>(20, 1.0), 1.0, Loss::hinge, true));
    check(smo.run(1e-9, 0.0, 1000, kInfinity) == kw::SmoStatus::converged && smo.primal() == 0.0, "one class");
    auto closed = task.solver(make_problem(task.y, 0.0, Loss::tube, true));
    check(closed.run(1e-9, 0.0, 1000, kInfinity) == kw::SmoStatus::converged, "empty boxes");
    const std::vector<double> zeros(400, 0.0);
    kw::Smo<double> flat(make_problem(task.y, 1.0, Loss::hinge, true), zeros.data());
    for (std::size_t i = 0; i < 20; ++i) flat.lend(i, zeros.data() + 20 * i);
    check(flat.run(1e-9, 0.0, 100'000, kInfinity) == kw::SmoStatus::converged, "a zero kernel");
    // Several problems in threads, as the bindings run them.
    for (int threads = 1; threads <= 4; ++threads) {
        kw::thread_limit = threads;
        std::vector<kw::Smo<double>> several;
        for (const double C : {0.1, 1.0, 10.0}) several.push_back(task.solver(make_problem(task.y, C, Loss::hinge, true)));
        kw::parallel_for(several.size(), [&](std::size_t o) { (void)several[o].run(1e-8, 0.0, 1'000'000, kInfinity); });
        for (const auto& solved : several) check(solved.primal() - solved.dual() <= 1e-8 * solved.primal(), "in threads");
    }
    kw::thread_limit = 0;
}

// --- gram.hpp ---

template <class T>
void test_grams_of(std::size_t n, std::size_t n_outputs) {
    std::mt19937 random(17);
    std::normal_distribution<double> normal;
    const std::size_t m = 3;
    std::vector<std::vector<T>> grams(m, std::vector<T>(n * n));
    for (auto& gram : grams)
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k <= i; ++k) gram[i * n + k] = gram[k * n + i] = static_cast<T>(normal(random));
    std::vector<std::int64_t> index, rows;
    for (std::size_t i = 0; i < n; i += 2) index.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = n; i-- > 0;)
        if (i % 3 == 1) rows.push_back(static_cast<std::int64_t>(i));
    std::vector<double> V(index.size() * n_outputs);
    for (auto& v : V) v = normal(random);
    std::vector<const T*> pointers;
    for (const auto& gram : grams) pointers.push_back(gram.data());
    std::vector<double> forms(m), all(m * n * n_outputs), some(m * rows.size() * n_outputs);
    kw::gram_forms<T>(pointers, n, index.data(), index.size(), V.data(), n_outputs, forms.data());
    kw::gram_products<T>(pointers, n, index.data(), index.size(), V.data(), n_outputs, all.data());
    kw::gram_products_at<T>(pointers, n, rows.data(), rows.size(), index.data(), index.size(), V.data(), n_outputs,
                            some.data());
    const double near = 1e-12 * static_cast<double>(n + 1);
    for (std::size_t j = 0; j < m; ++j) {
        double form = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t o = 0; o < n_outputs; ++o) {
                double product = 0.0;
                for (std::size_t k = 0; k < index.size(); ++k)
                    product += static_cast<double>(grams[j][i * n + static_cast<std::size_t>(index[k])]) * V[k * n_outputs + o];
                check(std::abs(product - all[(j * n + i) * n_outputs + o]) <= near, at("product with a stored matrix", n));
                if (i % 2 == 0) form += V[(i / 2) * n_outputs + o] * product;
                for (std::size_t r = 0; r < rows.size(); ++r)
                    if (static_cast<std::size_t>(rows[r]) == i)
                        check(std::abs(product - some[(j * rows.size() + r) * n_outputs + o]) <= near,
                              at("the same at some rows", n));
            }
        check(std::abs(form - forms[j]) <= near * static_cast<double>(n + 1), at("form of a stored matrix", n));
    }
    // Of few rows, entries are picked one by one instead.
    const std::vector<std::int64_t> last{static_cast<std::int64_t>(n - 1)};
    kw::gram_forms<T>(pointers, n, last.data(), 1, V.data(), n_outputs, forms.data());
    double square = 0.0;
    for (std::size_t o = 0; o < n_outputs; ++o) square += V[o] * V[o];
    for (std::size_t j = 0; j < m; ++j)
        check(std::abs(forms[j] - square * static_cast<double>(grams[j][n * n - 1])) <= near, at("form of one row", n));
}

template <class T, class Out>
void test_sums_of_grams(std::size_t n) {
    const std::size_t m = 5;
    std::vector<std::vector<T>> grams(m, std::vector<T>(n * n));
    std::vector<const T*> pointers;
    std::vector<double> sum(n * n, 0.0);
    const auto weights = normals(m, 23);
    for (std::size_t j = 0; j < m; ++j) {
        const auto values = normals(n * n, 24 + static_cast<unsigned>(j));
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k <= i; ++k)
                grams[j][i * n + k] = grams[j][k * n + i] = static_cast<T>(values[i * n + k]);
        for (std::size_t i = 0; i < n * n; ++i) sum[i] += weights[j] * static_cast<double>(grams[j][i]);
        pointers.push_back(grams[j].data());
    }
    std::vector<std::int64_t> index;
    for (std::size_t i = 0; i < n; i += 3) index.push_back(static_cast<std::int64_t>(i));
    const std::size_t few = index.size();
    std::vector<Out> upper(n * n, Out(1)), rows(few * n, Out(1));
    std::vector<double> block(few * few, 1.0);
    kw::gram_combine_upper<T, Out>(pointers, n, weights.data(), upper.data());
    kw::gram_combine_rows<T, Out>(pointers, n, weights.data(), index.data(), few, rows.data());
    kw::gram_combine_block<T>(pointers, n, weights.data(), index.data(), few, block.data());
    const double near = std::is_same_v<Out, float> ? 1e-5 : 1e-13;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k)
            check_close(static_cast<double>(upper[i * n + k]), k < i ? 1.0 : 1.0 + sum[i * n + k], near, "upper triangle of a sum");
    for (std::size_t a = 0; a < few; ++a) {
        for (std::size_t k = 0; k < n; ++k)
            check_close(static_cast<double>(rows[a * n + k]), 1.0 + sum[3 * a * n + k], near, "rows of a sum");
        for (std::size_t b = 0; b < few; ++b)
            check_close(block[a * few + b], b < a ? 1.0 : 1.0 + sum[3 * a * n + 3 * b], 1e-13, "block of a sum");
    }
}

void test_grams() {
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}})
        for (const std::size_t n_outputs : {std::size_t{1}, std::size_t{3}}) {
            test_grams_of<double>(n, n_outputs);
            test_grams_of<float>(n, n_outputs);
        }
    test_grams_of<double>(kw::kGramChunk + 3, 1);  // more than one task per matrix
    for (const std::size_t n : {std::size_t{1}, std::size_t{9}, 3 * kw::kGramPanel}) {
        test_sums_of_grams<double, double>(n);
        test_sums_of_grams<double, float>(n);
        test_sums_of_grams<float, double>(n);
        test_sums_of_grams<float, float>(n);
    }
}

// --- bundle_model.hpp ---

void test_bundle_model() {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const std::size_t k = 1 + seed % 9, c = 1 + seed % 4;
        const auto cuts = normals(c, seed), root = normals(k * k, 100 + seed);
        auto slopes = normals(c * k, 200 + seed);
        for (auto& slope : slopes) slope = -std::abs(slope);
        std::vector<double> M(k * k, 0.0), centre(k, 0.0);
        for (std::size_t a = 0; a < k; ++a)
            for (std::size_t b = 0; b < k; ++b) {
                M[a * k + b] = a == b ? 0.1 : 0.0;
                for (std::size_t r = 0; r < k; ++r) M[a * k + b] += root[a * k + r] * root[b * k + r];
            }
        centre[seed % k] = 1.0;
        kw::InteriorPoint solver({k, c, cuts.data(), slopes.data(), M.data(), centre.data()});
        solver.run();
        // At the solution weights and reduced costs, slacks and multipliers are complementary, and the gradient in
        // every weight is that of the constraint on their sum plus its reduced cost.
        const auto& x = solver.x();
        double sum = 0.0, share = 0.0, level = 0.0;
        for (std::size_t i = 0; i < c; ++i) {
            share += solver.multipliers()[i];
            check(solver.slack()[i] * solver.multipliers()[i] <= 1e-10, "a cut is active or without multiplier");
        }
        for (std::size_t a = 0; a < k; ++a) {
            double slope = -solver.reduced()[a];
            for (std::size_t b = 0; b < k; ++b) slope += M[a * k + b] * (x[b] - centre[b]);
            for (std::size_t i = 0; i < c; ++i) slope += solver.multipliers()[i] * slopes[i * k + a];
            if (a == 0) level = slope;
            check_close(slope, level, 1e-8, "slopes agree");
            check(x[a] > 0.0 && x[a] * solver.reduced()[a] <= 1e-10, "a weight is zero or without reduced cost");
            sum += x[a];
        }
        check_close(sum, 1.0, 1e-10, "weights sum to one");
        check_close(share, 1.0, 1e-8, "multipliers sum to one");
    }
    // Input that is no quadratic program must end all the same, with the last numbers there were.
    for (const double bad : {kNaN, kInfinity, -kInfinity, -1e300, 1e300}) {
        const std::vector<double> cuts{0.0, bad}, slopes{-1.0, -2.0, -1.5, bad}, M{bad, 0.0, 0.0, 1.0}, centre{0.5, 0.5};
        kw::InteriorPoint solver({2, 2, cuts.data(), slopes.data(), M.data(), centre.data()});
        solver.run();
        for (const double x : solver.x()) check(std::isfinite(x), "weights are numbers");
    }
}

// --- ball.hpp ---

// Squared radius of the smallest circle around points in the plane: some two or three of them lie on it.
double smallest_circle(const std::vector<double>& X, std::size_t n) {
    const auto around = [&](double x, double y) {
        double far = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double dx = X[2 * i] - x, dy = X[2 * i + 1] - y;
            far = std::max(far, dx * dx + dy * dy);
        }
        return far;
    };
    double best = around(X[0], X[1]);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j) {
            best = std::min(best, around(0.5 * (X[2 * i] + X[2 * j]), 0.5 * (X[2 * i + 1] + X[2 * j + 1])));
            for (std::size_t k = 0; k < j; ++k) {
                const double ax = X[2 * i] - X[2 * k], ay = X[2 * i + 1] - X[2 * k + 1];
                const double bx = X[2 * j] - X[2 * k], by = X[2 * j + 1] - X[2 * k + 1];
                const double cross = 2.0 * (ax * by - ay * bx), a = ax * ax + ay * ay, b = bx * bx + by * by;
                const double x = (by * a - ay * b) / cross, y = (ax * b - bx * a) / cross;
                if (cross != 0.0) best = std::min(best, around(X[2 * k] + x, X[2 * k + 1] + y));
            }
        }
    return best;
}

template <class T>
struct Cloud {
    std::size_t n;
    std::vector<double> X, exact, diagonal, ridge;
    std::vector<T> K;

    // Points in the plane by their inner products, or Gaussians of them.
    Cloud(std::size_t rows, bool gaussian, double most_ridge, unsigned seed)
        : n(rows), X(normals(2 * rows, seed)), ridge(rows) {
        const auto D = squared_distances<double>(X, n, 2);
        K.resize(n * n);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k)
                K[i * n + k] = static_cast<T>(gaussian ? std::exp(-D[i * n + k])
                                                       : X[2 * i] * X[2 * k] + X[2 * i + 1] * X[2 * k + 1]);
        exact.assign(K.begin(), K.end());
        for (std::size_t i = 0; i < n; ++i) {
            diagonal.push_back(exact[i * n + i]);
            ridge[i] = most_ridge * static_cast<double>(i + 1) / static_cast<double>(n);
        }
    }

    std::vector<double> product(const std::vector<double>& beta) const {
        std::vector<double> out(n, 0.0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k) out[i] += exact[i * n + k] * beta[k];
        return out;
    }

    kw::Ball<T> solver(const std::vector<double>& beta, bool lend = true) const {
        kw::Ball<T> ball(diagonal, ridge);
        const auto fitted = product(beta);
        ball.start(beta.data(), fitted.data());
        if (lend)
            for (std::size_t i = 0; i < n; ++i) ball.lend(i, K.data() + i * n);
        return ball;
    }

    // Squared radius of the ball around the centre found, after a check of what the solver says.
    double check_solution(const kw::Ball<T>& ball, double tol, const std::string& what) const {
        const auto& beta = ball.beta();
        const auto f = product(beta);
        const auto said = ball.fitted();
        double sum = 0.0, inside = 0.0, linear = 0.0, far = -kInfinity, drift = 0.0;
        bool positive = true;
        for (std::size_t i = 0; i < n; ++i) {
            const double d = diagonal[i] + ridge[i], kb = f[i] + ridge[i] * beta[i];
            positive = positive && beta[i] >= 0.0;
            sum += beta[i], inside += beta[i] * kb, linear += beta[i] * d;
            far = std::max(far, d - 2.0 * kb);
            drift = std::max(drift, std::abs(f[i] - said[i]));
        }
        const double upper = far + inside, lower = linear - inside;
        check(positive, what + ": no negative weight");
        check_close(sum, 1.0, 1e-12, what + ": weights sum to one");
        check(drift <= 1e-11, what + ": fitted values");
        check(upper - lower <= tol * lower * (1.0 + 1e-6) + 1e-11, what + ": the gap");
        check(upper - lower >= -1e-11, what + ": bounds on their sides");
        return upper;
    }
};

template <class T>
void test_ball_of(std::size_t n, bool gaussian, double most_ridge) {
    const Cloud<T> cloud(n, gaussian, most_ridge, 60);
    const std::string what = at("ball", n) + ", " + name_of(T{});
    const std::vector<double> even(n, 1.0 / static_cast<double>(n));
    const double tol = 1e-7;
    auto ball = cloud.solver(even);
    check(ball.run(tol, 10'000'000) == kw::BallStatus::converged, what + ": converged");
    const double found = cloud.check_solution(ball, tol, what);
    if (!gaussian && most_ridge == 0.0 && n <= 65)
        check_close(found, smallest_circle(cloud.X, n), 1e-6 * found, what + ": the smallest circle");

    auto lazy = cloud.solver(even, false);
    std::vector<std::vector<T>> copies;  // rows at addresses of their own, so that reading beyond them is seen
    copies.reserve(n);
    auto status = lazy.run(tol, 10'000'000);
    for (std::size_t round = 0; status == kw::BallStatus::needs_rows && round <= n; ++round) {
        const auto wanted = lazy.wanted(round % 5);
        check(!wanted.empty(), what + ": a row is wanted");
        check(wanted.size() <= round % 5 + 1, what + ": no more rows than asked for");
        for (const auto row : wanted) {
            copies.emplace_back(cloud.K.begin() + row * static_cast<std::int64_t>(n),
                                cloud.K.begin() + (row + 1) * static_cast<std::int64_t>(n));
            lazy.lend(static_cast<std::size_t>(row), copies.back().data());
        }
        check(copies.size() <= n, what + ": no row is wanted twice");
        status = lazy.run(tol, 10'000'000);
    }
    check(status == kw::BallStatus::converged, what + ": rows on demand converge");
    check(lazy.beta() == ball.beta() && lazy.updates() == ball.updates(), what + ": rows on demand change nothing");

    auto paused = cloud.solver(even);
    check(paused.run(tol, 0) == kw::BallStatus::paused, what + ": no updates, a pause");
    while ((status = paused.run(tol, 1)) == kw::BallStatus::paused) {
    }
    check(status == kw::BallStatus::converged && paused.beta() == ball.beta(), what + ": pauses change nothing");

    auto again = cloud.solver(ball.beta());
    check(again.run(2.0 * tol, 10'000'000) == kw::BallStatus::converged, what + ": warm start");
    check(again.updates() == 0, what + ": a warm start has nothing to do");

    auto tight = cloud.solver(even);
    status = tight.run(0.0, 10'000'000);
    check(status == kw::BallStatus::converged || status == kw::BallStatus::stalled, what + ": tolerance zero ends");
    cloud.check_solution(tight, 1e-6, what + ", tolerance zero");
}

void test_ball() {
    for (const std::size_t n : {1, 2, 3, 17, 65, 257})
        for (const bool gaussian : {true, false})
            for (const double most_ridge : {0.0, 0.7}) {
                test_ball_of<double>(n, gaussian, most_ridge);
                test_ball_of<float>(n, gaussian, most_ridge);
            }
    // Points at right angles, and points that are all the same.
    const std::size_t n = 9;
    std::vector<double> identity(n * n, 0.0), first(n, 0.0);
    const std::vector<double> ones(n, 1.0), none(n, 0.0), same(n * n, 1.0);
    for (std::size_t i = 0; i < n; ++i) identity[i * n + i] = 1.0;
    first[0] = 1.0;
    kw::Ball<double> cross(ones, none), point(ones, none);
    cross.start(first.data(), first.data());
    point.start(first.data(), ones.data());
    for (std::size_t i = 0; i < n; ++i) cross.lend(i, identity.data() + i * n), point.lend(i, same.data() + i * n);
    check(cross.run(1e-12, 1'000'000) == kw::BallStatus::converged, "points at right angles: converged");
    for (const double beta : cross.beta()) check_close(beta, 1.0 / 9.0, 1e-6, "points at right angles: equal weights");
    check(point.run(1e-12, 1000) == kw::BallStatus::converged && point.updates() == 0, "one point nine times");
    // Rows that are not those of a Gram matrix must end all the same.
    for (const double bad : {kNaN, kInfinity, -kInfinity, 1e308, -1e308, -1.0, 5.0}) {
        const std::vector<double> K(n * n, bad);
        kw::Ball<double> ball(ones, none);
        ball.start(first.data(), none.data());
        for (std::size_t i = 0; i < n; ++i) ball.lend(i, K.data() + i * n);
        for (int round = 0; round < 3; ++round) (void)ball.run(1e-6, 1000);
        check(ball.updates() <= 3000, "rows that are not numbers end the run");
    }
}

// --- columns of bits ---

struct Truths {
    std::size_t n, p;
    std::vector<char> values;  // row by row
    std::vector<kw::Word> bits;
    bool at(std::size_t i, std::size_t c) const { return values[i * p + c] != 0; }
};

Truths truths(std::size_t n, std::size_t p, double share, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::bernoulli_distribution draw(share);
    Truths out{n, p, std::vector<char>(n * p), std::vector<kw::Word>(p * kw::words_for(n))};
    for (auto& value : out.values) value = draw(engine);
    static_assert(sizeof(bool) == sizeof(char));
    for (std::size_t c = 0; c < p; ++c)
        kw::pack_column(reinterpret_cast<const bool*>(out.values.data()) + c, p, n,
                        out.bits.data() + c * kw::words_for(n));
    return out;
}

std::vector<double> padded(const std::vector<double>& values, std::size_t n, std::size_t n_outputs) {
    const std::size_t length = kw::words_for(n) * kw::kWordBits;
    std::vector<double> out(n_outputs * length, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t t = 0; t < n_outputs; ++t) out[t * length + i] = values[i * n_outputs + t];
    return out;
}

void test_bits() {
    for (const std::size_t n : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{3000}}) {
        const std::size_t p = 70, n_outputs = 2, n_words = kw::words_for(n);
        const auto table = truths(n, p, 0.4, static_cast<unsigned>(n));
        const auto V = normals(n * n_outputs, 1), weights = normals(p * n_outputs, 2);
        const auto values = padded(V, n, n_outputs);
        std::vector<double> sums(p * n_outputs), products(n_outputs * n_words * kw::kWordBits);
        kw::bit_sums(table.bits.data(), p, n_words, values.data(), n_outputs, sums.data());
        kw::bit_products(table.bits.data(), p, n_words, weights.data(), n_outputs, products.data());
        for (std::size_t c = 0; c < p; ++c) {
            std::size_t count = 0;
            double sum = 0.0, parts[2] = {};
            for (std::size_t i = 0; i < n; ++i) {
                if (!table.at(i, c)) continue;
                ++count;
                sum += V[i * n_outputs];
                parts[V[i * n_outputs] < 0.0] += std::abs(V[i * n_outputs]);
            }
            const kw::Word* column = table.bits.data() + c * n_words;
            check(kw::count_bits(column, n_words) == count, "count of ones");
            check_close(sums[c * n_outputs], sum, 1e-10, "sum under the ones");
            for (const int side : {0, 1}) {
                const kw::Planes planes = kw::make_planes(table.bits.data(), p, n_words, values.data(), 1.0 - 2.0 * side);
                const kw::Word* own = planes.bits.data() + c * planes.n_words;
                const auto found = kw::plane_sum(own, planes.planes.data(), planes.n_words, planes.n_groups);
                const auto best = kw::best_plane_sums()(own, planes.planes.data(), planes.n_words, planes.n_groups);
                check(best.multiples == found.multiples && best.rows == found.rows, "counts of any processor");
                const double most = planes.step * static_cast<double>(found.multiples);
                check(most >= parts[side], "planes bound a sum from above");
                check(most - planes.step * static_cast<double>(found.rows) <= parts[side], "and from below");
                check(most <= parts[side] + planes.step * static_cast<double>(count), "closely");
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            double sum = 0.0;
            for (std::size_t c = 0; c < p; ++c) sum += table.at(i, c) ? weights[c * n_outputs + 1] : 0.0;
            check_close(products[n_words * kw::kWordBits + i], sum, 1e-10, "sum of columns");
        }
        const auto index = shuffled(n, 100, 3);
        std::vector<double> rows(index.size() * p);
        kw::bit_rows(table.bits.data(), p, n_words, index.data(), index.size(), rows.data());
        for (std::size_t r = 0; r < index.size(); ++r)
            for (std::size_t c = 0; c < p; ++c)
                check(rows[r * p + c] == table.at(static_cast<std::size_t>(index[r]), c), "rows of bits");
        std::vector<double> pairs(p * p);
        kw::bit_counts(table.bits.data(), p, n_words, table.bits.data(), pairs.data());
        for (std::size_t a = 0; a < p; ++a)
            for (std::size_t b = 0; b < p; ++b) {
                double count = 0.0;
                for (std::size_t i = 0; i < n; ++i) count += table.at(i, 0) && table.at(i, a) && table.at(i, b);
                check(pairs[a * p + b] == count, "counts of pairs under a mask");
            }
        // Rows kept by a column, by the instruction and by the loop.
        const kw::Word* mask = table.bits.data();
        const std::size_t kept_words = kw::words_for(kw::count_bits(mask, n_words));
        std::vector<kw::Word> fast(kept_words, 0), plain(kept_words, 0);
        kw::keep_rows(table.bits.data() + n_words, mask, n_words, fast.data());
        kw::keep_rows(table.bits.data() + n_words, mask, n_words, plain.data(), kw::gather_portable);
        check(fast == plain, "both ways to keep rows agree");
        std::size_t place = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (!table.at(i, 0)) continue;
            check(((plain[place / 64] >> (place % 64)) & 1) == table.at(i, 1), "kept rows");
            ++place;
        }
    }
}

void test_lattice() {
    for (const double base : {0.7, 1.0, 2.0}) {
        const std::size_t n = 150, p = 7, n_outputs = 2;
        const auto table = truths(n, p, 0.6, 5);
        const auto V = normals(n * n_outputs, 6);
        const auto values = padded(V, n, n_outputs);
        std::vector<kw::Found> all;
        for (unsigned set = 1; set < (1U << p); ++set) {
            kw::Conjunction members;
            for (std::size_t c = 0; c < p; ++c)
                if ((set >> c) & 1) members.push_back(static_cast<std::int32_t>(c));
            double sums[2] = {0.0, 0.0};
            for (std::size_t i = 0; i < n; ++i) {
                bool holds = true;
                for (const auto c : members) holds = holds && table.at(i, static_cast<std::size_t>(c));
                for (std::size_t t = 0; holds && t < n_outputs; ++t) sums[t] += V[i * n_outputs + t];
            }
            const double form = sums[0] * sums[0] + sums[1] * sums[1];
            all.push_back({form / std::pow(base, 2.0 * static_cast<double>(members.size())), members});
        }
        std::sort(all.begin(), all.end());
        const std::unordered_set<kw::Conjunction, kw::ConjunctionHash> known = {all[0].members, all[3].members};
        std::vector<kw::Found> rest;
        for (const auto& found : all)
            if (!known.contains(found.members)) rest.push_back(found);
        kw::LatticeSearch search{table.bits.data(), values.data(), p, kw::words_for(n), n_outputs, base, 0.0, p,
                                 20, 1'000'000, nullptr};
        const auto answer = kw::LatticeWalk(search, known).run();
        check(answer.complete && answer.found.size() == 20, "a whole search");
        for (std::size_t k = 0; k < answer.found.size(); ++k) {
            check(answer.found[k].members == rest[k].members, "the largest conjunctions");
            check_close(answer.found[k].ratio, rest[k].ratio, 1e-9 * rest[k].ratio, "their ratios");
        }
        search.max_visited = 10;
        check(!kw::LatticeWalk(search, known).run().complete, "a search that was cut says so");
        search.max_visited = 1'000'000;
        search.max_length = 2;
        for (const auto& found : kw::LatticeWalk(search, known).run().found)
            check(found.members.size() <= 2, "conjunctions that are too long");
    }
}

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
        kw::feature_times(Z.data(), n, rank, W.data(), n_outputs, times.data());
        kw::feature_sums(Z.data(), n, rank, V.data(), n_outputs, sums.data());
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
    const kw::BoxDual dual{target.data(), lower.data(), upper.data(), ridge.data(), 0.05, 0.0};
    double total = 0.0, moved = 1.0;
    for (std::uint64_t epoch = 0; epoch < 3000 && moved > 1e-13; ++epoch)
        moved = kw::descend_box(Z.data(), n, rank, squares.data(), dual, epoch, 0.0, t.data(), v.data(), total);
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

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    test_parallel();
    test_vector_math();
    for (int threads = 1; threads <= 4; threads += 3) {
        kw::thread_limit = threads;
        test_ladder();
        test_cholesky();
        test_grams();
        test_bits();
        test_features_as<float>("float");
        test_features_as<double>("double");
    }
    test_project();
    test_bias();
    test_smo();
    test_bundle_model();
    test_ball();
    test_lattice();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
