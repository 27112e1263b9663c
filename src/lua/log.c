/* log.c: lines of log, from any thread to the engine's Lua function. See engine.h. */
#include "engine.h"

#include "runtime/seams.h"
#include "runtime/watchdog.h"

#include <stdlib.h>
#include <string.h>

struct mull__line {
    struct mull__line *next;
    mull_level level;
    char text[];
};

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
    size_t size = strlen(text) + 1;
    struct mull__line *line = malloc(sizeof *line + size);
    if (!line)
        return;
    line->level = level;
    memcpy(line->text, text, size);
    line->next = atomic_load(&engine->lines);
    while (!atomic_compare_exchange_weak(&engine->lines, &line->next, line)) {
    }
    int own = atomic_load_explicit(&engine->thread, memory_order_relaxed) == mull__this_thread();
    if (own && engine->engine && !engine->lines_timer)
        engine->lines_timer = mull__engine_after(engine->engine, 0, on_timer, engine) != NULL;
}

/* take_all gives the lines, the oldest first. */
static struct mull__line *take_all(mull__lua_engine *engine)
{
    struct mull__line *newest = atomic_exchange(&engine->lines, NULL), *oldest = NULL;
    while (newest) {
        struct mull__line *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void free_lines(struct mull__line *line)
{
    while (line) {
        struct mull__line *next = line->next;
        free(line);
        line = next;
    }
}

void mull__lines_hand_out(mull__lua_engine *engine)
{
    if (engine->handing_out)
        return;
    engine->handing_out = 1;
    struct mull__line *lines;
    while ((lines = take_all(engine))) {
        for (const struct mull__line *line = lines; line; line = line->next)
            mull__host_log(engine->host, engine, line->level, line->text);
        free_lines(lines);
    }
    engine->handing_out = 0;
}

void mull__lines_drop(mull__lua_engine *engine)
{
    free_lines(take_all(engine));
}

/* ---- Looking for lines of other threads ------------------------------------------------------ */

enum { LOOK_MS = 250 };

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
