// Sums of values over the ones of many columns, from above and from below, at a few counts for 64 rows.
//
// The values of one sign are rounded up to whole multiples of a step, and bit k of all multiples is plane k, a column
// of bits itself. The sum of the multiples over the ones of a column is then sum_k 2^k |column and plane k|.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitset.hpp"

namespace kw {

constexpr std::size_t kPlanes = 8;  // counted at a time: one instruction where the processor has it

struct PlaneSum {
    std::uint64_t multiples = 0, rows = 0;
};

// `planes` holds for every word of rows the words of all planes, the lowest first.
KW_INLINE PlaneSum plane_sum(const Word* column, const Word* planes, std::size_t n_words, std::size_t n_groups) {
    PlaneSum sum;
    for (std::size_t g = 0; g < n_groups; ++g) {
        std::uint64_t counts[kPlanes] = {};
        const Word* here = planes + g * kPlanes;
        for (std::size_t w = 0; w < n_words; ++w, here += n_groups * kPlanes) {
            const Word word = column[w];
#pragma omp simd
            for (std::size_t k = 0; k < kPlanes; ++k)
                counts[k] += static_cast<std::uint64_t>(std::popcount(word & here[k]));
        }
        for (std::size_t k = 0; k < kPlanes; ++k) sum.multiples += counts[k] << (g * kPlanes + k);
    }
    for (std::size_t w = 0; w < n_words; ++w) sum.rows += static_cast<std::uint64_t>(std::popcount(column[w]));
    return sum;
}

using PlaneSums = PlaneSum (*)(const Word*, const Word*, std::size_t, std::size_t);

static inline PlaneSum plane_sum_portable(const Word* column, const Word* planes, std::size_t n_words,
                                          std::size_t n_groups) {
    return plane_sum(column, planes, n_words, n_groups);
}
#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("popcnt"))) static inline PlaneSum plane_sum_one(const Word* column, const Word* planes,
                                                                      std::size_t n_words, std::size_t n_groups) {
    return plane_sum(column, planes, n_words, n_groups);
}
__attribute__((target("popcnt,avx512f,avx512vpopcntdq"))) static inline PlaneSum plane_sum_eight(
    const Word* column, const Word* planes, std::size_t n_words, std::size_t n_groups) {
    return plane_sum(column, planes, n_words, n_groups);
}
#endif

inline PlaneSums best_plane_sums() {
    return best_for_counts<PlaneSums>(
#if defined(__GNUC__) && defined(__x86_64__)
        plane_sum_eight, plane_sum_one,
#endif
        plane_sum_portable);
}

// Some columns over the rows where an output has one sign, and its values there.
struct Planes {
    std::vector<Word> bits, planes;
    std::size_t n_words = 0, n_groups = 1;
    double step = 0.0;

    // Keeps the rows of `mask` of the columns that `pick` names, out of `from`.
    template <class Pick>
    void narrow(const Planes& from, const Word* mask, std::size_t n_columns, Pick pick) {
        step = from.step;
        n_groups = from.n_groups;
        n_words = words_for(count_bits(mask, from.n_words));
        bits.resize(n_columns * n_words);
        for (std::size_t c = 0; c < n_columns; ++c)
            keep_rows(from.bits.data() + pick(c) * from.n_words, mask, from.n_words, bits.data() + c * n_words);
        const std::size_t n_planes = n_groups * kPlanes;
        planes.resize(n_words * n_planes);
        before_.resize(from.n_words);
        after_.resize(n_words);
        for (std::size_t k = 0; k < n_planes; ++k) {
            for (std::size_t w = 0; w < from.n_words; ++w) before_[w] = from.planes[w * n_planes + k];
            keep_rows(before_.data(), mask, from.n_words, after_.data());
            for (std::size_t w = 0; w < n_words; ++w) planes[w * n_planes + k] = after_[w];
        }
    }

   private:
    std::vector<Word> before_, after_;
};

// The rows where sign * values > 0. Where few values are much larger than the others, more planes keep the steps small.
inline Planes make_planes(const Word* bits, std::size_t n_columns, std::size_t n_words, const double* values,
                          double sign) {
    std::vector<Word> mask(n_words, 0);
    double top = 0.0, total = 0.0;
    std::size_t n_rows = 0;
    for (std::size_t i = 0; i < n_words * kWordBits; ++i)
        if (const double x = sign * values[i]; x > 0.0) {
            mask[i / kWordBits] |= Word{1} << (i % kWordBits);
            top = std::max(top, x);
            total += x;
            ++n_rows;
        }
    Planes out;
    constexpr double skewed = 8.0;
    out.n_groups = top * static_cast<double>(n_rows) <= skewed * total ? 1 : 2;
    out.n_words = words_for(n_rows);
    const std::size_t n_planes = out.n_groups * kPlanes;
    const double most = static_cast<double>((std::uint64_t{1} << n_planes) - 1);
    out.step = top / (most - 0.5);  // rounding cannot lead beyond the last multiple
    out.bits.resize(n_columns * out.n_words);
    for (std::size_t c = 0; c < n_columns; ++c)
        keep_rows(bits + c * n_words, mask.data(), n_words, out.bits.data() + c * out.n_words);
    out.planes.assign(out.n_words * n_planes, 0);
    std::size_t row = 0;
    for (std::size_t i = 0; i < n_words * kWordBits; ++i) {
        const double x = sign * values[i];
        if (!(x > 0.0)) continue;
        auto multiple = static_cast<std::uint64_t>(std::ceil(x / out.step));
        if (static_cast<double>(multiple) * out.step < x) ++multiple;
        for (std::size_t k = 0; k < n_planes; ++k)
            out.planes[(row / kWordBits) * n_planes + k] |= ((multiple >> k) & 1) << (row % kWordBits);
        ++row;
    }
    return out;
}

}  // namespace kw
