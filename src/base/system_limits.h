/* system_limits.h: what the system allows the process: memory, open files. */
#ifndef MULL__SYSTEM_LIMITS_H
#define MULL__SYSTEM_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* mull__cgroup_memory_limit gives the bytes that the group, and those around it, may have: the
 * least of them; UINT64_MAX: nothing says so. Of cgroup v2 only. `list` names the groups of the
 * process
 * ("/proc/self/cgroup"), `root` is where they are ("/sys/fs/cgroup"). */
uint64_t mull__cgroup_memory_limit(const char *list, const char *root);

/* mull__descriptors_missing is 0 where so many file descriptors (at most 16) can be had now; else
 * 1, and `text` says how many can, and what the limit is. */
int mull__descriptors_missing(int needed, char *text, size_t size);

#endif
