// Bindings of distances between rows (core/distances.hpp).
#include "core/distances.hpp"

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

template <class T>
void mirror(const Table<T>& matrix) {
    require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
    const nb::gil_scoped_release release;
    mirror_upper(view(matrix));
}

void finish_squared(const Table<double>& products, const Table<const double>& A, const Table<const double>& B,
                    const Vector<const double>& scales, const Vector<const double>& a_norms,
                    const Vector<const double>& b_norms, bool upper) {
    require(A.shape(1) == B.shape(1) && A.shape(1) == scales.shape(0), "A, B and scales must have the same columns");
    require(products.shape(0) == A.shape(0) && products.shape(1) == B.shape(0), "products has the wrong shape");
    require(a_norms.shape(0) == A.shape(0) && b_norms.shape(0) == B.shape(0), "one squared norm per row is needed");
    require(!upper || A.shape(0) <= B.shape(0), "upper needs the first rows of B on the left");
    const nb::gil_scoped_release release;
    squared_distances_from_products(view(products), {view(A), view(B), view(scales), view(a_norms), view(b_norms)},
                                    upper);
}

template <class T>
void fill_absolute(const Table<const double>& A, const Table<const double>& B, const Table<T>& out) {
    require(A.shape(1) == B.shape(1), "A and B must have the same number of columns");
    require(out.shape(0) == A.shape(0) && out.shape(1) == B.shape(0), "out has the wrong shape");
    const nb::gil_scoped_release release;
    absolute_distances(view(A), view(B), view(out));
}

Out<double> sum_signs(const Table<const double>& A, const Table<const double>& B, const Table<const double>& V) {
    require(A.shape(1) == B.shape(1), "A and B must have the same number of columns");
    require(V.shape(0) == A.shape(0) && V.shape(1) == B.shape(0), "V has the wrong shape");
    return compute_matrix(A.shape(0), A.shape(1),
                          [&](Matrix<double> out) { signed_sums(view(A), view(B), view(V), out); });
}

}  // namespace

void bind_distances(nb::module_& m) {
    for_types<double, float>([&]<class T>() {
        m.def("mirror_upper", &mirror<T>, "matrix"_array, "Copy the upper triangle to the lower one, in place.");
    });
    m.def("finish_squared_distances", &finish_squared, "products"_array, "A"_array, "B"_array, "scales"_array,
          "a_norms"_array, "b_norms"_array, "upper"_a,
          "Turn inner products of centred, scaled rows into squared distances in place, cancellation repaired.");
    m.def("cancellation_limit", &cancellation_limit, "n_columns"_a,
          "Share of the squared norms below which a squared distance by inner products is not right to 1e-12.");
    for_types<double, float>([&]<class T>() {
        m.def("absolute_distances", &fill_absolute<T>, "A"_array, "B"_array, "out"_array,
              "Write the sums of absolute differences between rows of A and B.");
    });
    m.def("signed_sums", &sum_signs, "A"_array, "B"_array, "V"_array,
          "Return sum_k V[i, k] sign(A[i, c] - B[k, c]) for every row of A and every column.");
}

}  // namespace kw::python
