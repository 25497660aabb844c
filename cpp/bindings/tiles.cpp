// Bindings of kernels computed from rows on demand (core/tiles.hpp).
#include "core/tiles.hpp"

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

// A table with its kernels, all arguments checked.
template <class Real>
struct Checked {
    std::vector<LadderStep> steps;
    PointKernels<Real> kernels;

    Checked(const Table<const Real>& table, bool squared, const Vector<const double>& rates)
        : steps((check_rates(rates), plan_ladder(view(rates)))),
          kernels{view(table), squared ? Metric::squared : Metric::absolute, steps} {}
};

void check_places(const RowNumbers& rows, const RowNumbers& points, std::size_t n) {
    check_index(rows, n);
    check_index(points, n);
}

template <class Real, class O>
void sums(const Table<const Real>& table, bool squared, const Vector<const double>& rates,
          const Vector<const double>& weights, const RowNumbers& rows, const RowNumbers& points, bool add,
          const Table<O>& out) {
    const Checked<Real> checked(table, squared, rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    check_places(rows, points, table.shape(0));
    require(out.shape(0) == rows.shape(0) && out.shape(1) == points.shape(0), "out has the wrong shape");
    const nb::gil_scoped_release release;
    tile_sums<Real, O>(checked.kernels, view(weights), view(rows), view(points), add, view(out));
}

template <class Real, class O>
void square(const Table<const Real>& table, bool squared, const Vector<const double>& rates,
            const Vector<const double>& weights, const RowNumbers& points, std::size_t known, bool add,
            const Strided<O>& out) {
    const Checked<Real> checked(table, squared, rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    check_index(points, table.shape(0));
    const std::size_t n = points.shape(0);
    require(known <= n, "known must not exceed the number of points");
    require(out.shape(0) == n && out.shape(1) == n, "out has the wrong shape");
    require(has_contiguous_rows(out) && (n < 2 || out.stride(0) >= static_cast<std::int64_t>(n)),
            "the rows of out must be contiguous");
    const nb::gil_scoped_release release;
    tile_square<Real, O>(checked.kernels, view(weights), view(points), known, add, out.data(),
                         static_cast<std::size_t>(out.stride(0)));
}

template <class Real>
Out<double> products(const Table<const Real>& table, bool squared, const Vector<const double>& rates,
                     const Vector<const double>& weights, const RowNumbers& rows, const RowNumbers& points,
                     const Table<const double>& V) {
    const Checked<Real> checked(table, squared, rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    check_places(rows, points, table.shape(0));
    require(V.shape(0) == points.shape(0), "V needs one row per point");
    return compute_matrix(rows.shape(0), V.shape(1), [&](Matrix<double> out) {
        tile_products<Real>(checked.kernels, view(weights), view(rows), view(points), view(V), out);
    });
}

template <class Real>
Out<double> kernel_products(const Table<const Real>& table, bool squared, const Vector<const double>& rates,
                            const RowNumbers& rows, const RowNumbers& points, const Table<const double>& V) {
    const Checked<Real> checked(table, squared, rates);
    check_places(rows, points, table.shape(0));
    require(V.shape(0) == points.shape(0), "V needs one row per point");
    return compute_array({rates.shape(0), rows.shape(0), V.shape(1)}, [&](std::span<double> out) {
        tile_kernel_products<Real>(checked.kernels, view(rows), view(points), view(V), out);
    });
}

template <class Real>
Out<double> forms(const Table<const Real>& table, bool squared, const Vector<const double>& rates,
                  const RowNumbers& points, const Table<const double>& V) {
    const Checked<Real> checked(table, squared, rates);
    check_index(points, table.shape(0));
    require(V.shape(0) == points.shape(0), "V needs one row per point");
    return compute_array({rates.shape(0)},
                         [&](std::span<double> out) { tile_forms<Real>(checked.kernels, view(points), view(V), out); });
}

template <class Real, class O>
void bind_sums(nb::module_& m) {
    m.def("tile_sums", &sums<Real, O>, "table"_array, "squared"_a, "rates"_array, "weights"_array, "rows"_array,
          "points"_array, "add"_a, "out"_array,
          "Write sum_j weights_j exp(-rate_j * distance) between some rows and some points of a table to out, or add "
          "it.");
    m.def("tile_square", &square<Real, O>, "table"_array, "squared"_a, "rates"_array, "weights"_array, "points"_array,
          "known"_a, "add"_a, "out"_array,
          "Do the same for a square of points, of which the first `known` are there; a pair is computed once.");
}

}  // namespace

void bind_tiles(nb::module_& m) {
    bind_sums<float, float>(m);
    bind_sums<double, float>(m);
    bind_sums<double, double>(m);
    for_types<double, float>([&]<class Real>() {
        m.def("tile_products", &products<Real>, "table"_array, "squared"_a, "rates"_array, "weights"_array,
              "rows"_array, "points"_array, "V"_array,
              "Multiply the weighted sum of kernels between some rows and some points of a table by V.");
        m.def("tile_kernel_products", &kernel_products<Real>, "table"_array, "squared"_a, "rates"_array, "rows"_array,
              "points"_array, "V"_array, "Multiply every kernel between some rows and some points of a table by V.");
        m.def("tile_forms", &forms<Real>, "table"_array, "squared"_a, "rates"_array, "points"_array, "V"_array,
              "Return tr(V' K_j V) of every kernel over some points of a table.");
    });
}

}  // namespace kw::python
