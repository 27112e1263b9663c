/* count.h: instructions, counted by valgrind's callgrind, where that is installed. */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

/* bench_count runs a command under callgrind and gives how many instructions it spent between the
 * entry and the end of a function, as often as that is called. `argv` ends in a NULL, and what the
 * command prints is dropped. Below 0: there is no valgrind, or the command failed under it. */
double bench_count(const char *function, const char *const *argv);

#endif
