// Forms and products of several stored Gram matrices with vectors of which many rows are zero: only the rows
// and columns of the others are read. Sums are taken in double whatever the storage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

constexpr std::size_t kGramChunk = 512;  // columns per task; part of no sum

// V as one contiguous vector per output.
inline std::vector<double> by_output(const double* V, std::size_t n_rows, std::size_t n_outputs) {
    std::vector<double> columns(n_outputs * n_rows);
    for (std::size_t k = 0; k < n_rows; ++k)
        for (std::size_t o = 0; o < n_outputs; ++o) columns[o * n_rows + k] = V[k * n_outputs + o];
    return columns;
}

KW_CLONES static inline void add_scaled(double weight, const double* row, double* out, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) out[k] += weight * row[k];
}

KW_CLONES static inline void add_scaled(double weight, const float* row, double* out, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) out[k] += weight * static_cast<double>(row[k]);
}

// forms[j] = sum over a, b in `index` of K_j(a, b) * <V_a, V_b>; the matrices are symmetric, n x n.
template <class T>
void gram_forms(const std::vector<const T*>& grams, std::size_t n, const std::int64_t* index, std::size_t n_index,
                const double* V, std::size_t n_outputs, double* forms) {
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
                add_scaled(V[k * n_outputs + o], row, sums.data() + o * length, length);
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
    const auto columns = by_output(V, n_index, n_outputs);
    parallel_for(grams.size(), [&](std::size_t j) {
        std::vector<double> gathered(n_index);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const T* row = grams[j] + static_cast<std::size_t>(rows[i]) * n;
            for (std::size_t k = 0; k < n_index; ++k) gathered[k] = static_cast<double>(row[index[k]]);
            for (std::size_t o = 0; o < n_outputs; ++o)
                out[(j * n_rows + i) * n_outputs + o] = dot(gathered.data(), columns.data() + o * n_index, n_index);
        }
    });
}

}  // namespace kw
