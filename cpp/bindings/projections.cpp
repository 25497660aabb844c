// Bindings of Euclidean projections (core/project.hpp).
#include "bindings/bindings.hpp"
#include "core/project.hpp"

namespace kw::python {
namespace {

Out<double> simplex(const Vector<const double>& x, double radius) {
    require(radius > 0.0, "radius must be > 0");
    require(x.shape(0) > 0, "x must not be empty");
    check_finite(view(x), "x must be finite");
    return compute_array({x.shape(0)}, [&](std::span<double> out) { project_simplex(view(x), radius, out); });
}

Out<double> capped_box(const Vector<const double>& x, const Vector<const double>& upper, double cap) {
    require(x.shape(0) == upper.shape(0), "x and upper must have the same length");
    require(cap >= 0.0, "cap must be >= 0");
    for (const double limit : view(upper)) require(limit >= 0.0, "upper must be >= 0");  // may be infinite
    check_finite(view(x), "x must be finite");
    return compute_array({x.shape(0)},
                         [&](std::span<double> out) { project_capped_box(view(x), view(upper), cap, out); });
}

Out<double> lp_ball(const Vector<const double>& x, double p, double radius) {
    require(p >= 1.0 && std::isfinite(p), "p must be a finite number >= 1");
    require(radius >= 0.0, "radius must be >= 0");
    check_finite(view(x), "x must be finite");
    return compute_array({x.shape(0)}, [&](std::span<double> out) { project_lp_ball(view(x), p, radius, out); });
}

}  // namespace

void bind_projections(nb::module_& m) {
    m.def("project_simplex", &simplex, "x"_array, "radius"_a = 1.0, "Nearest point with x >= 0 and sum x = radius.");
    m.def("project_capped_box", &capped_box, "x"_array, "upper"_array, "cap"_a,
          "Nearest point with |x| <= upper and sum |x| <= cap.");
    m.def("project_lp_ball", &lp_ball, "x"_array, "p"_a, "radius"_a = 1.0,
          "Nearest point whose lp norm is at most radius.");
}

}  // namespace kw::python
