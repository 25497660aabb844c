// A view of a dense row-major matrix that belongs to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace kw {

template <class T>
struct Matrix {
    T* data = nullptr;
    std::size_t rows = 0, columns = 0;

    [[nodiscard]] std::size_t size() const noexcept { return rows * columns; }
    [[nodiscard]] std::span<T> entries() const noexcept { return {data, size()}; }
    [[nodiscard]] std::span<T> row(std::size_t i) const noexcept { return {data + i * columns, columns}; }
    [[nodiscard]] T& operator()(std::size_t i, std::size_t k) const noexcept { return data[i * columns + k]; }
    operator Matrix<const T>() const noexcept  // NOLINT(google-explicit-constructor): as std::span converts
        requires(!std::is_const_v<T>)
    {
        return {data, rows, columns};
    }
};

// Row numbers, as numpy stores them.
using Index = std::span<const std::int64_t>;

[[nodiscard]] inline std::size_t row_at(Index index, std::size_t k) noexcept {
    return static_cast<std::size_t>(index[k]);
}

// V transposed, so that each column of V is contiguous.
[[nodiscard]] inline std::vector<double> transposed(Matrix<const double> V) {
    std::vector<double> out(V.size());
    for (std::size_t k = 0; k < V.rows; ++k)
        for (std::size_t o = 0; o < V.columns; ++o) out[o * V.rows + k] = V(k, o);
    return out;
}

}  // namespace kw
