// Tests of projections.
#include "core/project.hpp"

#include "tests/check.hpp"

namespace kw::test {

void test_project() {
    for (const std::size_t n : kSizes) {
        const auto x = normals(n, 17);
        std::vector<double> out(n, kNaN);
        if (n > 0) {
            project_simplex(x, 1.0, out);
            check_close(std::accumulate(out.begin(), out.end(), 0.0), 1.0, 1e-12, at("simplex sum", n));
            check(std::all_of(out.begin(), out.end(), [](double v) { return v >= 0.0; }), at("simplex sign", n));
        }
        std::vector<double> upper(n, 0.5);
        if (n > 1) upper[1] = 0.0;
        if (n > 2) upper[2] = kInfinity;
        for (const double cap : {0.0, 0.3, 2.0, 1e9, kInfinity}) {
            project_capped_box(x, upper, cap, out);
            double total = 0.0;
            bool inside = true;
            for (std::size_t i = 0; i < n; ++i) {
                total += std::abs(out[i]);
                inside = inside && std::abs(out[i]) <= upper[i] && out[i] * x[i] >= 0.0;
            }
            check(inside, at("capped box", n));
            check(total <= cap * (1.0 + 1e-12) + 1e-12, at("cap", n));
        }
        for (const double p : {1.0, 1.01, 1.5, 2.0, 3.0, 50.0})
            for (const double radius : {0.0, 0.1, 1.0, 1e6}) {
                project_lp_ball(x, p, radius, out);
                double sum = 0.0, before = 0.0;
                bool kept = true;
                for (std::size_t i = 0; i < n; ++i) {
                    sum += std::pow(std::abs(out[i]), p);
                    before += std::pow(std::abs(x[i]), p);
                    kept = kept && out[i] * x[i] >= 0.0 && std::abs(out[i]) <= std::abs(x[i]);
                }
                check(kept, at("ball keeps signs and shrinks", n));
                const double norm = std::pow(sum, 1.0 / p);
                check(norm <= radius * (1.0 + 1e-9), at("inside the ball", n));
                if (std::pow(before, 1.0 / p) > radius)
                    check_close(norm, radius, 1e-7 * radius, at("on the boundary", n));
            }
    }
    const std::vector<double> x = {3.0, 1.0, -2.0};
    std::vector<double> out(3);
    project_simplex(x, 1.0, out);
    check(out == std::vector<double>({1.0, 0.0, 0.0}), "a vertex of the simplex");
    project_lp_ball(x, 1.0, 2.0, out);
    check_close(out[0], 1.5, 1e-12, "soft threshold");
    check_close(out[2], -0.5, 1e-12, "soft threshold of a negative entry");
}

}  // namespace kw::test
