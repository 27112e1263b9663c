/* machine.c: see seams.h. */
#include "seams.h"

#include "base/cgroup.h"

#include <sys/resource.h>
#include <uv.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* limit_of is RLIM_INFINITY, the largest number, where there is none. */
static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

uint64_t mull__machine_memory(void)
{
    uint64_t all = uv_get_total_memory(), group = uv_get_constrained_memory();
    uint64_t most = least(all ? all : UINT64_MAX, group ? group : UINT64_MAX);
    /* libuv 1.44 knows nothing of cgroup v2. */
    most = least(most, mull__cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup"));
    return least(most, least(limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA)));
}
