// Tests of stored Gram matrices.
#include "core/gram.hpp"

#include <type_traits>

#include "tests/check.hpp"

namespace kw::test {
namespace {

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
    const auto vectors = as_matrix(V, index.size(), n_outputs);
    Grams<T> stored{{}, n};
    for (const auto& gram : grams) stored.matrices.push_back(gram.data());
    std::vector<double> forms(m), all(m * n * n_outputs), some(m * rows.size() * n_outputs);
    gram_forms(stored, index, vectors, forms);
    gram_products(stored, index, vectors, all);
    gram_products_at(stored, rows, index, vectors, some);
    const double near = 1e-12 * static_cast<double>(n + 1);
    for (std::size_t j = 0; j < m; ++j) {
        double form = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t o = 0; o < n_outputs; ++o) {
                double product = 0.0;
                for (std::size_t k = 0; k < index.size(); ++k)
                    product += static_cast<double>(grams[j][i * n + static_cast<std::size_t>(index[k])]) *
                               V[k * n_outputs + o];
                check(std::abs(product - all[(j * n + i) * n_outputs + o]) <= near,
                      at("product with a stored matrix", n));
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
    gram_forms(stored, last, as_matrix(V, 1, n_outputs), forms);
    double square = 0.0;
    for (std::size_t o = 0; o < n_outputs; ++o) square += V[o] * V[o];
    for (std::size_t j = 0; j < m; ++j)
        check(std::abs(forms[j] - square * static_cast<double>(grams[j][n * n - 1])) <= near, at("form of one row", n));
}

template <class T, class Out>
void test_sums_of_grams(std::size_t n) {
    const std::size_t m = 5;
    std::vector<std::vector<T>> grams(m, std::vector<T>(n * n));
    Grams<T> stored{{}, n};
    std::vector<double> sum(n * n, 0.0);
    const auto weights = normals(m, 23);
    for (std::size_t j = 0; j < m; ++j) {
        const auto values = normals(n * n, 24 + static_cast<unsigned>(j));
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k <= i; ++k)
                grams[j][i * n + k] = grams[j][k * n + i] = static_cast<T>(values[i * n + k]);
        for (std::size_t i = 0; i < n * n; ++i) sum[i] += weights[j] * static_cast<double>(grams[j][i]);
        stored.matrices.push_back(grams[j].data());
    }
    std::vector<std::int64_t> index;
    for (std::size_t i = 0; i < n; i += 3) index.push_back(static_cast<std::int64_t>(i));
    const std::size_t few = index.size();
    std::vector<Out> upper(n * n, Out(1)), rows(few * n, Out(1));
    std::vector<double> block(few * few, 1.0);
    gram_combine_upper(stored, weights, as_matrix(upper, n, n));
    gram_combine_rows(stored, weights, index, as_matrix(rows, few, n));
    gram_combine_block(stored, weights, index, as_matrix(block, few, few));
    const double near = std::is_same_v<Out, float> ? 1e-5 : 1e-13;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k)
            check_close(static_cast<double>(upper[i * n + k]), k < i ? 1.0 : 1.0 + sum[i * n + k], near,
                        "upper triangle of a sum");
    for (std::size_t a = 0; a < few; ++a) {
        for (std::size_t k = 0; k < n; ++k)
            check_close(static_cast<double>(rows[a * n + k]), 1.0 + sum[3 * a * n + k], near, "rows of a sum");
        for (std::size_t b = 0; b < few; ++b)
            check_close(block[a * few + b], b < a ? 1.0 : 1.0 + sum[3 * a * n + 3 * b], 1e-13, "block of a sum");
    }
}

}  // namespace

void test_grams() {
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}})
        for (const std::size_t n_outputs : {std::size_t{1}, std::size_t{3}}) {
            test_grams_of<double>(n, n_outputs);
            test_grams_of<float>(n, n_outputs);
        }
    test_grams_of<double>(kGramChunk + 3, 1);  // more than one task per matrix
    for (const std::size_t n : {std::size_t{1}, std::size_t{9}, 3 * kGramPanel}) {
        test_sums_of_grams<double, double>(n);
        test_sums_of_grams<double, float>(n);
        test_sums_of_grams<float, double>(n);
        test_sums_of_grams<float, float>(n);
    }
}

}  // namespace kw::test
