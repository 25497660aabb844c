// Tests of kernels of one distance matrix.
#include "core/ladder.hpp"

#include "core/distances.hpp"
#include "tests/check.hpp"

namespace kw::test {
namespace {

void test_plan() {
    const std::vector<double> rates = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 3.0, 6.0, 0.7};
    const auto steps = plan_ladder(rates);
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
    check(steps[5].parent < 0 || rates[static_cast<std::size_t>(steps[5].parent)] > 1.0,
          "32 is not 1 squared five times");
    check(plan_ladder({}).empty(), "no rates, no steps");
    const std::vector<double> odd = {0.0, 1.0, 1e-320, 1e308, 2.0};
    const auto plan = plan_ladder(odd);
    for (std::size_t j = 0; j < odd.size(); ++j)
        if (plan[j].parent >= 0)
            check(odd[static_cast<std::size_t>(plan[j].parent)] * std::exp2(plan[j].squarings) == odd[j],
                  "extreme rates are squared only where that is right");
}

template <class T>
void test_ladder_of(std::size_t n) {
    const std::vector<double> rates = {0.5, 0.1, 0.2, 1.7}, weights = {0.3, 1.0, 0.0, 2.0};
    const std::size_t m = rates.size(), n_outputs = 2;
    const auto steps = plan_ladder(rates);
    const auto X = normals(n * 3, 3);
    const auto D = squared_distances<T>(X, n, 3);
    const auto distances = as_matrix(D, n, n);
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
    ladder_forms(distances, steps, index, as_matrix(V, index.size(), n_outputs), forms);
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
    ladder_products(distances, steps, rows, index, as_matrix(V, index.size(), n_outputs), products);
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
    ladder_combine_rows(distances, steps, weights, rows, as_matrix(picked, rows.size(), n));
    ladder_combine_block(distances, steps, weights, rows, as_matrix(block, rows.size(), rows.size()));
    ladder_combine_upper(distances, steps, weights, as_matrix(upper, n, n));
    ladder_combine_upper(distances, steps, weights, as_matrix(narrow, n, n));
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
    mirror_upper(as_matrix(upper, n, n));
    bool symmetric = true;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k) symmetric = symmetric && upper[i * n + k] == upper[k * n + i];
    check(symmetric, "mirror_upper " + suffix);
}

void test_gaussian_products(std::size_t n, std::size_t n_kept) {
    const std::size_t d = 2, n_outputs = 3;
    const std::vector<double> rates = {0.2, 0.4, 3.0}, weights = {1.0, 0.5, 2.0};
    const auto features = normals(d * n, 9), kept = normals(d * n_kept, 10), V = normals(n_kept * n_outputs, 11);
    std::vector<double> out(n * n_outputs, kNaN);
    gaussian_products(as_matrix(features, d, n), as_matrix(kept, d, n_kept), plan_ladder(rates), weights,
                      as_matrix(V, n_kept, n_outputs), as_matrix(out, n, n_outputs));
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

}  // namespace

void test_ladder() {
    test_plan();
    for (const std::size_t n : kSizes) {
        test_ladder_of<double>(n);
        test_ladder_of<float>(n);
        test_gaussian_products(n, n / 2);
    }
    test_gaussian_products(5, 600);
    // Bits must not depend on the number of threads.
    const std::size_t n = 300;
    const auto D = squared_distances<double>(normals(n * 2, 12), n, 2);
    const std::vector<double> rates = {0.3, 0.6, 0.9};
    const auto steps = plan_ladder(rates);
    const auto V = normals(n, 13);
    const auto everything = shuffled(n, n, 14);
    std::vector<double> first;
    for (int threads = 1; threads <= 4; ++threads) {
        thread_limit = threads;
        std::vector<double> forms(3), products(3 * n), upper(n * n, 0.0);
        const auto distances = as_matrix(D, n, n);
        ladder_forms(distances, steps, everything, as_matrix(V, n, 1), forms);
        ladder_products(distances, steps, everything, everything, as_matrix(V, n, 1), products);
        ladder_combine_upper(distances, steps, rates, as_matrix(upper, n, n));
        mirror_upper(as_matrix(upper, n, n));
        std::vector<double> all(forms);
        all.insert(all.end(), products.begin(), products.end());
        all.insert(all.end(), upper.begin(), upper.end());
        if (threads == 1) first = all;
        check(all == first, "the same bits for every number of threads");
    }
    thread_limit = 0;
}

}  // namespace kw::test
