// Bindings of product games (core/product_games.hpp).
#include "core/product_games.hpp"

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

using Factors = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Extra = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::vector<SeriesStep> read_steps(const Table<const std::int64_t>& steps, std::size_t n_coefficients) {
    require(steps.shape(1) == 3, "steps needs three columns");
    std::vector<SeriesStep> out;
    for (std::size_t k = 0; k < steps.shape(0); ++k) {
        const auto row = view(steps).row(k);
        for (const std::int64_t place : row)
            require(place >= 0 && static_cast<std::size_t>(place) < n_coefficients, "steps must lie in range");
        out.push_back(
            {static_cast<std::size_t>(row[0]), static_cast<std::size_t>(row[1]), static_cast<std::size_t>(row[2])});
    }
    return out;
}

GameBlock read_factors(const Factors& inside, const Factors& outside) {
    require(inside.shape(0) == outside.shape(0) && inside.shape(1) == outside.shape(1) &&
                inside.shape(3) == outside.shape(3),
            "inside and outside need the same players, coefficients and terms");
    require(inside.shape(0) > 0 && inside.shape(1) > 0, "a game needs a player");
    GameBlock block;
    block.inside = inside.data();
    block.outside = outside.data();
    block.n_players = inside.shape(0);
    block.n_coefficients = inside.shape(1);
    block.n_inside = inside.shape(2);
    block.n_outside = outside.shape(2);
    block.n_terms = inside.shape(3);
    return block;
}

GameBlock read_games(const Factors& inside, const Factors& outside, const Table<const double>& coef,
                     const Vector<const double>& start, const std::vector<SeriesStep>& steps,
                     const Table<const double>& quadrature, const std::optional<Extra>& extra) {
    GameBlock block = read_factors(inside, outside);
    require(coef.shape(0) == block.n_terms, "coef needs one row per term");
    require(start.shape(0) == block.n_coefficients, "start needs one number per coefficient");
    require(quadrature.shape(0) == 2, "quadrature needs a row of nodes and a row of weights");
    if (extra) {
        require(
            extra->shape(0) == block.n_inside && extra->shape(1) == block.n_outside && extra->shape(2) == block.n_terms,
            "extra has the wrong shape");
        block.extra = extra->data();
    }
    block.coef = view(coef);
    block.start = view(start);
    block.steps = steps;
    block.nodes = view(quadrature).row(0);
    block.node_weights = view(quadrature).row(1);
    return block;
}

void games(const Factors& inside, const Factors& outside, const Table<const double>& coef,
           const Vector<const double>& start, const Table<const std::int64_t>& steps,
           const Table<const double>& quadrature, const Values& out, const std::optional<Extra>& extra, double least) {
    const auto read = read_steps(steps, inside.shape(1));
    GameBlock block = read_games(inside, outside, coef, start, read, quadrature, extra);
    require(out.shape(0) == block.n_inside && out.shape(1) == block.n_outside && out.shape(2) == block.n_players &&
                out.shape(3) == block.n_outputs(),
            "out has the wrong shape");
    const nb::gil_scoped_release release;
    block.least = block.n_coefficients == 1 ? least : 0.0;
    add_product_games(block, {out.data(), out.size()});
}

void interactions(const Factors& inside, const Factors& outside, const Table<const double>& coef,
                  const Vector<const double>& start, const Table<const std::int64_t>& steps,
                  const Table<const double>& quadrature, const Vector<const double>& row_weights, const Pairs& out,
                  const std::optional<Extra>& extra) {
    const auto read = read_steps(steps, inside.shape(1));
    const GameBlock block = read_games(inside, outside, coef, start, read, quadrature, extra);
    require(row_weights.shape(0) == block.n_outside, "row_weights needs one number per background row");
    require(out.shape(0) == block.n_inside && out.shape(1) == block.n_players * (block.n_players - 1) / 2 &&
                out.shape(2) == block.n_outputs(),
            "out has the wrong shape");
    const nb::gil_scoped_release release;
    add_product_interactions(block, view(row_weights), {out.data(), out.size()});
}

void spreads(const Factors& inside, const Factors& outside, const Vector<const double>& row_weights,
             const Vector<const double>& sizes, const Table<double>& out) {
    const GameBlock block = read_factors(inside, outside);
    require(block.n_coefficients == 1, "spreads are those of plain factors");
    require(row_weights.shape(0) == block.n_outside && sizes.shape(0) == block.n_terms, "weights have a wrong length");
    require(out.shape(0) == block.n_inside && out.shape(1) > 1, "out has the wrong shape");
    const nb::gil_scoped_release release;
    add_game_spreads(block, view(row_weights), view(sizes), out.shape(1), view(out).entries());
}

}  // namespace

void bind_product_games(nb::module_& m) {
    m.def("product_games", &games, "inside"_array, "outside"_array, "coef"_array, "start"_array, "steps"_array,
          "quadrature"_array, "out"_array, nb::arg("extra").noconvert() = nb::none(), "least"_a = 0.0,
          "Add the Shapley values of all players for every pair of rows, summed over terms, to out.");
    m.def("product_interactions", &interactions, "inside"_array, "outside"_array, "coef"_array, "start"_array,
          "steps"_array, "quadrature"_array, "row_weights"_array, "out"_array,
          nb::arg("extra").noconvert() = nb::none(),
          "Add the interaction indices of pairs of players, averaged over background rows, to out.");
    m.def("product_game_spreads", &spreads, "inside"_array, "outside"_array, "row_weights"_array, "sizes"_array,
          "out"_array, "Add the sizes of terms by the spread of their factors, for the bound of the quadrature.");
}

}  // namespace kw::python
