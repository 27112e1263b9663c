/* limit_events.c: see limit_events.h.
 *
 *   a call ends, a person pauses ──> log
 *                                └─> consumer events ── the loop drains them ──> event function,
 * notify */
#include "limit_events.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "counting.h"
#include "events.h"
#include "timers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MS = 1000, LINES_MAX = 10 /* of values, in that time: more are summed up */ };

/* consumer_event is told on this turn or the next. One block; its strings are in `texts`. */
typedef struct consumer_event {
    mull__link link;
    mull_event_kind kind;
    const char *consumer, *transport, *text;
    int limited; /* it is about `limit` */
    mull_limit_status limit;
    char texts[];
} consumer_event;

/* ---- Noting ---------------------------------------------------------------------------------- */

/* put copies a text behind those that are there, without memory only its size is added. */
static const char *put(char *memory, size_t *used, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *to = memory ? memcpy(memory + *used, text, size) : NULL;
    *used += size;
    return to;
}

static size_t put_all(consumer_event *kept, char *memory, const mull__consumer *c, const char *text,
                      const mull_limit_status *limit)
{
    size_t used = 0;
    kept->consumer = put(memory, &used, c->name);
    kept->transport = put(memory, &used, c->port->name);
    kept->text = put(memory, &used, text);
    if (!limit)
        return used;
    kept->limited = 1;
    kept->limit = *limit;
    kept->limit.per = put(memory, &used, limit->per);
    kept->limit.value = put(memory, &used, limit->value);
    kept->limit.file = put(memory, &used, limit->file);
    kept->limit.error_type = put(memory, &used, limit->error_type);
    return used;
}

static void note(const mull__consumer *c, mull_event_kind kind, const char *text,
                 const mull_limit_status *limit)
{
    mull_engine *engine = c->engine;
    consumer_event made = {.kind = kind};
    size_t size = put_all(&made, NULL, c, text, limit);
    consumer_event *kept = mull__alloc(&engine->allocator, sizeof *kept + size);
    if (!kept) {
        mull__engine_log(engine, MULL_ERROR_LEVEL, "%s: not enough memory to tell of %s", c->name,
                         mull_event_name(kind));
        return;
    }
    *kept = made;
    put_all(kept, kept->texts, c, text, limit);
    mull__list_push(&engine->consumer_events, &kept->link);
    mull__engine_mark_posted(engine);
}

void mull__consumer_event(mull__consumer *c, mull_event_kind kind, const char *text)
{
    mull__engine_log(c->engine, MULL_INFO, "%s", text);
    note(c, kind, text, NULL);
}

/* ---- Lines of the log ------------------------------------------------------------------------ */

static void sum_up(void *data)
{
    mull_engine *engine = data;
    if (engine->lines_left_out > 0)
        mull__engine_log(engine, MULL_INFO,
                         "limits of %u more value(s) began or ended within a second",
                         engine->lines_left_out);
    engine->lines = engine->lines_left_out = 0;
}

/* tell logs a line and notes the event. Lines about values are counted. */
static void tell(const mull__consumer *c, mull_event_kind kind, mull_level level, const char *text,
                 const mull_limit_status *limit)
{
    mull_engine *engine = c->engine;
    if (limit->value && !engine->lines_timer.set)
        mull__timer_set(engine, &engine->lines_timer, LINES_MS, sum_up, engine);
    if (!limit->value || engine->lines++ < LINES_MAX)
        mull__engine_log(engine, level, "%s", text);
    else
        engine->lines_left_out++;
    note(c, kind, text, limit);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static const char *per_text(const mull__per *per, char text[MULL__PER_SIZE])
{
    if (per->kind == MULL__PER_CONSUMER)
        return NULL;
    snprintf(text, MULL__PER_SIZE, "%s%s",
             per->kind == MULL__PER_KEY    ? "key"
             : per->kind == MULL__PER_TYPE ? "type"
                                           : "header ",
             per->header ? per->header : "");
    mull__utf8_repair(text, strlen(text)); /* its end may be cut off */
    return text;
}

mull_limit_status mull__limit_status_of(const mull__consumer *c, const mull__rate_limit *limit,
                                        const mull__limit_state *state, char per[MULL__PER_SIZE])
{
    int64_t now_ms = mull__engine_now(c->engine), wall_ms = mull__engine_wall(c->engine);
    const mull__rate *rate = &state->rate;
    uint32_t at_work = limit->per.kind == MULL__PER_CONSUMER ? c->calls : state->at_work;
    return (mull_limit_status){.size = sizeof(mull_limit_status),
                               .per = per_text(&limit->per, per),
                               .value = limit->per.kind == MULL__PER_CONSUMER ? NULL : state->value,
                               .file = limit->place.file,
                               .line = limit->place.line,
                               .since_ms = wall_ms - (now_ms - rate->since_ms),
                               .next_ms = wall_ms + (rate->next_ms - now_ms),
                               .waits_for_handlers = rate->limited && at_work > 0,
                               .probes = rate->probes,
                               .error_type = state->error_type};
}

/* waiting counts the messages of a consumer that wait here. */
static size_t waiting(const mull__consumer *c)
{
    return c->waiting.count + c->candidates.count + c->retries.count;
}

enum { TEXT_SIZE = 1024 };

/* write_text writes what became of a limit, and for whom: the words of all three events. */
__attribute__((format(printf, 5, 6))) static void
write_text(char text[TEXT_SIZE], const mull__consumer *c, const mull_limit_status *of,
           const char *what, const char *more, ...)
{
    int used = snprintf(text, TEXT_SIZE, "consumer '%.200s': rate limit %s", c->name, what);
    if (of->per)
        used += snprintf(text + used, TEXT_SIZE - (size_t)used, " for %.100s '%.200s'", of->per,
                         of->value);
    va_list arguments;
    va_start(arguments, more);
    vsnprintf(text + used, TEXT_SIZE - (size_t)used, more, arguments);
    va_end(arguments);
    mull__utf8_repair(text, strlen(text));
}

void mull__limit_started(mull__consumer *c, const mull__rate_limit *limit, mull__limit_state *state)
{
    char per[MULL__PER_SIZE], text[TEXT_SIZE];
    const mull_limit_status of = mull__limit_status_of(c, limit, state, per);
    write_text(text, c, &of, "started",
               ", after %.200s; messages that wait here: %zu; the next call begins in %lld ms; "
               "%.200s:%d",
               of.error_type ? of.error_type : "failures", waiting(c),
               (long long)(state->rate.next_ms - mull__engine_now(c->engine)),
               of.file ? of.file : "policy", of.line);
    tell(c, MULL_EVENT_RATE_LIMIT_STARTED, MULL_WARNING, text, &of);
}

void mull__limit_ended(mull__consumer *c, const mull__rate_limit *limit, mull__limit_state *state,
                       const char *why)
{
    char per[MULL__PER_SIZE], text[TEXT_SIZE];
    const mull_limit_status of = mull__limit_status_of(c, limit, state, per);
    int64_t lasted_ms = mull__engine_now(c->engine) - state->rate.since_ms;
    write_text(text, c, &of, "ended", " after %lld ms; calls that it let through: %llu%s%s",
               (long long)lasted_ms, (unsigned long long)state->rate.probes, why ? "; " : "",
               why ? why : "");
    tell(c, MULL_EVENT_RATE_LIMIT_ENDED, MULL_INFO, text, &of);
}

void mull__limit_dropped(mull__consumer *c, const mull__rate_limit *limit, mull__limit_state *state)
{
    static const char why[] = "there are too many values, and it starts anew";
    if (state->rate.limited) {
        mull__limit_ended(c, limit, state, why);
        return;
    }
    char per[MULL__PER_SIZE], text[TEXT_SIZE];
    const mull_limit_status of = mull__limit_status_of(c, limit, state, per);
    write_text(text, c, &of, "forgot the failures", "; %s", why);
    tell(c, MULL_EVENT_RATE_LIMIT_FORGOT, MULL_INFO, text, &of);
}

/* ---- Telling --------------------------------------------------------------------------------- */

void mull__consumer_events_deliver(mull_engine *engine)
{
    for (mull__link *link; (link = mull__list_pop(&engine->consumer_events));) {
        consumer_event *kept = MULL__ENTRY(link, consumer_event, link);
        const mull_event event = {.kind = kept->kind,
                                  .text = kept->text,
                                  .consumer = kept->consumer,
                                  .limit = kept->limited ? &kept->limit : NULL};
        mull__event_tell(engine, &event, kept->consumer, kept->transport);
        mull__free(&engine->allocator, kept);
    }
}
