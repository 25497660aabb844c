// Bindings of the quadratic program of a bundle step (core/bundle_model.hpp).
#include "core/bundle_model.hpp"

#include <tuple>

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

using ModelSolution = std::tuple<Out<double>, Out<double>, Out<double>, Out<double>>;

ModelSolution solve(const Vector<const double>& cuts, const Table<const double>& slopes, const Table<const double>& M,
                    const Vector<const double>& centre) {
    const std::size_t k = centre.shape(0), c = cuts.shape(0);
    require(k > 0 && c > 0, "at least one weight and one cut are needed");
    require(slopes.shape(0) == c && slopes.shape(1) == k, "slopes needs one row per cut and one column per weight");
    require(M.shape(0) == k && M.shape(1) == k, "M must be square with one row per weight");
    InteriorPoint solver({view(cuts), view(slopes), view(M), view(centre)});
    {
        const nb::gil_scoped_release release;
        solver.run();
    }
    const auto copy = [](const std::vector<double>& values) { return make_array(std::vector<double>(values)); };
    return {copy(solver.x()), copy(solver.reduced()), copy(solver.slack()), copy(solver.multipliers())};
}

}  // namespace

void bind_bundle_model(nb::module_& m) {
    m.def("solve_bundle_model", &solve, "cuts"_array, "slopes"_array, "M"_array, "centre"_array,
          "Minimise max_i(cuts_i + slopes_i . x) + (x - centre)' M (x - centre) / 2 on the simplex by an interior "
          "point method: (x, its reduced costs, slacks and multipliers of the cuts).");
}

}  // namespace kw::python
