// Bindings of stored Gram matrices (core/gram.hpp).
#include "bindings/bindings.hpp"
#include "core/gram.hpp"

namespace kw::python {
namespace {

template <class T>
using GramList = std::vector<Table<const T>>;

template <class T>
Grams<T> stored(const GramList<T>& grams, std::size_t n) {
    Grams<T> out{{}, n};
    for (const auto& gram : grams) {
        require(gram.shape(0) == n && gram.shape(1) == n, "Gram matrices must be square and of one size");
        out.matrices.push_back(gram.data());
    }
    return out;
}

template <class T>
Grams<T> stored(const GramList<T>& grams) {
    return stored(grams, grams.empty() ? 0 : grams[0].shape(0));
}

template <class T>
Grams<T> weighted(const GramList<T>& grams, const Vector<const double>& weights, std::size_t n) {
    require(weights.shape(0) == grams.size(), "weights and grams must have the same length");
    return stored(grams, n);
}

void check_vectors(const Table<const double>& V, const RowNumbers& index, std::size_t n) {
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    check_index(index, n);
}

template <class T>
Out<double> forms(const GramList<T>& list, const RowNumbers& index, const Table<const double>& V) {
    const auto grams = stored(list);
    check_vectors(V, index, grams.n);
    return compute_array({grams.count()}, [&](std::span<double> out) { gram_forms(grams, view(index), view(V), out); });
}

template <class T>
Out<double> products(const GramList<T>& list, const RowNumbers& index, const Table<const double>& V) {
    const auto grams = stored(list);
    check_vectors(V, index, grams.n);
    return compute_array({grams.count(), grams.n, V.shape(1)},
                         [&](std::span<double> out) { gram_products(grams, view(index), view(V), out); });
}

template <class T>
Out<double> products_at(const GramList<T>& list, const RowNumbers& rows, const RowNumbers& index,
                        const Table<const double>& V) {
    const auto grams = stored(list);
    check_vectors(V, index, grams.n);
    check_index(rows, grams.n);
    return compute_array({grams.count(), rows.shape(0), V.shape(1)}, [&](std::span<double> out) {
        gram_products_at(grams, view(rows), view(index), view(V), out);
    });
}

template <class T, class O>
void combine_upper(const GramList<T>& list, const Vector<const double>& weights, const Table<O>& out) {
    const auto grams = weighted(list, weights, out.shape(0));
    require(out.shape(1) == grams.n, "out must be square");
    const nb::gil_scoped_release release;
    gram_combine_upper(grams, view(weights), view(out));
}

template <class T, class O>
void combine_rows(const GramList<T>& list, const Vector<const double>& weights, const RowNumbers& rows,
                  const Table<O>& out) {
    const auto grams = weighted(list, weights, out.shape(1));
    require(out.shape(0) == rows.shape(0), "out needs one row per entry of rows");
    check_index(rows, grams.n);
    const nb::gil_scoped_release release;
    gram_combine_rows(grams, view(weights), view(rows), view(out));
}

template <class T>
void combine_block(const GramList<T>& list, const Vector<const double>& weights, const RowNumbers& index,
                   const Table<double>& out) {
    const auto grams = weighted(list, weights, list.empty() ? 0 : list[0].shape(0));
    require(out.shape(0) == index.shape(0) && out.shape(1) == index.shape(0), "out has the wrong shape");
    if (!list.empty()) check_index(index, grams.n);
    const nb::gil_scoped_release release;
    gram_combine_block(grams, view(weights), view(index), view(out));
}

}  // namespace

void bind_grams(nb::module_& m) {
    for_types<double, float>([&]<class T>() {
        m.def("gram_forms", &forms<T>, "grams"_array, "index"_array, "V"_array,
              "tr(V' K_j V) over the listed rows for every matrix.");
        m.def("gram_products", &products<T>, "grams"_array, "index"_array, "V"_array,
              "K_j[:, index] @ V for every matrix.");
        m.def("gram_products_at", &products_at<T>, "grams"_array, "rows"_array, "index"_array, "V"_array,
              "K_j[rows][:, index] @ V for every matrix.");
        for_types<double, float>([&]<class O>() {
            m.def("gram_combine_upper", &combine_upper<T, O>, "grams"_array, "weights"_array, "out"_array,
                  "Add sum_j weights_j K_j to the upper triangle of the square out.");
            m.def("gram_combine_rows", &combine_rows<T, O>, "grams"_array, "weights"_array, "rows"_array, "out"_array,
                  "Add sum_j weights_j K_j[rows] to out.");
        });
        m.def("gram_combine_block", &combine_block<T>, "grams"_array, "weights"_array, "index"_array, "out"_array,
              "Add sum_j weights_j K_j[index][:, index] to the upper triangle of out.");
    });
}

}  // namespace kw::python
