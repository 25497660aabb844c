// Upper and lower bounds on sums of values over the ones of columns, by a few counts per 64 rows.
//
// The values of one sign are rounded up to whole multiples of a step, and bit k of all multiples is plane k, a column
// of bits itself. The sum of the multiples over the ones of a column is then sum_k 2^k |column and plane k|; each
// multiple exceeds its value by less than one step, so the true sum lies within [sum - count, sum] * step.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bitset.hpp"

namespace kw {

constexpr std::size_t kPlanes = 8;  // counted at a time: one instruction where the processor has it

struct PlaneSum {
    std::uint64_t multiples = 0, rows = 0;
};

// `planes` holds for every word of rows the words of all planes, the lowest first.
[[nodiscard]] KW_INLINE PlaneSum plane_sum(Words column, const Word* planes, std::size_t n_groups) noexcept {
    PlaneSum sum;
    for (std::size_t g = 0; g < n_groups; ++g) {
        std::uint64_t counts[kPlanes] = {};
        const Word* here = planes + g * kPlanes;
        for (std::size_t w = 0; w < column.size(); ++w, here += n_groups * kPlanes) {
            const Word word = column[w];
            KW_SIMD()
            for (std::size_t k = 0; k < kPlanes; ++k)
                counts[k] += static_cast<std::uint64_t>(std::popcount(word & here[k]));
        }
        for (std::size_t k = 0; k < kPlanes; ++k) sum.multiples += counts[k] << (g * kPlanes + k);
    }
    for (std::size_t w = 0; w < column.size(); ++w) sum.rows += static_cast<std::uint64_t>(std::popcount(column[w]));
    return sum;
}

using PlaneSums = PlaneSum (*)(Words, const Word*, std::size_t) noexcept;

static inline PlaneSum plane_sum_portable(Words column, const Word* planes, std::size_t n_groups) noexcept {
    return plane_sum(column, planes, n_groups);
}
#if KW_X86_TARGETS
KW_TARGET("popcnt")
static inline PlaneSum plane_sum_one(Words column, const Word* planes, std::size_t n_groups) noexcept {
    return plane_sum(column, planes, n_groups);
}
KW_TARGET("popcnt,avx512f,avx512vpopcntdq")
static inline PlaneSum plane_sum_eight(Words column, const Word* planes, std::size_t n_groups) noexcept {
    return plane_sum(column, planes, n_groups);
}
#endif

[[nodiscard]] inline PlaneSums best_plane_sums() noexcept {
    return best_for_counts<PlaneSums>(
#if KW_X86_TARGETS
        plane_sum_eight, plane_sum_one,
#endif
        plane_sum_portable);
}

// Some columns over the rows where an output has one sign, and its values there.
struct Planes {
    std::vector<Word> bits;
    const Word* planes = nullptr;
    std::size_t n_rows = 0, n_words = 0, n_groups = 1;
    double step = 0.0, total = 0.0;  // the latter is the upper bound over all rows

    [[nodiscard]] Words column(std::size_t c) const noexcept { return {bits.data() + c * n_words, n_words}; }

    // Makes room for the words of the planes of this object itself.
    [[nodiscard]] std::span<Word> own_planes() {
        stored_.assign(n_words * n_groups * kPlanes, 0);
        planes = stored_.data();
        return stored_;
    }

    // Keeps the rows of `mask` of the columns that `pick` names, out of `from`, which must outlive this object's use.
    // Rows are moved together where that saves words; elsewhere they keep their places, and the planes are shared.
    template <class Pick>
    void narrow(const Planes& from, Words mask, std::size_t n_columns, Pick pick) {
        step = from.step;
        n_groups = from.n_groups;
        n_rows = count_bits(mask);
        n_words = words_for(n_rows);
        if (n_words == from.n_words) {
            bits.resize(n_columns * n_words);
            planes = from.planes;
            for (std::size_t c = 0; c < n_columns; ++c) {
                const Words column = from.column(pick(c));
                for (std::size_t w = 0; w < n_words; ++w) bits[c * n_words + w] = column[w] & mask[w];
            }
            return;
        }
        bits.resize(n_columns * n_words);
        for (std::size_t c = 0; c < n_columns; ++c) keep_rows(from.column(pick(c)), mask, bits.data() + c * n_words);
        const std::size_t n_planes = n_groups * kPlanes;
        const std::span<Word> own = own_planes();
        before_.resize(from.n_words);
        after_.resize(n_words);
        for (std::size_t k = 0; k < n_planes; ++k) {
            for (std::size_t w = 0; w < from.n_words; ++w) before_[w] = from.planes[w * n_planes + k];
            keep_rows(before_, mask, after_.data());
            for (std::size_t w = 0; w < n_words; ++w) own[w * n_planes + k] = after_[w];
        }
    }

   private:
    std::vector<Word> stored_, before_, after_;
};

// The rows where sign * values > 0. Where few values are much larger than the others, more planes keep the steps small.
[[nodiscard]] inline Planes make_planes(Bits bits, std::span<const double> values, double sign) {
    std::vector<Word> mask(bits.columns, 0);
    double top = 0.0, total = 0.0;
    std::size_t n_rows = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (const double x = sign * values[i]; x > 0.0) {
            mask[i / kWordBits] |= Word{1} << (i % kWordBits);
            top = std::max(top, x);
            total += x;
            ++n_rows;
        }
    Planes out;
    constexpr double skewed = 8.0;  // largest value over the mean
    out.n_groups = top * static_cast<double>(n_rows) <= skewed * total ? 1 : 2;
    out.n_rows = n_rows;
    out.n_words = words_for(n_rows);
    const std::size_t n_planes = out.n_groups * kPlanes;
    const double most = static_cast<double>((std::uint64_t{1} << n_planes) - 1);
    out.step = top / (most - 0.5);  // the half keeps rounding below the last multiple
    out.bits.resize(bits.rows * out.n_words);
    for (std::size_t c = 0; c < bits.rows; ++c) keep_rows(bits.row(c), mask, out.bits.data() + c * out.n_words);
    const std::span<Word> own = out.own_planes();
    std::uint64_t multiples = 0;
    std::size_t row = 0;
    for (const double value : values) {
        const double x = sign * value;
        if (!(x > 0.0)) continue;
        auto multiple = static_cast<std::uint64_t>(std::ceil(x / out.step));
        if (static_cast<double>(multiple) * out.step < x) ++multiple;  // the division was rounded down
        for (std::size_t k = 0; k < n_planes; ++k)
            own[(row / kWordBits) * n_planes + k] |= ((multiple >> k) & 1) << (row % kWordBits);
        multiples += multiple;
        ++row;
    }
    out.total = out.step * static_cast<double>(multiples);
    return out;
}

}  // namespace kw
