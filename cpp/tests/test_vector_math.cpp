// Tests of the vector loops.
#include "core/vector_math.hpp"

#include "tests/check.hpp"

namespace kw::test {

void test_vector_math() {
    double worst = 0.0;
    for (int step = 0; step < 51'678; ++step) {  // 0 to -708
        const double x = -0.0137 * step;
        const double expected = std::exp(x);
        worst = std::max(worst, std::abs(exp_negative(x) - expected) / expected);
    }
    check(worst <= 5e-16, "exp_negative is accurate to two units in the last place");
    check(exp_negative(0.0) == 1.0, "exp_negative(0) is exactly one");
    check(exp_negative(-0.0) == 1.0, "exp_negative(-0) is exactly one");
    check(exp_negative(-1e-300) == 1.0, "exp_negative of nearly nothing");
    check(exp_negative(-709.0) == 0.0, "exp_negative below the range");
    check(exp_negative(-1e308) == 0.0, "exp_negative far below the range");
    check(exp_negative(-kInfinity) == 0.0, "exp_negative of minus infinity");
    check(std::isnan(exp_negative(kNaN)), "exp_negative of NaN is NaN");
    for (const std::size_t n : kSizes) {
        const auto a = normals(n, 1), b = normals(n, 2);
        double expected = 0.0;
        for (std::size_t k = 0; k < n; ++k) expected += a[k] * b[k];
        check_close(dot(a, b), expected, 1e-13 * (1.0 + static_cast<double>(n)), at("dot", n));
    }
}

}  // namespace kw::test
