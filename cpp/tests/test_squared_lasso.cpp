// Tests of coordinate descent for a squared weighted l1 norm: its optimality conditions.
#include "core/squared_lasso.hpp"

#include "tests/check.hpp"

namespace kw::test {

void test_squared_lasso() {
    for (const std::size_t n : {1u, 2u, 7u, 20u})
        for (const std::size_t n_outputs : {1u, 3u}) {
            std::vector<std::vector<double>> grams;
            std::vector<Matrix<const double>> parts;
            for (std::size_t t = 0; t < n_outputs; ++t) {
                const auto root = normals(n * n, static_cast<unsigned>(5 + t));
                std::vector<double> gram(n * n, 0.0);
                for (std::size_t i = 0; i < n; ++i)
                    for (std::size_t j = 0; j < n; ++j)
                        for (std::size_t k = 0; k < n; ++k) gram[i * n + j] += root[i * n + k] * root[j * n + k];
                grams.push_back(std::move(gram));
            }
            for (const auto& gram : grams) parts.push_back({gram.data(), n, n});
            const auto linear = normals(n * n_outputs, 99);
            std::vector<double> costs(n), f(n * n_outputs, 0.0);
            std::vector<std::int8_t> signs(n, 0);
            for (std::size_t w = 0; w < n; ++w) costs[w] = 0.3 + 0.1 * static_cast<double>(w % 3);
            if (n_outputs == 1)
                for (std::size_t w = 0; w < n; ++w) signs[w] = static_cast<std::int8_t>(static_cast<int>(w % 3) - 1);
            const SquaredLasso problem{.grams = parts,
                                       .linear = {linear.data(), n, n_outputs},
                                       .costs = costs,
                                       .signs = signs,
                                       .tol = 1e-26,
                                       .max_sweeps = 100000};
            (void)solve_squared_lasso(problem, {f.data(), n, n_outputs});
            double omega = 0.0;
            std::vector<double> norms(n, 0.0);
            for (std::size_t w = 0; w < n; ++w) {
                for (std::size_t t = 0; t < n_outputs; ++t) norms[w] += f[w * n_outputs + t] * f[w * n_outputs + t];
                norms[w] = std::sqrt(norms[w]);
                omega += costs[w] * norms[w];
            }
            for (std::size_t w = 0; w < n; ++w) {
                double size = 0.0, error = 0.0;
                for (std::size_t t = 0; t < n_outputs; ++t) {
                    double slope = linear[w * n_outputs + t];
                    for (std::size_t v = 0; v < n; ++v) slope -= grams[t][w * n + v] * f[v * n_outputs + t];
                    if (norms[w] <= 0.0 && signs[w] * slope < 0.0) slope = 0.0;
                    size += slope * slope;
                    if (norms[w] > 0.0)
                        error = std::max(error, std::abs(slope - omega * costs[w] * f[w * n_outputs + t] / norms[w]));
                    check(signs[w] * f[w * n_outputs + t] >= 0.0, at("sign of a coefficient", n));
                }
                check(std::sqrt(size) <= omega * costs[w] + 1e-6, at("slope of a coefficient", n));
                check(error <= 1e-6, at("stationary coefficient", n));
            }
        }
}

}  // namespace kw::test
