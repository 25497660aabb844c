// Tests of the quadratic program of a bundle step.
#include "core/bundle_model.hpp"

#include "tests/check.hpp"

namespace kw::test {

void test_bundle_model() {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const std::size_t k = 1 + seed % 9, c = 1 + seed % 4;
        const auto cuts = normals(c, seed), root = normals(k * k, 100 + seed);
        std::vector<double> slopes = normals(c * k, 200 + seed);
        for (auto& slope : slopes) slope = -std::abs(slope);
        std::vector<double> M(k * k, 0.0), centre(k, 0.0);
        for (std::size_t a = 0; a < k; ++a)
            for (std::size_t b = 0; b < k; ++b) {
                M[a * k + b] = a == b ? 0.1 : 0.0;
                for (std::size_t r = 0; r < k; ++r) M[a * k + b] += root[a * k + r] * root[b * k + r];
            }
        centre[seed % k] = 1.0;
        InteriorPoint solver({cuts, as_matrix(slopes, c, k), as_matrix(M, k, k), centre});
        solver.run();
        // At the solution weights and reduced costs, slacks and multipliers are complementary, and the gradient in
        // every weight is that of the constraint on their sum plus its reduced cost.
        const auto& x = solver.x();
        double sum = 0.0, share = 0.0, level = 0.0;
        for (std::size_t i = 0; i < c; ++i) {
            share += solver.multipliers()[i];
            check(solver.slack()[i] * solver.multipliers()[i] <= 1e-10, "a cut is active or without multiplier");
        }
        for (std::size_t a = 0; a < k; ++a) {
            double slope = -solver.reduced()[a];
            for (std::size_t b = 0; b < k; ++b) slope += M[a * k + b] * (x[b] - centre[b]);
            for (std::size_t i = 0; i < c; ++i) slope += solver.multipliers()[i] * slopes[i * k + a];
            if (a == 0) level = slope;
            check_close(slope, level, 1e-8, "slopes agree");
            check(x[a] > 0.0 && x[a] * solver.reduced()[a] <= 1e-10, "a weight is zero or without reduced cost");
            sum += x[a];
        }
        check_close(sum, 1.0, 1e-10, "weights sum to one");
        check_close(share, 1.0, 1e-8, "multipliers sum to one");
    }
    // Input that is no quadratic program must end all the same, with the last numbers there were.
    for (const double bad : {kNaN, kInfinity, -kInfinity, -1e300, 1e300}) {
        const std::vector<double> cuts{0.0, bad}, slopes{-1.0, -2.0, -1.5, bad}, M{bad, 0.0, 0.0, 1.0},
            centre{0.5, 0.5};
        InteriorPoint solver({cuts, as_matrix(slopes, 2, 2), as_matrix(M, 2, 2), centre});
        solver.run();
        for (const double x : solver.x()) check(std::isfinite(x), "weights are numbers");
    }
}

}  // namespace kw::test
