/* compiler.h: functions that are seldom called out of ones that often are: kept out of them, so
 * that their needs (registers, room on the stack) aren't everybody's. */
#ifndef MULL__COMPILER_H
#define MULL__COMPILER_H

#define MULL__RARE __attribute__((noinline, cold))

/* MULL__IN_PLACE is for the opposite: small functions on the way of most decisions that are put in
 * place wherever they are called, even where a compiler would rather not have them twice. */
#define MULL__IN_PLACE inline __attribute__((always_inline))

/* MULL__MOSTLY is a condition that mostly holds. */
#define MULL__MOSTLY(condition) __builtin_expect(!!(condition), 1)

/* MULL__APART: often called, but not part of its caller. */
#define MULL__APART __attribute__((noinline))

#endif
