/* reload.c: see reload.h.
 *
 *   a file's event ──> quiet for 100 ms, 1 s at most ──┐
 *   a look every 2 s finds another file ──> the same ──┼──> load ──> what runs, and what the files
 *   SIGHUP, start ─────────────────────────────────────┤             say: are they the same?
 *   a minute in which they weren't ────────────────────┘
 */
#include "reload.h"

#include "engine.h"
#include "watch.h"

#include <string.h>

enum {
    QUIET_MS = 100,      /* a burst is over after this; and the least time between two loads */
    BURST_MS = 1000,     /* ... but no burst is waited for longer */
    BUSY_MS = 100,       /* another thread loads the policy: again after this */
    LOOK_MS = 2000,      /* between two looks at the files */
    REMINDER_MS = 60000, /* between two lines that say that they aren't what runs */
    TURNS = 4            /* loads in a row, while each finds other files than the last */
};

struct mull__reload {
    mull__watch watch;
    mull_timer load_timer, look_timer, reminder_timer;
    int burst;        /* the load timer lets a burst of changes pass */
    int repeated;     /* ... or repeats a load that found no rest, or no memory for the watch */
    int64_t burst_ms; /* ... which began then */
    int64_t rest_ms; /* until then nothing is loaded: the last load is over since not long enough */
    int asked;       /* by a signal, and not carried out yet */
    int aside;       /* the files aren't what runs */
    char aside_generation[33];
};

/* ---- What runs, and what the files say ------------------------------------------------------- */

static void on_reminder(void *data);

/* compare sees whether the files are what runs: begins the reminders when they cease to be, and
 * ends them when they are again. 1: it said so, since nothing else has. */
static int compare(mull_engine *engine)
{
    struct mull__reload *r = engine->reload;
    mull__standing standing;
    mull__policy_standing(engine->options.policy, &standing);
    if (!standing.files_run) {
        r->aside = 1;
        memcpy(r->aside_generation, standing.generation, sizeof r->aside_generation);
        if (!r->reminder_timer.set)
            mull__timer_set(engine, &r->reminder_timer, REMINDER_MS, on_reminder, engine);
        return 0;
    }
    int again = r->aside && strcmp(r->aside_generation, standing.generation) == 0;
    r->aside = 0;
    mull__timer_cancel(engine, &r->reminder_timer);
    if (again) /* else the event policy_loaded told of what is new */
        mull__engine_log(engine, MULL_INFO, "the policy's files are what runs again: generation %s",
                         standing.generation);
    return again;
}

static void remind(mull_engine *engine)
{
    mull__standing standing;
    mull__policy_standing(engine->options.policy, &standing);
    if (standing.why[0])
        mull__engine_log(engine, MULL_WARNING,
                         "generation %s runs on: the policy's files are not what runs: %s",
                         standing.generation, standing.why);
    else
        mull__engine_log(engine, MULL_WARNING,
                         "generation %s runs, which a call has loaded: the policy's files are not "
                         "what runs",
                         standing.generation);
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* may: a reload would only delay a stop. */
static int may(mull_engine *engine)
{
    return engine->state == MULL__RUNNING && !engine->closing && !mull__engine_stop_asked(engine);
}

static void on_load(void *data);

/* load_in loads after a while, but not before the loop had as much time for messages as the last
 * load took, or QUIET_MS where that is longer: whatever asks, and however often. */
static void load_in(mull_engine *engine, int64_t delay_ms)
{
    struct mull__reload *r = engine->reload;
    int64_t rest_ms = r->rest_ms - mull__engine_now(engine);
    mull__timer_set(engine, &r->load_timer, delay_ms > rest_ms ? delay_ms : rest_ms, on_load,
                    engine);
}

static void begin_rest(mull_engine *engine, int64_t since_ms)
{
    int64_t now = mull__engine_now(engine);
    int64_t took_ms = now - since_ms;
    engine->reload->rest_ms = now + (took_ms > QUIET_MS ? took_ms : QUIET_MS);
}

/* load_watched aims the watch at the files before it loads them, so that no change is lost between;
 * where the load finds others, these are aimed at and loaded once more. */
static int load_watched(mull_engine *engine, int quietly)
{
    struct mull__reload *r = engine->reload;
    mull_policy *policy = engine->options.policy;
    char *paths = mull__policy_files(policy, &engine->allocator);
    int outcome = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        mull__watch_aim(&r->watch, paths);
        int status = mull__policy_reload_files(policy, quietly || turn > 0);
        if (status != 1)
            outcome = status;
        if (status == MULL_ESTATE)
            return outcome;
        paths = mull__policy_files(policy, &engine->allocator);
        if (!paths)
            break;
        if (mull__watch_is_at(&r->watch, paths)) {
            mull__free(&engine->allocator, paths);
            return outcome;
        }
    }
    mull__free(&engine->allocator, paths);
    load_in(engine, LOOK_MS);
    r->repeated = 1;
    return outcome;
}

/* load reloads, and says what nobody else does. */
static void load(mull_engine *engine, int quietly)
{
    struct mull__reload *r = engine->reload;
    int asked = r->asked;
    int64_t since_ms = mull__engine_now(engine);
    if (asked)
        quietly = 0;
    mull__timer_cancel(engine, &r->load_timer);
    r->asked = r->burst = r->repeated = 0;
    int status = engine->options.reload_on_change
                     ? load_watched(engine, quietly)
                     : mull__policy_reload_files(engine->options.policy, quietly);
    begin_rest(engine, since_ms);
    if (status == MULL_ESTATE) { /* never for long: then what it loads is compared with the files */
        r->asked = asked;
        load_in(engine, BUSY_MS);
    }
    int told = compare(engine);
    if (status == 1 && asked && !told)
        mull__engine_log(engine, MULL_INFO, "SIGHUP: the policy is unchanged");
    else if (status == 1 && !told)
        mull__engine_log(engine, MULL_DEBUG, "the policy is unchanged");
}

static void on_load(void *data)
{
    mull_engine *engine = data;
    if (may(engine))
        load(engine, engine->reload->repeated);
}

/* on_reminder tries again first: what stood in the way may be over, such as a lack of memory. What
 * a call has loaded stays until the files change. */
static void on_reminder(void *data)
{
    mull_engine *engine = data;
    mull__standing standing;
    if (!may(engine))
        return;
    mull__policy_standing(engine->options.policy, &standing);
    if (standing.why[0])
        load(engine, 1);
    else
        compare(engine);
    if (engine->reload->aside)
        remind(engine);
}

/* ---- What leads to a load -------------------------------------------------------------------- */

/* on_change lets a burst of changes pass; but what a signal asks for doesn't wait. */
static void on_change(mull_engine *engine)
{
    struct mull__reload *r = engine->reload;
    int64_t now = mull__engine_now(engine);
    if (r->asked)
        return;
    if (!r->burst)
        r->burst_ms = now;
    r->burst = 1;
    r->repeated = 0;
    int64_t left = r->burst_ms + BURST_MS - now;
    if (left < 0)
        left = 0;
    load_in(engine, left < QUIET_MS ? left : QUIET_MS);
}

/* on_look sees what events don't tell of: files on the disk of another machine, folders that can't
 * be watched; and what calls have loaded. */
static void on_look(void *data)
{
    mull_engine *engine = data;
    struct mull__reload *r = engine->reload;
    if (engine->options.reload_on_change && mull__watch_moved(&r->watch) && !r->load_timer.set)
        on_change(engine);
    compare(engine);
    mull__timer_set(engine, &r->look_timer, LOOK_MS, on_look, engine);
}

void mull__reload_ask(mull_engine *engine)
{
    if (!may(engine))
        return;
    engine->reload->asked = 1;
    load_in(engine, 0);
}

/* ---- Life ------------------------------------------------------------------------------------ */

int mull__reload_new(mull_engine *engine)
{
    const mull_engine_options *options = &engine->options;
    if (!options->reload_on_change && !options->reload_on_sighup)
        return 0;
    if (!mull__policy_has_files(options->policy))
        return mull__engine_problem(engine, MULL_EINVAL, NULL, 0,
                                    "the policy was given as a text, so there is no file to reload "
                                    "it from; reload_on_change and reload_on_sighup need one");
    for (int timers = 0; timers < 3; timers++)
        if (mull__timer_reserve(engine) != 0)
            return MULL_ENOMEM;
    engine->reload = mull__zalloc(&engine->allocator, 1, sizeof *engine->reload);
    if (!engine->reload)
        return MULL_ENOMEM;
    mull__watch_init(&engine->reload->watch, engine, on_change);
    return 0;
}

void mull__reload_free(mull_engine *engine)
{
    mull__free(&engine->allocator, engine->reload);
}

/* mull__reload_start loads once: the files may have changed since the policy was loaded. */
void mull__reload_start(mull_engine *engine)
{
    if (!engine->reload)
        return;
    engine->reload->rest_ms = mull__engine_now(engine);
    load_in(engine, 0);
    mull__timer_set(engine, &engine->reload->look_timer, LOOK_MS, on_look, engine);
}

void mull__reload_stop(mull_engine *engine)
{
    struct mull__reload *r = engine->reload;
    if (!r)
        return;
    mull__timer_cancel(engine, &r->load_timer);
    mull__timer_cancel(engine, &r->look_timer);
    mull__timer_cancel(engine, &r->reminder_timer);
    mull__watch_end(&r->watch);
}
