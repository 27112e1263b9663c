/* descriptors.c: see descriptors.h. */
#include "descriptors.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

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

int mull__descriptors_lack(int needed, char *text, size_t size)
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
