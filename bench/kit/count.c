#include "kit/count.h"

#include "kit/child.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 16 };

/* collected reads the events that callgrind names "Collected": instructions, reads, writes, then
 * what the first caches missed of each, with a simulation. */
static int collected(FILE *report, bench_events *events)
{
    char line[512];
    int found = 0;
    while (fgets(line, sizeof line, report)) {
        double reads = 0, writes = 0;
        const char *at = strstr(line, "Collected : ");
        if (at)
            found = sscanf(at, "Collected : %lf %*f %*f %*f %lf %lf", &events->instructions, &reads,
                           &writes) > 0;
        if (at)
            events->misses = reads + writes;
    }
    return found ? 0 : -1;
}

static int run(bench_events *events, const char *caches, const char *function,
               const char *const *argv)
{
    char toggle[128];
    /* What callgrind says goes where the child's answers are read; the command's own words don't.
     */
    const char *words[MOST_WORDS] = {"valgrind", "--tool=callgrind",
                                     "--callgrind-out-file=/dev/null", "--log-fd=1", caches};
    size_t count = 5;
    if (function) {
        snprintf(toggle, sizeof toggle, "--toggle-collect=%s", function);
        words[count++] = toggle;
    }
    for (; *argv && count < MOST_WORDS - 1; argv++)
        words[count++] = *argv;
    bench_child child;
    if (bench_child_start(&child, words) != 0)
        return -1;
    int status = collected(child.from, events);
    return bench_child_end(&child) == 0 ? status : -1;
}

double bench_count(const char *function, const char *const *argv)
{
    bench_events events;
    return run(&events, "--cache-sim=no", function, argv) == 0 ? events.instructions : -1;
}

int bench_count_events(bench_events *events, const char *function, const char *const *argv)
{
    return run(events, "--cache-sim=yes", function, argv);
}
