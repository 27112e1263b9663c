/* report.h: what a load or a check found wrong. */
#ifndef MULL__REPORT_H
#define MULL__REPORT_H

#include "mulligan.h"

/* mull__report passes each mistake on to `problem`, and keeps the first, with its place, for those
 * who have room for one line only. It allocates nothing. */
typedef struct mull__report {
    mull_problem_fn problem; /* NULL: nobody */
    void *data;
    size_t count;
    char first[1024]; /* "policy.lua:3: text" */
} mull__report;

/* mull__report_add is a mull_problem_fn whose data is a mull__report. */
void mull__report_add(const char *file, int line, const char *text, void *report);

/* mull__report_say writes the first mistake and how many more there are; where there is none, what
 * the code `status` says. What doesn't fit into `size` is cut off; it is UTF-8 all the same. */
void mull__report_say(const mull__report *report, int status, char *text, size_t size);

#endif
