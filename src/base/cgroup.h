/* cgroup.h: what Linux allows the group of processes that this one is in. */
#ifndef MULL__CGROUP_H
#define MULL__CGROUP_H

#include <stdint.h>

/* mull__cgroup_memory gives the bytes that the group, and those around it, may have: the least of
 * them; UINT64_MAX: nothing says so. Of cgroup v2 only. `list` names the groups of the process
 * ("/proc/self/cgroup"), `root` is where they are ("/sys/fs/cgroup"). */
uint64_t mull__cgroup_memory(const char *list, const char *root);

#endif
