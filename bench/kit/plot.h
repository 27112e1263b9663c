/* plot.h: lines over time, as an SVG that is readable on light and on dark pages. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stddef.h>

enum { BENCH_MOST_SERIES = 4 };

typedef struct bench_series {
    const char *name;
    double *values; /* `count`, one each `step_s` */
    size_t count;
} bench_series;

typedef struct bench_plot {
    const char *title;
    double step_s, shaded_s; /* the time from 0 to shaded_s is shaded, */
    const char *shaded;      /* and this is written there */
    double most;             /* the top of the scale; a line stands at each quarter of it */
    int apart;               /* each series in a panel of its own */
    bench_series series[BENCH_MOST_SERIES];
    size_t series_count;
} bench_plot;

/* bench_plot_write gives 0; -1: the file can't be written, which errno says. */
int bench_plot_write(const char *path, const bench_plot *plot);

#endif
