/* count.h: instructions, counted by valgrind's callgrind, where that is installed. */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

/* bench_count runs a command under callgrind and gives how many instructions it spent between the
 * entry and the end of a function, as often as that is called, or in all where that is NULL. `argv`
 * ends in a NULL, and what the command prints is dropped. Below 0: there is no valgrind, or the
 * command failed under it. */
double bench_count(const char *function, const char *const *argv);

/* bench_count_events also simulates the caches: `misses` are those of the first one for data. */
typedef struct bench_events {
    double instructions, misses;
} bench_events;

int bench_count_events(bench_events *events, const char *function, const char *const *argv);

#endif
