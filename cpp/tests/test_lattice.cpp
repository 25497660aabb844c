// Tests of the search over conjunctions.
#include "core/lattice.hpp"

#include "tests/check.hpp"
#include "tests/truths.hpp"

namespace kw::test {

void test_lattice() {
    for (const double base : {0.7, 1.0, 2.0}) {
        const std::size_t n = 150, p = 7, n_outputs = 2;
        const auto table = truths(n, p, 0.6, 5);
        const auto V = normals(n * n_outputs, 6);
        const auto values = padded(V, n, n_outputs);
        std::vector<Found> all;
        for (unsigned set = 1; set < (1U << p); ++set) {
            Conjunction members;
            for (std::size_t c = 0; c < p; ++c)
                if ((set >> c) & 1) members.push_back(static_cast<std::int32_t>(c));
            double sums[2] = {0.0, 0.0};
            for (std::size_t i = 0; i < n; ++i) {
                bool holds = true;
                for (const auto c : members) holds = holds && table.at(i, static_cast<std::size_t>(c));
                for (std::size_t t = 0; holds && t < n_outputs; ++t) sums[t] += V[i * n_outputs + t];
            }
            const double form = sums[0] * sums[0] + sums[1] * sums[1];
            all.push_back({form / std::pow(base, 2.0 * static_cast<double>(members.size())), members});
        }
        std::sort(all.begin(), all.end());
        const Conjunctions known = {all[0].members, all[3].members};
        std::vector<Found> rest;
        for (const auto& found : all)
            if (!known.contains(found.members)) rest.push_back(found);
        LatticeSearch search{.bits = table.columns(),
                             .values = as_matrix(values, n_outputs, words_for(n) * kWordBits),
                             .base = base,
                             .level = 0.0,
                             .max_length = p,
                             .max_found = 20,
                             .max_visited = 1'000'000,
                             .poll = nullptr};
        const auto answer = LatticeWalk(search, known).run();
        check(answer.complete && answer.found.size() == 20, "a whole search");
        for (std::size_t k = 0; k < answer.found.size(); ++k) {
            check(answer.found[k].members == rest[k].members, "the largest conjunctions");
            check_close(answer.found[k].ratio, rest[k].ratio, 1e-9 * rest[k].ratio, "their ratios");
        }
        search.max_visited = 10;
        check(!LatticeWalk(search, known).run().complete, "a search that was cut says so");
        search.max_visited = 1'000'000;
        search.max_length = 2;
        const auto short_ones = LatticeWalk(search, known).run();
        for (const auto& found : short_ones.found) check(found.members.size() <= 2, "conjunctions that are too long");
    }
}

}  // namespace kw::test
