// Shapley values of product games, v(S) = prod_{l in S} u_l prod_{l not in S} w_l, summed over terms.
//
// By Owen's theorem the value of player l is (u_l - w_l) int_0^1 prod_{q != l} (w_q + tau (u_q - w_q)) dtau, the
// integral of a polynomial, which a few Gauss nodes give exactly. Factors may be power series in letters y, cut at the
// highest power wanted: powers of sums over players are the coefficients of products of exponential series. Products
// without one player come from prefix and suffix products, without a division: factors may be zero or negative.
// Terms are the vector lane.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.hpp"
#include "core/parallel.hpp"
#include "core/simd.hpp"

namespace kw {

inline constexpr std::size_t kTerms = 32;  // terms handled together

using Lane = std::array<double, kTerms>;

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
    Matrix<const double> coef;           // (n_terms, n_outputs)
    std::span<const double> start;       // (n_coefficients,): a series that multiplies all games
    std::span<const SeriesStep> steps;   // of a product of two series
    std::span<const double> nodes, node_weights;  // of the quadrature on [0, 1]
    double least = 0.0;  // terms of plain factors whose value is below this for all coalitions are left out

    [[nodiscard]] std::size_t n_outputs() const noexcept { return coef.columns; }
    [[nodiscard]] std::size_t width() const noexcept { return n_players * n_coefficients; }
};

// Buffers of one thread: factors of a pair of rows and of 32 terms.
struct GameBuffers {
    explicit GameBuffers(const GameBlock& block)
        : outside(block.width()), delta(block.width()), prefix(block.width()), sums(block.width()) {}
    std::vector<Lane> outside, delta, prefix, sums;
};

// Copies the factors of one pair of rows for terms first ... first + 31, zeros beyond the last term.
KW_CLONES static inline void load_pair(const GameBlock& block, std::size_t row, std::size_t other, std::size_t first,
                                       std::span<Lane> outside, std::span<Lane> delta) {
    const std::size_t n = std::min(kTerms, block.n_terms - first);
    for (std::size_t k = 0; k < block.width(); ++k) {
        const double* u = block.inside + (k * block.n_inside + row) * block.n_terms + first;
        const double* w = block.outside + (k * block.n_outside + other) * block.n_terms + first;
        double* out = outside[k].data();
        double* difference = delta[k].data();
        KW_SIMD()
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = w[i];
            difference[i] = u[i] - w[i];
        }
        for (std::size_t i = n; i < kTerms; ++i) out[i] = difference[i] = 0.0;
    }
}

// The largest value of any coalition and any of the terms: the product of the larger of both factors.
[[nodiscard]] KW_CLONES static inline double largest_value(std::span<const Lane> outside, std::span<const Lane> delta) {
    alignas(64) double product[kTerms];
    for (double& x : product) x = 1.0;
    for (std::size_t l = 0; l < outside.size(); ++l) {
        const double* w = outside[l].data();
        const double* d = delta[l].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) product[i] *= std::max(std::abs(w[i]), std::abs(w[i] + d[i]));
    }
    return *std::max_element(product, product + kTerms);
}

// sums_l += weight prod_{q != l} f_q at one node, for plain numbers.
KW_CLONES static inline void add_node(double tau, double weight, std::span<const Lane> outside,
                                      std::span<const Lane> delta, std::span<Lane> prefix, std::span<Lane> sums) {
    const std::size_t n = outside.size();
    alignas(64) double product[kTerms];
    for (double& x : product) x = weight;
    for (std::size_t l = 0; l < n; ++l) {
        const double* w = outside[l].data();
        const double* d = delta[l].data();
        double* before = prefix[l].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) {
            before[i] = product[i];
            product[i] *= w[i] + tau * d[i];
        }
    }
    for (double& x : product) x = 1.0;
    for (std::size_t l = n; l-- > 0;) {
        const double* w = outside[l].data();
        const double* d = delta[l].data();
        const double* before = prefix[l].data();
        double* sum = sums[l].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) {
            sum[i] += before[i] * product[i];
            product[i] *= w[i] + tau * d[i];
        }
    }
}

// out += left * right for series; out must not be one of them.
KW_CLONES static inline void multiply_series(std::span<const SeriesStep> steps, std::span<const Lane> left,
                                             std::span<const Lane> right, std::span<Lane> out) {
    for (const auto& step : steps) {
        const double* a = left[step.left].data();
        const double* b = right[step.right].data();
        double* c = out[step.to].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) c[i] += a[i] * b[i];
    }
}

inline void clear(std::span<Lane> lanes) {
    for (auto& lane : lanes) lane.fill(0.0);
}

// f = outside + tau delta for one player.
KW_CLONES static inline void mix(double tau, std::span<const Lane> outside, std::span<const Lane> delta,
                                 std::span<Lane> out) {
    for (std::size_t k = 0; k < out.size(); ++k) {
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) out[k][i] = outside[k][i] + tau * delta[k][i];
    }
}

// The same as add_node for series: sums_l is the series weight * start * prod_{q != l} f_q.
inline void add_series_node(const GameBlock& block, double tau, double weight, GameBuffers& buffers) {
    const std::size_t K = block.n_coefficients;
    std::vector<Lane> product(K), next(K), factor(K);
    const auto player = [K](std::vector<Lane>& lanes, std::size_t l) { return std::span<Lane>(lanes).subspan(l * K, K); };
    for (std::size_t k = 0; k < K; ++k) product[k].fill(weight * block.start[k]);
    for (std::size_t l = 0; l < block.n_players; ++l) {
        std::copy(product.begin(), product.end(), player(buffers.prefix, l).begin());
        mix(tau, player(buffers.outside, l), player(buffers.delta, l), factor);
        clear(next);
        multiply_series(block.steps, product, factor, next);
        product.swap(next);
    }
    clear(product);
    product[0].fill(1.0);
    for (std::size_t l = block.n_players; l-- > 0;) {
        multiply_series(block.steps, player(buffers.prefix, l), product, player(buffers.sums, l));
        mix(tau, player(buffers.outside, l), player(buffers.delta, l), factor);
        clear(next);
        multiply_series(block.steps, product, factor, next);
        product.swap(next);
    }
}

// totals[l, o] += coef[o] (last coefficient of sums_l * delta_l), lane by lane.
inline void contract(const GameBlock& block, const GameBuffers& buffers, std::size_t row, std::size_t other,
                     std::size_t first, std::span<Lane> totals) {
    const std::size_t K = block.n_coefficients, n = std::min(kTerms, block.n_terms - first);
    const double* extra =
        block.extra == nullptr ? nullptr : block.extra + (row * block.n_outside + other) * block.n_terms + first;
    for (std::size_t l = 0; l < block.n_players; ++l) {
        Lane value{};
        for (const auto& step : block.steps) {
            if (step.to + 1 != K) continue;
            const double* a = buffers.sums[l * K + step.left].data();
            const double* b = buffers.delta[l * K + step.right].data();
            KW_SIMD()
            for (std::size_t i = 0; i < kTerms; ++i) value[i] += a[i] * b[i];
        }
        if (extra != nullptr)
            for (std::size_t i = 0; i < n; ++i) value[i] *= extra[i];
        for (std::size_t o = 0; o < block.n_outputs(); ++o) {
            double* total = totals[l * block.n_outputs() + o].data();
            for (std::size_t i = 0; i < n; ++i) total[i] += block.coef(first + i, o) * value[i];
        }
    }
}

[[nodiscard]] inline double lane_sum(const Lane& lane) noexcept {
    double sum = 0.0;
    for (const double x : lane) sum += x;
    return sum;
}

// Adds the values of all players of all pairs of rows to out, of shape (n_inside, n_outside, n_players, n_outputs).
inline void add_product_games(const GameBlock& block, std::span<double> out) {
    const std::size_t size = block.n_players * block.n_outputs();
    parallel_blocks(block.n_inside * block.n_outside, 8, [&](std::size_t begin, std::size_t end) {
        GameBuffers buffers(block);
        std::vector<Lane> totals(size);
        for (std::size_t pair = begin; pair < end; ++pair) {
            const std::size_t row = pair / block.n_outside, other = pair % block.n_outside;
            clear(totals);
            for (std::size_t first = 0; first < block.n_terms; first += kTerms) {
                load_pair(block, row, other, first, buffers.outside, buffers.delta);
                if (block.least > 0.0 && largest_value(buffers.outside, buffers.delta) < block.least) continue;
                clear(buffers.sums);
                for (std::size_t q = 0; q < block.nodes.size(); ++q) {
                    if (block.n_coefficients == 1)
                        add_node(block.nodes[q], block.node_weights[q] * block.start[0], buffers.outside,
                                 buffers.delta, buffers.prefix, buffers.sums);
                    else
                        add_series_node(block, block.nodes[q], block.node_weights[q], buffers);
                }
                contract(block, buffers, row, other, first, totals);
            }
            for (std::size_t k = 0; k < size; ++k) out[pair * size + k] += lane_sum(totals[k]);
        }
    });
}

// Adds the interaction indices of all pairs l < r of players, with the weights of the background rows, to out, of shape
// (n_inside, n_pairs, n_outputs): delta_l delta_r int prod_{q != l, r} f_q.
inline void add_product_interactions(const GameBlock& block, std::span<const double> row_weights,
                                     std::span<double> out) {
    const std::size_t d = block.n_players, K = block.n_coefficients, n_outputs = block.n_outputs();
    const std::size_t size = d * (d - 1) / 2 * n_outputs;
    parallel_for(block.n_inside, [&](std::size_t row) {
        GameBuffers buffers(block);
        std::vector<Lane> totals(size), factors(d * K), after(d * K), running(K), next(K), product(K);
        const auto player = [K](std::vector<Lane>& lanes, std::size_t l) {
            return std::span<Lane>(lanes).subspan(l * K, K);
        };
        for (std::size_t other = 0; other < block.n_outside; ++other) {
            for (std::size_t first = 0; first < block.n_terms; first += kTerms) {
                load_pair(block, row, other, first, buffers.outside, buffers.delta);
                const std::size_t n = std::min(kTerms, block.n_terms - first);
                Lane weight{};
                for (std::size_t i = 0; i < n; ++i) weight[i] = row_weights[other];
                if (block.extra != nullptr)
                    for (std::size_t i = 0; i < n; ++i)
                        weight[i] *= block.extra[(row * block.n_outside + other) * block.n_terms + first + i];
                for (std::size_t q = 0; q < block.nodes.size(); ++q) {
                    // after_r = delta_r prod_{p > r} f_p
                    clear(product);
                    product[0].fill(1.0);
                    for (std::size_t r = d; r-- > 0;) {
                        mix(block.nodes[q], player(buffers.outside, r), player(buffers.delta, r), player(factors, r));
                        clear(player(after, r));
                        multiply_series(block.steps, player(buffers.delta, r), product, player(after, r));
                        clear(next);
                        multiply_series(block.steps, product, player(factors, r), next);
                        product.swap(next);
                    }
                    for (std::size_t k = 0; k < K; ++k)
                        for (std::size_t i = 0; i < kTerms; ++i)
                            product[k][i] = block.node_weights[q] * block.start[k] * weight[i];
                    std::size_t pair = 0;
                    for (std::size_t l = 0; l < d; ++l) {
                        clear(running);  // delta_l prod_{p < r, p != l} f_p
                        multiply_series(block.steps, product, player(buffers.delta, l), running);
                        for (std::size_t r = l + 1; r < d; ++r, ++pair) {
                            Lane value{};
                            for (const auto& step : block.steps) {
                                if (step.to + 1 != K) continue;
                                const double* a = running[step.left].data();
                                const double* b = after[r * K + step.right].data();
                                KW_SIMD()
                                for (std::size_t i = 0; i < kTerms; ++i) value[i] += a[i] * b[i];
                            }
                            for (std::size_t o = 0; o < n_outputs; ++o) {
                                double* total = totals[pair * n_outputs + o].data();
                                for (std::size_t i = 0; i < n; ++i) total[i] += block.coef(first + i, o) * value[i];
                            }
                            clear(next);
                            multiply_series(block.steps, running, player(factors, r), next);
                            running.swap(next);
                        }
                        clear(next);
                        multiply_series(block.steps, product, player(factors, l), next);
                        product.swap(next);
                    }
                }
            }
        }
        for (std::size_t k = 0; k < size; ++k) out[row * size + k] += lane_sum(totals[k]);
    });
}

// For the certificate of the number of nodes: with c = prod (u_q + w_q) / 2 and R = sum |u_q - w_q| / (u_q + w_q), adds
// 2 R c size_i row_weight to the bin of R of the row, for factors that are not negative. Bin b holds R up to
// n_players (b / (n_bins - 1))^2. out has shape (n_inside, n_bins).
KW_CLONES static inline void spread_of_pair(const GameBlock& block, std::size_t row, std::size_t other,
                                            std::size_t first, std::size_t n, Lane& centre, Lane& spread) {
    centre.fill(1.0);
    spread.fill(0.0);
    for (std::size_t l = 0; l < block.n_players; ++l) {
        const double* u = block.inside + (l * block.n_inside + row) * block.n_terms + first;
        const double* w = block.outside + (l * block.n_outside + other) * block.n_terms + first;
        KW_SIMD()
        for (std::size_t i = 0; i < n; ++i) {
            const double sum = u[i] + w[i];
            centre[i] *= 0.5 * sum;
            spread[i] += sum > 0.0 ? std::abs(u[i] - w[i]) / sum : 0.0;
        }
    }
}

inline void add_game_spreads(const GameBlock& block, std::span<const double> row_weights,
                             std::span<const double> sizes, std::size_t n_bins, std::span<double> out) {
    const double top = static_cast<double>(n_bins - 1), scale = 1.0 / static_cast<double>(block.n_players);
    parallel_for(block.n_inside, [&](std::size_t row) {
        Lane centre, spread;
        for (std::size_t other = 0; other < block.n_outside; ++other)
            for (std::size_t first = 0; first < block.n_terms; first += kTerms) {
                const std::size_t n = std::min(kTerms, block.n_terms - first);
                spread_of_pair(block, row, other, first, n, centre, spread);
                for (std::size_t i = 0; i < n; ++i) {
                    const double place = std::ceil(top * std::sqrt(spread[i] * scale));
                    const auto bin = static_cast<std::size_t>(std::min(place, top));
                    out[row * n_bins + bin] += 2.0 * spread[i] * centre[i] * sizes[first + i] * row_weights[other];
                }
            }
    });
}

}  // namespace kw
