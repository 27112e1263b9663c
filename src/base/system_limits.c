/* system_limits.c: see system_limits.h. */
#include "system_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { LONGEST = 4096 };

/* read_file reads a small file, all of it; non-zero: it isn't there, or is no such file. */
static int read_file(const char *path, char text[LONGEST])
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    text[fread(text, 1, LONGEST - 1, file)] = 0;
    int failed = ferror(file);
    fclose(file);
    return failed;
}

/* limit_of reads a group's own limit: a number, or "max". */
static uint64_t limit_of(const char *root, const char *group)
{
    char path[2 * LONGEST], text[LONGEST], *end;
    snprintf(path, sizeof path, "%s%s/memory.max", root, group);
    if (read_file(path, text) != 0)
        return UINT64_MAX;
    errno = 0;
    uint64_t limit = strtoumax(text, &end, 10);
    return errno == 0 && end != text ? limit : UINT64_MAX;
}

uint64_t mull__cgroup_memory_limit(const char *list, const char *root)
{
    char text[LONGEST];
    if (read_file(list, text) != 0)
        return UINT64_MAX;
    /* The group of v2 is the one without a number: "0::/user.slice/app". */
    char *group = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    if (!group)
        return UINT64_MAX;
    group = strchr(group, '/');
    group[strcspn(group, "\n")] = 0;
    uint64_t least = UINT64_MAX;
    for (char *slash; (slash = strrchr(group, '/')); *slash = 0) {
        uint64_t limit = limit_of(root, group);
        least = limit < least ? limit : least;
    }
    uint64_t top = limit_of(root, "");
    return top < least ? top : least;
}

/* ---- Open files ------------------------------------------------------------------------------ */

enum { MOST = 16 };

/* count_free opens so many to see whether it can, and closes them. */
static int count_free(int most)
{
    int opened[MOST], count = 0;
    while (count < most && (opened[count] = open("/", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    for (int i = 0; i < count; i++)
        close(opened[i]);
    return count;
}

int mull__descriptors_missing(int needed, char *text, size_t size)
{
    struct rlimit limit = {0};
    int there = count_free(needed < MOST ? needed : MOST);
    if (there == needed)
        return 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(
        text, size,
        "up to %d file descriptors are needed, and %d can be had; raise the limit of open files "
        "(ulimit -n), which is %llu",
        needed, there, (unsigned long long)limit.rlim_cur);
    return 1;
}
