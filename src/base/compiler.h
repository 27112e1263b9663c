/* compiler.h: functions that are seldom called out of ones that often are: kept out of them, so
 * that their needs (registers, room on the stack) aren't everybody's. */
#ifndef MULL__COMPILER_H
#define MULL__COMPILER_H

#define MULL__COLD __attribute__((noinline, cold))

/* MULL__ALWAYS_INLINE is for the opposite: small functions on the way of most decisions that are
 * put in place wherever they are called, even where a compiler would rather not have them twice. */
#define MULL__ALWAYS_INLINE inline __attribute__((always_inline))

/* MULL__LIKELY is a condition that mostly holds. */
#define MULL__LIKELY(condition) __builtin_expect(!!(condition), 1)

/* MULL__NOINLINE: often called, but not part of its caller. */
#define MULL__NOINLINE __attribute__((noinline))

#endif
