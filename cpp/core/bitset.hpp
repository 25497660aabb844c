// Columns of bits, 64 rows to a word: sums over the ones, sums of columns, counts of pairs.
//
// Bit k of word w is row 64 w + k; bits past the last row are zero. Values come padded to whole words, so that the
// inner loops have a fixed length and compile to masked vector code.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

using Word = std::uint64_t;
using Words = std::span<const Word>;
using Bits = Matrix<const Word>;  // one row of words per column of bits
constexpr std::size_t kWordBits = 64;

[[nodiscard]] constexpr std::size_t words_for(std::size_t n_rows) noexcept { return n_blocks(n_rows, kWordBits); }

// Packs column c of a table of truth values.
inline void pack_column(Matrix<const bool> table, std::size_t c, std::span<Word> out) noexcept {
    for (std::size_t w = 0; w < out.size(); ++w) {
        const std::size_t first = w * kWordBits, count = std::min(kWordBits, table.rows - first);
        Word word = 0;
        for (std::size_t k = 0; k < count; ++k) word |= static_cast<Word>(table(first + k, c)) << k;
        out[w] = word;
    }
}

[[nodiscard]] inline std::size_t count_bits(Words bits) noexcept {
    std::size_t count = 0;
    for (const Word word : bits) count += static_cast<std::size_t>(std::popcount(word));
    return count;
}

// Chooses between loops for processors that count the ones of eight words, or of one, by one instruction, and others.
#if KW_X86_TARGETS
template <class Function>
[[nodiscard]] Function best_for_counts(Function eight, Function one, Function portable) noexcept {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq")) return eight;
    return __builtin_cpu_supports("popcnt") ? one : portable;
}
#else
template <class Function>
[[nodiscard]] Function best_for_counts(Function portable) noexcept {
    return portable;
}
#endif

// The bits of `word` at the ones of `mask`, moved together to the low end (the instruction PEXT).
[[nodiscard]] inline Word gather_portable(Word word, Word mask) noexcept {
    Word out = 0;
    for (std::size_t place = 0; mask != 0; mask &= mask - 1, ++place)
        out |= ((word >> std::countr_zero(mask)) & 1) << place;
    return out;
}

// Writes to `out` the rows of a column at the ones of `mask`, moved together.
template <class Gather>
KW_INLINE void keep_rows(Words column, Words mask, Word* out, Gather gather) noexcept {
    // No branch depends on how full a word is: it would be mispredicted half of the time.
    Word open = 0;
    std::size_t filled = 0;
    for (std::size_t w = 0; w < mask.size(); ++w) {
        if (mask[w] == 0) continue;
        const Word bits = gather(column[w], mask[w]);
        const std::size_t after = filled + static_cast<std::size_t>(std::popcount(mask[w]));
        *out = open | (bits << filled);
        const bool full = after >= kWordBits;
        open = full ? (bits >> 1) >> (kWordBits - 1 - filled) : *out;  // two shifts, because one by 64 is undefined
        out += full ? 1 : 0;
        filled = after % kWordBits;
    }
    if (filled > 0) *out = open;
}

#if KW_X86_TARGETS
KW_TARGET("bmi2,popcnt") static inline void keep_rows_pext(Words column, Words mask, Word* out) noexcept {
    keep_rows(column, mask, out, [](Word word, Word m) KW_TARGET("bmi2,popcnt") {
        return static_cast<Word>(__builtin_ia32_pext_di(word, m));
    });
}
[[nodiscard]] inline bool has_pext() noexcept {
    static const bool available = __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    return available;
}
#endif

inline void keep_rows(Words column, Words mask, Word* out) noexcept {
#if KW_X86_TARGETS
    if (has_pext()) {
        keep_rows_pext(column, mask, out);
        return;
    }
#endif
    keep_rows(column, mask, out, gather_portable);
}

// For every byte eight masks: all ones where its bit is set. Compilers vectorise a masked load better than tests of
// single bits.
struct ByteMasks {
    alignas(64) std::uint64_t lanes[256][8];
    constexpr ByteMasks() noexcept : lanes{} {
        for (std::size_t byte = 0; byte < 256; ++byte)
            for (std::size_t j = 0; j < 8; ++j) lanes[byte][j] = ((byte >> j) & 1) != 0 ? ~std::uint64_t{0} : 0;
    }
};
inline constexpr ByteMasks kByteMasks{};

[[nodiscard]] KW_INLINE double masked(double value, std::uint64_t mask) noexcept {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & mask);
}

// Sum of values over the ones of a column.
[[nodiscard]] KW_CLONES static inline double masked_sum(Words bits, const double* values) noexcept {
    double sums[8] = {};
    for (std::size_t w = 0; w < bits.size(); ++w) {
        Word word = bits[w];
        const double* here = values + w * kWordBits;
        for (; word != 0; word >>= 8, here += 8) {
            const std::uint64_t* mask = kByteMasks.lanes[word & 255];
            KW_SIMD()
            for (std::size_t j = 0; j < 8; ++j) sums[j] += masked(here[j], mask[j]);
        }
    }
    double sum = 0.0;
    for (const double s : sums) sum += s;
    return sum;
}

// out += value at the ones of a column.
KW_CLONES static inline void add_where(Words bits, double value, double* out) noexcept {
    for (std::size_t w = 0; w < bits.size(); ++w) {
        Word word = bits[w];
        double* here = out + w * kWordBits;
        for (; word != 0; word >>= 8, here += 8) {
            const std::uint64_t* mask = kByteMasks.lanes[word & 255];
            KW_SIMD()
            for (std::size_t j = 0; j < 8; ++j) here[j] += masked(value, mask[j]);
        }
    }
}

// out(c, t) = sum of values(t) over the ones of column c; values have one row per output, padded to whole words.
inline void bit_sums(Bits bits, Matrix<const double> values, Matrix<double> out) {
    constexpr std::size_t together = 64;  // columns of a task
    parallel_blocks(bits.rows, together, [&](std::size_t first, std::size_t last) {
        for (std::size_t c = first; c < last; ++c)
            for (std::size_t t = 0; t < values.rows; ++t) out(c, t) = masked_sum(bits.row(c), values.row(t).data());
    });
}

// out(t, row) = sum over columns of weights(c, t) where the row has a one; out is padded to whole words.
inline void bit_products(Bits bits, Matrix<const double> weights, Matrix<double> out) {
    constexpr std::size_t together = 32;  // words of a task, whose sums stay in the first-level cache
    std::fill(out.entries().begin(), out.entries().end(), 0.0);
    parallel_blocks(bits.columns, together, [&](std::size_t first, std::size_t last) {
        for (std::size_t t = 0; t < out.rows; ++t)
            for (std::size_t c = 0; c < bits.rows; ++c)
                if (const double weight = weights(c, t); weight != 0.0)
                    add_where(bits.row(c).subspan(first, last - first), weight, &out(t, first * kWordBits));
    });
}

// out(r, c) = whether row index[r] has a one in column c.
template <class T>
void bit_rows(Bits bits, Index index, Matrix<T> out) {
    constexpr std::size_t together = 256;  // rows of a task; their words of a column lie close together
    parallel_blocks(index.size(), together, [&](std::size_t first, std::size_t last) {
        for (std::size_t c = 0; c < bits.rows; ++c)
            for (std::size_t r = first; r < last; ++r) {
                const std::size_t row = row_at(index, r);
                out(r, c) = static_cast<T>((bits(c, row / kWordBits) >> (row % kWordBits)) & 1);
            }
    });
}

[[nodiscard]] KW_INLINE std::uint64_t count_both(const Word* a, const Word* b, std::size_t n_words) noexcept {
    std::uint64_t count = 0;
    KW_SIMD(reduction(+ : count))
    for (std::size_t w = 0; w < n_words; ++w) count += static_cast<std::uint64_t>(std::popcount(a[w] & b[w]));
    return count;
}

struct Tile {
    std::size_t row, rows_end, column, columns_end;  // two ranges of columns of bits
};

// counts(a, b) += how many rows have a one in column a and in column b, for the columns of a tile with a <= b.
KW_INLINE void count_tile(Bits bits, const Tile& tile, Matrix<double> counts) noexcept {
    constexpr std::size_t together = 256;  // words of a column; those of a tile stay in the first-level cache
    for (std::size_t start = 0; start < bits.columns; start += together) {
        const std::size_t length = std::min(together, bits.columns - start);
        for (std::size_t a = tile.row; a < tile.rows_end; ++a)
            for (std::size_t b = std::max(a, tile.column); b < tile.columns_end; ++b)
                counts(a, b) += static_cast<double>(count_both(&bits(a, start), &bits(b, start), length));
    }
}

using CountTile = void (*)(Bits, const Tile&, Matrix<double>) noexcept;

static inline void count_tile_portable(Bits bits, const Tile& tile, Matrix<double> counts) noexcept {
    count_tile(bits, tile, counts);
}
#if KW_X86_TARGETS
KW_TARGET("popcnt") static inline void count_tile_one(Bits bits, const Tile& tile, Matrix<double> counts) noexcept {
    count_tile(bits, tile, counts);
}
KW_TARGET("popcnt,avx512f,avx512vpopcntdq")
static inline void count_tile_eight(Bits bits, const Tile& tile, Matrix<double> counts) noexcept {
    count_tile(bits, tile, counts);
}
#endif

[[nodiscard]] inline CountTile best_count_tile() noexcept {
    return best_for_counts<CountTile>(
#if KW_X86_TARGETS
        count_tile_eight, count_tile_one,
#endif
        count_tile_portable);
}

// counts(a, b) = how many rows of `mask` have a one in column a and in column b; whole numbers, so exact.
inline void bit_counts(Bits bits, Words mask, Matrix<double> counts) {
    constexpr std::size_t side = 8;  // columns of a tile
    const std::size_t n_columns = bits.rows, width = words_for(count_bits(mask));
    std::vector<Word> words(n_columns * width, 0);
    parallel_blocks(n_columns, side, [&](std::size_t first, std::size_t last) {
        for (std::size_t c = first; c < last; ++c) keep_rows(bits.row(c), mask, words.data() + c * width);
    });
    const Bits kept{words.data(), n_columns, width};
    std::fill(counts.entries().begin(), counts.entries().end(), 0.0);
    static const CountTile count = best_count_tile();
    const std::size_t n_tiles = n_blocks(n_columns, side);
    parallel_for(n_tiles * n_tiles, [&](std::size_t pair) {
        const std::size_t i = pair / n_tiles, j = pair % n_tiles;
        if (i > j) return;
        const Tile tile{i * side, std::min(n_columns, (i + 1) * side), j * side, std::min(n_columns, (j + 1) * side)};
        count(kept, tile, counts);
        for (std::size_t a = tile.row; a < tile.rows_end; ++a)
            for (std::size_t b = std::max(a, tile.column); b < tile.columns_end; ++b) counts(b, a) = counts(a, b);
    });
}

}  // namespace kw
