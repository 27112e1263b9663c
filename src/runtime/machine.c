/* machine.c: see seams.h. */
#include "seams.h"

#include "base/limits.h"

#include <sys/resource.h>
#include <uv.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t mull__machine_memory(void)
{
    uint64_t all = uv_get_total_memory(), group = uv_get_constrained_memory();
    uint64_t most = least(all ? all : UINT64_MAX, group ? group : UINT64_MAX);
    /* libuv 1.44 knows nothing of cgroup v2. */
    most = least(most, mull__cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup"));
    /* RLIM_INFINITY is the largest number. */
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) == 0)
        most = least(most, space.rlim_cur);
    return getrlimit(RLIMIT_DATA, &data) == 0 ? least(most, data.rlim_cur) : most;
}
