// Bindings of kernels of one distance matrix (core/ladder.hpp).
#include "core/ladder.hpp"

#include <tuple>

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

std::vector<std::tuple<std::int64_t, int>> plan(const Vector<const double>& rates) {
    std::vector<std::tuple<std::int64_t, int>> out;
    for (const auto& step : plan_ladder(view(rates)))
        out.emplace_back(static_cast<std::int64_t>(step.parent), step.squarings);
    return out;
}

void check_weighted_rates(const Vector<const double>& rates, const Vector<const double>& weights) {
    check_rates(rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
}

template <class T>
Out<double> forms(const Table<const T>& distances, const Vector<const double>& rates, const RowNumbers& index,
                  const Table<const double>& V) {
    check_rates(rates);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    require(distances.shape(0) == distances.shape(1), "distances must be square");
    check_index(index, distances.shape(0));
    return compute_array({rates.shape(0)}, [&](std::span<double> out) {
        ladder_forms<T>(view(distances), plan_ladder(view(rates)), view(index), view(V), out);
    });
}

template <class T>
Out<double> products(const Table<const T>& distances, const Vector<const double>& rates, const RowNumbers& rows,
                     const RowNumbers& index, const Table<const double>& V) {
    check_rates(rates);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    check_index(rows, distances.shape(0));
    check_index(index, distances.shape(1));
    return compute_array({rates.shape(0), rows.shape(0), V.shape(1)}, [&](std::span<double> out) {
        ladder_products<T>(view(distances), plan_ladder(view(rates)), view(rows), view(index), view(V), out);
    });
}

template <class T, class O>
void combine_rows(const Table<const T>& distances, const Vector<const double>& rates,
                  const Vector<const double>& weights, const RowNumbers& index, const Table<O>& out) {
    check_weighted_rates(rates, weights);
    require(out.shape(0) == index.shape(0) && out.shape(1) == distances.shape(1), "out has the wrong shape");
    check_index(index, distances.shape(0));
    const nb::gil_scoped_release release;
    ladder_combine_rows<T, O>(view(distances), plan_ladder(view(rates)), view(weights), view(index), view(out));
}

template <class T, class O>
void combine_upper(const Table<const T>& distances, const Vector<const double>& rates,
                   const Vector<const double>& weights, const Table<O>& out) {
    check_weighted_rates(rates, weights);
    require(distances.shape(0) == distances.shape(1), "distances must be square");
    require(out.shape(0) == distances.shape(0) && out.shape(1) == distances.shape(1), "out has the wrong shape");
    const nb::gil_scoped_release release;
    ladder_combine_upper<T, O>(view(distances), plan_ladder(view(rates)), view(weights), view(out));
}

template <class T>
void combine_block(const Table<const T>& distances, const Vector<const double>& rates,
                   const Vector<const double>& weights, const RowNumbers& index, const Table<double>& out) {
    check_weighted_rates(rates, weights);
    require(out.shape(0) == index.shape(0) && out.shape(1) == index.shape(0), "out has the wrong shape");
    check_index(index, distances.shape(0));
    check_index(index, distances.shape(1));
    const nb::gil_scoped_release release;
    ladder_combine_block<T>(view(distances), plan_ladder(view(rates)), view(weights), view(index), view(out));
}

Out<double> gaussians(const Table<const double>& features, const Table<const double>& kept,
                      const Vector<const double>& rates, const Vector<const double>& weights,
                      const Table<const double>& V) {
    check_weighted_rates(rates, weights);
    require(features.shape(0) == kept.shape(0), "features and kept must have the same number of features");
    require(V.shape(0) == kept.shape(1), "V needs one row per kept row");
    return compute_matrix(features.shape(1), V.shape(1), [&](Matrix<double> out) {
        gaussian_products(view(features), view(kept), plan_ladder(view(rates)), view(weights), view(V), out);
    });
}

}  // namespace

void bind_ladder(nb::module_& m) {
    m.def("ladder_plan", &plan, "rates"_array, "For each rate the kernel it is squared from (-1: none) and how often.");
    for_types<double, float>([&]<class T>() {
        m.def("ladder_forms", &forms<T>, "distances"_array, "rates"_array, "index"_array, "V"_array,
              "tr(V' K_j V) over the listed rows for every rate.");
        m.def("ladder_products", &products<T>, "distances"_array, "rates"_array, "rows"_array, "index"_array, "V"_array,
              "K_j[rows][:, index] @ V for every rate.");
    });
    for_types<std::pair<double, double>, std::pair<float, double>, std::pair<float, float>>([&]<class Types>() {
        using T = typename Types::first_type;
        using O = typename Types::second_type;
        m.def("ladder_combine_rows", &combine_rows<T, O>, "distances"_array, "rates"_array, "weights"_array,
              "index"_array, "out"_array, "Add sum_j weights_j K_j[index, :] to out.");
        m.def("ladder_combine_upper", &combine_upper<T, O>, "distances"_array, "rates"_array, "weights"_array,
              "out"_array, "Add sum_j weights_j K_j to the upper triangle of the square out.");
    });
    for_types<double, float>([&]<class T>() {
        m.def("ladder_combine_block", &combine_block<T>, "distances"_array, "rates"_array, "weights"_array,
              "index"_array, "out"_array, "Add sum_j weights_j K_j[index][:, index] to the upper triangle of out.");
    });
    m.def("gaussian_products", &gaussians, "features"_array, "kept"_array, "rates"_array, "weights"_array, "V"_array,
          "sum_j weights_j exp(-rate_j |x - z|^2) @ V without storing a block; one feature per row.");
}

}  // namespace kw::python
