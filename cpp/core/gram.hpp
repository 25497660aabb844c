// Quadratic forms, products and weighted sums of several stored Gram matrices.
//
// The matrices seldom fit into a cache, so each is read as few times, and in pieces as long, as possible. Of vectors
// with many zero entries only the other rows and columns are read. Sums are double whatever the storage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

constexpr std::size_t kGramChunk = 512;  // columns per task; no part of the summation order
constexpr std::size_t kGramPanel = 8;    // rows summed together over all matrices, so that their sums stay in cache

// Symmetric matrices of one size.
template <class T>
struct Grams {
    std::vector<const T*> matrices;
    std::size_t n = 0;

    [[nodiscard]] std::size_t count() const noexcept { return matrices.size(); }
    [[nodiscard]] std::span<const T> row(std::size_t j, std::size_t i) const noexcept {
        return {matrices[j] + i * n, n};
    }
};

// V transposed, with a place for each of the n rows, zero where V has none.
[[nodiscard]] inline std::vector<double> spread_by_output(Matrix<const double> V, Index index, std::size_t n) {
    std::vector<double> columns(V.columns * n, 0.0);
    for (std::size_t k = 0; k < index.size(); ++k)
        for (std::size_t o = 0; o < V.columns; ++o) columns[o * n + row_at(index, k)] += V(k, o);
    return columns;
}

// Whether picking the entries of a row one by one costs more than reading the others too.
[[nodiscard]] constexpr bool worth_spreading(std::size_t n_index, std::size_t n) noexcept { return 4 * n_index > n; }

// gram_forms for vectors over all n rows: upper triangles are read in one piece per row. V has one row per output.
template <class T>
void gram_forms_of_all(const Grams<T>& grams, Matrix<const double> V, std::span<double> forms) {
    parallel_for(grams.count(), [&](std::size_t j) {
        double total = 0.0;
        for (std::size_t a = 0; a < grams.n; ++a) {
            const auto row = grams.row(j, a).subspan(a);
            for (std::size_t o = 0; o < V.rows; ++o) {
                const auto v = V.row(o).subspan(a);
                if (v[0] != 0.0)
                    total += v[0] * (static_cast<double>(row[0]) * v[0] + 2.0 * dot(row.subspan(1), v.subspan(1)));
            }
        }
        forms[j] = total;
    });
}

// forms[j] = sum over a, b in `index` of K_j(a, b) * <V_a, V_b>: a diagonal once, each pair twice.
template <class T>
void gram_forms(const Grams<T>& grams, Index index, Matrix<const double> V, std::span<double> forms) {
    const std::size_t n_index = index.size();
    if (worth_spreading(n_index, grams.n)) {
        const auto columns = spread_by_output(V, index, grams.n);
        gram_forms_of_all(grams, {columns.data(), V.columns, grams.n}, forms);
        return;
    }
    const auto columns = transposed(V);
    parallel_for(grams.count(), [&](std::size_t j) {
        std::vector<double> gathered(n_index);
        double total = 0.0;
        for (std::size_t a = 0; a < n_index; ++a) {
            const auto row = grams.row(j, row_at(index, a));
            const std::size_t length = n_index - a - 1;
            for (std::size_t k = 0; k < length; ++k) gathered[k] = static_cast<double>(row[row_at(index, a + 1 + k)]);
            const double own = static_cast<double>(row[row_at(index, a)]);
            for (std::size_t o = 0; o < V.columns; ++o) {
                const auto v = std::span(columns).subspan(o * n_index + a, length + 1);
                total += v[0] * (own * v[0] + 2.0 * dot(gathered, v.subspan(1)));
            }
        }
        forms[j] = total;
    });
}

// out[j, i, o] = sum over k in `index` of K_j(i, index_k) * V[k, o], for all n rows i.
template <class T>
void gram_products(const Grams<T>& grams, Index index, Matrix<const double> V, std::span<double> out) {
    const std::size_t n = grams.n, n_outputs = V.columns, n_chunks = n_blocks(n, kGramChunk);
    parallel_for(grams.count() * n_chunks, [&](std::size_t task) {
        const std::size_t j = task / n_chunks, first = (task % n_chunks) * kGramChunk;
        const std::size_t length = std::min(kGramChunk, n - first);
        std::vector<double> sums(n_outputs * length, 0.0);
        for (std::size_t k = 0; k < index.size(); ++k) {  // by symmetry a column is a row, which is contiguous
            const auto row = grams.row(j, row_at(index, k)).subspan(first, length);
            for (std::size_t o = 0; o < n_outputs; ++o)
                add_scaled(std::span(sums).subspan(o * length, length), row, V(k, o));
        }
        for (std::size_t i = 0; i < length; ++i)
            for (std::size_t o = 0; o < n_outputs; ++o) out[(j * n + first + i) * n_outputs + o] = sums[o * length + i];
    });
}

// The same for some rows i only.
template <class T>
void gram_products_at(const Grams<T>& grams, Index rows, Index index, Matrix<const double> V, std::span<double> out) {
    const std::size_t n_index = index.size(), n_outputs = V.columns;
    const bool spread = worth_spreading(n_index, grams.n);
    const auto columns = spread ? spread_by_output(V, index, grams.n) : transposed(V);
    const Matrix<const double> by_output{columns.data(), n_outputs, spread ? grams.n : n_index};
    parallel_for(grams.count(), [&](std::size_t j) {
        std::vector<double> gathered(n_index);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto row = grams.row(j, row_at(rows, i));
            const auto products = out.subspan((j * rows.size() + i) * n_outputs, n_outputs);
            if (spread) {
                for (std::size_t o = 0; o < n_outputs; ++o) products[o] = dot(row, by_output.row(o));
                continue;
            }
            for (std::size_t k = 0; k < n_index; ++k) gathered[k] = static_cast<double>(row[row_at(index, k)]);
            for (std::size_t o = 0; o < n_outputs; ++o) products[o] = dot(gathered, by_output.row(o));
        }
    });
}

// Adds to each row of `out`, from column first(row) on, the sum that add(matrix, row, sum) accumulates over all
// matrices; a panel of rows at a time.
template <class Out, class First, class Add>
void add_panels(std::size_t n_grams, Matrix<Out> out, First&& first, Add&& add) {
    const std::size_t n = out.columns;
    parallel_blocks(out.rows, kGramPanel, [&](std::size_t start, std::size_t end) {
        std::vector<double> sums((end - start) * n, 0.0);
        const Matrix<double> panel{sums.data(), end - start, n};
        for (std::size_t j = 0; j < n_grams; ++j)
            for (std::size_t i = start; i < end; ++i) add(j, i, panel.row(i - start));
        for (std::size_t i = start; i < end; ++i)
            for (std::size_t k = first(i); k < n; ++k)
                out(i, k) = static_cast<Out>(static_cast<double>(out(i, k)) + panel(i - start, k));
    });
}

// Adds sum_j weights_j K_j to the upper triangle of the square `out`; the lower one is left alone.
template <class T, class Out>
void gram_combine_upper(const Grams<T>& grams, std::span<const double> weights, Matrix<Out> out) {
    add_panels(
        grams.count(), out, [](std::size_t i) { return i; },
        [&](std::size_t j, std::size_t i, std::span<double> sum) {
            add_scaled(sum.subspan(i), grams.row(j, i).subspan(i), weights[j]);
        });
}

// Adds the listed rows of sum_j weights_j K_j to `out`.
template <class T, class Out>
void gram_combine_rows(const Grams<T>& grams, std::span<const double> weights, Index rows, Matrix<Out> out) {
    add_panels(
        grams.count(), out, [](std::size_t) { return std::size_t{0}; },
        [&](std::size_t j, std::size_t i, std::span<double> sum) {
            add_scaled(sum, grams.row(j, row_at(rows, i)), weights[j]);
        });
}

// Adds the block of the listed rows and columns of sum_j weights_j K_j to the upper triangle of `out`.
template <class T>
void gram_combine_block(const Grams<T>& grams, std::span<const double> weights, Index index, Matrix<double> out) {
    add_panels(
        grams.count(), out, [](std::size_t i) { return i; },
        [&](std::size_t j, std::size_t i, std::span<double> sum) {
            const auto row = grams.row(j, row_at(index, i));
            for (std::size_t k = i; k < index.size(); ++k)
                sum[k] += weights[j] * static_cast<double>(row[row_at(index, k)]);
        });
}

}  // namespace kw
