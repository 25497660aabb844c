// Loops over vectors that compilers turn into vector code: exponential, inner product, scaled sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "simd.hpp"

namespace kw {

// out = exp(x) for x <= 0, zero below the smallest normal number; within 2 units in the last place. std::exp is a
// call per element; this is straight-line code (Cody-Waite reduction and a polynomial). Value is a number or a vector
// of numbers, Bits the integers of the same size.
template <class Bits, class Value>
KW_INLINE void exp_negative_double(const Value& x, Value& out) noexcept {
    constexpr double log2e = 1.4426950408889634074;
    constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    constexpr double round_shift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const Value lowest = Value{} - 708.0;
    const Value clipped = x < lowest ? lowest : x;
    // x = n ln 2 + r with |r| <= ln(2) / 2; ln 2 in two parts keeps r exact to rounding.
    const Value shifted = clipped * log2e + round_shift;
    const Value n = shifted - round_shift;
    const Value r = (clipped - n * ln2_high) - n * ln2_low;
    Value p = Value{} + 1.0 / 479001600.0;  // Taylor series of exp(r) by Horner's rule, from 1 / 12!
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
    Bits bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    Value power;
    std::memcpy(&power, &bits, sizeof power);
    p = p * power;
    out = x < lowest ? Value{} : p;
}

// The same in single precision, zero below the smallest normal number of that.
template <class Bits, class Value>
KW_INLINE void exp_negative_single(const Value& x, Value& out) noexcept {
    constexpr float log2e = 1.44269504f;
    constexpr float ln2_high = 6.93359375e-01f, ln2_low = -2.12194440e-04f;  // n * ln2_high is exact
    constexpr float round_shift = 12582912.0f;                               // 1.5 * 2^23
    const Value lowest = Value{} - 87.0f;
    const Value clipped = x < lowest ? lowest : x;
    const Value shifted = clipped * log2e + round_shift;
    const Value n = shifted - round_shift;
    const Value r = (clipped - n * ln2_high) - n * ln2_low;
    Value p = Value{} + 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    Bits bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    Value power;
    std::memcpy(&power, &bits, sizeof power);
    p = p * power;
    out = x < lowest ? Value{} : p;
}

[[nodiscard]] KW_INLINE double exp_negative(double x) noexcept {
    double out;
    exp_negative_double<std::int64_t>(x, out);
    return out;
}

[[nodiscard]] KW_INLINE float exp_negative(float x) noexcept {
    float out;
    exp_negative_single<std::int32_t>(x, out);
    return out;
}

#if defined(__GNUC__)
// The same of every number of a vector of 64 bytes.
typedef double DoublePack __attribute__((vector_size(64)));
typedef float FloatPack __attribute__((vector_size(64)));
typedef std::int64_t LongPack __attribute__((vector_size(64)));
typedef std::int32_t IntPack __attribute__((vector_size(64)));

KW_INLINE void exp_negative(const DoublePack& x, DoublePack& out) noexcept { exp_negative_double<LongPack>(x, out); }
KW_INLINE void exp_negative(const FloatPack& x, FloatPack& out) noexcept { exp_negative_single<IntPack>(x, out); }
#endif

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

// The same, in single precision.
KW_CLONES static inline void add_scaled(std::span<float> out, std::span<const float> values, float scale) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += scale * values[k];
}

// out += values.
template <class Out, class Real>
KW_CLONES static inline void add_values(std::span<Out> out, std::span<const Real> values) noexcept {
    KW_SIMD()
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += static_cast<Out>(values[k]);
}

}  // namespace kw
