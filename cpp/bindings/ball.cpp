// Bindings of enclosing balls (core/ball.hpp).
#include "core/ball.hpp"

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

std::vector<double> checked(const Vector<const double>& values, std::size_t n) {
    require(n > 0 && values.shape(0) == n, "diagonal and ridge need one entry per row, and at least one row");
    check_not_negative(view(values), "diagonal and ridge must be finite and not negative");
    return {values.data(), values.data() + n};
}

template <class T>
struct LentBall {
    Ball<T> core;
    std::vector<nb::object> lenders;  // keeps the row blocks alive

    LentBall(const Vector<const double>& diagonal, const Vector<const double>& ridge)
        : core(checked(diagonal, diagonal.shape(0)), checked(ridge, diagonal.shape(0))) {}

    void start(const Vector<const double>& beta, const Vector<const double>& fitted) {
        require(beta.shape(0) == core.size() && fitted.shape(0) == core.size(),
                "beta and fitted need one entry per row");
        check_not_negative(view(beta), "beta and fitted must be finite, beta not negative");
        check_finite(view(fitted), "beta and fitted must be finite, beta not negative");
        double sum = 0.0;
        for (const double weight : view(beta)) sum += weight;
        require(std::abs(sum - 1.0) <= 1e-9, "beta must sum to one");
        core.start(view(beta), view(fitted));
    }

    Status run(double tol, std::int64_t max_updates) {
        require(tol >= 0.0, "tol must be a number >= 0");
        const nb::gil_scoped_release release;
        return core.run(tol, max_updates);
    }
};

template <class T>
void bind_solver(nb::module_& m, const char* name) {
    using Solver = LentBall<T>;
    using Array = const Vector<const double>&;
    nb::class_<Solver>(m, name, "One enclosing ball being solved; rows of the Gram matrix are lent to it.")
        .def(nb::init<Array, Array>(), "diagonal"_array, "ridge"_array)
        .def("start", &Solver::start, "beta"_array, "fitted"_array,
             "Begin from weights on the simplex whose K @ beta is known.")
        .def(
            "lend",
            [](Solver& self, const RowNumbers& index, const nb::object& block) {
                lend_rows<T>(self.core, self.lenders, index, block);
            },
            "index"_array, "block"_a, "Hand over rows of the Gram matrix; they are kept, not copied.")
        .def(
            "wanted", [](const Solver& self, std::size_t how_many) { return make_array(self.core.wanted(how_many)); },
            "how_many"_a, "Rows the next updates need, most urgent first.")
        .def("run", &Solver::run, "tol"_a, "max_updates"_a, "Run to a relative gap.")
        .def_prop_ro(
            "beta", [](const Solver& self) { return make_array(std::vector<double>(self.core.beta())); },
            nb::rv_policy::move)
        .def_prop_ro(
            "fitted", [](const Solver& self) { return make_array(self.core.fitted()); }, nb::rv_policy::move)
        .def_prop_ro("updates", [](const Solver& self) { return self.core.updates(); });
}

}  // namespace

void bind_ball(nb::module_& m) {
    bind_solver<double>(m, "BallDouble");
    bind_solver<float>(m, "BallFloat");
}

}  // namespace kw::python
