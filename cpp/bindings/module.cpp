// The module kernelweave._core: thread limits, and the bindings of all parts.
#include "bindings/bindings.hpp"
#include "core/parallel.hpp"

NB_MODULE(_core, m) {
    using namespace kw::python;
    m.doc() = "Compiled loops of kernelweave; every function releases the GIL and never copies its input.";

    kw::poll = check_signals;  // so that Ctrl-C ends a long loop
    m.def(
        "set_threads", [](int n) { kw::thread_limit = n; }, "n"_a,
        "Limit the threads of calls from this thread; 0 means one per core.");
    m.def("get_threads", [] { return kw::thread_limit; }, "The limit set by set_threads.");

    bind_ladder(m);
    bind_tiles(m);
    bind_distances(m);
    bind_grams(m);
    bind_cholesky(m);
    bind_features(m);
    bind_status(m);
    bind_smo(m);
    bind_ball(m);
    bind_bias(m);
    bind_bundle_model(m);
    bind_bits(m);
    bind_lattice(m);
    bind_order_statistics(m);
    bind_projections(m);
    bind_squared_lasso(m);
    bind_product_games(m);
}
