// Shared by the bindings: array types without conversion, views for the core, results without a copy, dtype loops.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/matrix.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace kw::python {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;
using RowNumbers = Vector<const std::int64_t>;

// An argument that is never converted: an array of another type or layout is an error instead of a silent copy.
inline auto operator""_array(const char* name, std::size_t) { return nb::arg(name).noconvert(); }

// Calls define.operator()<T>() for each type, to register one overload per dtype.
template <class... T, class Define>
void for_types(Define&& define) {
    (define.template operator()<T>(), ...);
}

template <class T>
[[nodiscard]] std::span<T> view(const Vector<T>& array) {
    return {array.data(), array.shape(0)};
}
template <class T>
[[nodiscard]] Matrix<T> view(const Table<T>& array) {
    return {array.data(), array.shape(0), array.shape(1)};
}

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

inline void check_finite(std::span<const double> values, const char* message) {
    require(std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }), message);
}

inline void check_not_negative(std::span<const double> values, const char* message) {
    require(std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x) && x >= 0.0; }), message);
}

inline void check_rates(const Vector<const double>& rates) {
    check_not_negative(view(rates), "rates must be finite and not negative");
}

inline void check_index(const RowNumbers& index, std::size_t limit) {
    const auto rows = view(index);
    require(std::all_of(rows.begin(), rows.end(),
                        [limit](std::int64_t row) { return row >= 0 && static_cast<std::size_t>(row) < limit; }),
            "row numbers must lie in range");
}

// A numpy array that owns `values`.
template <class T>
[[nodiscard]] Out<T> make_array(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    const nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    (void)owned.release();  // the capsule deletes it
    return Out<T>(data, shape, owner);
}
template <class T>
[[nodiscard]] Out<T> make_array(std::vector<T>&& values) {
    const std::size_t size = values.size();
    return make_array(std::move(values), {size});
}

// A numpy array that fill(values) writes without the GIL.
template <class T = double, class Fill>
[[nodiscard]] Out<T> compute_array(std::initializer_list<std::size_t> shape, Fill&& fill) {
    std::vector<T> values(std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
    {
        const nb::gil_scoped_release release;
        fill(std::span<T>(values));
    }
    return make_array(std::move(values), shape);
}

// Likewise for a matrix.
template <class T = double, class Fill>
[[nodiscard]] Out<T> compute_matrix(std::size_t rows, std::size_t columns, Fill&& fill) {
    return compute_array<T>({rows, columns},
                            [&](std::span<T> values) { fill(Matrix<T>{values.data(), rows, columns}); });
}

// A matrix whose rows are contiguous, but need not follow each other.
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
[[nodiscard]] bool has_contiguous_rows(const Strided<T>& array) {
    return array.shape(1) < 2 || array.stride(1) == 1;
}

// Lends rows of a Gram matrix to a solver, and keeps them alive in `lenders`.
template <class T, class Solver>
void lend_rows(Solver& solver, std::vector<nb::object>& lenders, const RowNumbers& index, const nb::object& block) {
    Strided<const T> rows;
    if (!nb::try_cast(block, rows, false) || !has_contiguous_rows(rows))
        throw nb::type_error("block must be an array of the solver's type with contiguous rows");
    require(rows.shape(0) == index.shape(0) && rows.shape(1) == solver.size(), "block has the wrong shape");
    check_index(index, solver.size());
    lenders.push_back(block);
    for (std::size_t k = 0; k < index.shape(0); ++k) {
        const T* row = rows.data() + static_cast<std::ptrdiff_t>(k) * rows.stride(0);
        solver.lend(row_at(view(index), k), {row, rows.shape(1)});
    }
}

// Throws if a signal handler raised, as after Ctrl-C; called while the GIL is released.
inline void check_signals() {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// One function per part of the core.
void bind_ladder(nb::module_& m);
void bind_tiles(nb::module_& m);
void bind_distances(nb::module_& m);
void bind_grams(nb::module_& m);
void bind_cholesky(nb::module_& m);
void bind_features(nb::module_& m);
void bind_status(nb::module_& m);
void bind_smo(nb::module_& m);
void bind_ball(nb::module_& m);
void bind_bias(nb::module_& m);
void bind_bundle_model(nb::module_& m);
void bind_bits(nb::module_& m);
void bind_lattice(nb::module_& m);
void bind_order_statistics(nb::module_& m);
void bind_projections(nb::module_& m);
void bind_squared_lasso(nb::module_& m);
void bind_product_games(nb::module_& m);

}  // namespace kw::python
