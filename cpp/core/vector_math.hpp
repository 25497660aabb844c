// Loops over vectors that compilers turn into vector code: exponential, inner product, scaled sum.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simd.hpp"

namespace kw {

// exp(x) for x <= 0, zero below the smallest normal number; within 2 units in the last place. std::exp is a
// call per element; this is straight-line code (Cody-Waite reduction and a degree-12 polynomial).
[[nodiscard]] KW_INLINE double exp_negative(double x) noexcept {
    constexpr double log2e = 1.4426950408889634074;
    constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    constexpr double round_shift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const double clipped = x < -708.0 ? -708.0 : x;
    // x = n ln 2 + r with |r| <= ln(2) / 2; ln 2 in two parts keeps r exact to rounding.
    const double shifted = clipped * log2e + round_shift;
    const double n = shifted - round_shift;
    const double r = (clipped - n * ln2_high) - n * ln2_low;
    double p = 1.0 / 479001600.0;  // Taylor series of exp(r) by Horner's rule, from 1 / 12!
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // The low bits of `shifted` hold n: moved to the exponent field they are 2^n.
    const auto exponent = (std::bit_cast<std::int64_t>(shifted) + 1023) << 52;
    const double value = p * std::bit_cast<double>(exponent);
    return x < -708.0 ? 0.0 : value;
}

// Sum of a[k] * b[k] over the entries of b.
[[nodiscard]] KW_CLONES static inline double dot(std::span<const double> a, std::span<const double> b) noexcept {
    double sum = 0.0;
    KW_SIMD(reduction(+ : sum))
    for (std::size_t k = 0; k < b.size(); ++k) sum += a[k] * b[k];
    return sum;
}

[[nodiscard]] KW_CLONES static inline double dot(std::span<const float> a, std::span<const double> b) noexcept {
    double sum = 0.0;
    KW_SIMD(reduction(+ : sum))
    for (std::size_t k = 0; k < b.size(); ++k) sum += static_cast<double>(a[k]) * b[k];
    return sum;
}

// out += scale * values.
KW_CLONES static inline void add_scaled(std::span<double> out, std::span<const double> values, double scale) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += scale * values[k];
}

KW_CLONES static inline void add_scaled(std::span<double> out, std::span<const float> values, double scale) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += scale * static_cast<double>(values[k]);
}

}  // namespace kw
