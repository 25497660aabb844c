// Random columns of bits, for the tests of bit loops and of the lattice.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "core/bitset.hpp"
#include "tests/check.hpp"

namespace kw::test {

struct Truths {
    std::size_t n, p;
    std::vector<char> values;  // row by row
    std::vector<Word> bits;
    [[nodiscard]] bool at(std::size_t i, std::size_t c) const { return values[i * p + c] != 0; }
    [[nodiscard]] Bits columns() const { return as_matrix(bits, p, words_for(n)); }
};

[[nodiscard]] inline Truths truths(std::size_t n, std::size_t p, double share, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::bernoulli_distribution draw(share);
    Truths out{n, p, std::vector<char>(n * p), std::vector<Word>(p * words_for(n))};
    for (auto& value : out.values) value = draw(engine);
    static_assert(sizeof(bool) == sizeof(char));
    const Matrix<const bool> table{reinterpret_cast<const bool*>(out.values.data()), n, p};
    for (std::size_t c = 0; c < p; ++c) pack_column(table, c, as_matrix(out.bits, p, words_for(n)).row(c));
    return out;
}

// One row per output, padded with zeros to whole words.
[[nodiscard]] inline std::vector<double> padded(const std::vector<double>& values, std::size_t n,
                                                std::size_t n_outputs) {
    const std::size_t length = words_for(n) * kWordBits;
    std::vector<double> out(n_outputs * length, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t t = 0; t < n_outputs; ++t) out[t * length + i] = values[i * n_outputs + t];
    return out;
}

}  // namespace kw::test
