// Bindings of order statistics of moved lists (core/order_statistic.hpp).
#include "core/order_statistic.hpp"

#include "bindings/bindings.hpp"

namespace kw::python {
namespace {

Out<double> find_statistics(const Vector<const double>& values, const Vector<const double>& weights,
                            const RowNumbers& ends, const Table<const double>& shifts, double rank) {
    require(weights.shape(0) == values.shape(0), "weights must have one entry per value");
    check_not_negative(view(weights), "weights must be finite and not negative");
    check_index(ends, values.shape(0) + 1);
    const auto last = view(ends);
    require(!last.empty() && static_cast<std::size_t>(last.back()) == values.shape(0), "the last list must end last");
    require(std::is_sorted(last.begin(), last.end()), "ends must not decrease");
    require(shifts.shape(1) == last.size(), "shifts must have one column per list");
    require(rank > 0.0, "rank must be > 0");
    const SortedLists lists{view(values), view(weights), last};
    return compute_array({shifts.shape(0)},
                         [&](std::span<double> out) { order_statistics(lists, view(shifts), rank, out); });
}

}  // namespace

void bind_order_statistics(nb::module_& m) {
    m.def("order_statistics", &find_statistics, "values"_array, "weights"_array, "ends"_array, "shifts"_array, "rank"_a,
          "For each row of shifts of sorted lists, the value of their union whose weights reach the rank.");
}

}  // namespace kw::python
