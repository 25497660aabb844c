// Tests of product games.
#include "core/product_games.hpp"

#include <bit>

#include "tests/check.hpp"

namespace kw::test {
namespace {

// Values and interactions of all coalitions by definition, with series of three coefficients and a partial lane.
void test_games_as(std::size_t n_coefficients, std::size_t n_terms) {
    const std::size_t d = 4, n_inside = 2, n_outside = 3, n_outputs = 2;
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    const auto fill = [&](std::size_t size) {
        std::vector<double> out(size);
        for (auto& x : out) x = normal(random);
        return out;
    };
    const auto inside = fill(d * n_coefficients * n_inside * n_terms);
    const auto outside = fill(d * n_coefficients * n_outside * n_terms);
    const auto extra = fill(n_inside * n_outside * n_terms);
    const auto coef = fill(n_terms * n_outputs);
    const auto start = fill(n_coefficients);
    std::vector<SeriesStep> steps;
    for (std::size_t i = 0; i < n_coefficients; ++i)
        for (std::size_t j = 0; i + j < n_coefficients; ++j) steps.push_back({i, j, i + j});
    const double root = std::sqrt(0.15);  // three Gauss nodes on [0, 1]
    const std::vector<double> nodes{0.5 - root, 0.5, 0.5 + root}, weights{5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0};
    GameBlock block{inside.data(),
                    outside.data(),
                    extra.data(),
                    d,
                    n_coefficients,
                    n_inside,
                    n_outside,
                    n_terms,
                    as_matrix(coef, n_terms, n_outputs),
                    start,
                    steps,
                    nodes,
                    weights};
    std::vector<double> values(n_inside * n_outside * d * n_outputs);
    add_product_games(block, values);
    const std::vector<double> row_weights{0.2, 0.3, 0.5};
    std::vector<double> pairs(n_inside * d * (d - 1) / 2 * n_outputs);
    add_product_interactions(block, row_weights, pairs);

    const auto value = [&](std::size_t row, std::size_t other, std::size_t output, unsigned present) {
        double total = 0.0;
        for (std::size_t i = 0; i < n_terms; ++i) {
            std::vector<double> series(start);
            for (std::size_t l = 0; l < d; ++l) {
                std::vector<double> next(n_coefficients, 0.0);
                for (const auto& step : steps) {
                    const std::size_t k = l * n_coefficients + step.right;
                    next[step.to] +=
                        series[step.left] * ((present >> l & 1U) != 0 ? inside[(k * n_inside + row) * n_terms + i]
                                                                      : outside[(k * n_outside + other) * n_terms + i]);
                }
                series = next;
            }
            total += coef[i * n_outputs + output] * extra[(row * n_outside + other) * n_terms + i] * series.back();
        }
        return total;
    };
    // Weights of coalitions of 0 ... 3 others of four players, and of 0 ... 2 others of pairs.
    const double alone[] = {0.25, 1.0 / 12.0, 1.0 / 12.0, 0.25}, together[] = {1.0 / 3.0, 1.0 / 6.0, 1.0 / 3.0};
    double worst = 0.0;
    for (std::size_t row = 0; row < n_inside; ++row)
        for (std::size_t o = 0; o < n_outputs; ++o) {
            std::size_t pair = 0;
            for (std::size_t l = 0; l < d; ++l)
                for (std::size_t r = l; r < d; ++r) {
                    double mean = 0.0;
                    for (std::size_t other = 0; other < n_outside; ++other) {
                        const unsigned a = 1U << l, b = 1U << r;
                        double found = 0.0;
                        for (unsigned S = 0; S < 16; ++S) {
                            if ((S & (a | b)) != 0) continue;
                            const auto size = static_cast<std::size_t>(std::popcount(S));
                            const auto v = [&](unsigned set) { return value(row, other, o, set); };
                            found += l == r ? alone[size] * (v(S | a) - v(S))
                                            : together[size] * (v(S | a | b) - v(S | a) - v(S | b) + v(S));
                        }
                        mean += row_weights[other] * found;
                        if (l == r)
                            worst = std::max(
                                worst, std::abs(found - values[((row * n_outside + other) * d + l) * n_outputs + o]));
                    }
                    if (l == r) continue;
                    worst = std::max(worst, std::abs(mean - pairs[(row * 6 + pair) * n_outputs + o]));
                    ++pair;
                }
        }
    check_close(worst, 0.0, 1e-11, "product games of " + std::to_string(n_coefficients) + " coefficients");
}

// Bins of spreads add up to the weighted sizes, and terms below the least value are left out.
void test_spreads() {
    const std::size_t d = 3, n_terms = 37, n_bins = 16;
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform;
    std::vector<double> inside(d * n_terms), outside(d * n_terms), sizes(n_terms, 1.5), out(n_bins);
    for (auto& x : inside) x = uniform(random);
    for (auto& x : outside) x = uniform(random);
    inside[0] = outside[0] = 0.0;
    GameBlock block;
    block.inside = inside.data();
    block.outside = outside.data();
    block.n_players = d;
    block.n_inside = block.n_outside = 1;
    block.n_terms = n_terms;
    add_game_spreads(block, std::vector<double>{0.5}, sizes, n_bins, out);
    double expected = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < n_terms; ++i) {
        double centre = 1.0, spread = 0.0;
        for (std::size_t l = 0; l < d; ++l) {
            const double u = inside[l * n_terms + i], w = outside[l * n_terms + i];
            centre *= 0.5 * (u + w);
            if (u + w > 0.0) spread += std::abs(u - w) / (u + w);
        }
        expected += 2.0 * spread * centre * 1.5 * 0.5;
    }
    for (const double x : out) sum += x;
    check(sum >= expected, "spreads of factors are rounded up");
    check_close(sum, expected, 3e-6 * expected, "spreads of factors");  // single precision
    const std::vector<double> coef(n_terms, 1.0), one{1.0};
    const std::vector<SeriesStep> steps{{0, 0, 0}};
    block.coef = as_matrix(coef, n_terms, 1);
    block.start = one;
    block.steps = steps;
    block.nodes = block.node_weights = one;
    block.least = 2.0;  // above every product of factors
    std::vector<double> values(d);
    add_product_games(block, values);
    check(values == std::vector<double>(d, 0.0), "terms that vanish are left out");
}

}  // namespace

void test_product_games() {
    for (const std::size_t n_coefficients : {std::size_t{1}, std::size_t{3}})
        for (const std::size_t n_terms : {std::size_t{1}, std::size_t{32}, std::size_t{45}})
            test_games_as(n_coefficients, n_terms);
    test_spreads();
}

}  // namespace kw::test
