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

struct alignas(64) Lane : std::array<double, kTerms> {};

// Eight numbers in registers; their products are taken one by one where the compiler has no vector types.
inline constexpr std::size_t kPack = 8;
#if defined(__GNUC__)
typedef double Pack __attribute__((vector_size(64), may_alias));
#else
struct Pack {
    double x[kPack];
    friend Pack operator*(Pack a, const Pack& b) {
        for (std::size_t i = 0; i < kPack; ++i) a.x[i] *= b.x[i];
        return a;
    }
    friend Pack operator*(double a, Pack b) {
        for (double& x : b.x) x *= a;
        return b;
    }
    friend Pack operator+(Pack a, const Pack& b) {
        for (std::size_t i = 0; i < kPack; ++i) a.x[i] += b.x[i];
        return a;
    }
};
#endif

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
    Matrix<const double> coef;                    // (n_terms, n_outputs)
    std::span<const double> start;                // (n_coefficients,): a series that multiplies all games
    std::span<const SeriesStep> steps;            // of a product of two series
    std::span<const double> nodes, node_weights;  // of the quadrature on [0, 1]
    double least = 0.0;  // terms of plain factors whose value is below this for all coalitions are left out

    [[nodiscard]] std::size_t n_outputs() const noexcept { return coef.columns; }
    [[nodiscard]] std::size_t width() const noexcept { return n_players * n_coefficients; }
};

inline constexpr Lane kOnes = [] {
    Lane lane{};
    for (double& x : lane) x = 1.0;
    return lane;
}();

// Factors of one side in the order in which games read them: rows, groups of 32 terms, players, coefficients. Lanes are
// filled with zeros beyond the last term.
class PackedFactors {
   public:
    PackedFactors(const double* factors, std::size_t n_rows, std::size_t n_terms, std::size_t width)
        : n_groups_(n_blocks(n_terms, kTerms)), width_(width), lanes_(n_rows * n_groups_ * width) {
        parallel_for(n_rows, [&](std::size_t row) {
            for (std::size_t k = 0; k < width; ++k) {
                const double* from = factors + (k * n_rows + row) * n_terms;
                for (std::size_t i = 0; i < n_terms; ++i)
                    lanes_[(row * n_groups_ + i / kTerms) * width + k][i % kTerms] = from[i];
            }
        });
    }
    [[nodiscard]] std::span<const Lane> operator()(std::size_t row, std::size_t group) const noexcept {
        return std::span<const Lane>(lanes_).subspan((row * n_groups_ + group) * width_, width_);
    }
    [[nodiscard]] std::size_t n_groups() const noexcept { return n_groups_; }

   private:
    std::size_t n_groups_, width_;
    std::vector<Lane> lanes_;
};

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

// sums_l += sum over N nodes of weight prod_{q != l} f_q, for plain numbers. Two packs of terms and two nodes at a time
// keep the running products in registers and share the factors that are read. The first pass sets the sums.
template <std::size_t N, bool kFirst>
KW_INLINE void pass_nodes(const double* tau, const double* weight, std::span<const Lane> outside,
                          std::span<const Lane> delta, std::span<Lane> prefix, std::span<Lane> sums) {
    const std::size_t n = outside.size();
    constexpr std::size_t kHalf = 2;  // packs at a time
    const auto* ones = reinterpret_cast<const Pack*>(kOnes.data());
    for (std::size_t first = 0; first < kTerms / kPack; first += kHalf) {
        Pack product[N][kHalf];
        for (std::size_t q = 0; q < N; ++q)
            for (std::size_t k = 0; k < kHalf; ++k) product[q][k] = weight[q] * ones[k];
        for (std::size_t l = 0; l < n; ++l) {
            const auto* w = reinterpret_cast<const Pack*>(outside[l].data()) + first;
            const auto* d = reinterpret_cast<const Pack*>(delta[l].data()) + first;
            for (std::size_t q = 0; q < N; ++q) {
                auto* before = reinterpret_cast<Pack*>(prefix[q * n + l].data()) + first;
                for (std::size_t k = 0; k < kHalf; ++k) {
                    before[k] = product[q][k];
                    product[q][k] = product[q][k] * (w[k] + tau[q] * d[k]);
                }
            }
        }
        for (std::size_t q = 0; q < N; ++q)
            for (std::size_t k = 0; k < kHalf; ++k) product[q][k] = ones[k];
        for (std::size_t l = n; l-- > 0;) {
            const auto* w = reinterpret_cast<const Pack*>(outside[l].data()) + first;
            const auto* d = reinterpret_cast<const Pack*>(delta[l].data()) + first;
            auto* sum = reinterpret_cast<Pack*>(sums[l].data()) + first;
            for (std::size_t q = 0; q < N; ++q) {
                const auto* before = reinterpret_cast<const Pack*>(prefix[q * n + l].data()) + first;
                for (std::size_t k = 0; k < kHalf; ++k) {
                    const bool set = kFirst && q == 0;
                    sum[k] = set ? before[k] * product[q][k] : sum[k] + before[k] * product[q][k];
                    product[q][k] = product[q][k] * (w[k] + tau[q] * d[k]);
                }
            }
        }
    }
}

// All nodes, for plain numbers; `scale` multiplies their weights.
KW_CLONES static inline void add_nodes(std::span<const double> nodes, std::span<const double> node_weights,
                                       double scale, std::span<const Lane> outside, std::span<const Lane> delta,
                                       std::span<Lane> prefix, std::span<Lane> sums) {
    for (std::size_t q = 0; q < nodes.size(); q += 2) {
        const bool two = q + 1 < nodes.size();
        const double weights[] = {scale * node_weights[q], two ? scale * node_weights[q + 1] : 0.0};
        if (q == 0 && two) pass_nodes<2, true>(&nodes[q], weights, outside, delta, prefix, sums);
        else if (q == 0) pass_nodes<1, true>(&nodes[q], weights, outside, delta, prefix, sums);
        else if (two) pass_nodes<2, false>(&nodes[q], weights, outside, delta, prefix, sums);
        else pass_nodes<1, false>(&nodes[q], weights, outside, delta, prefix, sums);
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

// out[l, o] += sum over terms of coef_o factor sums_l delta_l, for plain numbers.
KW_CLONES static inline void add_values(std::span<const Lane> sums, std::span<const Lane> delta, const Lane& factor,
                                        std::span<const Lane> coef, double* out) {
    alignas(64) double value[kTerms];
    for (std::size_t l = 0; l < sums.size(); ++l) {
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) value[i] = sums[l][i] * delta[l][i] * factor[i];
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
    const PackedFactors inside(block.inside, block.n_inside, block.n_terms, block.width());
    const PackedFactors outside(block.outside, block.n_outside, block.n_terms, block.width());
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
                    const auto w = outside(other, group);
                    subtract(inside(row, group), w, buffers.delta);
                    if (block.least > 0.0 && largest_value(w, buffers.delta) < block.least) continue;
                    const Lane extra = extra_lane(block, row, other, group * kTerms);
                    double* sums = &out[(row * block.n_outside + other) * size];
                    if (K == 1) {
                        add_nodes(block.nodes, block.node_weights, block.start[0], w, buffers.delta, buffers.prefix,
                                  buffers.sums);
                        add_values(buffers.sums, buffers.delta, extra, coefs, sums);
                        continue;
                    }
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
    const PackedFactors inside(block.inside, block.n_inside, block.n_terms, block.width());
    const PackedFactors outside(block.outside, block.n_outside, block.n_terms, block.width());
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

// For the certificate of the number of nodes: with c = prod (u_q + w_q) / 2 and R = sum |u_q - w_q| / (u_q + w_q), adds
// 2 R c size_i row_weight to the bin of R of the row, for factors that are not negative. Bin b holds R up to
// n_players (b / (n_bins - 1))^2. out has shape (n_inside, n_bins).
KW_CLONES static inline void spread_of_pair(std::span<const Lane> inside, std::span<const Lane> outside, Lane& centre,
                                            Lane& spread) {
    // Divisions of single precision are enough for a bound that is rounded up; factors below 1e-30 count nothing.
    constexpr float kTiny = 1e-30F, kUp = 1.000001F;
    std::array<float, kTerms> total{};
    centre.fill(1.0);
    for (std::size_t l = 0; l < inside.size(); ++l) {
        KW_SIMD()
        for (std::size_t i = 0; i < kTerms; ++i) {
            const double u = inside[l][i], w = outside[l][i], sum = u + w;
            centre[i] *= 0.5 * sum;
            total[i] += static_cast<float>(std::abs(u - w)) / (static_cast<float>(sum) + kTiny);
        }
    }
    for (std::size_t i = 0; i < kTerms; ++i) spread[i] = static_cast<double>(total[i] * kUp);
}

inline void add_game_spreads(const GameBlock& block, std::span<const double> row_weights, std::span<const double> sizes,
                             std::size_t n_bins, std::span<double> out) {
    const double top = static_cast<double>(n_bins - 1), scale = 1.0 / static_cast<double>(block.n_players);
    const PackedFactors inside(block.inside, block.n_inside, block.n_terms, block.width());
    const PackedFactors outside(block.outside, block.n_outside, block.n_terms, block.width());
    parallel_blocks(block.n_inside, 8, [&](std::size_t begin, std::size_t end) {
        Lane centre, spread;
        for (std::size_t first = 0; first < block.n_terms; first += kTerms)
            for (std::size_t other = 0; other < block.n_outside; ++other)
                for (std::size_t row = begin; row < end; ++row) {
                    spread_of_pair(inside(row, first / kTerms), outside(other, first / kTerms), centre, spread);
                    const std::size_t n = std::min(kTerms, block.n_terms - first);
                    for (std::size_t i = 0; i < n; ++i) {
                        const double place = std::ceil(top * std::sqrt(spread[i] * scale));
                        const auto bin = static_cast<std::size_t>(std::min(place, top));
                        out[row * n_bins + bin] += 2.0 * spread[i] * centre[i] * sizes[first + i] * row_weights[other];
                    }
                }
    });
}

}  // namespace kw
