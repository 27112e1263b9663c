/* log_lines.c: lines of log, from any thread to the engine's Lua function. See engine.h. */
#include "engine.h"

#include "runtime/engine.h"
#include "runtime/timers.h"
#include "runtime/watchdog.h"

void mull__lines_here(mull__lua_engine *engine)
{
    atomic_store_explicit(&engine->thread, mull__this_thread(), memory_order_relaxed);
}

static void on_timer(void *data)
{
    mull__lua_engine *engine = data;
    engine->lines_timer = 0;
    mull__lines_hand_out(engine);
}

/* A line from another thread can't set a timer: it waits for the next look, see below. */
void mull__line_take(mull_level level, const char *text, void *data)
{
    mull__lua_engine *engine = data;
    pthread_mutex_lock(&engine->lines_lock);
    mull__problem_keep(NULL, (int)level, text, &engine->lines);
    pthread_mutex_unlock(&engine->lines_lock);
    int own = atomic_load_explicit(&engine->thread, memory_order_relaxed) == mull__this_thread();
    if (own && engine->engine && !engine->lines_timer)
        engine->lines_timer = mull__engine_after(engine->engine, 0, on_timer, engine) != NULL;
}

static mull__problems take_all(mull__lua_engine *engine)
{
    pthread_mutex_lock(&engine->lines_lock);
    mull__problems lines = engine->lines;
    engine->lines = (mull__problems){NULL, NULL};
    pthread_mutex_unlock(&engine->lines_lock);
    return lines;
}

void mull__lines_hand_out(mull__lua_engine *engine)
{
    if (engine->handing_out)
        return;
    engine->handing_out = 1;
    for (mull__problems lines = take_all(engine); lines.first; lines = take_all(engine)) {
        for (const mull__problem *line = lines.first; line; line = line->next)
            mull__host_log(engine->host, engine, (mull_level)line->line, line->text);
        mull__problems_drop(&lines);
    }
    engine->handing_out = 0;
}

enum { LOOK_MS = 250 }; /* for lines of other threads */

static void look(void *data)
{
    mull__lua_engine *engine = data;
    mull__lines_hand_out(engine);
    mull__watchdog_turned(engine->host->watchdog);
    if (engine->engine && !engine->closing)
        mull__engine_after(engine->engine, LOOK_MS, look, engine);
}

void mull__lines_look(mull__lua_engine *engine)
{
    if (!engine->looks)
        mull__engine_after(engine->engine, LOOK_MS, look, engine);
    engine->looks = 1;
}
