// How functions are compiled, where it matters.
#pragma once

// The engines allocate registers best in small functions: inner loops stay functions of their own.
#define ATTENTION_NOINLINE [[gnu::noinline]]
#define ATTENTION_INLINE [[gnu::always_inline]] inline
// What runs once in a while is to be small.
#if defined(__clang__)
#define ATTENTION_SMALL [[gnu::noinline, clang::minsize]]
#else
#define ATTENTION_SMALL [[gnu::noinline]]
#endif
