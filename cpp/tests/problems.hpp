// Support vector problems of the three losses, for the tests of the solver and of the bias.
#pragma once

#include <cstddef>
#include <vector>

#include "core/smo_problem.hpp"

namespace kw::test {

enum class Loss { hinge, tube, huber };

[[nodiscard]] inline SmoProblem make_problem(const std::vector<double>& y, double C, Loss loss, bool intercept) {
    const std::size_t n = y.size();
    SmoProblem problem;
    problem.target = y;
    problem.ridge.assign(n, loss == Loss::huber ? 1.0 / C : 0.0);
    problem.dead_zone = loss == Loss::tube ? 0.1 : 0.0;
    problem.intercept = intercept;
    for (const double value : y) {
        problem.lower.push_back(loss == Loss::hinge && value > 0.0 ? 0.0 : -C);
        problem.upper.push_back(loss == Loss::hinge && value < 0.0 ? 0.0 : C);
    }
    return problem;
}

}  // namespace kw::test
