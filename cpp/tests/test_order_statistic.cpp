// Tests of order statistics of moved lists.
#include "core/order_statistic.hpp"

#include <utility>

#include "tests/check.hpp"

namespace kw::test {

void test_order_statistic() {
    for (const std::size_t n : kSizes) {
        auto values = normals(n, 3);
        for (std::size_t i = 0; i < n; i += 3) values[i] = 0.5;  // ties
        const std::vector<std::int64_t> ends{static_cast<std::int64_t>(n / 3), static_cast<std::int64_t>(n / 3),
                                             static_cast<std::int64_t>(n)};
        std::vector<double> weights(n);
        for (std::size_t i = 0; i < n; ++i) weights[i] = static_cast<double>(i % 3);
        std::sort(values.begin(), values.begin() + ends[0]);
        std::sort(values.begin() + ends[0], values.end());
        const auto shifts = normals(3 * 300, 5);
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (const double share : {0.01, 0.5, 0.9, 1.0}) {
            const double rank = std::max(share * total, 0.5);
            std::vector<double> out(300, kNaN);
            order_statistics({values, weights, ends}, {shifts.data(), 300, 3}, rank, out);
            bool equal = true;
            for (std::size_t row = 0; row < 300; ++row) {
                std::vector<std::pair<double, double>> all;
                for (std::size_t i = 0; i < n; ++i)
                    all.emplace_back(values[i] + shifts[3 * row + (i < n / 3 ? 0 : 2)], weights[i]);
                std::sort(all.begin(), all.end());
                double sum = 0.0, expected = kInfinity;
                for (const auto& [value, weight] : all)
                    if (sum < rank && (sum += weight) >= rank) expected = value;
                equal = equal && out[row] == expected;
            }
            check(equal, at("order statistic", n));
            const std::vector<double> no_numbers(3, kNaN);
            order_statistics({values, weights, ends}, {no_numbers.data(), 1, 3}, rank, std::span(out).first(1));
            check(out[0] == kInfinity, at("order statistic without a shift", n));
        }
    }
}

}  // namespace kw::test
