// The only file that knows Python: shapes and types are checked here, the GIL is released around the work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <tuple>

#include "core/ball.hpp"
#include "core/bitset.hpp"
#include "core/bundle_model.hpp"
#include "core/cholesky.hpp"
#include "core/features.hpp"
#include "core/gram.hpp"
#include "core/ladder.hpp"
#include "core/lattice.hpp"
#include "core/project.hpp"
#include "core/smo.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

template <class T>
Out<T> make_array(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(owned->data(), shape, owner);
}

void check_finite(const Vector<const double>& x, const char* message) {
    for (std::size_t i = 0; i < x.shape(0); ++i) require(std::isfinite(x(i)), message);
}

void check_rates(const Vector<const double>& rates) {
    for (std::size_t j = 0; j < rates.shape(0); ++j)
        require(std::isfinite(rates(j)) && rates(j) >= 0.0, "rates must be finite and not negative");
}

void check_index(const Vector<const std::int64_t>& index, std::size_t limit) {
    for (std::size_t k = 0; k < index.shape(0); ++k)
        require(index(k) >= 0 && static_cast<std::size_t>(index(k)) < limit, "row numbers must lie in range");
}

// --- columns of bits ---

using Bits = Table<const std::uint64_t>;

// One row per output, padded with zeros to whole words, as the core wants it.
std::vector<double> padded_outputs(const Table<const double>& V, std::size_t n_words) {
    const std::size_t n = V.shape(0), n_outputs = V.shape(1), length = n_words * kw::kWordBits;
    require(n <= length && n_words == kw::words_for(n), "V needs one row per row of the bits");
    std::vector<double> out(n_outputs * length, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t t = 0; t < n_outputs; ++t) out[t * length + i] = V(i, t);
    return out;
}

Out<std::uint64_t> pack_bits(Table<const bool> values) {
    const std::size_t n = values.shape(0), p = values.shape(1), n_words = kw::words_for(n);
    std::vector<std::uint64_t> out(p * n_words);
    {
        nb::gil_scoped_release release;
        kw::parallel_for(p, [&](std::size_t c) { kw::pack_column(values.data() + c, p, n, out.data() + c * n_words); });
    }
    return make_array(std::move(out), {p, n_words});
}

Out<std::int64_t> count_bits(Bits bits) {
    std::vector<std::int64_t> counts(bits.shape(0));
    for (std::size_t c = 0; c < bits.shape(0); ++c)
        counts[c] = static_cast<std::int64_t>(kw::count_bits(bits.data() + c * bits.shape(1), bits.shape(1)));
    return make_array(std::move(counts), {bits.shape(0)});
}

Out<double> bit_sums(Bits bits, Table<const double> V) {
    const std::size_t n_words = bits.shape(1), n_outputs = V.shape(1);
    const auto values = padded_outputs(V, n_words);
    std::vector<double> out(bits.shape(0) * n_outputs);
    {
        nb::gil_scoped_release release;
        kw::bit_sums(bits.data(), bits.shape(0), n_words, values.data(), n_outputs, out.data());
    }
    return make_array(std::move(out), {bits.shape(0), n_outputs});
}

Out<double> bit_products(Bits bits, Table<const double> weights, std::size_t n_rows) {
    const std::size_t n_words = bits.shape(1), n_outputs = weights.shape(1), length = n_words * kw::kWordBits;
    require(weights.shape(0) == bits.shape(0), "weights needs one row per column of bits");
    require(n_words == kw::words_for(n_rows), "n_rows does not fit the bits");
    std::vector<double> sums(n_outputs * length), out(n_rows * n_outputs);
    {
        nb::gil_scoped_release release;
        kw::bit_products(bits.data(), bits.shape(0), n_words, weights.data(), n_outputs, sums.data());
        for (std::size_t i = 0; i < n_rows; ++i)
            for (std::size_t t = 0; t < n_outputs; ++t) out[i * n_outputs + t] = sums[t * length + i];
    }
    return make_array(std::move(out), {n_rows, n_outputs});
}

Out<double> bit_rows(Bits bits, Vector<const std::int64_t> index) {
    check_index(index, bits.shape(1) * kw::kWordBits);
    std::vector<double> out(index.shape(0) * bits.shape(0));
    {
        nb::gil_scoped_release release;
        kw::bit_rows(bits.data(), bits.shape(0), bits.shape(1), index.data(), index.shape(0), out.data());
    }
    return make_array(std::move(out), {index.shape(0), bits.shape(0)});
}

Out<double> bit_counts(Bits bits, Vector<const std::uint64_t> mask) {
    require(mask.shape(0) == bits.shape(1), "mask needs as many words as a column of bits");
    const std::size_t n = bits.shape(0);
    std::vector<double> out(n * n);
    {
        nb::gil_scoped_release release;
        kw::bit_counts(bits.data(), n, bits.shape(1), mask.data(), out.data());
    }
    return make_array(std::move(out), {n, n});
}

using SearchAnswer = std::tuple<std::vector<std::vector<std::int32_t>>, std::vector<double>, std::size_t, bool>;

SearchAnswer search_conjunctions(Bits bits, Table<const double> V, double base, double level, std::size_t max_length,
                                 std::size_t max_found, std::size_t max_visited,
                                 const std::vector<std::vector<std::int32_t>>& known) {
    require(base > 0.0 && std::isfinite(base), "base must be > 0");
    require(level >= 0.0, "level must be >= 0");
    require(max_found > 0, "max_found must be > 0");
    const auto values = padded_outputs(V, bits.shape(1));
    kw::LatticeSearch search{bits.data(),     values.data(), bits.shape(0), bits.shape(1), V.shape(1),
                             base,            level,         max_length,    max_found,     max_visited,
                             [] {
                                 nb::gil_scoped_acquire acquire;
                                 if (PyErr_CheckSignals() != 0) throw nb::python_error();
                             }};
    kw::LatticeAnswer answer;
    {
        nb::gil_scoped_release release;
        const std::unordered_set<kw::Conjunction, kw::ConjunctionHash> set(known.begin(), known.end());
        answer = kw::LatticeWalk(search, set).run();
    }
    std::vector<std::vector<std::int32_t>> members;
    std::vector<double> ratios;
    for (auto& found : answer.found) {
        members.push_back(std::move(found.members));
        ratios.push_back(found.ratio);
    }
    return {std::move(members), std::move(ratios), answer.visited, answer.complete};
}

// --- kernels of one distance matrix ---

template <class T>
Out<double> forms_of_ladder(Table<const T> distances, Vector<const double> rates, Vector<const std::int64_t> index,
                            Table<const double> V) {
    check_rates(rates);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    require(distances.shape(0) == distances.shape(1), "distances must be square");
    check_index(index, distances.shape(0));
    std::vector<double> forms(rates.shape(0));
    {
        nb::gil_scoped_release release;
        kw::ladder_forms<T>({distances.data(), distances.shape(0), distances.shape(1)},
                            kw::plan_ladder(rates.data(), rates.shape(0)), index.data(), index.shape(0), V.data(),
                            V.shape(1), forms.data());
    }
    return make_array(std::move(forms), {rates.shape(0)});
}

template <class T>
Out<double> products_of_ladder(Table<const T> distances, Vector<const double> rates,
                               Vector<const std::int64_t> rows, Vector<const std::int64_t> index,
                               Table<const double> V) {
    check_rates(rates);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    check_index(rows, distances.shape(0));
    check_index(index, distances.shape(1));
    std::vector<double> out(rates.shape(0) * rows.shape(0) * V.shape(1));
    {
        nb::gil_scoped_release release;
        kw::ladder_products<T>({distances.data(), distances.shape(0), distances.shape(1)},
                               kw::plan_ladder(rates.data(), rates.shape(0)), rows.data(), rows.shape(0),
                               index.data(), index.shape(0), V.data(), V.shape(1), out.data());
    }
    return make_array(std::move(out), {rates.shape(0), rows.shape(0), V.shape(1)});
}

template <class T, class O>
void combine_rows_of_ladder(Table<const T> distances, Vector<const double> rates, Vector<const double> weights,
                            Vector<const std::int64_t> index, Table<O> out) {
    check_rates(rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    require(out.shape(0) == index.shape(0) && out.shape(1) == distances.shape(1), "out has the wrong shape");
    check_index(index, distances.shape(0));
    nb::gil_scoped_release release;
    kw::ladder_combine_rows<T, O>({distances.data(), distances.shape(0), distances.shape(1)},
                                  kw::plan_ladder(rates.data(), rates.shape(0)), weights.data(), index.data(),
                                  index.shape(0), out.data());
}

template <class T, class O>
void combine_upper_of_ladder(Table<const T> distances, Vector<const double> rates, Vector<const double> weights,
                              Table<O> out) {
    check_rates(rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    require(distances.shape(0) == distances.shape(1), "distances must be square");
    require(out.shape(0) == distances.shape(0) && out.shape(1) == distances.shape(1), "out has the wrong shape");
    nb::gil_scoped_release release;
    kw::ladder_combine_upper<T, O>({distances.data(), distances.shape(0), distances.shape(1)},
                                    kw::plan_ladder(rates.data(), rates.shape(0)), weights.data(), out.data());
}

template <class T>
void combine_block_of_ladder(Table<const T> distances, Vector<const double> rates, Vector<const double> weights,
                             Vector<const std::int64_t> index, Table<double> out) {
    check_rates(rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    require(out.shape(0) == index.shape(0) && out.shape(1) == index.shape(0), "out has the wrong shape");
    check_index(index, distances.shape(0));
    check_index(index, distances.shape(1));
    nb::gil_scoped_release release;
    kw::ladder_combine_block<T>({distances.data(), distances.shape(0), distances.shape(1)},
                                kw::plan_ladder(rates.data(), rates.shape(0)), weights.data(), index.data(),
                                index.shape(0), out.data());
}

Out<double> products_of_gaussians(Table<const double> features, Table<const double> kept,
                                  Vector<const double> rates, Vector<const double> weights, Table<const double> V) {
    check_rates(rates);
    require(weights.shape(0) == rates.shape(0), "weights and rates must have the same length");
    require(features.shape(0) == kept.shape(0), "features and kept must have the same number of features");
    require(V.shape(0) == kept.shape(1), "V needs one row per kept row");
    std::vector<double> out(features.shape(1) * V.shape(1));
    {
        nb::gil_scoped_release release;
        kw::gaussian_products({features.data(), features.shape(0), features.shape(1)},
                              {kept.data(), kept.shape(0), kept.shape(1)},
                              kw::plan_ladder(rates.data(), rates.shape(0)), weights.data(), V.data(), V.shape(1),
                              out.data());
    }
    return make_array(std::move(out), {features.shape(1), V.shape(1)});
}

template <class T>
void mirror_square(Table<T> matrix) {
    require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
    nb::gil_scoped_release release;
    kw::mirror_upper(matrix.data(), matrix.shape(0));
}

void finish_squared_distances(Table<double> products, Table<const double> A, Table<const double> B,
                              Vector<const double> scales, Vector<const double> a_norms, Vector<const double> b_norms,
                              bool upper) {
    require(A.shape(1) == B.shape(1) && A.shape(1) == scales.shape(0), "A, B and scales must have the same columns");
    require(products.shape(0) == A.shape(0) && products.shape(1) == B.shape(0), "products has the wrong shape");
    require(a_norms.shape(0) == A.shape(0) && b_norms.shape(0) == B.shape(0), "one squared norm per row is needed");
    require(!upper || A.shape(0) <= B.shape(0), "upper needs the first rows of B on the left");
    nb::gil_scoped_release release;
    kw::squared_distances_from_products(products.data(), {A.data(), A.shape(0), A.shape(1)},
                                        {B.data(), B.shape(0), B.shape(1)}, scales.data(), a_norms.data(),
                                        b_norms.data(), upper);
}

template <class T>
void fill_absolute_distances(Table<const double> A, Table<const double> B, Table<T> out) {
    require(A.shape(1) == B.shape(1), "A and B must have the same number of columns");
    require(out.shape(0) == A.shape(0) && out.shape(1) == B.shape(0), "out has the wrong shape");
    nb::gil_scoped_release release;
    kw::absolute_distances<T>({A.data(), A.shape(0), A.shape(1)}, {B.data(), B.shape(0), B.shape(1)}, out.data());
}

std::vector<std::tuple<std::int64_t, int>> ladder_plan(Vector<const double> rates) {
    std::vector<std::tuple<std::int64_t, int>> plan;
    for (const auto& step : kw::plan_ladder(rates.data(), rates.shape(0)))
        plan.emplace_back(static_cast<std::int64_t>(step.parent), step.squarings);
    return plan;
}

// --- stored Gram matrices ---

template <class T>
std::vector<const T*> stored_grams(const std::vector<Table<const T>>& grams, std::size_t n) {
    std::vector<const T*> pointers;
    for (const auto& gram : grams) {
        require(gram.shape(0) == n && gram.shape(1) == n, "Gram matrices must be square and of one size");
        pointers.push_back(gram.data());
    }
    return pointers;
}

template <class T>
Out<double> forms_of_grams(std::vector<Table<const T>> grams, Vector<const std::int64_t> index, Table<const double> V) {
    const std::size_t n = grams.empty() ? 0 : grams[0].shape(0);
    const auto pointers = stored_grams(grams, n);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    check_index(index, n);
    std::vector<double> forms(grams.size());
    {
        nb::gil_scoped_release release;
        kw::gram_forms<T>(pointers, n, index.data(), index.shape(0), V.data(), V.shape(1), forms.data());
    }
    return make_array(std::move(forms), {grams.size()});
}

template <class T>
Out<double> products_of_grams(std::vector<Table<const T>> grams, Vector<const std::int64_t> index,
                              Table<const double> V) {
    const std::size_t n = grams.empty() ? 0 : grams[0].shape(0);
    const auto pointers = stored_grams(grams, n);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    check_index(index, n);
    std::vector<double> out(grams.size() * n * V.shape(1));
    {
        nb::gil_scoped_release release;
        kw::gram_products<T>(pointers, n, index.data(), index.shape(0), V.data(), V.shape(1), out.data());
    }
    return make_array(std::move(out), {grams.size(), n, V.shape(1)});
}

template <class T>
Out<double> products_of_grams_at(std::vector<Table<const T>> grams, Vector<const std::int64_t> rows,
                                 Vector<const std::int64_t> index, Table<const double> V) {
    const std::size_t n = grams.empty() ? 0 : grams[0].shape(0);
    const auto pointers = stored_grams(grams, n);
    require(V.shape(0) == index.shape(0), "V needs one row per entry of index");
    check_index(index, n);
    check_index(rows, n);
    std::vector<double> out(grams.size() * rows.shape(0) * V.shape(1));
    {
        nb::gil_scoped_release release;
        kw::gram_products_at<T>(pointers, n, rows.data(), rows.shape(0), index.data(), index.shape(0), V.data(),
                                V.shape(1), out.data());
    }
    return make_array(std::move(out), {grams.size(), rows.shape(0), V.shape(1)});
}

template <class T>
std::vector<const T*> weighted_grams(const std::vector<Table<const T>>& grams, const Vector<const double>& weights,
                                     std::size_t n) {
    require(weights.shape(0) == grams.size(), "weights and grams must have the same length");
    return stored_grams(grams, n);
}

template <class T, class O>
void combine_upper_of_grams(std::vector<Table<const T>> grams, Vector<const double> weights, Table<O> out) {
    const std::size_t n = out.shape(0);
    const auto pointers = weighted_grams(grams, weights, n);
    require(out.shape(1) == n, "out must be square");
    nb::gil_scoped_release release;
    kw::gram_combine_upper<T, O>(pointers, n, weights.data(), out.data());
}

template <class T, class O>
void combine_rows_of_grams(std::vector<Table<const T>> grams, Vector<const double> weights,
                           Vector<const std::int64_t> rows, Table<O> out) {
    const std::size_t n = out.shape(1);
    const auto pointers = weighted_grams(grams, weights, n);
    require(out.shape(0) == rows.shape(0), "out needs one row per entry of rows");
    check_index(rows, n);
    nb::gil_scoped_release release;
    kw::gram_combine_rows<T, O>(pointers, n, weights.data(), rows.data(), rows.shape(0), out.data());
}

template <class T>
void combine_block_of_grams(std::vector<Table<const T>> grams, Vector<const double> weights,
                            Vector<const std::int64_t> index, Table<double> out) {
    const std::size_t n = grams.empty() ? 0 : grams[0].shape(0);
    const auto pointers = weighted_grams(grams, weights, n);
    require(out.shape(0) == index.shape(0) && out.shape(1) == index.shape(0), "out has the wrong shape");
    if (!grams.empty()) check_index(index, n);
    nb::gil_scoped_release release;
    kw::gram_combine_block<T>(pointers, n, weights.data(), index.data(), index.shape(0), out.data());
}

// --- pivoted Cholesky ---

using FactorParts = std::tuple<bool, Out<double>, Out<std::int64_t>, Out<double>>;

FactorParts to_python(kw::Factor&& factor, std::size_t n) {
    const std::size_t rank = factor.pivots.size();
    return {factor.complete, make_array(std::move(factor.columns), {rank, n}),
            make_array(std::move(factor.pivots), {rank}), make_array(std::move(factor.residual), {n})};
}

FactorParts factor_by_columns(Vector<const double> diagonal, nb::callable column, double tol, std::size_t max_rank) {
    const std::size_t n = diagonal.shape(0);
    return to_python(kw::pivoted_cholesky(n, diagonal.data(), tol, max_rank,
                                          [&](std::size_t i, double* out) {
                                              Vector<const double> values;
                                              if (!nb::try_cast(column(i), values, false))
                                                  throw nb::type_error("a kernel column must be a float64 vector");
                                              require(values.shape(0) == n, "a kernel column has the wrong length");
                                              std::copy(values.data(), values.data() + n, out);
                                          }),
                     n);
}

std::vector<FactorParts> factor_gaussians(std::vector<Table<const double>> views, Vector<const double> rates,
                                          double tol, Vector<const std::int64_t> max_ranks) {
    require(views.size() == rates.shape(0) && views.size() == max_ranks.shape(0),
            "views, rates and max_ranks must have the same length");
    check_rates(rates);
    std::vector<kw::Factor> factors(views.size());
    {
        nb::gil_scoped_release release;
        kw::parallel_for(views.size(), [&](std::size_t j) {
            const std::size_t d = views[j].shape(0), n = views[j].shape(1);
            const std::vector<double> ones(n, 1.0);
            factors[j] = kw::pivoted_cholesky(
                n, ones.data(), tol, static_cast<std::size_t>(std::max<std::int64_t>(0, max_ranks(j))),
                [&](std::size_t i, double* out) {
                    kw::gaussian_column(views[j].data(), n, d, rates(j), i, out);
                });
        });
    }
    std::vector<FactorParts> parts;
    for (std::size_t j = 0; j < views.size(); ++j) parts.push_back(to_python(std::move(factors[j]), views[j].shape(1)));
    return parts;
}

// --- rows of features ---

template <class T>
Out<double> feature_times(Table<const T> Z, Table<const double> W) {
    const std::size_t n = Z.shape(0), rank = Z.shape(1), n_outputs = W.shape(1);
    require(W.shape(0) == rank, "W needs one row per feature");
    std::vector<double> columns(rank * n_outputs), out(n * n_outputs);
    for (std::size_t r = 0; r < rank; ++r)
        for (std::size_t t = 0; t < n_outputs; ++t) columns[t * rank + r] = W(r, t);
    {
        nb::gil_scoped_release release;
        kw::feature_times(Z.data(), n, rank, columns.data(), n_outputs, out.data());
    }
    return make_array(std::move(out), {n, n_outputs});
}

template <class T>
Out<double> feature_sums(Table<const T> Z, Table<const double> V) {
    const std::size_t rank = Z.shape(1), n_outputs = V.shape(1);
    require(V.shape(0) == Z.shape(0), "V needs one row per row of Z");
    std::vector<double> sums(rank * n_outputs), out(rank * n_outputs);
    {
        nb::gil_scoped_release release;
        kw::feature_sums(Z.data(), Z.shape(0), rank, V.data(), n_outputs, sums.data());
    }
    for (std::size_t r = 0; r < rank; ++r)
        for (std::size_t t = 0; t < n_outputs; ++t) out[r * n_outputs + t] = sums[t * rank + r];
    return make_array(std::move(out), {rank, n_outputs});
}

template <class T>
std::pair<double, double> descend_box(Table<const T> Z, Vector<const double> squares, Vector<const double> target,
                                      Vector<const double> lower, Vector<const double> upper,
                                      Vector<const double> ridge, double dead_zone, double stiff, double bias,
                                      std::uint64_t seed, double total, Vector<double> t, Vector<double> v) {
    const std::size_t n = Z.shape(0), rank = Z.shape(1);
    require(target.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n && ridge.shape(0) == n && t.shape(0) == n,
            "target, lower, upper, ridge and t must have one entry per row");
    require(squares.shape(0) == rank && v.shape(0) == rank, "squares and v need one entry per feature");
    require(n < (std::size_t{1} << 32), "too many rows in one block");
    require(dead_zone >= 0.0 && stiff >= 0.0, "dead_zone and stiff must be >= 0");
    double largest = 0.0;
    {
        nb::gil_scoped_release release;
        const kw::BoxDual dual{target.data(), lower.data(), upper.data(), ridge.data(), dead_zone, stiff};
        largest = kw::descend_box(Z.data(), n, rank, squares.data(), dual, seed, bias, t.data(), v.data(), total);
    }
    return {total, largest};
}

template <class T>
void bind_features(nb::module_& m) {
    m.def("feature_times", &feature_times<T>, "Z"_a.noconvert(), "W"_a.noconvert(), "Rows of features times weights, summed in double precision.");
    m.def("feature_sums", &feature_sums<T>, "Z"_a.noconvert(), "V"_a.noconvert(), "Transposed features times values of rows, summed in double precision.");
    m.def("descend_box", &descend_box<T>, "Z"_a.noconvert(), "squares"_a.noconvert(), "target"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "ridge"_a.noconvert(),
          "dead_zone"_a, "stiff"_a, "bias"_a, "seed"_a, "total"_a, "t"_a.noconvert(), "v"_a.noconvert(),
          "One epoch of coordinate descent on the dual of a machine, changing t and v in place: (sum of t, largest change relative to its box).");
}

// --- support vector machines ---

kw::SmoProblem make_problem(Vector<const double> target, Vector<const double> lower, Vector<const double> upper,
                            Vector<const double> ridge, double dead_zone, bool intercept) {
    const std::size_t n = target.shape(0);
    require(lower.shape(0) == n && upper.shape(0) == n && ridge.shape(0) == n, "target, lower, upper and ridge must have one length");
    for (std::size_t i = 0; i < n; ++i) {
        require(lower(i) <= 0.0 && upper(i) >= 0.0, "every box must contain zero");
        require(std::isfinite(target(i)) && std::isfinite(lower(i)) && std::isfinite(upper(i)) &&
                    std::isfinite(ridge(i)) && ridge(i) >= 0.0,
                "targets, boxes and ridges must be finite, ridges not negative");
    }
    require(std::isfinite(dead_zone) && dead_zone >= 0.0, "dead_zone must be finite and not negative");
    const auto copy = [n](const Vector<const double>& v) { return std::vector<double>(v.data(), v.data() + n); };
    return {copy(target), copy(lower), copy(upper), copy(ridge), dead_zone, intercept};
}

template <class T>
struct LentSmo {
    kw::Smo<T> core;
    std::size_t n;
    std::vector<nb::object> lenders;  // keeps the row blocks alive

    LentSmo(Vector<const double> target, Vector<const double> lower, Vector<const double> upper,
            Vector<const double> ridge, Vector<const double> diagonal, double dead_zone, bool intercept)
        : core(make_problem(target, lower, upper, ridge, dead_zone, intercept),
               checked_diagonal(diagonal, target.shape(0))),
          n(target.shape(0)) {}

    static const double* checked_diagonal(const Vector<const double>& diagonal, std::size_t n) {
        require(diagonal.shape(0) == n, "diagonal must have one entry per row");
        for (std::size_t i = 0; i < n; ++i)
            require(std::isfinite(diagonal(i)) && diagonal(i) >= 0.0, "the diagonal must be finite and not negative");
        return diagonal.data();
    }
};

template <class T>
void bind_smo(nb::module_& m, const char* name) {
    using Solver = LentSmo<T>;
    nb::class_<Solver>(m, name, "One support vector problem being solved; rows of the Gram matrix are lent to it.")
        .def(nb::init<Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>,
                      Vector<const double>, double, bool>(),
             "target"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "ridge"_a.noconvert(),
             "diagonal"_a.noconvert(), "dead_zone"_a, "intercept"_a)
        .def(
            "start",
            [](Solver& self, Vector<const double> beta, Vector<const double> fitted) {
                require(beta.shape(0) == self.n && fitted.shape(0) == self.n, "beta and fitted need one entry per row");
                for (std::size_t i = 0; i < self.n; ++i)
                    require(std::isfinite(beta(i)) && std::isfinite(fitted(i)), "beta and fitted must be finite");
                self.core.start(beta.data(), fitted.data());
            },
            "beta"_a.noconvert(), "fitted"_a.noconvert(), "Begin from a feasible beta whose K @ beta is known.")
        .def(
            "lend",
            [](Solver& self, Vector<const std::int64_t> index, nb::object block) {
                Table<const T> rows;
                if (!nb::try_cast(block, rows, false)) throw nb::type_error("block must be a C-contiguous array of the solver's type");
                require(rows.shape(0) == index.shape(0) && rows.shape(1) == self.n, "block has the wrong shape");
                check_index(index, self.n);
                self.lenders.push_back(block);
                for (std::size_t k = 0; k < index.shape(0); ++k)
                    self.core.lend(static_cast<std::size_t>(index(k)), rows.data() + k * self.n);
            },
            "index"_a.noconvert(), "block"_a, "Hand over rows of the Gram matrix; they are kept, not copied.")
        .def("wanted", [](const Solver& self, std::size_t how_many) {
                auto rows = self.core.wanted(how_many);
                const std::size_t size = rows.size();
                return make_array(std::move(rows), {size});
            }, "how_many"_a, "Rows the next updates need, most urgent first.")
        .def_prop_ro("beta", [](const Solver& self) { return make_array(std::vector<double>(self.core.beta()), {self.n}); }, nb::rv_policy::move)
        .def_prop_ro("fitted", [](const Solver& self) { return make_array(self.core.fitted(), {self.n}); }, nb::rv_policy::move)
        .def_prop_ro("bias", [](const Solver& self) { return self.core.bias(); })
        .def_prop_ro("primal", [](const Solver& self) { return self.core.primal(); })
        .def_prop_ro("dual", [](const Solver& self) { return self.core.dual(); })
        .def_prop_ro("updates", [](const Solver& self) { return self.core.updates(); });
    m.def(
        "run_smo",
        [](std::vector<Solver*> solvers, double tol, double floor, std::int64_t max_updates, double enough) {
            std::vector<int> status(solvers.size());
            for (std::size_t o = 0; o < solvers.size(); ++o) {
                require(solvers[o] != nullptr, "solvers must not contain None");
                for (std::size_t other = 0; other < o; ++other)
                    require(solvers[o] != solvers[other], "solvers must not contain one solver twice");
            }
            require(!std::isnan(tol) && !std::isnan(floor), "tol and floor must be numbers");
            nb::gil_scoped_release release;
            kw::parallel_for(solvers.size(), [&](std::size_t o) {
                status[o] = static_cast<int>(solvers[o]->core.run(tol, floor, max_updates, enough));
            });
            return status;
        },
        "solvers"_a, "tol"_a, "floor"_a, "max_updates"_a, "enough"_a = kw::smo_loops::kInfinity,
        "Run each solver to its gap, or until its dual value is enough; 0 converged, 1 paused, 2 needs rows, 3 at the limit of the arithmetic.");
}

// --- enclosing balls ---

template <class T>
struct LentBall {
    kw::Ball<T> core;
    std::vector<nb::object> lenders;  // keeps the row blocks alive

    LentBall(Vector<const double> diagonal, Vector<const double> ridge)
        : core(checked(diagonal, diagonal.shape(0)), checked(ridge, diagonal.shape(0))) {}

    static std::vector<double> checked(const Vector<const double>& values, std::size_t n) {
        require(n > 0 && values.shape(0) == n, "diagonal and ridge need one entry per row, and at least one row");
        for (std::size_t i = 0; i < n; ++i)
            require(std::isfinite(values(i)) && values(i) >= 0.0, "diagonal and ridge must be finite and not negative");
        return {values.data(), values.data() + n};
    }
};

template <class T>
void bind_ball(nb::module_& m, const char* name) {
    using Solver = LentBall<T>;
    nb::class_<Solver>(m, name, "One enclosing ball being solved; rows of the Gram matrix are lent to it.")
        .def(nb::init<Vector<const double>, Vector<const double>>(), "diagonal"_a.noconvert(), "ridge"_a.noconvert())
        .def(
            "start",
            [](Solver& self, Vector<const double> beta, Vector<const double> fitted) {
                const std::size_t n = self.core.size();
                require(beta.shape(0) == n && fitted.shape(0) == n, "beta and fitted need one entry per row");
                double sum = 0.0;
                for (std::size_t i = 0; i < n; ++i) {
                    require(std::isfinite(beta(i)) && beta(i) >= 0.0 && std::isfinite(fitted(i)),
                            "beta and fitted must be finite, beta not negative");
                    sum += beta(i);
                }
                require(std::abs(sum - 1.0) <= 1e-9, "beta must sum to one");
                self.core.start(beta.data(), fitted.data());
            },
            "beta"_a.noconvert(), "fitted"_a.noconvert(), "Begin from weights on the simplex whose K @ beta is known.")
        .def(
            "lend",
            [](Solver& self, Vector<const std::int64_t> index, nb::object block) {
                Table<const T> rows;
                if (!nb::try_cast(block, rows, false)) throw nb::type_error("block must be a C-contiguous array of the solver's type");
                require(rows.shape(0) == index.shape(0) && rows.shape(1) == self.core.size(), "block has the wrong shape");
                check_index(index, self.core.size());
                self.lenders.push_back(block);
                for (std::size_t k = 0; k < index.shape(0); ++k)
                    self.core.lend(static_cast<std::size_t>(index(k)), rows.data() + k * self.core.size());
            },
            "index"_a.noconvert(), "block"_a, "Hand over rows of the Gram matrix; they are kept, not copied.")
        .def("wanted", [](const Solver& self, std::size_t how_many) {
                auto rows = self.core.wanted(how_many);
                const std::size_t size = rows.size();
                return make_array(std::move(rows), {size});
            }, "how_many"_a, "Rows the next updates need, most urgent first.")
        .def(
            "run",
            [](Solver& self, double tol, std::int64_t max_updates) {
                require(tol >= 0.0, "tol must be a number >= 0");
                nb::gil_scoped_release release;
                return static_cast<int>(self.core.run(tol, max_updates));
            },
            "tol"_a, "max_updates"_a,
            "Run to a relative gap; 0 converged, 1 paused, 2 needs rows, 3 at the limit of the arithmetic.")
        .def_prop_ro("beta", [](const Solver& self) { return make_array(std::vector<double>(self.core.beta()), {self.core.size()}); }, nb::rv_policy::move)
        .def_prop_ro("fitted", [](const Solver& self) { return make_array(self.core.fitted(), {self.core.size()}); }, nb::rv_policy::move)
        .def_prop_ro("updates", [](const Solver& self) { return self.core.updates(); });
}

// --- steps of a bundle method ---

using ModelSolution = std::tuple<Out<double>, Out<double>, Out<double>, Out<double>>;

ModelSolution solve_bundle_model(Vector<const double> cuts, Table<const double> slopes, Table<const double> M,
                                 Vector<const double> centre) {
    const std::size_t k = centre.shape(0), c = cuts.shape(0);
    require(k > 0 && c > 0, "at least one weight and one cut are needed");
    require(slopes.shape(0) == c && slopes.shape(1) == k, "slopes needs one row per cut and one column per weight");
    require(M.shape(0) == k && M.shape(1) == k, "M must be square with one row per weight");
    kw::InteriorPoint solver({k, c, cuts.data(), slopes.data(), M.data(), centre.data()});
    {
        nb::gil_scoped_release release;
        solver.run();
    }
    const auto copy = [](const std::vector<double>& values) {
        return make_array(std::vector<double>(values), {values.size()});
    };
    return {copy(solver.x()), copy(solver.reduced()), copy(solver.slack()), copy(solver.multipliers())};
}

// --- projections ---

template <class Project>
Out<double> projected(const Vector<const double>& x, Project&& project) {
    check_finite(x, "x must be finite");
    std::vector<double> out(x.shape(0));
    project(out.data());
    return make_array(std::move(out), {x.shape(0)});
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled loops of kernelweave; every function releases the GIL and never copies its input.";

    kw::poll = [] {  // so that Ctrl-C ends a long loop
        const nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
    m.def("set_threads", [](int n) { kw::thread_limit = n; }, "n"_a, "Limit the threads of calls from this thread; 0 means one per core.");
    m.def("get_threads", [] { return kw::thread_limit; }, "The limit set by set_threads.");

    m.def("ladder_plan", &ladder_plan, "rates"_a.noconvert(), "For each rate the kernel it is squared from (-1: none) and how often.");
    m.def("ladder_forms", &forms_of_ladder<double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert());
    m.def("ladder_forms", &forms_of_ladder<float>, "distances"_a.noconvert(), "rates"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert(),
          "tr(V' K_j V) over the listed rows for every rate.");
    m.def("ladder_products", &products_of_ladder<double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "rows"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert());
    m.def("ladder_products", &products_of_ladder<float>, "distances"_a.noconvert(), "rates"_a.noconvert(), "rows"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert(),
          "K_j[rows][:, index] @ V for every rate.");
    m.def("ladder_combine_rows", &combine_rows_of_ladder<double, double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert());
    m.def("ladder_combine_rows", &combine_rows_of_ladder<float, double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert());
    m.def("ladder_combine_rows", &combine_rows_of_ladder<float, float>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert(),
          "Add sum_j weights_j K_j[index, :] to out.");
    m.def("ladder_combine_upper", &combine_upper_of_ladder<double, double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert());
    m.def("ladder_combine_upper", &combine_upper_of_ladder<float, double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert());
    m.def("ladder_combine_upper", &combine_upper_of_ladder<float, float>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert(),
          "Add sum_j weights_j K_j to the upper triangle of the square out.");
    m.def("ladder_combine_block", &combine_block_of_ladder<double>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert());
    m.def("ladder_combine_block", &combine_block_of_ladder<float>, "distances"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert(),
          "Add sum_j weights_j K_j[index][:, index] to the upper triangle of out.");
    m.def("gaussian_products", &products_of_gaussians, "features"_a.noconvert(), "kept"_a.noconvert(), "rates"_a.noconvert(), "weights"_a.noconvert(), "V"_a.noconvert(),
          "sum_j weights_j exp(-rate_j |x - z|^2) @ V without storing a block; one feature per row.");
    m.def("mirror_upper", &mirror_square<double>, "matrix"_a.noconvert());
    m.def("mirror_upper", &mirror_square<float>, "matrix"_a.noconvert(), "Copy the upper triangle to the lower one, in place.");
    m.def("finish_squared_distances", &finish_squared_distances, "products"_a.noconvert(), "A"_a.noconvert(), "B"_a.noconvert(),
          "scales"_a.noconvert(), "a_norms"_a.noconvert(), "b_norms"_a.noconvert(), "upper"_a,
          "Turn inner products of centred, scaled rows into squared distances in place, cancellation repaired.");
    m.def("cancellation_limit", &kw::cancellation_limit, "n_columns"_a,
          "Share of the squared norms below which a squared distance by inner products is not right to 1e-12.");
    m.def("absolute_distances", &fill_absolute_distances<double>, "A"_a.noconvert(), "B"_a.noconvert(), "out"_a.noconvert());
    m.def("absolute_distances", &fill_absolute_distances<float>, "A"_a.noconvert(), "B"_a.noconvert(), "out"_a.noconvert(),
          "Write the sums of absolute differences between rows of A and B.");

    m.def("gram_forms", &forms_of_grams<double>, "grams"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert());
    m.def("gram_forms", &forms_of_grams<float>, "grams"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert(),
          "tr(V' K_j V) over the listed rows for every matrix.");
    m.def("gram_products", &products_of_grams<double>, "grams"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert());
    m.def("gram_products", &products_of_grams<float>, "grams"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert(),
          "K_j[:, index] @ V for every matrix.");
    m.def("gram_products_at", &products_of_grams_at<double>, "grams"_a.noconvert(), "rows"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert());
    m.def("gram_products_at", &products_of_grams_at<float>, "grams"_a.noconvert(), "rows"_a.noconvert(), "index"_a.noconvert(), "V"_a.noconvert(),
          "K_j[rows][:, index] @ V for every matrix.");
    m.def("gram_combine_upper", &combine_upper_of_grams<double, double>, "grams"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_upper", &combine_upper_of_grams<double, float>, "grams"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_upper", &combine_upper_of_grams<float, double>, "grams"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_upper", &combine_upper_of_grams<float, float>, "grams"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert(),
          "Add sum_j weights_j K_j to the upper triangle of the square out.");
    m.def("gram_combine_rows", &combine_rows_of_grams<double, double>, "grams"_a.noconvert(), "weights"_a.noconvert(), "rows"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_rows", &combine_rows_of_grams<double, float>, "grams"_a.noconvert(), "weights"_a.noconvert(), "rows"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_rows", &combine_rows_of_grams<float, double>, "grams"_a.noconvert(), "weights"_a.noconvert(), "rows"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_rows", &combine_rows_of_grams<float, float>, "grams"_a.noconvert(), "weights"_a.noconvert(), "rows"_a.noconvert(), "out"_a.noconvert(),
          "Add sum_j weights_j K_j[rows] to out.");
    m.def("gram_combine_block", &combine_block_of_grams<double>, "grams"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert());
    m.def("gram_combine_block", &combine_block_of_grams<float>, "grams"_a.noconvert(), "weights"_a.noconvert(), "index"_a.noconvert(), "out"_a.noconvert(),
          "Add sum_j weights_j K_j[index][:, index] to the upper triangle of out.");

    m.def("factor_by_columns", &factor_by_columns, "diagonal"_a.noconvert(), "column"_a, "tol"_a, "max_rank"_a,
          "Pivoted Cholesky of a Gram matrix given by column(i): (complete, columns, pivots, residual diagonal).");
    m.def("factor_gaussians", &factor_gaussians, "views"_a.noconvert(), "rates"_a.noconvert(), "tol"_a, "max_ranks"_a.noconvert(),
          "Pivoted Cholesky of many exp(-rate |x-z|^2) at once; each view holds one feature per row.");

    bind_features<float>(m);
    bind_features<double>(m);
    bind_smo<double>(m, "SmoDouble");
    bind_smo<float>(m, "SmoFloat");
    bind_ball<double>(m, "BallDouble");
    bind_ball<float>(m, "BallFloat");
    m.def(
        "best_bias",
        [](Vector<const double> fitted, Vector<const double> target, Vector<const double> lower,
           Vector<const double> upper, Vector<const double> ridge, double dead_zone) {
            const auto problem = make_problem(target, lower, upper, ridge, dead_zone, true);
            require(fitted.shape(0) == problem.size(), "fitted must have one entry per row");
            check_finite(fitted, "fitted must be finite");
            const double bias = kw::best_bias(problem, fitted.data());
            double loss = 0.0;
            for (std::size_t i = 0; i < problem.size(); ++i) loss += problem.loss(i, fitted(i) + bias);
            return std::pair(bias, loss);
        },
        "fitted"_a.noconvert(), "target"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(),
        "ridge"_a.noconvert(), "dead_zone"_a, "The bias that minimises the total loss, and that loss.");

    m.def("solve_bundle_model", &solve_bundle_model, "cuts"_a.noconvert(), "slopes"_a.noconvert(), "M"_a.noconvert(), "centre"_a.noconvert(),
          "Minimise max_i(cuts_i + slopes_i . x) + (x - centre)' M (x - centre) / 2 on the simplex by an interior point method: (x, its reduced costs, slacks and multipliers of the cuts).");

    m.def("pack_bits", &pack_bits, "values"_a.noconvert(), "Pack the columns of a table of truth values, 64 rows to a word.");
    m.def("count_bits", &count_bits, "bits"_a.noconvert(), "How many ones each column has.");
    m.def("bit_sums", &bit_sums, "bits"_a.noconvert(), "V"_a.noconvert(), "Sum the rows of V under the ones of each column.");
    m.def("bit_products", &bit_products, "bits"_a.noconvert(), "weights"_a.noconvert(), "n_rows"_a, "For each row the sum of the weights of the columns that have a one there.");
    m.def("bit_rows", &bit_rows, "bits"_a.noconvert(), "index"_a.noconvert(), "Some rows of columns of bits, as numbers.");
    m.def("bit_counts", &bit_counts, "bits"_a.noconvert(), "mask"_a.noconvert(), "For each pair of columns, how many rows of a mask have a one in both.");
    m.def("search_conjunctions", &search_conjunctions, "bits"_a.noconvert(), "V"_a.noconvert(), "base"_a, "level"_a, "max_length"_a, "max_found"_a, "max_visited"_a, "known"_a,
          "Find the conjunctions of columns, not known yet, with the largest |sum of V|^2 / base^(2 length) above a level: (members, ratios, conjunctions visited, whether all were covered).");

    m.def("project_simplex", [](Vector<const double> x, double radius) {
            require(radius > 0.0, "radius must be > 0");
            require(x.shape(0) > 0, "x must not be empty");
            return projected(x, [&](double* out) { kw::project_simplex(x.data(), x.shape(0), radius, out); });
        }, "x"_a.noconvert(), "radius"_a = 1.0, "Nearest point with x >= 0 and sum x = radius.");
    m.def("project_capped_box", [](Vector<const double> x, Vector<const double> upper, double cap) {
            require(x.shape(0) == upper.shape(0), "x and upper must have the same length");
            require(cap >= 0.0, "cap must be >= 0");
            for (std::size_t i = 0; i < upper.shape(0); ++i) require(upper(i) >= 0.0, "upper must be >= 0");
            return projected(x, [&](double* out) { kw::project_capped_box(x.data(), upper.data(), x.shape(0), cap, out); });
        }, "x"_a.noconvert(), "upper"_a.noconvert(), "cap"_a, "Nearest point with |x| <= upper and sum |x| <= cap.");
    m.def("project_lp_ball", [](Vector<const double> x, double p, double radius) {
            require(p >= 1.0 && std::isfinite(p), "p must be a finite number >= 1");
            require(radius >= 0.0, "radius must be >= 0");
            return projected(x, [&](double* out) { kw::project_lp_ball(x.data(), x.shape(0), p, radius, out); });
        }, "x"_a.noconvert(), "p"_a, "radius"_a = 1.0, "Nearest point whose lp norm is at most radius.");
}
