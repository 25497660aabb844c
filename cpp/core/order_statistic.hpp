// Weighted order statistics of the union of sorted lists, each moved by a number of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/matrix.hpp"
#include "core/parallel.hpp"

namespace kw {

// Values in increasing order, list after list, and how much each of them weighs.
struct SortedLists {
    std::span<const double> values, weights;
    std::span<const std::int64_t> ends;  // of the lists
};

// The smallest value of the union up to which the weights reach `rank`, for every row of shifts of the lists; infinite
// where they do not reach it.
inline void order_statistics(const SortedLists& lists, Matrix<const double> shifts, double rank,
                             std::span<double> out) {
    constexpr std::size_t kRows = 256, kFew = 4;  // rows of a task; values of a list where halving ends
    const std::size_t n_lists = lists.ends.size();
    std::vector<double> before(lists.values.size() + 1, 0.0);  // cumulated weights of the values before each
    for (std::size_t i = 0; i < lists.values.size(); ++i) before[i + 1] = before[i] + lists.weights[i];
    std::vector<std::size_t> starts(n_lists, 0), ends(lists.ends.begin(), lists.ends.end());
    for (std::size_t k = 1; k < n_lists; ++k) starts[k] = ends[k - 1];

    parallel_for((out.size() + kRows - 1) / kRows, [&](std::size_t task) {
        std::vector<std::size_t> low(n_lists), high(n_lists), middle(n_lists);
        for (std::size_t row = task * kRows; row < std::min(out.size(), (task + 1) * kRows); ++row) {
            const auto shift = shifts.row(row);
            const auto at = [&](std::size_t k, std::size_t i) { return shift[k] + lists.values[i]; };
            const auto reached = [&](const std::vector<std::size_t>& places) {
                double sum = 0.0;
                for (std::size_t k = 0; k < n_lists; ++k) sum += before[places[k]] - before[starts[k]];
                return sum;
            };
            low = starts;
            high = ends;
            for (;;) {
                std::size_t longest = 0;
                for (std::size_t k = 1; k < n_lists; ++k)
                    if (high[k] - low[k] > high[longest] - low[longest]) longest = k;
                if (high[longest] - low[longest] <= kFew) break;
                const double pivot = at(longest, low[longest] + (high[longest] - low[longest]) / 2);
                for (std::size_t k = 0; k < n_lists; ++k) {  // the first value above the pivot
                    std::size_t a = low[k], left = high[k] - low[k];
                    for (std::size_t half = left / 2; left > 1; half = left / 2) {  // without a branch
                        a += at(k, a + half - 1) <= pivot ? half : 0;
                        left -= half;
                    }
                    middle[k] = a + (left == 1 && at(k, a) <= pivot ? 1 : 0);
                }
                const bool enough = reached(middle) >= rank;
                if (middle == (enough ? high : low)) break;  // equal values, or a shift that is no number
                (enough ? high : low) = middle;
            }
            // From value to value: those before `low` do not reach the rank.
            double sum = reached(low);
            double value = std::numeric_limits<double>::infinity();
            while (sum < rank) {
                std::size_t best = n_lists;
                value = std::numeric_limits<double>::infinity();
                for (std::size_t k = 0; k < n_lists; ++k)
                    if (low[k] < ends[k] && at(k, low[k]) < value) {
                        best = k;
                        value = at(k, low[k]);
                    }
                if (best == n_lists) break;
                sum += lists.weights[low[best]++];
            }
            out[row] = value;
        }
    });
}

}  // namespace kw
