// Columns of zeros and ones over many rows, 64 rows to a word: sums over the ones, and sums of columns.
//
// Bit k of word w is row 64 w + k; bits past the last row are zero. Values come padded to whole words, so that the
// inner loops have a fixed length and compile to masked vector code.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "vector_math.hpp"

namespace kw {

using Word = std::uint64_t;
constexpr std::size_t kWordBits = 64;

inline std::size_t words_for(std::size_t n_rows) { return (n_rows + kWordBits - 1) / kWordBits; }

// Packs one column of a row-major table of truth values.
inline void pack_column(const bool* values, std::size_t stride, std::size_t n_rows, Word* out) {
    for (std::size_t w = 0; w < words_for(n_rows); ++w) {
        const std::size_t first = w * kWordBits, count = std::min(kWordBits, n_rows - first);
        Word word = 0;
        for (std::size_t k = 0; k < count; ++k) word |= static_cast<Word>(values[(first + k) * stride]) << k;
        out[w] = word;
    }
}

inline std::size_t count_bits(const Word* bits, std::size_t n_words) {
    std::size_t count = 0;
    for (std::size_t w = 0; w < n_words; ++w) count += static_cast<std::size_t>(std::popcount(bits[w]));
    return count;
}

// Chooses between loops for processors that count the ones of eight words, or of one, by one instruction, and others.
#if defined(__GNUC__) && defined(__x86_64__)
template <class Function>
Function best_for_counts(Function eight, Function one, Function portable) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq")) return eight;
    return __builtin_cpu_supports("popcnt") ? one : portable;
}
#else
template <class Function>
Function best_for_counts(Function portable) {
    return portable;
}
#endif

// The bits of `word` that stand under the ones of `mask`, moved together to the low end.
inline Word gather_portable(Word word, Word mask) {
    Word out = 0;
    for (std::size_t place = 0; mask != 0; mask &= mask - 1, ++place)
        out |= ((word >> std::countr_zero(mask)) & 1) << place;
    return out;
}

// Writes to `out` the rows of a column that `mask` keeps, moved together.
template <class Gather>
KW_INLINE void keep_rows(const Word* column, const Word* mask, std::size_t n_words, Word* out, Gather gather) {
    // No branch depends on how full a word is: it would be guessed wrong half of the time.
    Word open = 0;
    std::size_t filled = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        if (mask[w] == 0) continue;
        const Word bits = gather(column[w], mask[w]);
        const std::size_t after = filled + static_cast<std::size_t>(std::popcount(mask[w]));
        *out = open | (bits << filled);
        const bool full = after >= kWordBits;
        open = full ? (bits >> 1) >> (kWordBits - 1 - filled) : *out;
        out += full;
        filled = after % kWordBits;
    }
    if (filled > 0) *out = open;
}

#if defined(__GNUC__) && defined(__x86_64__)
// One instruction where the processor has it.
__attribute__((target("bmi2,popcnt"))) static inline void keep_rows_fast(const Word* column, const Word* mask,
                                                                        std::size_t n_words, Word* out) {
    keep_rows(column, mask, n_words, out, [](Word word, Word m) __attribute__((target("bmi2,popcnt"))) {
        return static_cast<Word>(__builtin_ia32_pext_di(word, m));
    });
}
inline bool has_gather_instruction() {
    static const bool there = __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    return there;
}
#endif

inline void keep_rows(const Word* column, const Word* mask, std::size_t n_words, Word* out) {
#if defined(__GNUC__) && defined(__x86_64__)
    if (has_gather_instruction()) return keep_rows_fast(column, mask, n_words, out);
#endif
    keep_rows(column, mask, n_words, out, gather_portable);
}

// For every byte eight masks: all ones where its bit is set. Compilers do not vectorise tests of single bits well,
// but a masked load they do.
struct ByteMasks {
    alignas(64) std::uint64_t lanes[256][8];
    constexpr ByteMasks() : lanes{} {
        for (std::size_t byte = 0; byte < 256; ++byte)
            for (std::size_t j = 0; j < 8; ++j) lanes[byte][j] = (byte >> j) & 1 ? ~std::uint64_t{0} : 0;
    }
};
inline constexpr ByteMasks kByteMasks{};

KW_INLINE double masked(double value, std::uint64_t mask) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & mask);
}

KW_CLONES static inline double masked_sum(const Word* bits, std::size_t n_words, const double* values) {
    double sums[8] = {};
    for (std::size_t w = 0; w < n_words; ++w) {
        Word word = bits[w];
        const double* here = values + w * kWordBits;
        for (; word != 0; word >>= 8, here += 8) {
            const std::uint64_t* mask = kByteMasks.lanes[word & 255];
#pragma omp simd
            for (std::size_t j = 0; j < 8; ++j) sums[j] += masked(here[j], mask[j]);
        }
    }
    double sum = 0.0;
    for (const double s : sums) sum += s;
    return sum;
}

KW_CLONES static inline void add_where(const Word* bits, std::size_t n_words, double value, double* out) {
    for (std::size_t w = 0; w < n_words; ++w) {
        Word word = bits[w];
        double* here = out + w * kWordBits;
        for (; word != 0; word >>= 8, here += 8) {
            const std::uint64_t* mask = kByteMasks.lanes[word & 255];
#pragma omp simd
            for (std::size_t j = 0; j < 8; ++j) here[j] += masked(value, mask[j]);
        }
    }
}

// out[c, t] = sum of values[t] over the ones of column c; values are padded to whole words.
inline void bit_sums(const Word* bits, std::size_t n_columns, std::size_t n_words, const double* values,
                     std::size_t n_outputs, double* out) {
    const std::size_t length = n_words * kWordBits;
    constexpr std::size_t together = 64;  // columns of a task
    parallel_for((n_columns + together - 1) / together, [&](std::size_t task) {
        for (std::size_t c = task * together; c < std::min(n_columns, (task + 1) * together); ++c)
            for (std::size_t t = 0; t < n_outputs; ++t)
                out[c * n_outputs + t] = masked_sum(bits + c * n_words, n_words, values + t * length);
    });
}

// out[t, row] = sum over columns of weights[c, t] where the row has a one; out is padded to whole words.
inline void bit_products(const Word* bits, std::size_t n_columns, std::size_t n_words, const double* weights,
                         std::size_t n_outputs, double* out) {
    const std::size_t length = n_words * kWordBits;
    constexpr std::size_t together = 32;  // words of a task, whose sums stay in the nearest cache
    std::fill(out, out + n_outputs * length, 0.0);
    parallel_for((n_words + together - 1) / together, [&](std::size_t task) {
        const std::size_t first = task * together, count = std::min(together, n_words - first);
        for (std::size_t t = 0; t < n_outputs; ++t)
            for (std::size_t c = 0; c < n_columns; ++c)
                if (const double weight = weights[c * n_outputs + t]; weight != 0.0)
                    add_where(bits + c * n_words + first, count, weight, out + t * length + first * kWordBits);
    });
}

// out[r, c] = whether row index[r] has a one in column c.
template <class T>
void bit_rows(const Word* bits, std::size_t n_columns, std::size_t n_words, const std::int64_t* index,
              std::size_t n_rows, T* out) {
    constexpr std::size_t together = 256;  // rows of a task; their words of a column lie close together
    parallel_for((n_rows + together - 1) / together, [&](std::size_t task) {
        const std::size_t first = task * together, last = std::min(n_rows, first + together);
        for (std::size_t c = 0; c < n_columns; ++c) {
            const Word* column = bits + c * n_words;
            for (std::size_t r = first; r < last; ++r) {
                const auto row = static_cast<std::size_t>(index[r]);
                out[r * n_columns + c] = static_cast<T>((column[row / kWordBits] >> (row % kWordBits)) & 1);
            }
        }
    });
}

KW_INLINE std::uint64_t count_both(const Word* a, const Word* b, std::size_t n_words) {
    std::uint64_t count = 0;
#pragma omp simd reduction(+ : count)
    for (std::size_t w = 0; w < n_words; ++w) count += static_cast<std::uint64_t>(std::popcount(a[w] & b[w]));
    return count;
}

struct Tile {
    std::size_t row, rows_end, column, columns_end;  // two ranges of columns of bits
};

// counts[a, b] += how many rows have a one in column a and in column b, for the columns of a tile with a <= b.
KW_INLINE void count_tile(const Word* bits, std::size_t n_words, const Tile& tile, std::size_t n_columns,
                          double* counts) {
    constexpr std::size_t together = 256;  // words of a column; those of a tile stay in the nearest cache
    for (std::size_t start = 0; start < n_words; start += together) {
        const std::size_t length = std::min(together, n_words - start);
        for (std::size_t a = tile.row; a < tile.rows_end; ++a)
            for (std::size_t b = std::max(a, tile.column); b < tile.columns_end; ++b)
                counts[a * n_columns + b] += static_cast<double>(
                    count_both(bits + a * n_words + start, bits + b * n_words + start, length));
    }
}

using CountTile = void (*)(const Word*, std::size_t, const Tile&, std::size_t, double*);

static inline void count_tile_portable(const Word* bits, std::size_t n_words, const Tile& tile, std::size_t n_columns,
                                       double* counts) {
    count_tile(bits, n_words, tile, n_columns, counts);
}
#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("popcnt"))) static inline void count_tile_one(const Word* bits, std::size_t n_words,
                                                                   const Tile& tile, std::size_t n_columns,
                                                                   double* counts) {
    count_tile(bits, n_words, tile, n_columns, counts);
}
__attribute__((target("popcnt,avx512f,avx512vpopcntdq"))) static inline void count_tile_eight(
    const Word* bits, std::size_t n_words, const Tile& tile, std::size_t n_columns, double* counts) {
    count_tile(bits, n_words, tile, n_columns, counts);
}
#endif

inline CountTile best_count_tile() {
    return best_for_counts<CountTile>(
#if defined(__GNUC__) && defined(__x86_64__)
        count_tile_eight, count_tile_one,
#endif
        count_tile_portable);
}

// counts[a, b] = how many rows of `mask` have a one in column a and in column b; whole numbers, so exact.
inline void bit_counts(const Word* bits, std::size_t n_columns, std::size_t n_words, const Word* mask, double* counts) {
    const std::size_t width = words_for(count_bits(mask, n_words));
    std::vector<Word> kept(n_columns * width, 0);
    constexpr std::size_t side = 8;  // columns of a tile
    const std::size_t n_tiles = (n_columns + side - 1) / side;
    parallel_for(n_tiles, [&](std::size_t tile) {
        for (std::size_t c = tile * side; c < std::min(n_columns, (tile + 1) * side); ++c)
            keep_rows(bits + c * n_words, mask, n_words, kept.data() + c * width);
    });
    std::fill(counts, counts + n_columns * n_columns, 0.0);
    static const CountTile count = best_count_tile();
    parallel_for(n_tiles * n_tiles, [&](std::size_t pair) {
        const std::size_t i = pair / n_tiles, j = pair % n_tiles;
        if (i > j) return;
        const Tile tile{i * side, std::min(n_columns, (i + 1) * side), j * side, std::min(n_columns, (j + 1) * side)};
        count(kept.data(), width, tile, n_columns, counts);
        for (std::size_t a = tile.row; a < tile.rows_end; ++a)
            for (std::size_t b = std::max(a, tile.column); b < tile.columns_end; ++b)
                counts[b * n_columns + a] = counts[a * n_columns + b];
    });
}

}  // namespace kw
