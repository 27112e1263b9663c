/* child.h: a process that answers on its standard output what it is told on its standard input. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdio.h>
#include <sys/types.h>

typedef struct bench_child {
    pid_t pid;
    FILE *to, *from;
} bench_child;

/* bench_child_start runs a program, which is looked for in PATH; what it says on its standard error
 * is dropped. `argv` ends in a NULL. Not 0: it can't be run. */
int bench_child_start(bench_child *child, const char *const *argv);

/* bench_child_ask writes a line, unless it is NULL, and reads one, without its newline. Not 0:
 * there is none, or it is too long. */
int bench_child_ask(bench_child *child, const char *line, char *answer, size_t size);

/* bench_child_end closes both and waits. 0: it ended well. */
int bench_child_end(bench_child *child);

#endif
