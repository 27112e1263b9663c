/* engine_state.c: clocks, ids, log, what wakes the loop, faults for tests, and the machine's
 * memory. */
#include "engine_state.h"

#include "base/clock.h"
#include "base/system_limits.h"
#include "base/utf8.h"
#include "engine_control.h"
#include "timers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

int64_t mull__engine_now(const mull_engine *engine)
{
    const mull_clock *test = &engine->clock;
    return test->monotonic_ms ? test->monotonic_ms(test->data) : mull__monotonic_ms();
}

int64_t mull__turn_ms(const mull_engine *engine)
{
    return engine->manual ? mull__engine_now(engine) : (int64_t)uv_now(engine->loop);
}

int64_t mull__engine_wall(const mull_engine *engine)
{
    const mull_clock *test = &engine->clock;
    return test->wall_ms ? test->wall_ms(test->data) : mull__wall_ms();
}

int64_t mull__engine_due(const mull_engine *engine, int64_t delay_ms)
{
    return delay_ms <= 0 ? 0 : mull__later(mull__engine_wall(engine), delay_ms);
}

void mull__engine_id(mull_engine *engine, char id[33])
{
    uv_mutex_lock(&engine->mutex);
    mull__rand_id(&engine->rand, id);
    uv_mutex_unlock(&engine->mutex);
}

uint64_t mull__engine_chance(mull_engine *engine)
{
    uv_mutex_lock(&engine->mutex);
    uint64_t chance = mull__rand_next(&engine->rand);
    uv_mutex_unlock(&engine->mutex);
    return chance;
}

void mull__engine_log(mull_engine *engine, mull_level level, const char *format, ...)
{
    if (!engine->options.log)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    mull__utf8_repair(line, strlen(line)); /* its end may be cut off */
    uv_mutex_lock(&engine->log_mutex);
    engine->options.log(level, line, engine->options.data);
    uv_mutex_unlock(&engine->log_mutex);
}

int mull__engine_problem(mull_engine *engine, int code, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (engine->options.problem)
        engine->options.problem(NULL, 0, text, engine->options.data);
    return code;
}

uintptr_t mull__this_thread(void)
{
    return (uintptr_t)uv_thread_self();
}

static void go_on(uv_idle_t *posted)
{
    (void)posted;
}

/* While something is posted the loop doesn't wait. */
void mull__engine_mark_posted(mull_engine *engine)
{
    engine->dirty = 1;
    if (engine->closing < MULL__CLOSE_HANDLES)
        uv_idle_start(&engine->posted, go_on);
}

void mull__engine_working(mull_engine *engine, int change)
{
    engine->working += change;
    if (engine->working == 0)
        mull__engine_mark_posted(engine); /* a stop may have waited for it */
}

/* What the draining thread posts wakes nobody, since it looks again before it ends. */
void mull__engine_wake(mull_engine *engine)
{
    if (atomic_load_explicit(&engine->drains, memory_order_relaxed) == mull__this_thread()) {
        mull__engine_mark_posted(engine);
        return;
    }
    atomic_store(&engine->woken, 1);
    uv_async_send(&engine->wake);
}

void mull_stop(mull_engine *engine)
{
    if (!engine)
        return;
    uv_mutex_lock(&engine->mutex);
    engine->stop_asked = 1;
    mull__engine_wake(engine);
    uv_mutex_unlock(&engine->mutex);
}

int mull__engine_stop_asked(mull_engine *engine)
{
    uv_mutex_lock(&engine->mutex);
    int asked = engine->stop_asked;
    uv_mutex_unlock(&engine->mutex);
    return asked;
}

static mull__link *next_of(mull__list *list, mull__link *after)
{
    return after ? mull__list_after(list, after) : mull__list_first(list);
}

mull__consumer *mull__next_consumer(mull_engine *engine, mull__consumer *after)
{
    mull__link *link = next_of(&engine->consumers, after ? &after->link : NULL);
    return link ? MULL__ENTRY(link, mull__consumer, link) : NULL;
}

mull_port *mull__next_port(mull_engine *engine, mull_port *after)
{
    mull__link *link = next_of(&engine->ports, after ? &after->link : NULL);
    return link ? MULL__ENTRY(link, mull_port, link) : NULL;
}

mull__delivery *mull__next_delivery(mull_engine *engine, mull__delivery *after)
{
    mull__link *link = next_of(&engine->deliveries, after ? &after->engine_link : NULL);
    return link ? MULL__ENTRY(link, mull__delivery, engine_link) : NULL;
}

int mull__same_queue(const mull__consumer *a, const mull__consumer *b)
{
    return a->port == b->port && strcmp(a->queue, b->queue) == 0;
}

mull_port *mull__port_named(mull_engine *engine, const char *name)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (strcmp(port->name, name) == 0)
            return port;
    return NULL;
}

int mull__engine_fault(mull_engine *engine, const char *transport, const char *operation,
                       uint32_t skip, uint32_t times, int code)
{
    static const char *const names[] = {[MULL__SETTLE] = "settle",
                                        [MULL__PUBLISH] = "publish",
                                        [MULL__DEPTH] = "depth",
                                        [MULL__HOLD] = "hold",
                                        [MULL__NOTE] = "note"};
    mull_port *port = mull__port_named(engine, transport);
    if (code >= 0 || code == MULL_ELOST)
        return MULL_EINVAL; /* only a transport can lose a claim */
    for (int i = 0; port && i < MULL__OPERATIONS; i++)
        if (strcmp(names[i], operation) == 0) {
            port->faults[i] = (mull__fault){.skip = skip, .times = times, .code = code};
            return 0;
        }
    return MULL_EINVAL;
}

void mull__port_asked(mull_port *port)
{
    port->asked = port->ops->flush != NULL;
    if (port->asked && !port->engine->drains)
        mull__engine_mark_posted(port->engine);
}

int mull__look(const mull_transport_ops *ops, const char *url, const char *queue,
               mull_abilities *floor, char *why, size_t why_size)
{
    *floor = (mull_abilities){.size = sizeof *floor};
    int status = mull__refusal(ops->look(url, queue, floor, why, why_size));
    floor->can_hold &= ops->hold != NULL;
    if (!ops->depth)
        floor->depth = MULL_DEPTH_NONE;
    return status;
}

int mull__fault_hit(mull_port *port, mull__operation operation)
{
    mull__fault *fault = &port->faults[operation];
    if (fault->times == 0 || fault->skip > 0) {
        fault->skip -= fault->skip > 0;
        return 0;
    }
    fault->times--;
    return fault->code;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t mull__machine_memory(void)
{
    uint64_t all = uv_get_total_memory(), group = uv_get_constrained_memory();
    uint64_t most = least(all ? all : UINT64_MAX, group ? group : UINT64_MAX);
    /* libuv 1.44 knows nothing of cgroup v2. */
    most = least(most, mull__cgroup_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup"));
    /* RLIM_INFINITY is the largest number. */
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) == 0)
        most = least(most, space.rlim_cur);
    return getrlimit(RLIMIT_DATA, &data) == 0 ? least(most, data.rlim_cur) : most;
}
