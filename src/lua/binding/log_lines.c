/* log_lines.c: lines of log, from any thread to the engine's Lua function. See engine.h. */
#include "engine.h"

#include "runtime/engine_control.h"
#include "runtime/stall_watchdog.h"
#include "runtime/timers.h"

void mull__log_set_thread(mull__lua_engine *engine)
{
    atomic_store_explicit(&engine->thread, mull__this_thread(), memory_order_relaxed);
}

static void on_timer(void *data)
{
    mull__lua_engine *engine = data;
    engine->lines_timer = 0;
    mull__log_deliver_lines(engine);
}

/* A line from another thread can't set a timer: it waits for the next look, see below. */
void mull__log_queue_line(mull_level level, const char *text, void *data)
{
    mull__lua_engine *engine = data;
    pthread_mutex_lock(&engine->lines_lock);
    mull__diagnostic_keep(NULL, (int)level, text, &engine->lines);
    pthread_mutex_unlock(&engine->lines_lock);
    int own = atomic_load_explicit(&engine->thread, memory_order_relaxed) == mull__this_thread();
    if (own && engine->engine && !engine->lines_timer)
        engine->lines_timer = mull__engine_after(engine->engine, 0, on_timer, engine) != NULL;
}

static mull__diagnostics take_all(mull__lua_engine *engine)
{
    pthread_mutex_lock(&engine->lines_lock);
    mull__diagnostics lines = engine->lines;
    engine->lines = (mull__diagnostics){NULL, NULL};
    pthread_mutex_unlock(&engine->lines_lock);
    return lines;
}

void mull__log_deliver_lines(mull__lua_engine *engine)
{
    if (engine->handing_out)
        return;
    engine->handing_out = 1;
    for (mull__diagnostics lines = take_all(engine); lines.first; lines = take_all(engine)) {
        for (const mull__diagnostic *line = lines.first; line; line = line->next)
            mull__callback_log(engine->host, engine, (mull_level)line->line, line->text);
        mull__diagnostics_drop(&lines);
    }
    engine->handing_out = 0;
}

enum { LOOK_MS = 250 }; /* for lines of other threads */

static void look(void *data)
{
    mull__lua_engine *engine = data;
    mull__log_deliver_lines(engine);
    mull__watchdog_heartbeat(engine->host->watchdog);
    if (engine->engine && !engine->closing)
        mull__engine_after(engine->engine, LOOK_MS, look, engine);
}

void mull__log_poll_lines(mull__lua_engine *engine)
{
    if (!engine->looks)
        mull__engine_after(engine->engine, LOOK_MS, look, engine);
    engine->looks = 1;
}
