// Bindings of coordinate descent for a squared weighted l1 norm (core/squared_lasso.hpp).
#include "core/squared_lasso.hpp"
#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::pair<Out<double>, std::size_t> solve(const Cube& grams, const Table<const double>& linear,
                                          const Vector<const double>& costs, const Vector<const std::int8_t>& signs,
                                          const Table<const double>& start, double tol, std::size_t max_sweeps) {
    const std::size_t n = linear.shape(0), n_outputs = linear.shape(1);
    require(grams.shape(0) == n_outputs && grams.shape(1) == n && grams.shape(2) == n,
            "grams needs one square matrix per output");
    require(start.shape(0) == n && start.shape(1) == n_outputs, "start must have the shape of linear");
    require(costs.shape(0) == n, "costs needs one value per coefficient");
    require(signs.shape(0) == n || signs.shape(0) == 0, "signs needs one value per coefficient or none");
    for (const double cost : view(costs)) require(cost > 0.0 && std::isfinite(cost), "costs must be > 0");
    std::vector<Matrix<const double>> parts;
    for (std::size_t t = 0; t < n_outputs; ++t) parts.push_back({grams.data() + t * n * n, n, n});
    const SquaredLasso problem{.grams = parts,
                               .linear = view(linear),
                               .costs = view(costs),
                               .signs = view(signs),
                               .tol = tol,
                               .max_sweeps = max_sweeps};
    std::size_t sweeps = 0;
    auto found = compute_matrix(n, n_outputs, [&](Matrix<double> out) {
        std::copy(start.data(), start.data() + n * n_outputs, out.data);
        sweeps = solve_squared_lasso(problem, out);
    });
    return {std::move(found), sweeps};
}

}  // namespace

void bind_squared_lasso(nb::module_& m) {
    m.def("squared_lasso", &solve, "grams"_array, "linear"_array, "costs"_array, "signs"_array, "start"_array, "tol"_a,
          "max_sweeps"_a, "Minimise sum_t (1/2 f_t' G_t f_t - c_t' f_t) + 1/2 (sum_w costs_w |f_w|)^2: (f, sweeps).");
}

}  // namespace kw::python
