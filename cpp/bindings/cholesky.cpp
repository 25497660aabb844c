// Bindings of pivoted Cholesky factors (core/cholesky.hpp).
#include "core/cholesky.hpp"

#include <tuple>

#include "bindings/bindings.hpp"
#include "core/parallel.hpp"

namespace kw::python {
namespace {

using FactorParts = std::tuple<bool, Out<double>, Out<std::int64_t>, Out<double>>;

FactorParts to_python(Factor&& factor) {
    const std::size_t rank = factor.pivots.size(), n = factor.residual.size();
    return {factor.complete, make_array(std::move(factor.columns), {rank, n}), make_array(std::move(factor.pivots)),
            make_array(std::move(factor.residual))};
}

// The columns come from Python, so the GIL is kept.
FactorParts by_columns(const Vector<const double>& diagonal, const nb::callable& column, double tol,
                       std::size_t max_rank) {
    return to_python(pivoted_cholesky(view(diagonal), tol, max_rank, [&](std::size_t i, std::span<double> out) {
        Vector<const double> values;
        if (!nb::try_cast(column(i), values, false)) throw nb::type_error("a kernel column must be a float64 vector");
        require(values.shape(0) == out.size(), "a kernel column has the wrong length");
        std::copy_n(values.data(), out.size(), out.begin());
    }));
}

std::vector<FactorParts> gaussians(const std::vector<Table<const double>>& views, const Vector<const double>& rates,
                                   double tol, const RowNumbers& max_ranks) {
    require(views.size() == rates.shape(0) && views.size() == max_ranks.shape(0),
            "views, rates and max_ranks must have the same length");
    check_rates(rates);
    std::vector<Factor> factors(views.size());
    {
        const nb::gil_scoped_release release;
        parallel_for(views.size(), [&](std::size_t j) {
            const auto features = view(views[j]);
            const std::vector<double> ones(features.columns, 1.0);
            const auto max_rank = static_cast<std::size_t>(std::max<std::int64_t>(0, max_ranks(j)));
            factors[j] = pivoted_cholesky(ones, tol, max_rank, [&](std::size_t i, std::span<double> out) {
                gaussian_column(features, rates(j), i, out);
            });
        });
    }
    std::vector<FactorParts> parts;
    parts.reserve(factors.size());
    for (auto& factor : factors) parts.push_back(to_python(std::move(factor)));
    return parts;
}

}  // namespace

void bind_cholesky(nb::module_& m) {
    m.def("factor_by_columns", &by_columns, "diagonal"_array, "column"_a, "tol"_a, "max_rank"_a,
          "Pivoted Cholesky of a Gram matrix given by column(i): (complete, columns, pivots, residual diagonal).");
    m.def("factor_gaussians", &gaussians, "views"_array, "rates"_array, "tol"_a, "max_ranks"_array,
          "Pivoted Cholesky of many exp(-rate |x-z|^2) at once; each view holds one feature per row.");
}

}  // namespace kw::python
