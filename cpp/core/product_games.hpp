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

#include "core/game_factors.hpp"
#include "core/simd.hpp"

namespace kw {

// Buffers of one thread: differences of factors of a pair of rows, and products of those of other players.
struct GameBuffers {
    explicit GameBuffers(const GameBlock& block)
        : delta(block.width()), prefix(2 * block.width()), sums(block.width()) {}
    std::vector<Lane> delta, prefix, sums;
};

KW_CLONES static inline void subtract(std::span<const Lane> inside, std::span<const Lane> outside,
                                      std::span<Lane> delta) {
    for (std::size_t k = 0; k < delta.size(); ++k) {
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) delta[k][i] = inside[k][i] - outside[k][i];
    }
}

// The coefficients of every group of 32 terms and every output, zeros beyond the last term.
[[nodiscard]] inline std::vector<Lane> coefficient_lanes(const GameBlock& block) {
    std::vector<Lane> out(n_blocks(block.n_terms, kTerms) * block.n_outputs());
    for (std::size_t i = 0; i < block.n_terms; ++i)
        for (std::size_t o = 0; o < block.n_outputs(); ++o)
            out[i / kTerms * block.n_outputs() + o][i % kTerms] = block.coef(i, o);
    return out;
}

// The further factors of a pair of rows for terms first ... first + 31; ones where there are none.
[[nodiscard]] inline Lane extra_lane(const GameBlock& block, std::size_t row, std::size_t other, std::size_t first) {
    if (block.extra == nullptr) return kOnes;
    Lane out{};
    const double* extra = block.extra + (row * block.n_outside + other) * block.n_terms + first;
    std::copy(extra, extra + std::min(kTerms, block.n_terms - first), out.begin());
    return out;
}

// The largest value of any coalition and any of the terms: the product of the larger of both factors.
[[nodiscard]] KW_CLONES static inline double largest_value(std::span<const Lane> inside,
                                                           std::span<const Lane> outside) {
    alignas(64) double product[kTerms];
    for (double& x : product) x = 1.0;
    for (std::size_t l = 0; l < outside.size(); ++l) {
        const double* u = inside[l].data();
        const double* w = outside[l].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) product[i] *= std::max(std::abs(u[i]), std::abs(w[i]));
    }
    return *std::max_element(product, product + kTerms);
}

// values_l = delta_l sum over N nodes of weight prod_{q != l} f_q, for plain numbers, or adds to it. One pack of terms
// and all N nodes at a time: the running products stay in registers, and the factors are read once for all nodes.
inline constexpr std::size_t kNodes = 6;  // nodes at a time, at most

template <std::size_t N>
KW_INLINE void pass_nodes(const double* tau, const double* weight, double scale, std::span<const Lane> inside,
                          std::span<const Lane> outside, Pack* prefix, std::span<Lane> values, bool first) {
    const auto& ones = *reinterpret_cast<const Pack*>(kOnes.data());
    for (std::size_t pack = 0; pack < kTerms / kPack; ++pack) {
        const auto at = [pack](const Lane& lane) -> const Pack& {
            return reinterpret_cast<const Pack*>(lane.data())[pack];
        };
        Pack product[N];
        for (std::size_t q = 0; q < N; ++q) product[q] = (scale * weight[q]) * ones;
        for (std::size_t l = 0; l < outside.size(); ++l) {
            const Pack w = at(outside[l]), d = at(inside[l]) - w;
            for (std::size_t q = 0; q < N; ++q) {
                prefix[l * N + q] = product[q];
                product[q] = product[q] * (w + tau[q] * d);
            }
        }
        for (std::size_t q = 0; q < N; ++q) product[q] = ones;
        for (std::size_t l = outside.size(); l-- > 0;) {
            const Pack w = at(outside[l]), d = at(inside[l]) - w;
            Pack sum = prefix[l * N] * product[0];
            product[0] = product[0] * (w + tau[0] * d);
            for (std::size_t q = 1; q < N; ++q) {
                sum = sum + prefix[l * N + q] * product[q];
                product[q] = product[q] * (w + tau[q] * d);
            }
            Pack& value = reinterpret_cast<Pack*>(values[l].data())[pack];
            value = first ? sum * d : value + sum * d;
        }
    }
}

// All nodes, for plain numbers; `scale` multiplies their weights. `prefix` holds kNodes packs for every player.
KW_CLONES static inline void play_nodes(std::span<const double> nodes, std::span<const double> weights, double scale,
                                        std::span<const Lane> inside, std::span<const Lane> outside,
                                        std::span<Lane> prefix, std::span<Lane> values) {
    auto* packs = reinterpret_cast<Pack*>(prefix.data());
    for (std::size_t q = 0; q < nodes.size();) {
        const std::size_t left = nodes.size() - q, n = n_blocks(left, n_blocks(left, kNodes));
        const double *tau = &nodes[q], *weight = &weights[q];
        switch (n) {
            case 1:
                pass_nodes<1>(tau, weight, scale, inside, outside, packs, values, q == 0);
                break;
            case 2:
                pass_nodes<2>(tau, weight, scale, inside, outside, packs, values, q == 0);
                break;
            case 3:
                pass_nodes<3>(tau, weight, scale, inside, outside, packs, values, q == 0);
                break;
            case 4:
                pass_nodes<4>(tau, weight, scale, inside, outside, packs, values, q == 0);
                break;
            case 5:
                pass_nodes<5>(tau, weight, scale, inside, outside, packs, values, q == 0);
                break;
            default:
                pass_nodes<kNodes>(tau, weight, scale, inside, outside, packs, values, q == 0);
        }
        q += n;
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
inline void add_series_node(const GameBlock& block, double tau, double weight, std::span<const Lane> outside,
                            GameBuffers& buffers) {
    const std::size_t K = block.n_coefficients;
    std::vector<Lane> product(K), next(K), factor(K);
    const auto player = [K](std::vector<Lane>& lanes, std::size_t l) {
        return std::span<Lane>(lanes).subspan(l * K, K);
    };
    for (std::size_t k = 0; k < K; ++k) product[k].fill(weight * block.start[k]);
    for (std::size_t l = 0; l < block.n_players; ++l) {
        std::copy(product.begin(), product.end(), player(buffers.prefix, l).begin());
        mix(tau, outside.subspan(l * K, K), player(buffers.delta, l), factor);
        clear(next);
        multiply_series(block.steps, product, factor, next);
        product.swap(next);
    }
    clear(product);
    product[0].fill(1.0);
    for (std::size_t l = block.n_players; l-- > 0;) {
        multiply_series(block.steps, player(buffers.prefix, l), product, player(buffers.sums, l));
        mix(tau, outside.subspan(l * K, K), player(buffers.delta, l), factor);
        clear(next);
        multiply_series(block.steps, product, factor, next);
        product.swap(next);
    }
}

// value = last coefficient of left * right.
KW_CLONES static inline void multiply_last(std::span<const SeriesStep> steps, std::span<const Lane> left,
                                           std::span<const Lane> right, const Lane& factor, Lane& value) {
    const std::size_t last = left.size() - 1;
    value.fill(0.0);
    for (const auto& step : steps) {
        if (step.to != last) continue;
        const double* a = left[step.left].data();
        const double* b = right[step.right].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) value[i] += a[i] * b[i];
    }
    KW_SIMD()
    for (std::size_t i = 0; i < kTerms; ++i) value[i] *= factor[i];
}

// totals_o += coef_o value for every output.
KW_CLONES static inline void add_outputs(std::span<const Lane> coef, const Lane& value, std::span<Lane> totals) {
    for (std::size_t o = 0; o < coef.size(); ++o) {
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) totals[o][i] += coef[o][i] * value[i];
    }
}

[[nodiscard]] inline double lane_sum(const Lane& lane) noexcept {
    std::array<double, kPack> parts{};
    for (std::size_t i = 0; i < kTerms; ++i) parts[i % kPack] += lane[i];
    double sum = 0.0;
    for (const double x : parts) sum += x;
    return sum;
}

// out[l, o] += sum over terms of coef_o factor value_l, for plain numbers.
KW_CLONES static inline void add_values(std::span<const Lane> values, const Lane& factor, std::span<const Lane> coef,
                                        double* out) {
    alignas(64) double value[kTerms];
    for (const Lane& lane : values) {
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) value[i] = lane[i] * factor[i];
        for (const Lane& c : coef) {
            double total = 0.0;
            KW_SIMD(reduction(+ : total))
            for (std::size_t i = 0; i < kTerms; ++i) total += c[i] * value[i];
            *out++ += total;
        }
    }
}

// Adds the values of all players of all pairs of rows to out, of shape (n_inside, n_outside, n_players, n_outputs).
// Tiles of rows and background rows are played for one group of terms after the other, so that their factors stay in
// the cache.
inline void add_product_games(const GameBlock& block, std::span<double> out) {
    constexpr std::size_t kTile = 8;
    const std::size_t K = block.n_coefficients, n_outputs = block.n_outputs(), size = block.n_players * n_outputs;
    const std::vector<Lane> coef = coefficient_lanes(block);
    const PackedFactors<> inside(block.inside, block.n_inside, block.n_terms, block.width());
    const PackedFactors<> outside(block.outside, block.n_outside, block.n_terms, block.width());
    const std::size_t n_tiles = n_blocks(block.n_outside, kTile);
    parallel_for(n_blocks(block.n_inside, kTile) * n_tiles, [&](std::size_t tile) {
        GameBuffers buffers(block);
        Lane value;
        const std::size_t first_row = tile / n_tiles * kTile, first_other = tile % n_tiles * kTile;
        const std::size_t last_row = std::min(first_row + kTile, block.n_inside);
        const std::size_t last_other = std::min(first_other + kTile, block.n_outside);
        for (std::size_t group = 0; group < outside.n_groups(); ++group) {
            const auto coefs = std::span<const Lane>(coef).subspan(group * n_outputs, n_outputs);
            for (std::size_t row = first_row; row < last_row; ++row)
                for (std::size_t other = first_other; other < last_other; ++other) {
                    const auto u = inside(row, group), w = outside(other, group);
                    if (block.least > 0.0 && largest_value(u, w) < block.least) continue;
                    const Lane extra = extra_lane(block, row, other, group * kTerms);
                    double* sums = &out[(row * block.n_outside + other) * size];
                    if (K == 1) {
                        play_nodes(block.nodes, block.node_weights, block.start[0], u, w, buffers.prefix, buffers.sums);
                        add_values(buffers.sums, extra, coefs, sums);
                        continue;
                    }
                    subtract(u, w, buffers.delta);
                    clear(buffers.sums);
                    for (std::size_t q = 0; q < block.nodes.size(); ++q)
                        add_series_node(block, block.nodes[q], block.node_weights[q], w, buffers);
                    for (std::size_t l = 0; l < block.n_players; ++l) {
                        multiply_last(block.steps, std::span<const Lane>(buffers.sums).subspan(l * K, K),
                                      std::span<const Lane>(buffers.delta).subspan(l * K, K), extra, value);
                        for (std::size_t o = 0; o < n_outputs; ++o)
                            for (std::size_t i = 0; i < kTerms; ++i) sums[l * n_outputs + o] += coefs[o][i] * value[i];
                    }
                }
        }
    });
}

// Adds the interaction indices of all pairs l < r of players, with the weights of the background rows, to out, of shape
// (n_inside, n_pairs, n_outputs): delta_l delta_r int prod_{q != l, r} f_q.
inline void add_product_interactions(const GameBlock& block, std::span<const double> row_weights,
                                     std::span<double> out) {
    const std::size_t d = block.n_players, K = block.n_coefficients, n_outputs = block.n_outputs();
    const std::size_t size = d * (d - 1) / 2 * n_outputs;
    const std::vector<Lane> coef = coefficient_lanes(block);
    const PackedFactors<> inside(block.inside, block.n_inside, block.n_terms, block.width());
    const PackedFactors<> outside(block.outside, block.n_outside, block.n_terms, block.width());
    parallel_for(block.n_inside, [&](std::size_t row) {
        GameBuffers buffers(block);
        std::vector<Lane> totals(size), factors(d * K), after(d * K), running(K), next(K), product(K);
        const auto player = [K](std::vector<Lane>& lanes, std::size_t l) {
            return std::span<Lane>(lanes).subspan(l * K, K);
        };
        for (std::size_t other = 0; other < block.n_outside; ++other) {
            for (std::size_t group = 0; group < outside.n_groups(); ++group) {
                const auto w = outside(other, group);
                subtract(inside(row, group), w, buffers.delta);
                Lane weight = extra_lane(block, row, other, group * kTerms), value;
                for (double& x : weight) x *= row_weights[other];
                const auto coefs = std::span<const Lane>(coef).subspan(group * n_outputs, n_outputs);
                for (std::size_t q = 0; q < block.nodes.size(); ++q) {
                    // after_r = delta_r prod_{p > r} f_p
                    clear(product);
                    product[0].fill(1.0);
                    for (std::size_t r = d; r-- > 0;) {
                        mix(block.nodes[q], w.subspan(r * K, K), player(buffers.delta, r), player(factors, r));
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
                            multiply_last(block.steps, running, player(after, r), kOnes, value);
                            add_outputs(coefs, value, std::span<Lane>(totals).subspan(pair * n_outputs, n_outputs));
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

// The spread of the factors of a pair of rows, R = sum |u_q - w_q| / (u_q + w_q), and c = prod (u_q + w_q) / 2, for
// factors that are not negative. Single precision is enough for a bound: both are rounded up.
KW_CLONES static inline void spread_of_pair(std::span<const SingleLane> inside, std::span<const SingleLane> outside,
                                            SingleLane& centre, SingleLane& spread) {
    // With eps = 2^-24, a ratio is off by 2 eps because u and w are rounded, and a sum of d ratios by a factor 1 + (d +
    // 4) eps; the product of d factors by 1 + 3 d eps. Factors below 1e-30 count nothing.
    constexpr float kTiny = 1e-30F, kEps = 6e-8F;
    const float d = static_cast<float>(inside.size());
    centre.fill(1.0F + 3.0F * d * kEps);
    spread.fill(2.0F * d * kEps);
    for (std::size_t l = 0; l < inside.size(); ++l) {
        const float* u = inside[l].data();
        const float* w = outside[l].data();
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) {
            const float sum = u[i] + w[i];
            centre[i] *= 0.5F * sum;
            spread[i] += std::abs(u[i] - w[i]) / (sum + kTiny);
        }
    }
    for (float& total : spread) total *= 1.0F + (d + 4.0F) * kEps;
}

// bin_i = the bin of the spread R, and size_i = 2 R c.
KW_CLONES static inline void bins_of_spreads(const SingleLane& centre, const SingleLane& spread, float scale, float top,
                                             std::array<std::int32_t, kTerms>& bin, Lane& size) {
    constexpr float kUp = 1.000001F;
    KW_SIMD()
    for (std::size_t i = 0; i < kTerms; ++i) {
        const float place = std::ceil(top * kUp * std::sqrt(spread[i] * scale));
        bin[i] = static_cast<std::int32_t>(std::min(place, top));
        size[i] = 2.0 * static_cast<double>(spread[i]) * static_cast<double>(centre[i]);
    }
}

// For the certificate of the number of nodes: adds 2 R c size_i row_weight to the bin of R of the row. Bin b holds R up
// to n_players (b / (n_bins - 1))^2. out has shape (n_inside, n_bins).
inline void add_game_spreads(const GameBlock& block, std::span<const double> row_weights, std::span<const double> sizes,
                             std::size_t n_bins, std::span<double> out) {
    const float top = static_cast<float>(n_bins - 1), scale = 1.0F / static_cast<float>(block.n_players);
    const PackedFactors<SingleLane> inside(block.inside, block.n_inside, block.n_terms, block.width());
    const PackedFactors<SingleLane> outside(block.outside, block.n_outside, block.n_terms, block.width());
    parallel_blocks(block.n_inside, 8, [&](std::size_t begin, std::size_t end) {
        SingleLane centre, spread;
        Lane size;
        std::array<std::int32_t, kTerms> bin;
        for (std::size_t first = 0; first < block.n_terms; first += kTerms)
            for (std::size_t other = 0; other < block.n_outside; ++other)
                for (std::size_t row = begin; row < end; ++row) {
                    spread_of_pair(inside(row, first / kTerms), outside(other, first / kTerms), centre, spread);
                    bins_of_spreads(centre, spread, scale, top, bin, size);
                    const std::size_t n = std::min(kTerms, block.n_terms - first);
                    double* sums = &out[row * n_bins];
                    for (std::size_t i = 0; i < n; ++i) sums[bin[i]] += size[i] * sizes[first + i] * row_weights[other];
                }
    });
}

}  // namespace kw
