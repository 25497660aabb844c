// Bindings of columns of bits and of the search over conjunctions (core/bitset.hpp, core/lattice.hpp).
#include <tuple>

#include "bindings/bindings.hpp"
#include "core/bitset.hpp"
#include "core/lattice.hpp"

namespace kw::python {
namespace {

using BitTable = Table<const Word>;

// One row per output, padded with zeros to whole words.
std::vector<double> padded_outputs(const Table<const double>& V, std::size_t n_words) {
    const std::size_t n = V.shape(0), n_outputs = V.shape(1), length = n_words * kWordBits;
    require(n <= length && n_words == words_for(n), "V needs one row per row of the bits");
    std::vector<double> out(n_outputs * length, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t t = 0; t < n_outputs; ++t) out[t * length + i] = V(i, t);
    return out;
}

Out<Word> pack(const Table<const bool>& values) {
    return compute_matrix<Word>(values.shape(1), words_for(values.shape(0)), [&](Matrix<Word> out) {
        parallel_for(out.rows, [&](std::size_t c) { pack_column(view(values), c, out.row(c)); });
    });
}

Out<std::int64_t> count(const BitTable& bits) {
    return compute_array<std::int64_t>({bits.shape(0)}, [&](std::span<std::int64_t> out) {
        for (std::size_t c = 0; c < out.size(); ++c) out[c] = static_cast<std::int64_t>(count_bits(view(bits).row(c)));
    });
}

Out<double> sums(const BitTable& bits, const Table<const double>& V) {
    const auto values = padded_outputs(V, bits.shape(1));
    return compute_matrix(bits.shape(0), V.shape(1), [&](Matrix<double> out) {
        bit_sums(view(bits), {values.data(), V.shape(1), bits.shape(1) * kWordBits}, out);
    });
}

Out<double> products(const BitTable& bits, const Table<const double>& weights, std::size_t n_rows) {
    require(weights.shape(0) == bits.shape(0), "weights needs one row per column of bits");
    require(bits.shape(1) == words_for(n_rows), "n_rows does not fit the bits");
    return compute_matrix(n_rows, weights.shape(1), [&](Matrix<double> out) {
        const std::size_t length = bits.shape(1) * kWordBits;
        std::vector<double> padded(out.columns * length);
        const Matrix<double> by_output{padded.data(), out.columns, length};
        bit_products(view(bits), view(weights), by_output);
        for (std::size_t i = 0; i < n_rows; ++i)
            for (std::size_t t = 0; t < out.columns; ++t) out(i, t) = by_output(t, i);
    });
}

Out<double> rows(const BitTable& bits, const RowNumbers& index) {
    check_index(index, bits.shape(1) * kWordBits);
    return compute_matrix(index.shape(0), bits.shape(0),
                          [&](Matrix<double> out) { bit_rows(view(bits), view(index), out); });
}

Out<double> counts(const BitTable& bits, const Vector<const Word>& mask) {
    require(mask.shape(0) == bits.shape(1), "mask needs as many words as a column of bits");
    return compute_matrix(bits.shape(0), bits.shape(0),
                          [&](Matrix<double> out) { bit_counts(view(bits), view(mask), out); });
}

using SearchAnswer = std::tuple<std::vector<Conjunction>, std::vector<double>, std::size_t, bool>;

SearchAnswer search(const BitTable& bits, const Table<const double>& V, double base, double level,
                    std::size_t max_length, std::size_t max_found, std::size_t max_visited,
                    const std::vector<Conjunction>& known, const std::optional<Vector<const std::int8_t>>& signs) {
    if (signs) {
        require(signs->shape(0) == bits.shape(0), "signs needs one value per column of bits");
        require(V.shape(1) == 1, "signs need one output");
    }
    require(base > 0.0 && std::isfinite(base), "base must be > 0");
    require(level >= 0.0, "level must be >= 0");
    require(max_found > 0, "max_found must be > 0");
    const auto values = padded_outputs(V, bits.shape(1));
    const LatticeSearch search{.bits = view(bits),
                               .values = {values.data(), V.shape(1), bits.shape(1) * kWordBits},
                               .base = base,
                               .level = level,
                               .max_length = max_length,
                               .max_found = max_found,
                               .max_visited = max_visited,
                               .signs = signs ? view(*signs) : std::span<const std::int8_t>{},
                               .poll = check_signals};
    LatticeAnswer answer;
    {
        const nb::gil_scoped_release release;
        const Conjunctions set(known.begin(), known.end());
        answer = LatticeWalk(search, set).run();
    }
    std::vector<Conjunction> members;
    std::vector<double> ratios;
    for (auto& found : answer.found) {
        members.push_back(std::move(found.members));
        ratios.push_back(found.ratio);
    }
    return {std::move(members), std::move(ratios), answer.visited, answer.complete};
}

}  // namespace

void bind_bits(nb::module_& m) {
    m.def("pack_bits", &pack, "values"_array, "Pack the columns of a table of truth values, 64 rows to a word.");
    m.def("count_bits", &count, "bits"_array, "How many ones each column has.");
    m.def("bit_sums", &sums, "bits"_array, "V"_array, "Sum the rows of V under the ones of each column.");
    m.def("bit_products", &products, "bits"_array, "weights"_array, "n_rows"_a,
          "For each row the sum of the weights of the columns that have a one there.");
    m.def("bit_rows", &rows, "bits"_array, "index"_array, "Some rows of columns of bits, as numbers.");
    m.def("bit_counts", &counts, "bits"_array, "mask"_array,
          "For each pair of columns, how many rows of a mask have a one in both.");
}

void bind_lattice(nb::module_& m) {
    m.def("search_conjunctions", &search, "bits"_array, "V"_array, "base"_a, "level"_a, "max_length"_a, "max_found"_a,
          "max_visited"_a, "known"_a, "signs"_array = nb::none(),
          "Find the conjunctions of columns, not known yet, with the largest |sum of V|^2 / base^(2 length) above a "
          "level: (members, ratios, conjunctions visited, whether all were covered).");
}

}  // namespace kw::python
