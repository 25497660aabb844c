// Tests of the core without Python, meant to run under AddressSanitizer and UBSan (`make sanitize`).
//
// Each test compares a header with a plain loop that computes the same thing, for sizes around the block sizes and
// for several numbers of threads. The last line says how many checks passed; the exit code is zero if all did.
#include <cstdio>

#include "core/parallel.hpp"
#include "tests/check.hpp"

int main() {
    using namespace kw::test;
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    test_parallel();
    test_vector_math();
    for (int threads = 1; threads <= 4; threads += 3) {
        kw::thread_limit = threads;
        test_distances();
        test_ladder();
        test_tiles();
        test_cholesky();
        test_grams();
        test_bits();
        test_features();
        test_product_games();
    }
    test_order_statistic();
    test_project();
    test_squared_lasso();
    test_bias();
    test_smo();
    test_bundle_model();
    test_ball();
    test_lattice();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
