// Tests of columns of bits and of the bounds by planes.
#include "core/bitset.hpp"

#include "core/planes.hpp"
#include "tests/check.hpp"
#include "tests/truths.hpp"

namespace kw::test {

void test_bits() {
    for (const std::size_t n : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{3000}}) {
        const std::size_t p = 70, n_outputs = 2, n_words = words_for(n), length = n_words * kWordBits;
        const auto table = truths(n, p, 0.4, static_cast<unsigned>(n));
        const auto V = normals(n * n_outputs, 1), weights = normals(p * n_outputs, 2);
        const auto values = padded(V, n, n_outputs);
        std::vector<double> sums(p * n_outputs), products(n_outputs * length);
        bit_sums(table.columns(), as_matrix(values, n_outputs, length), as_matrix(sums, p, n_outputs));
        bit_products(table.columns(), as_matrix(weights, p, n_outputs), as_matrix(products, n_outputs, length));
        for (std::size_t c = 0; c < p; ++c) {
            std::size_t count = 0;
            double sum = 0.0, parts[2] = {};
            for (std::size_t i = 0; i < n; ++i) {
                if (!table.at(i, c)) continue;
                ++count;
                sum += V[i * n_outputs];
                parts[V[i * n_outputs] < 0.0] += std::abs(V[i * n_outputs]);
            }
            check(count_bits(table.columns().row(c)) == count, "count of ones");
            check_close(sums[c * n_outputs], sum, 1e-10, "sum under the ones");
            for (const int side : {0, 1}) {
                const Planes planes =
                    make_planes(table.columns(), as_matrix(values, n_outputs, length).row(0), 1.0 - 2.0 * side);
                const Words own = planes.column(c);
                const auto found = plane_sum(own, planes.planes, planes.n_groups);
                const auto best = best_plane_sums()(own, planes.planes, planes.n_groups);
                check(best.multiples == found.multiples && best.rows == found.rows, "counts of any processor");
                const double most = planes.step * static_cast<double>(found.multiples);
                check(most >= parts[side], "planes bound a sum from above");
                check(most - planes.step * static_cast<double>(found.rows) <= parts[side], "and from below");
                check(most <= parts[side] + planes.step * static_cast<double>(count), "closely");
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            double sum = 0.0;
            for (std::size_t c = 0; c < p; ++c) sum += table.at(i, c) ? weights[c * n_outputs + 1] : 0.0;
            check_close(products[length + i], sum, 1e-10, "sum of columns");
        }
        const auto index = shuffled(n, 100, 3);
        std::vector<double> rows(index.size() * p);
        bit_rows(table.columns(), index, as_matrix(rows, index.size(), p));
        for (std::size_t r = 0; r < index.size(); ++r)
            for (std::size_t c = 0; c < p; ++c)
                check(rows[r * p + c] == table.at(static_cast<std::size_t>(index[r]), c), "rows of bits");
        std::vector<double> pairs(p * p);
        bit_counts(table.columns(), table.columns().row(0), as_matrix(pairs, p, p));
        for (std::size_t a = 0; a < p; ++a)
            for (std::size_t b = 0; b < p; ++b) {
                double count = 0.0;
                for (std::size_t i = 0; i < n; ++i) count += table.at(i, 0) && table.at(i, a) && table.at(i, b);
                check(pairs[a * p + b] == count, "counts of pairs under a mask");
            }
        // Rows kept by a column, by the instruction and by the loop.
        const Words mask = table.columns().row(0), second = table.columns().row(1);
        const std::size_t kept_words = words_for(count_bits(mask));
        std::vector<Word> fast(kept_words, 0), plain(kept_words, 0);
        keep_rows(second, mask, fast.data());
        keep_rows(second, mask, plain.data(), gather_portable);
        check(fast == plain, "both ways to keep rows agree");
        std::size_t place = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (!table.at(i, 0)) continue;
            check(((plain[place / 64] >> (place % 64)) & 1) == table.at(i, 1), "kept rows");
            ++place;
        }
    }
}

}  // namespace kw::test
