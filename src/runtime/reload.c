/* reload.c: an engine that reloads its policy by itself: at SIGHUP, when the files change, and once
 * a minute while they aren't what runs. All of it is on the loop's thread.
 *
 *   a look every 0.1 s finds a change, the next one none ──┐
 *   SIGHUP, start ─────────────────────────────────────────┼──> load ──> do the files run now?
 *   a minute in which the files weren't what runs ─────────┘
 *
 * A look is a `stat` of each file. Whether anything changed is decided by the bytes that the load
 * reads. */
#include "reload.h"

#include "base/files_look.h"
#include "timers.h"

#include <string.h>

enum {
    LOOK_MS = 100,      /* between two looks at the files, where they are looked at */
    BURST_LOOKS = 10,   /* so many that each found a change are a burst that isn't waited out */
    REST_MS = 100,      /* the least time between two loads */
    BUSY_MS = 100,      /* another thread loads the policy: again after this */
    AGAIN_MS = 2000,    /* until a load is repeated, and between two looks at what calls loaded */
    REMINDER_MS = 60000 /* between two lines that say that the files aren't what runs */
};

struct mull__reload {
    mull_timer load_timer, look_timer, reminder_timer;
    char *paths;       /* what is looked at: each with its NUL, an empty one at the end. Or NULL */
    uint64_t look;     /* how they looked */
    int changes;       /* looks that found one since the last load */
    int64_t repeat_ms; /* until a load is repeated, quietly, since nobody asked for it, 0 */
    int64_t rest_ms;   /* until then nothing is loaded: the last load was not long enough ago */
    int asked;         /* by a signal, and not carried out yet */
    char differs_from[33]; /* the generation that runs, where the files aren't it, else "" */
};

static void on_reminder(void *data);

/* compare sees whether the files are what runs: begins the reminders when they cease to be, and
 * ends them when they are again. 1: it said so, since nothing else has. */
static int compare(mull_engine *engine)
{
    struct mull__reload *r = engine->reload;
    mull__files_status standing;
    mull__policy_files_status(engine->options.policy, &standing);
    if (!standing.files_run) {
        memcpy(r->differs_from, standing.generation, sizeof r->differs_from);
        if (!r->reminder_timer.set)
            mull__timer_set(engine, &r->reminder_timer, REMINDER_MS, on_reminder, engine);
        return 0;
    }
    int again = strcmp(r->differs_from, standing.generation) == 0;
    r->differs_from[0] = 0;
    mull__engine_cancel(engine, &r->reminder_timer);
    if (again) /* else the event policy_loaded told of what is new */
        mull__engine_log(engine, MULL_INFO, "the policy's files are what runs again: generation %s",
                         standing.generation);
    return again;
}

/* may: a reload would only delay a stop. */
static int may(mull_engine *engine)
{
    return engine->state == MULL__RUNNING && !mull__engine_stop_asked(engine);
}

static void on_load(void *data);

/* load_in loads after a while, but not before the loop had as much time for messages as the last
 * load took, or REST_MS where that is longer: whatever asks, and however often. */
static void load_in(mull_engine *engine, int64_t delay_ms)
{
    struct mull__reload *r = engine->reload;
    int64_t rest_ms = r->rest_ms - mull__engine_now(engine);
    mull__timer_set(engine, &r->load_timer, delay_ms > rest_ms ? delay_ms : rest_ms, on_load,
                    engine);
}

/* load_files looks at the files before and after it loads them, so that no change is lost between.
 * It is repeated where they changed, are read for the first time, or couldn't be listed. */
static int load_files(mull_engine *engine, int quietly)
{
    struct mull__reload *r = engine->reload;
    if (!engine->options.reload_on_change)
        return mull__policy_reload_files(engine->options.policy, quietly);
    uint64_t before = mull__files_look(r->paths);
    int status = mull__policy_reload_files(engine->options.policy, quietly);
    char *paths = mull__policy_files(engine->options.policy, &engine->allocator);
    if (paths) {
        mull__free(&engine->allocator, r->paths);
        r->paths = paths;
    }
    r->look = mull__files_look(r->paths);
    r->repeat_ms = !paths ? AGAIN_MS : r->look != before ? LOOK_MS : 0;
    return status;
}

/* load reloads, and says what nobody else does. It comes again where another thread is loading. */
static void load(mull_engine *engine, int quietly)
{
    struct mull__reload *r = engine->reload;
    int asked = r->asked;
    int64_t since_ms = mull__engine_now(engine);
    mull__engine_cancel(engine, &r->load_timer);
    r->asked = r->changes = 0;
    r->repeat_ms = 0;
    int status = load_files(engine, quietly);
    int64_t now_ms = mull__engine_now(engine), took_ms = now_ms - since_ms;
    r->rest_ms = now_ms + (took_ms > REST_MS ? took_ms : REST_MS);
    int busy = status == MULL_ESTATE;
    r->asked = busy && asked;
    if (busy || r->repeat_ms > 0)
        load_in(engine, busy ? BUSY_MS : r->repeat_ms);
    if (!compare(engine) && status == 1)
        mull__engine_log(engine, asked ? MULL_INFO : MULL_DEBUG, "%sthe policy is unchanged",
                         asked ? "SIGHUP: " : "");
}

static void on_load(void *data)
{
    mull_engine *engine = data;
    const struct mull__reload *r = engine->reload;
    if (may(engine))
        load(engine, r->repeat_ms > 0 && !r->changes && !r->asked);
}

/* on_reminder tries again first, since what stood in the way may be over, such as a lack of memory.
 * What a call has loaded stays until the files change. */
static void on_reminder(void *data)
{
    mull_engine *engine = data;
    mull_policy *policy = engine->options.policy;
    mull__files_status standing;
    if (!may(engine))
        return;
    mull__policy_files_status(policy, &standing);
    if (standing.why[0])
        load(engine, !engine->reload->asked);
    else
        compare(engine);
    if (!engine->reload->differs_from[0])
        return;
    mull__policy_files_status(policy, &standing);
    int refused = standing.why[0] != 0;
    mull__engine_log(engine, MULL_WARNING,
                     "generation %s runs%s: the policy's files are not what runs%s%s",
                     standing.generation, refused ? " on" : ", which a call has loaded",
                     refused ? ": " : "", standing.why);
}

/* on_look sees changes of the files, and what a call has loaded. */
static void on_look(void *data)
{
    mull_engine *engine = data;
    struct mull__reload *r = engine->reload;
    uint64_t before = r->look;
    r->look = mull__files_look(r->paths);
    int changed = r->look != before;
    r->changes += changed;
    if (r->changes >= (changed ? BURST_LOOKS : 1))
        load_in(engine, 0);
    compare(engine);
    mull__timer_set(engine, &r->look_timer, engine->options.reload_on_change ? LOOK_MS : AGAIN_MS,
                    on_look, engine);
}

void mull__reload_ask(mull_engine *engine)
{
    if (!may(engine))
        return;
    engine->reload->asked = 1;
    load_in(engine, 0);
}

int mull__reload_new(mull_engine *engine)
{
    const mull_engine_options *options = &engine->options;
    if (!options->reload_on_change && !options->reload_on_sighup)
        return 0;
    if (!mull__policy_has_files(options->policy))
        return mull__engine_problem(engine, MULL_EINVAL,
                                    "the policy was given as a text, so there is no file to reload "
                                    "it from; reload_on_change and reload_on_sighup need one");
    engine->reload = mull__zalloc(&engine->allocator, 1, sizeof *engine->reload);
    return engine->reload ? 0 : MULL_ENOMEM;
}

void mull__reload_free(mull_engine *engine)
{
    if (engine->reload)
        mull__free(&engine->allocator, engine->reload->paths);
    mull__free(&engine->allocator, engine->reload);
}

/* It loads once: the files may have changed since the policy was loaded. */
void mull__reload_start(mull_engine *engine)
{
    struct mull__reload *r = engine->reload;
    if (!r)
        return;
    r->rest_ms = mull__engine_now(engine);
    load_in(engine, 0);
    if (engine->options.reload_on_change)
        r->paths = mull__policy_files(engine->options.policy, &engine->allocator);
    r->look = mull__files_look(r->paths);
    on_look(engine);
}

void mull__reload_stop(mull_engine *engine)
{
    struct mull__reload *r = engine->reload;
    if (!r)
        return;
    mull__engine_cancel(engine, &r->load_timer);
    mull__engine_cancel(engine, &r->look_timer);
    mull__engine_cancel(engine, &r->reminder_timer);
}
