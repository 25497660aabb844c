// An exponential that compilers turn into vector code, and the switch that builds it per instruction set.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

// One copy of a hot loop per instruction set, chosen at load time, so that a portable wheel is still fast.
// Sanitizers run before the resolver can, hence the plain build there.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#define KW_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KW_CLONES
#endif

#if defined(__GNUC__)
#define KW_INLINE inline __attribute__((always_inline))
#else
#define KW_INLINE inline
#endif

namespace kw {

// exp(x) for x <= 0, zero below the smallest normal number; within 2 units in the last place. std::exp is a
// call per element; this is straight-line code (Cody-Waite reduction and a degree-12 polynomial).
KW_INLINE double exp_negative(double x) {
    constexpr double log2e = 1.4426950408889634074;
    constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    constexpr double round_shift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const double clipped = x < -708.0 ? -708.0 : x;
    const double shifted = clipped * log2e + round_shift;
    const double n = shifted - round_shift;
    const double r = (clipped - n * ln2_high) - n * ln2_low;
    double p = 1.0 / 479001600.0;
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
    const auto exponent = (std::bit_cast<std::int64_t>(shifted) + 1023) << 52;
    const double value = p * std::bit_cast<double>(exponent);
    return x < -708.0 ? 0.0 : value;
}

KW_CLONES static inline double dot(const double* a, const double* b, std::size_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < n; ++k) sum += a[k] * b[k];
    return sum;
}

KW_CLONES static inline double dot(const float* a, const double* b, std::size_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < n; ++k) sum += static_cast<double>(a[k]) * b[k];
    return sum;
}

KW_CLONES static inline void add_scaled(double* out, const double* values, double scale, std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] += scale * values[k];
}

KW_CLONES static inline void add_scaled(double* out, const float* values, double scale, std::size_t n) {
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] += scale * static_cast<double>(values[k]);
}

}  // namespace kw
