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
//
// Conjunctions that hold on the same rows with values have the same form; in small or nested tables most are such
// repetitions. A proposition that holds on all rows of u only makes conjunctions below u dearer. Of two propositions
// with the same rows of u the second repeats the first. Neither is searched: what they give is written down from the
// conjunctions above the level that the others gave, the hits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
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
    // By proposition: 1 and -1 where only sums of one sign count, 0 for both; empty: both everywhere. A conjunction
    // with both signs is not part of the lattice. One output only.
    std::span<const std::int8_t> signs = {};
    std::function<void()> poll;  // called several times a second; may throw
};

constexpr std::size_t kMaxGains = 6;  // further propositions whose gains are added up; chosen by hand

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
        for (std::size_t k = 0; k <= depth_; ++k)
            costs_.push_back(std::pow(search_.base, 2.0 * static_cast<double>(k)));
        // least_[k]: the least squared cost among conjunctions of at least k propositions.
        for (std::size_t k = depth_ + 1; k-- > 0;) least_[k] = std::min(least_[k + 1], costs_[k]);
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
        std::size_t first = 0, last = 0;  // hits below it, once searched
        [[nodiscard]] bool operator<(const Useful& other) const noexcept {
            return reach != other.reach ? reach < other.reach : proposition < other.proposition;
        }
    };
    struct Sum {
        double most, least;
        std::uint64_t n_rows;
    };
    struct Hit {
        double form;  // upper bound
        Conjunction members;
    };

    // Visits the conjunctions of one proposition more, then extends those whose bound is above the level.
    void extend(std::size_t length, const std::vector<std::int32_t>& propositions, const Channels& rows) {
        const double cost = costs_[length + 1], below = least_[length + 2];
        const std::size_t before = hits_.size();
        std::vector<Useful> useful;
        std::vector<Sum> sums;
        sums.reserve(propositions.size() * rows.size());
        Conjunction whole;  // propositions that hold on all rows
        const int sign = sign_of(members_);
        for (std::size_t c = 0; c < propositions.size(); ++c) {
            if (!visit()) return;
            const int own = joint(sign, sign_of(propositions[c]));
            double form = 0.0, reach = 0.0;  // upper bounds
            bool all = search_.base >= 1.0;
            for (std::size_t t = 0; t < search_.values.rows; ++t) {
                const Sum up = bounds(rows[2 * t], c), down = bounds(rows[2 * t + 1], c);
                sums.push_back(up);
                sums.push_back(down);
                const double high = own < 0 ? 0.0 : std::max(0.0, up.most - down.least);
                const double low = own > 0 ? 0.0 : std::max(0.0, down.most - up.least);
                const double most = std::max(high, low);
                form += most * most;
                const double above = own < 0 ? 0.0 : up.most, below_zero = own > 0 ? 0.0 : down.most;
                reach += std::max(above * above, below_zero * below_zero);
                all = all && up.n_rows == rows[2 * t].n_rows && down.n_rows == rows[2 * t + 1].n_rows;
            }
            if (own == kConflict) continue;
            if (form > level_ * cost) {
                members_.push_back(propositions[c]);
                offer(form, members_);
                members_.pop_back();
            }
            if (all) whole.push_back(propositions[c]);
            else if (reach > level_ * below) useful.push_back({reach, c, propositions[c]});
        }
        if (length + 2 > depth_) return;
        drop_useless(length, useful, sums, rows);
        std::sort(useful.begin(), useful.end());
        for (std::size_t k = 0; k < useful.size(); ++k) {
            if (useful[k].reach <= level_ * below) continue;  // the level has risen meanwhile
            useful[k].first = hits_.size();
            if (!repeat(useful, k, length, rows)) descend(length, useful, k, sums, rows);
            useful[k].last = hits_.size();
        }
        combine(before, length, whole);
    }

    // Drops propositions that few others cannot lift above the level; many cost too much.
    //
    // Further propositions raise a sum of one sign by no more than what each alone takes away of the other sign: for k
    // of them, the k largest such gains.
    void drop_useless(std::size_t length, std::vector<Useful>& useful, const std::vector<Sum>& sums,
                      const Channels& rows) {
        if (useful.empty()) return;
        const std::size_t n = rows.size(), most = std::min(kMaxGains, depth_ - length - 1);
        std::vector<double> gains(n * (most + 1), 0.0), all(useful.size());
        for (std::size_t h = 0; h < n; ++h) {
            for (std::size_t m = 0; m < useful.size(); ++m)
                all[m] = rows[h].total - sums[useful[m].column * n + h].most;
            const std::size_t count = std::min(most, all.size());
            std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                              std::greater<>());
            double* sum = gains.data() + h * (most + 1);
            for (std::size_t k = 1; k <= most; ++k) sum[k] = sum[k - 1] + (k <= count ? all[k - 1] : 0.0);
        }
        const auto is_useless = [&](const Useful& some) {
            const Sum* own = sums.data() + some.column * n;
            for (std::size_t k = 1; k <= most; ++k) {
                double form = 0.0;
                for (std::size_t h = 0; h < n; h += 2) {
                    const double* gain = gains.data() + h * (most + 1) + k;
                    const double up = own[h].most - std::max(0.0, own[h + 1].least - gain[most + 1]);
                    const double down = own[h + 1].most - std::max(0.0, own[h].least - gain[0]);
                    const double sum = std::max(up, down);
                    form += sum * sum;
                }
                if (form > level_ * costs_[length + 1 + k]) return false;
            }
            return some.reach <= level_ * least_[length + 2 + most];
        };
        std::erase_if(useful, is_useless);
    }

    // Searches below the rows of one proposition; those after it may follow.
    void descend(std::size_t length, const std::vector<Useful>& useful, std::size_t k, const std::vector<Sum>& sums,
                 const Channels& rows) {
        std::vector<std::int32_t> rest;
        for (std::size_t m = k + 1; m < useful.size(); ++m) rest.push_back(useful[m].proposition);
        if (rest.empty()) return;
        // Most of the work is far from the root, where few rows are left: moved together they cost little.
        Channels& inner = levels_[length];
        inner.resize(rows.size());
        for (std::size_t h = 0; h < rows.size(); ++h) {
            inner[h].narrow(rows[h], rows[h].column(useful[k].column), rest.size(),
                            [&](std::size_t m) { return useful[k + 1 + m].column; });
            inner[h].total = sums[useful[k].column * rows.size() + h].most;
        }
        members_.push_back(useful[k].proposition);
        extend(length + 1, rest, inner);
        members_.pop_back();
    }

    // Where a proposition before number k has the same rows, offers the hits below it with k in its place.
    [[nodiscard]] bool repeat(const std::vector<Useful>& useful, std::size_t k, std::size_t length,
                              const Channels& rows) {
        for (std::size_t j = k; j-- > 0 && useful[j].reach == useful[k].reach;) {
            const bool same = std::all_of(rows.begin(), rows.end(), [&](const Planes& channel) {
                const Words first = channel.column(useful[j].column), second = channel.column(useful[k].column);
                return std::equal(first.begin(), first.end(), second.begin());
            });
            if (!same || sign_of(useful[j].proposition) != sign_of(useful[k].proposition)) continue;
            for (std::size_t h = useful[j].first; h < useful[j].last; ++h) {
                // Only propositions after k may follow it.
                const auto follows = [&](std::int32_t member) {
                    for (std::size_t m = j + 1; m <= k; ++m)
                        if (useful[m].proposition == member) return false;
                    return true;
                };
                Conjunction members = hits_[h].members;
                if (!std::all_of(members.begin() + static_cast<std::ptrdiff_t>(length) + 1, members.end(), follows))
                    continue;
                if (!visit()) return true;
                members[length] = useful[k].proposition;
                offer(hits_[h].form, members);
            }
            return true;
        }
        return false;
    }

    // Offers the hits from a number on, combined with propositions that hold on all rows.
    void combine(std::size_t first, std::size_t length, const Conjunction& whole) {
        if (whole.empty()) return;
        for (std::size_t h = first; h < hits_.size(); ++h) {
            if (hits_[h].members.size() >= depth_) continue;
            const double form = hits_[h].form;
            if (form <= level_ * costs_[hits_[h].members.size() + 1]) continue;
            // In their order, so that each set of them comes once.
            const auto& some = hits_[h].members;
            std::size_t next = 0;
            for (std::size_t m = 0; m < whole.size(); ++m)
                if (std::find(some.begin() + static_cast<std::ptrdiff_t>(length), some.end(), whole[m]) != some.end())
                    next = m + 1;
            Conjunction members = hits_[h].members;
            members.push_back(0);
            for (std::size_t m = next; m < whole.size(); ++m) {
                if (!visit()) return;
                members.back() = whole[m];
                offer(form, members);
            }
        }
    }

    static constexpr int kConflict = 2;

    [[nodiscard]] int sign_of(std::int32_t proposition) const noexcept {
        return search_.signs.empty() ? 0 : search_.signs[static_cast<std::size_t>(proposition)];
    }
    [[nodiscard]] static int joint(int first, int second) noexcept {
        if (first == 0 || first == second) return second;
        return second == 0 ? first : kConflict;
    }
    [[nodiscard]] int sign_of(const Conjunction& members) const noexcept {
        int sign = 0;
        for (const auto member : members)
            if (sign != kConflict) sign = joint(sign, sign_of(member));
        return sign;
    }

    // Counts a conjunction; false where the search ends.
    [[nodiscard]] bool visit() {
        if (visited_ >= search_.max_visited) {
            complete_ = false;
            return false;
        }
        if (++visited_ % between_polls_ == 0 && search_.poll) search_.poll();
        return true;
    }

    // Bounds on the sum of one sign's values over a column.
    [[nodiscard]] Sum bounds(const Planes& rows, std::size_t column) const noexcept {
        const auto sum = count_(rows.column(column), rows.planes, rows.n_groups);
        const double most = rows.step * static_cast<double>(sum.multiples);
        return {most, std::max(0.0, most - rows.step * static_cast<double>(sum.rows)), sum.rows};
    }

    // The sum of squares over the outputs; zero where a sum has the wrong sign.
    [[nodiscard]] double exact_form(const Conjunction& members, int sign) noexcept {
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
            if (sign * sum >= 0.0) form += sum * sum;
        }
        return form;
    }

    // Keeps a conjunction if it is new and its exact ratio is above the level; notes a hit if it may be above.
    void offer(double bound, const Conjunction& unordered) {
        const double cost = costs_[unordered.size()];
        const int sign = sign_of(unordered);
        if (bound <= level_ * cost || sign == kConflict) return;
        Conjunction members = unordered;
        std::sort(members.begin(), members.end());
        if (!known_.contains(members)) {
            const double ratio = exact_form(members, sign) / cost;
            if (!(ratio > level_)) return;
            heap_.push({ratio, std::move(members)});
            if (heap_.size() > search_.max_found) {
                heap_.pop();
                level_ = std::max(level_, heap_.top().ratio);
            }
        }
        hits_.push_back({bound, unordered});
    }

    const LatticeSearch& search_;
    const Conjunctions& known_;
    std::size_t depth_;
    double level_;
    std::vector<double> costs_, least_;  // squared, by length
    std::vector<Channels> levels_;       // reused per length, so that the search does not allocate
    std::vector<Word> covered_;
    const PlaneSums count_ = best_plane_sums();
    std::size_t visited_ = 0, between_polls_ = 1;
    bool complete_ = true;
    Conjunction members_;
    std::vector<Hit> hits_;
    std::priority_queue<Found> heap_;  // the smallest ratio on top
};

}  // namespace kw
