#include "kit/plot.h"

#include <stdio.h>

enum { WIDTH = 760, LEFT = 64, RIGHT = 16, TOP = 40, GAP = 26, BOTTOM = 44 };
enum { HEIGHT_APART = 84, HEIGHT_TOGETHER = 260, LEGEND = 20, TICK_S = 300, LINES = 4 };

/* The paper is part of the picture: a page may be dark where the reader's system is light. */
static const char style[] =
    "<style>text{font:12px sans-serif;fill:#24292f}.title{font-size:14px;font-weight:bold}"
    ".paper{fill:#fff}.shade{fill:#d8dee4}.grid{stroke:#d0d7de}.axis{stroke:#57606a}"
    ".line{fill:none;stroke-width:1.5}.s0{stroke:#0072b2}.s1{stroke:#c24e00}.s2{stroke:#007f5c}"
    ".s3{stroke:#9a3f7f;stroke-dasharray:6 3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.shade{fill:#21262d}"
    ".grid{stroke:#30363d}.axis{stroke:#8b949e}.s0{stroke:#56b4e9}.s1{stroke:#f0a04b}"
    ".s2{stroke:#3fc79a}.s3{stroke:#e39bcb}}</style>\n";

/* panel is where lines are drawn, and how far its time goes. */
typedef struct panel {
    FILE *file;
    const bench_plot *plot;
    double top, height, end_s;
} panel;

static double x_of(const panel *p, double s)
{
    return LEFT + s / p->end_s * (WIDTH - LEFT - RIGHT);
}

static double y_of(const panel *p, double value)
{
    double part = value / p->plot->most;
    return p->top + p->height * (1 - (part < 1 ? part : 1));
}

static void draw_frame(const panel *p)
{
    const bench_plot *plot = p->plot;
    double right = x_of(p, p->end_s), bottom = p->top + p->height;
    fprintf(p->file, "<rect class='shade' x='%d' y='%.0f' width='%.1f' height='%.0f'/>\n", LEFT,
            p->top, x_of(p, plot->shaded_s) - LEFT, p->height);
    for (int i = 0; i <= LINES; i++) {
        double value = plot->most * i / LINES, y = y_of(p, value);
        fprintf(p->file, "<path class='%s' d='M%d %.1fH%.1f'/>\n", i == 0 ? "axis" : "grid", LEFT,
                y, right);
        if (i % 2 == 0)
            fprintf(p->file, "<text x='%d' y='%.1f' text-anchor='end'>%.0f</text>\n", LEFT - 6,
                    y + 4, value);
    }
    for (double s = 0; s <= p->end_s; s += TICK_S)
        fprintf(p->file, "<path class='axis' d='M%.1f %.1fv4'/>\n", x_of(p, s), bottom);
}

static void draw_line(const panel *p, size_t number)
{
    const bench_series *series = &p->plot->series[number];
    fprintf(p->file, "<path class='line s%zu' d='", number);
    for (size_t i = 0; i < series->count; i++)
        fprintf(p->file, "%c%.1f %.1f", i == 0 ? 'M' : 'L',
                x_of(p, (double)(i + 1) * p->plot->step_s), y_of(p, series->values[i]));
    fprintf(p->file, "'/>\n");
}

/* draw_name: a bit of the line stands before it. */
static void draw_name(const panel *p, size_t number, double x, double y)
{
    fprintf(p->file,
            "<path class='line s%zu' d='M%.0f %.0fh24'/><text x='%.0f' y='%.0f'>%s</text>\n",
            number, x, y - 4, x + 30, y, p->plot->series[number].name);
}

static void draw_minutes(const panel *p)
{
    double y = p->top + p->height + 18;
    for (double s = 0; s <= p->end_s; s += TICK_S)
        fprintf(p->file, "<text x='%.1f' y='%.0f' text-anchor='middle'>%.0f</text>\n", x_of(p, s),
                y, s / 60);
    fprintf(p->file, "<text x='%d' y='%.0f' text-anchor='end'>minutes</text>\n", WIDTH - RIGHT,
            y + 18);
    fprintf(p->file, "<text x='%.1f' y='%.0f' text-anchor='middle'>%s</text>\n",
            x_of(p, p->plot->shaded_s / 2), y + 18, p->plot->shaded);
}

static void draw_apart(panel *p)
{
    for (size_t i = 0; i < p->plot->series_count; i++) {
        p->top = TOP + GAP / 2.0 + (double)i * (HEIGHT_APART + GAP);
        draw_frame(p);
        draw_line(p, i);
        draw_name(p, i, LEFT, p->top - 6);
    }
}

static void draw_together(panel *p)
{
    size_t count = p->plot->series_count;
    p->top = TOP + (double)count * LEGEND;
    draw_frame(p);
    for (size_t i = 0; i < count; i++) {
        draw_line(p, i);
        draw_name(p, i, LEFT, TOP + (double)i * LEGEND + 10);
    }
}

static double end_of(const bench_plot *plot)
{
    size_t most = 0;
    for (size_t i = 0; i < plot->series_count; i++)
        most = plot->series[i].count > most ? plot->series[i].count : most;
    return (double)most * plot->step_s;
}

int bench_plot_write(const char *path, const bench_plot *plot)
{
    panel p = {.file = fopen(path, "w"), .plot = plot, .end_s = end_of(plot)};
    if (!p.file)
        return -1;
    p.height = plot->apart ? HEIGHT_APART : HEIGHT_TOGETHER;
    double count = (double)plot->series_count;
    double height = plot->apart ? TOP + count * (HEIGHT_APART + GAP) - GAP / 2.0
                                : TOP + count * LEGEND + HEIGHT_TOGETHER;
    fprintf(p.file,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %.0f' role='img' "
            "aria-label='%s'>\n%s<rect class='paper' width='100%%' height='100%%'/>\n"
            "<text class='title' x='%d' y='22'>%s</text>\n",
            WIDTH, height + BOTTOM, plot->title, style, LEFT, plot->title);
    if (plot->apart)
        draw_apart(&p);
    else
        draw_together(&p);
    draw_minutes(&p);
    fprintf(p.file, "</svg>\n");
    int failed = ferror(p.file);
    return fclose(p.file) != 0 || failed ? -1 : 0;
}
