// Bindings of support vector solvers and of the best bias (core/smo.hpp, core/bias.hpp).
#include "core/smo.hpp"

#include "bindings/bindings.hpp"
#include "core/parallel.hpp"

namespace kw::python {
namespace {

SmoProblem make_problem(const Vector<const double>& target, const Vector<const double>& lower,
                        const Vector<const double>& upper, const Vector<const double>& ridge, double dead_zone,
                        bool intercept) {
    const std::size_t n = target.shape(0);
    require(lower.shape(0) == n && upper.shape(0) == n && ridge.shape(0) == n,
            "target, lower, upper and ridge must have one length");
    for (std::size_t i = 0; i < n; ++i) {
        require(lower(i) <= 0.0 && upper(i) >= 0.0, "every box must contain zero");
        require(std::isfinite(target(i)) && std::isfinite(lower(i)) && std::isfinite(upper(i)) &&
                    std::isfinite(ridge(i)) && ridge(i) >= 0.0,
                "targets, boxes and ridges must be finite, ridges not negative");
    }
    require(std::isfinite(dead_zone) && dead_zone >= 0.0, "dead_zone must be finite and not negative");
    const auto copy = [n](const Vector<const double>& v) { return std::vector<double>(v.data(), v.data() + n); };
    return {copy(target), copy(lower), copy(upper), copy(ridge), dead_zone, intercept};
}

std::span<const double> checked_diagonal(const Vector<const double>& diagonal, std::size_t n) {
    require(diagonal.shape(0) == n, "diagonal must have one entry per row");
    check_not_negative(view(diagonal), "the diagonal must be finite and not negative");
    return view(diagonal);
}

template <class T>
struct LentSmo {
    Smo<T> core;
    std::vector<nb::object> lenders;  // keeps the row blocks alive

    LentSmo(const Vector<const double>& target, const Vector<const double>& lower, const Vector<const double>& upper,
            const Vector<const double>& ridge, const Vector<const double>& diagonal, double dead_zone, bool intercept)
        : core(make_problem(target, lower, upper, ridge, dead_zone, intercept),
               checked_diagonal(diagonal, target.shape(0))) {}

    void hold(double sum) {
        require(std::isfinite(sum), "sum must be finite");
        core.hold(sum);
    }

    void start(const Vector<const double>& beta, const Vector<const double>& fitted) {
        require(beta.shape(0) == core.size() && fitted.shape(0) == core.size(),
                "beta and fitted need one entry per row");
        check_finite(view(beta), "beta and fitted must be finite");
        check_finite(view(fitted), "beta and fitted must be finite");
        core.start(view(beta), view(fitted));
    }
};

template <class T>
std::vector<Status> run(const std::vector<LentSmo<T>*>& solvers, double tol, double floor, std::int64_t max_updates,
                        double enough) {
    for (std::size_t o = 0; o < solvers.size(); ++o) {
        require(solvers[o] != nullptr, "solvers must not contain None");
        require(std::find(solvers.begin(), solvers.begin() + static_cast<std::ptrdiff_t>(o), solvers[o]) ==
                    solvers.begin() + static_cast<std::ptrdiff_t>(o),
                "solvers must not contain one solver twice");
    }
    require(!std::isnan(tol) && !std::isnan(floor), "tol and floor must be numbers");
    std::vector<Status> status(solvers.size());
    const nb::gil_scoped_release release;
    parallel_for(solvers.size(),
                 [&](std::size_t o) { status[o] = solvers[o]->core.run({tol, floor, max_updates, enough}); });
    return status;
}

template <class T>
void bind_solver(nb::module_& m, const char* name) {
    using Solver = LentSmo<T>;
    using Array = const Vector<const double>&;
    nb::class_<Solver>(m, name, "One support vector problem being solved; rows of the Gram matrix are lent to it.")
        .def(nb::init<Array, Array, Array, Array, Array, double, bool>(), "target"_array, "lower"_array, "upper"_array,
             "ridge"_array, "diagonal"_array, "dead_zone"_a, "intercept"_a)
        .def("hold", &Solver::hold, "sum"_a,
             "Make this a part of a larger problem, whose other samples have coefficients with this sum.")
        .def("start", &Solver::start, "beta"_array, "fitted"_array,
             "Begin from a feasible beta whose K @ beta is known.")
        .def(
            "lend",
            [](Solver& self, const RowNumbers& index, const nb::object& block) {
                lend_rows<T>(self.core, self.lenders, index, block);
            },
            "index"_array, "block"_a, "Hand over rows of the Gram matrix; they are kept, not copied.")
        .def(
            "wanted", [](const Solver& self, std::size_t how_many) { return make_array(self.core.wanted(how_many)); },
            "how_many"_a, "Rows the next updates need, most urgent first.")
        .def_prop_ro(
            "beta", [](const Solver& self) { return make_array(std::vector<double>(self.core.beta())); },
            nb::rv_policy::move)
        .def_prop_ro(
            "fitted", [](const Solver& self) { return make_array(self.core.fitted()); }, nb::rv_policy::move)
        .def_prop_ro("bias", [](const Solver& self) { return self.core.bias(); })
        .def_prop_ro("primal", [](const Solver& self) { return self.core.primal(); })
        .def_prop_ro("dual", [](const Solver& self) { return self.core.dual(); })
        .def_prop_ro("updates", [](const Solver& self) { return self.core.updates(); });
    m.def("run_smo", &run<T>, "solvers"_a, "tol"_a, "floor"_a, "max_updates"_a, "enough"_a = smo_loops::kInfinity,
          "Run each solver to its gap, or until its dual value is enough.");
}

std::pair<double, double> find_bias(const Vector<const double>& fitted, const Vector<const double>& target,
                                    const Vector<const double>& lower, const Vector<const double>& upper,
                                    const Vector<const double>& ridge, double dead_zone) {
    const auto problem = make_problem(target, lower, upper, ridge, dead_zone, true);
    require(fitted.shape(0) == problem.size(), "fitted must have one entry per row");
    check_finite(view(fitted), "fitted must be finite");
    const nb::gil_scoped_release release;
    const double bias = best_bias(problem, view(fitted));
    return {bias, problem.total_loss(view(fitted), bias)};
}

}  // namespace

void bind_status(nb::module_& m) {
    nb::enum_<Status>(m, "Status", nb::is_arithmetic(), "How a run of a solver ended.")
        .value("converged", Status::converged, "The tolerance is met.")
        .value("paused", Status::paused, "The limit of updates is reached.")
        .value("needs_rows", Status::needs_rows, "Rows of the Gram matrix are missing.")
        .value("stalled", Status::stalled, "Rounding error prevents further progress.");
}

void bind_smo(nb::module_& m) {
    bind_solver<double>(m, "SmoDouble");
    bind_solver<float>(m, "SmoFloat");
}

void bind_bias(nb::module_& m) {
    m.def("best_bias", &find_bias, "fitted"_array, "target"_array, "lower"_array, "upper"_array, "ridge"_array,
          "dead_zone"_a, "The bias that minimises the total loss, and that loss.");
}

}  // namespace kw::python
