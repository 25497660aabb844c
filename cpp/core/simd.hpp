// Compiler switches of the vector loops; each has a portable fallback.
#pragma once

// One copy of a hot loop per instruction set, chosen at load time, so that a portable wheel is still fast.
// Sanitizers run before the resolver can, hence a single copy there.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#define KW_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KW_CLONES
#endif

// Whether single functions can be compiled for an instruction set and the processor asked for it.
#if defined(__GNUC__) && defined(__x86_64__)
#define KW_X86_TARGETS 1
#define KW_TARGET(features) __attribute__((target(features)))
#else
#define KW_X86_TARGETS 0
#endif

// A function that must be compiled for the instruction set of its caller.
#if defined(__GNUC__)
#define KW_INLINE inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define KW_INLINE __forceinline
#else
#define KW_INLINE inline
#endif

// A function whose loop must not share registers with its caller.
#if defined(__GNUC__)
#define KW_NOINLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define KW_NOINLINE __declspec(noinline)
#else
#define KW_NOINLINE
#endif

// Iterations of the next loop are independent, except for the reductions named: KW_SIMD(reduction(+ : sum)).
// Without the pragma the same loop runs, in scalar order.
#if defined(__GNUC__)
#define KW_PRAGMA(text) _Pragma(#text)
#define KW_SIMD(...) KW_PRAGMA(omp simd __VA_ARGS__)
#else
#define KW_SIMD(...)
#endif
