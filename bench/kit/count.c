#include "kit/count.h"

#include "kit/child.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 16 };

static double collected(FILE *report)
{
    char line[512];
    double count = -1;
    while (fgets(line, sizeof line, report)) {
        const char *at = strstr(line, "Collected : ");
        if (at)
            sscanf(at, "Collected : %lf", &count);
    }
    return count;
}

double bench_count(const char *function, const char *const *argv)
{
    char toggle[128];
    snprintf(toggle, sizeof toggle, "--toggle-collect=%s", function);
    /* What callgrind says goes where the child's answers are read; the command's own words don't.
     */
    const char *words[MOST_WORDS] = {"valgrind", "--tool=callgrind",
                                     "--callgrind-out-file=/dev/null", "--log-fd=1", toggle};
    size_t count = 5;
    for (; *argv && count < MOST_WORDS - 1; argv++)
        words[count++] = *argv;
    bench_child child;
    if (bench_child_start(&child, words) != 0)
        return -1;
    double instructions = collected(child.from);
    return bench_child_end(&child) == 0 ? instructions : -1;
}
