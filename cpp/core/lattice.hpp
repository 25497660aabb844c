// Branch and bound over conjunctions of propositions for those with the largest quadratic form per cost.
//
// A conjunction w of |w| propositions has form(w) = sum over outputs of (sum of values over its rows)^2 and costs
// base^|w|. The search finds the conjunctions with the largest ratio form(w) / cost(w)^2, depth first, each reached
// once.
//
// Bound: the rows of a conjunction below u are rows of u, so its sum is at most the larger of the positive and the
// negative part of the values over the rows of u; the sum of squares over outputs is the reach of u. A branch is cut
// where reach <= level * the least squared cost below it, and a proposition whose conjunction with u is cut is of no
// use anywhere below u. Propositions of small reach are expanded first, so that large subtrees have few propositions
// left. Sums are bounded by planes (planes.hpp); the values themselves are added only where the bound is undecided.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bitset.hpp"
#include "planes.hpp"

namespace kw {

using Conjunction = std::vector<std::int32_t>;

struct ConjunctionHash {
    [[nodiscard]] std::size_t operator()(const Conjunction& members) const noexcept {
        std::uint64_t h = 0x9e3779b97f4a7c15ULL;
        for (const auto m : members) {
            h ^= static_cast<std::uint64_t>(m) + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
            h *= 0xff51afd7ed558ccdULL;
        }
        return static_cast<std::size_t>(h);
    }
};

using Conjunctions = std::unordered_set<Conjunction, ConjunctionHash>;

struct LatticeSearch {
    Bits bits;                    // one column per proposition
    Matrix<const double> values;  // one row per output, padded to whole words
    double base = 2.0;            // cost of a conjunction: base^length
    double level = 0.0;           // only ratios above this matter
    std::size_t max_length = 0;   // longer conjunctions are not part of the lattice
    std::size_t max_found = 0;    // once so many are found, the level rises to the least of them
    std::size_t max_visited = 0;  // conjunctions visited before giving up
    std::function<void()> poll;   // called several times a second; may throw
};

struct Found {
    double ratio;
    Conjunction members;
    // Largest first; ties by members, so that the order does not depend on the search.
    [[nodiscard]] bool operator<(const Found& other) const noexcept {
        return ratio != other.ratio ? ratio > other.ratio : members < other.members;
    }
};

struct LatticeAnswer {
    std::vector<Found> found;  // not among the known ones, largest ratio first
    std::size_t visited = 0;
    bool complete = true;  // false: a branch was left unsearched, and nothing is known about it
};

class LatticeWalk {
   public:
    // The search and the conjunctions to leave out must outlive the walk.
    LatticeWalk(const LatticeSearch& search, const Conjunctions& known)
        : search_(search),
          known_(known),
          depth_(std::min(search.max_length, search.bits.rows)),
          level_(search.level),
          least_(depth_ + 2, std::numeric_limits<double>::infinity()),
          levels_(depth_ + 1),
          covered_(search.bits.columns) {
        // least_[k]: the least squared cost among conjunctions of at least k propositions.
        for (std::size_t k = depth_ + 1; k-- > 0;) least_[k] = std::min(least_[k + 1], squared_cost(k));
        const std::size_t effort = std::max<std::size_t>(1, search.bits.columns * kWordBits * search.values.rows);
        between_polls_ = std::max<std::size_t>(1, 500'000'000 / effort);
    }

    [[nodiscard]] LatticeAnswer run() {
        std::vector<std::int32_t> all(search_.bits.rows);
        std::iota(all.begin(), all.end(), 0);
        Channels root;
        for (std::size_t t = 0; t < search_.values.rows; ++t)
            for (const double sign : {1.0, -1.0})
                root.push_back(make_planes(search_.bits, search_.values.row(t), sign));
        if (depth_ > 0) extend(0, all, root);
        LatticeAnswer answer;
        answer.visited = visited_;
        answer.complete = complete_;
        while (!heap_.empty()) {
            answer.found.push_back(heap_.top());
            heap_.pop();
        }
        std::reverse(answer.found.begin(), answer.found.end());
        return answer;
    }

   private:
    // For every output the rows of a conjunction where it is positive, and where it is negative.
    using Channels = std::vector<Planes>;
    struct Useful {
        double reach;
        std::size_t column;  // of the channels
        std::int32_t proposition;
        [[nodiscard]] bool operator<(const Useful& other) const noexcept {
            return reach != other.reach ? reach < other.reach : proposition < other.proposition;
        }
    };

    [[nodiscard]] double squared_cost(std::size_t length) const noexcept {
        return std::pow(search_.base, 2.0 * static_cast<double>(length));
    }

    // Visits the conjunctions of one proposition more, then extends those whose bound is above the level.
    void extend(std::size_t length, const std::vector<std::int32_t>& propositions, const Channels& rows) {
        const double cost = squared_cost(length + 1), below = least_[length + 2];
        std::vector<Useful> useful;
        for (std::size_t c = 0; c < propositions.size(); ++c) {
            if (visited_ >= search_.max_visited) {
                complete_ = false;
                return;
            }
            if (++visited_ % between_polls_ == 0 && search_.poll) search_.poll();
            double form = 0.0, reach = 0.0;  // upper bounds
            for (std::size_t t = 0; t < search_.values.rows; ++t) {
                const Sum up = bounds(rows[2 * t], c), down = bounds(rows[2 * t + 1], c);
                const double most = std::max(up.most - down.least, down.most - up.least);
                form += most * most;
                reach += std::max(up.most * up.most, down.most * down.most);
            }
            if (form > level_ * cost) offer(cost, propositions[c]);
            if (reach > level_ * below) useful.push_back({reach, c, propositions[c]});
        }
        if (length + 2 > depth_) return;
        std::sort(useful.begin(), useful.end());
        std::vector<std::int32_t> rest;
        for (std::size_t k = 0; k + 1 < useful.size(); ++k) {
            if (useful[k].reach <= level_ * below) continue;  // the level has risen meanwhile
            rest.clear();
            for (std::size_t m = k + 1; m < useful.size(); ++m) rest.push_back(useful[m].proposition);
            // Most of the work is far from the root, where few rows are left: moved together they cost little.
            Channels& inner = levels_[length];
            inner.resize(rows.size());
            for (std::size_t h = 0; h < rows.size(); ++h)
                inner[h].narrow(rows[h], rows[h].column(useful[k].column), rest.size(),
                                [&](std::size_t m) { return useful[k + 1 + m].column; });
            members_.push_back(useful[k].proposition);
            extend(length + 1, rest, inner);
            members_.pop_back();
        }
    }

    struct Sum {
        double most, least;
    };
    // Bounds on the sum of one sign's values over a column.
    [[nodiscard]] Sum bounds(const Planes& rows, std::size_t column) const noexcept {
        const auto sum = count_(rows.column(column), rows.planes.data(), rows.n_groups);
        const double most = rows.step * static_cast<double>(sum.multiples);
        return {most, std::max(0.0, most - rows.step * static_cast<double>(sum.rows))};
    }

    [[nodiscard]] double exact_form(const Conjunction& members) noexcept {
        const auto column = [&](std::size_t m) { return search_.bits.row(static_cast<std::size_t>(members[m])); };
        const Words first = column(0);
        std::copy(first.begin(), first.end(), covered_.begin());
        for (std::size_t m = 1; m < members.size(); ++m) {
            const Words other = column(m);
            for (std::size_t w = 0; w < covered_.size(); ++w) covered_[w] &= other[w];
        }
        double form = 0.0;
        for (std::size_t t = 0; t < search_.values.rows; ++t) {
            const double sum = masked_sum(covered_, search_.values.row(t).data());
            form += sum * sum;
        }
        return form;
    }

    // Keeps the conjunction of the members and `last` if it is new and its exact ratio is above the level.
    void offer(double cost, std::int32_t last) {
        Conjunction members = members_;
        members.push_back(last);
        std::sort(members.begin(), members.end());
        if (known_.contains(members)) return;
        const double ratio = exact_form(members) / cost;
        if (!(ratio > level_)) return;
        heap_.push({ratio, std::move(members)});
        if (heap_.size() <= search_.max_found) return;
        heap_.pop();
        level_ = std::max(level_, heap_.top().ratio);
    }

    const LatticeSearch& search_;
    const Conjunctions& known_;
    std::size_t depth_;
    double level_;
    std::vector<double> least_;
    std::vector<Channels> levels_;  // reused per length, so that the search does not allocate
    std::vector<Word> covered_;
    const PlaneSums count_ = best_plane_sums();
    std::size_t visited_ = 0, between_polls_ = 1;
    bool complete_ = true;
    Conjunction members_;
    std::priority_queue<Found> heap_;  // the smallest ratio on top
};

}  // namespace kw
