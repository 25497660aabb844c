// Bindings of products and coordinate descent in feature space (core/features.hpp).
#include "core/features.hpp"

#include <limits>

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

template <class T>
Out<double> times(const Table<const T>& Z, const Table<const double>& W) {
    require(W.shape(0) == Z.shape(1), "W needs one row per feature");
    return compute_matrix(Z.shape(0), W.shape(1), [&](Matrix<double> out) {
        const auto by_output = transposed(view(W));
        feature_times(view(Z), {by_output.data(), W.shape(1), W.shape(0)}, out);
    });
}

template <class T>
Out<double> sums(const Table<const T>& Z, const Table<const double>& V) {
    require(V.shape(0) == Z.shape(0), "V needs one row per row of Z");
    const std::size_t rank = Z.shape(1), n_outputs = V.shape(1);
    return compute_matrix(rank, n_outputs, [&](Matrix<double> out) {
        std::vector<double> by_output(rank * n_outputs);
        feature_sums(view(Z), view(V), {by_output.data(), n_outputs, rank});
        const auto columns = transposed({by_output.data(), n_outputs, rank});
        std::copy(columns.begin(), columns.end(), out.data);
    });
}

template <class T>
std::pair<double, double> descend(const Table<const T>& Z, const Vector<const double>& squares,
                                  const Vector<const double>& target, const Vector<const double>& lower,
                                  const Vector<const double>& upper, const Vector<const double>& ridge,
                                  double dead_zone, double stiff, double bias, std::uint64_t seed, double total,
                                  const Vector<double>& t, const Vector<double>& v) {
    const std::size_t n = Z.shape(0), rank = Z.shape(1);
    require(
        target.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n && ridge.shape(0) == n && t.shape(0) == n,
        "target, lower, upper, ridge and t must have one entry per row");
    require(squares.shape(0) == rank && v.shape(0) == rank, "squares and v need one entry per feature");
    require(n <= std::numeric_limits<std::uint32_t>::max(), "too many rows in one block");
    require(dead_zone >= 0.0 && stiff >= 0.0, "dead_zone and stiff must be >= 0");
    const nb::gil_scoped_release release;
    const BoxDual dual{view(target), view(lower), view(upper), view(ridge), dead_zone, stiff};
    const double largest = descend_box(view(Z), view(squares), dual, seed, bias, view(t), view(v), total);
    return {total, largest};
}

}  // namespace

void bind_features(nb::module_& m) {
    for_types<float, double>([&]<class T>() {
        m.def("feature_times", &times<T>, "Z"_array, "W"_array,
              "Rows of features times weights, summed in double precision.");
        m.def("feature_sums", &sums<T>, "Z"_array, "V"_array,
              "Transposed features times values of rows, summed in double precision.");
        m.def("descend_box", &descend<T>, "Z"_array, "squares"_array, "target"_array, "lower"_array, "upper"_array,
              "ridge"_array, "dead_zone"_a, "stiff"_a, "bias"_a, "seed"_a, "total"_a, "t"_array, "v"_array,
              "One epoch of coordinate descent on the dual problem of one output, changing t and v in place: "
              "(sum of t, largest change relative to its box).");
    });
}

}  // namespace kw::python
