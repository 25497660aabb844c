// Forms, products and weighted sums of several stored Gram matrices, read as few times and in pieces as long as
// possible: the matrices seldom fit into a cache. Of vectors with many zero rows only the rows and columns of the
// others are read. Sums are taken in double whatever the storage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

constexpr std::size_t kGramChunk = 512;  // columns per task; part of no sum
constexpr std::size_t kGramPanel = 8;    // rows summed together over all matrices, so that their sums stay in cache

// V as one contiguous vector per output.
inline std::vector<double> by_output(const double* V, std::size_t n_rows, std::size_t n_outputs) {
    std::vector<double> columns(n_outputs * n_rows);
    for (std::size_t k = 0; k < n_rows; ++k)
        for (std::size_t o = 0; o < n_outputs; ++o) columns[o * n_rows + k] = V[k * n_outputs + o];
    return columns;
}

// The same with a place for each of the n rows, zero where V has none.
inline std::vector<double> spread_by_output(const double* V, const std::int64_t* index, std::size_t n_index,
                                            std::size_t n_outputs, std::size_t n) {
    std::vector<double> columns(n_outputs * n, 0.0);
    for (std::size_t k = 0; k < n_index; ++k)
        for (std::size_t o = 0; o < n_outputs; ++o)
            columns[o * n + static_cast<std::size_t>(index[k])] += V[k * n_outputs + o];
    return columns;
}

// Whether picking the entries of a row one by one costs more than reading the others too.
inline bool worth_spreading(std::size_t n_index, std::size_t n) { return 4 * n_index > n; }

// gram_forms for vectors of all n rows, one after the other: upper triangles are read in one piece per row.
template <class T>
void gram_forms_of_all(const std::vector<const T*>& grams, std::size_t n, const std::vector<double>& columns,
                       std::size_t n_outputs, double* forms) {
    parallel_for(grams.size(), [&](std::size_t j) {
        double total = 0.0;
        for (std::size_t a = 0; a < n; ++a) {
            const T* row = grams[j] + a * n + a;
            for (std::size_t o = 0; o < n_outputs; ++o) {
                const double* v = columns.data() + o * n + a;
                if (v[0] != 0.0)
                    total += v[0] * (static_cast<double>(row[0]) * v[0] + 2.0 * dot(row + 1, v + 1, n - a - 1));
            }
        }
        forms[j] = total;
    });
}

// forms[j] = sum over a, b in `index` of K_j(a, b) * <V_a, V_b>; the matrices are symmetric, n x n.
template <class T>
void gram_forms(const std::vector<const T*>& grams, std::size_t n, const std::int64_t* index, std::size_t n_index,
                const double* V, std::size_t n_outputs, double* forms) {
    if (worth_spreading(n_index, n)) {
        gram_forms_of_all(grams, n, spread_by_output(V, index, n_index, n_outputs, n), n_outputs, forms);
        return;
    }
    const auto columns = by_output(V, n_index, n_outputs);
    parallel_for(grams.size(), [&](std::size_t j) {
        std::vector<double> gathered(n_index);
        double total = 0.0;
        for (std::size_t a = 0; a < n_index; ++a) {
            const T* row = grams[j] + static_cast<std::size_t>(index[a]) * n;
            const std::size_t length = n_index - a - 1;
            for (std::size_t k = 0; k < length; ++k) gathered[k] = static_cast<double>(row[index[a + 1 + k]]);
            const double own = static_cast<double>(row[index[a]]);
            for (std::size_t o = 0; o < n_outputs; ++o) {
                const double* v = columns.data() + o * n_index + a;
                total += v[0] * (own * v[0] + 2.0 * dot(gathered.data(), v + 1, length));
            }
        }
        forms[j] = total;
    });
}

// out[j, i, o] = sum over k in `index` of K_j(i, index_k) * V[k, o], for all n rows i.
template <class T>
void gram_products(const std::vector<const T*>& grams, std::size_t n, const std::int64_t* index, std::size_t n_index,
                   const double* V, std::size_t n_outputs, double* out) {
    const std::size_t n_chunks = (n + kGramChunk - 1) / kGramChunk;
    parallel_for(grams.size() * n_chunks, [&](std::size_t task) {
        const std::size_t j = task / n_chunks, first = (task % n_chunks) * kGramChunk;
        const std::size_t length = std::min(kGramChunk, n - first);
        std::vector<double> sums(n_outputs * length, 0.0);
        for (std::size_t k = 0; k < n_index; ++k) {  // a column is a row, and rows lie in one piece
            const T* row = grams[j] + static_cast<std::size_t>(index[k]) * n + first;
            for (std::size_t o = 0; o < n_outputs; ++o)
                add_scaled(sums.data() + o * length, row, V[k * n_outputs + o], length);
        }
        for (std::size_t i = 0; i < length; ++i)
            for (std::size_t o = 0; o < n_outputs; ++o)
                out[(j * n + first + i) * n_outputs + o] = sums[o * length + i];
    });
}

// The same for some rows i only.
template <class T>
void gram_products_at(const std::vector<const T*>& grams, std::size_t n, const std::int64_t* rows, std::size_t n_rows,
                      const std::int64_t* index, std::size_t n_index, const double* V, std::size_t n_outputs,
                      double* out) {
    const bool spread = worth_spreading(n_index, n);
    const auto columns =
        spread ? spread_by_output(V, index, n_index, n_outputs, n) : by_output(V, n_index, n_outputs);
    parallel_for(grams.size(), [&](std::size_t j) {
        std::vector<double> gathered(n_index);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const T* row = grams[j] + static_cast<std::size_t>(rows[i]) * n;
            if (spread) {
                for (std::size_t o = 0; o < n_outputs; ++o)
                    out[(j * n_rows + i) * n_outputs + o] = dot(row, columns.data() + o * n, n);
                continue;
            }
            for (std::size_t k = 0; k < n_index; ++k) gathered[k] = static_cast<double>(row[index[k]]);
            for (std::size_t o = 0; o < n_outputs; ++o)
                out[(j * n_rows + i) * n_outputs + o] = dot(gathered.data(), columns.data() + o * n_index, n_index);
        }
    });
}

// Adds to rows of `out`, from column first(row) on, what add(matrix, row, sum) puts into the n zeros of `sum`, for
// every matrix; a panel of rows at a time.
template <class Out, class First, class Add>
void add_panels(std::size_t n_grams, std::size_t n_rows, std::size_t n, Out* out, First&& first, Add&& add) {
    parallel_for((n_rows + kGramPanel - 1) / kGramPanel, [&](std::size_t panel) {
        const std::size_t start = panel * kGramPanel, end = std::min(n_rows, start + kGramPanel);
        std::vector<double> sums((end - start) * n, 0.0);
        for (std::size_t j = 0; j < n_grams; ++j)
            for (std::size_t i = start; i < end; ++i) add(j, i, sums.data() + (i - start) * n);
        for (std::size_t i = start; i < end; ++i)
            for (std::size_t k = first(i); k < n; ++k)
                out[i * n + k] = static_cast<Out>(static_cast<double>(out[i * n + k]) + sums[(i - start) * n + k]);
    });
}

// Adds sum_j weights_j K_j to the upper triangle of the square `out`; the lower one is left alone.
template <class T, class Out>
void gram_combine_upper(const std::vector<const T*>& grams, std::size_t n, const double* weights, Out* out) {
    add_panels(grams.size(), n, n, out, [](std::size_t i) { return i; },
               [&](std::size_t j, std::size_t i, double* sum) {
                   add_scaled(sum + i, grams[j] + i * n + i, weights[j], n - i);
               });
}

// Adds the listed rows of sum_j weights_j K_j to `out`, n_rows x n.
template <class T, class Out>
void gram_combine_rows(const std::vector<const T*>& grams, std::size_t n, const double* weights,
                       const std::int64_t* rows, std::size_t n_rows, Out* out) {
    add_panels(grams.size(), n_rows, n, out, [](std::size_t) { return std::size_t{0}; },
               [&](std::size_t j, std::size_t i, double* sum) {
                   add_scaled(sum, grams[j] + static_cast<std::size_t>(rows[i]) * n, weights[j], n);
               });
}

// Adds the block of the listed rows and columns of sum_j weights_j K_j to the upper triangle of `out`.
template <class T>
void gram_combine_block(const std::vector<const T*>& grams, std::size_t n, const double* weights,
                        const std::int64_t* index, std::size_t n_index, double* out) {
    add_panels(grams.size(), n_index, n_index, out, [](std::size_t i) { return i; },
               [&](std::size_t j, std::size_t i, double* sum) {
                   const T* row = grams[j] + static_cast<std::size_t>(index[i]) * n;
                   for (std::size_t k = i; k < n_index; ++k)
                       sum[k] += weights[j] * static_cast<double>(row[index[k]]);
               });
}

}  // namespace kw
