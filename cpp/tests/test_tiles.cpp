// Tests of kernels computed from rows on demand.
#include "core/tiles.hpp"

#include "tests/check.hpp"

namespace kw::test {
namespace {

template <class Real, class Out>
void test_tiles_of(std::size_t n, std::size_t d, Metric metric, double unit) {
    const std::vector<double> rates = {0.5, 0.1, 0.2, 1.7}, weights = {0.3, 1.0, 0.0, 2.0};
    const std::size_t m = rates.size(), n_outputs = 2;
    const auto steps = plan_ladder(rates);
    const auto X = normals(n * d, 3);
    const std::vector<Real> table(X.begin(), X.end());
    const PointKernels<Real> kernels{as_matrix(table, n, d), metric, steps};
    const auto rows = shuffled(n, n / 3 + 1, 4), points = shuffled(n, n / 2 + 1, 5);
    const auto V = normals(points.size() * n_outputs, 6);
    const auto at_output = as_matrix(V, points.size(), n_outputs);
    const auto kernel = [&](std::size_t j, std::int64_t i, std::int64_t k) {
        double sum = 0.0;
        for (std::size_t c = 0; c < d; ++c) {
            const double difference = X[static_cast<std::size_t>(i) * d + c] - X[static_cast<std::size_t>(k) * d + c];
            sum += metric == Metric::squared ? difference * difference : std::abs(difference);
        }
        return std::exp(-rates[j] * sum);
    };
    const auto mixed = [&](std::int64_t i, std::int64_t k) {
        double sum = 0.0;
        for (std::size_t j = 0; j < m; ++j) sum += weights[j] * kernel(j, i, k);
        return sum;
    };
    const std::string suffix = at(name_of(Real{}), n);
    const double size = 10.0 * unit * (1.0 + static_cast<double>(n));

    std::vector<Out> sums(rows.size() * points.size(), Out{1});
    auto written = sums;
    tile_sums<Real, Out>(kernels, weights, rows, points, true, as_matrix(sums, rows.size(), points.size()));
    tile_sums<Real, Out>(kernels, weights, rows, points, false, as_matrix(written, rows.size(), points.size()));
    std::vector<double> products(rows.size() * n_outputs, kNaN);
    tile_products<Real>(kernels, weights, rows, points, at_output, as_matrix(products, rows.size(), n_outputs));
    std::vector<double> each(m * rows.size() * n_outputs, kNaN);
    tile_kernel_products<Real>(kernels, rows, points, at_output, each);
    for (std::size_t a = 0; a < rows.size(); ++a) {
        for (std::size_t b = 0; b < points.size(); ++b) {
            check_close(written[a * points.size() + b], mixed(rows[a], points[b]), 10.0 * unit, "written, " + suffix);
            check_close(sums[a * points.size() + b], 1.0 + mixed(rows[a], points[b]), 10.0 * unit, "sums, " + suffix);
        }
        for (std::size_t o = 0; o < n_outputs; ++o) {
            double expected = 0.0;
            for (std::size_t b = 0; b < points.size(); ++b) expected += mixed(rows[a], points[b]) * at_output(b, o);
            check_close(products[a * n_outputs + o], expected, size, "products, " + suffix);
            for (std::size_t j = 0; j < m; ++j) {
                expected = 0.0;
                for (std::size_t b = 0; b < points.size(); ++b)
                    expected += kernel(j, rows[a], points[b]) * at_output(b, o);
                check_close(each[(j * rows.size() + a) * n_outputs + o], expected, size, "each product, " + suffix);
            }
        }
    }

    const std::size_t side = points.size(), stride = side + 3;
    for (const std::size_t known : {std::size_t{0}, side / 2, side - 1}) {
        std::vector<Out> square(side * stride, Out{1});  // the known corner is left alone
        auto added = square;
        tile_square<Real, Out>(kernels, weights, points, known, false, square.data(), stride);
        tile_square<Real, Out>(kernels, weights, points, known, true, added.data(), stride);
        for (std::size_t a = 0; a < side; ++a)
            for (std::size_t b = 0; b < stride; ++b) {
                const bool kept = b >= side || (a < known && b < known);
                const double expected = kept ? 1.0 : mixed(points[a], points[b]);
                check_close(square[a * stride + b], expected, 10.0 * unit, "square, " + suffix);
                check_close(added[a * stride + b], kept ? 1.0 : 1.0 + expected, 10.0 * unit, "added, " + suffix);
            }
    }

    std::vector<double> forms(m, kNaN);
    tile_forms<Real>(kernels, points, at_output, forms);
    for (std::size_t j = 0; j < m; ++j) {
        double expected = 0.0;
        for (std::size_t a = 0; a < points.size(); ++a)
            for (std::size_t b = 0; b < points.size(); ++b)
                for (std::size_t o = 0; o < n_outputs; ++o)
                    expected += kernel(j, points[a], points[b]) * at_output(a, o) * at_output(b, o);
        check_close(forms[j], expected, size * (1.0 + static_cast<double>(n)), "forms, " + suffix);
    }
}

}  // namespace

void test_tiles() {
    for (const std::size_t n : {1, 2, 31, 65, 257, 530})
        for (const std::size_t d : {1, 7})
            for (const Metric metric : {Metric::squared, Metric::absolute}) {
                test_tiles_of<double, double>(n, d, metric, 1e-15);
                test_tiles_of<double, float>(n, d, metric, 1e-6);
                test_tiles_of<float, float>(n, d, metric, 1e-6);
            }
}

}  // namespace kw::test
