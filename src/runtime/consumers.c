/* consumers.c: consumers are added, changed and removed, before the start and while an engine runs.
 *
 *   add ── subscribe ──> WORKS
 *   WORKS ── concurrency beyond its credit ──> RENEWS ── it ended, subscribe ──> WORKS
 *   WORKS, RENEWS ── remove ──> LEAVES ── it ended ──> gone
 *
 * Its subscription ends once all of it was settled or given back, and released. Where consumers
 * share a queue by types, the subscription is their reader's (readers.h), which comes with the
 * first of them and leaves with the last. A consumer that read the queue by itself renews, and
 * joins it.
 *
 * Reloads ask, on other threads, whether all consumers can work by a policy: so the list changes
 * only while none is asked (mull__policy_validated). */
#include "consumers.h"

#include "admission.h"
#include "base/redact.h"
#include "base/struct_compat.h"
#include "base/utf8.h"
#include "calls.h"
#include "check.h"
#include "delivery.h"
#include "engine_control.h"
#include "limit_events.h"
#include "limiting.h"
#include "port.h"
#include "questions.h"
#include "readers.h"
#include "settlement.h"
#include "timers.h"
#include "transitions.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 30000 };

int mull__is_name(const char *text)
{
    return text && text[0] && mull__utf8_valid(text);
}

/* refuse_url tells what is wrong with a URL, without its credentials. */
int mull__refuse_url(mull_engine *engine, int status, const char *name, const char *url,
                     const char *why)
{
    char masked[512];
    mull__redact(masked, sizeof masked, why, url);
    return mull__engine_problem(engine, status, "transport '%s': %s", name, masked);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static int has_name(mull_engine *engine, const char *name)
{
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        if (strcmp(c->name, name) == 0 && !c->never_works)
            return 1;
    return 0;
}

/* shares says whether another consumer reads its queue already. */
static int shares(const mull__consumer *c)
{
    for (mull__consumer *other = NULL; (other = mull__next_consumer(c->engine, other));)
        if (mull__same_queue(other, c))
            return 1;
    return 0;
}

/* set_concurrency sets `prefetch`, too, where it follows. */
static void set_concurrency(mull__consumer *c, uint32_t concurrency)
{
    c->options.concurrency = concurrency;
    if (!c->own_prefetch)
        c->options.prefetch = concurrency > UINT32_MAX / 2 ? UINT32_MAX : 2 * concurrency;
}

/* take_types copies them to one block. */
static int take_types(mull__consumer *c, const mull_consumer_options *options)
{
    size_t count = options->type_count, size = count * sizeof *c->types;
    c->options.types = NULL;
    c->options.type_count = 0;
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        size += strlen(options->types[i]) + 1;
    c->types = mull__alloc(&c->engine->allocator, size);
    if (!c->types)
        return MULL_ENOMEM;
    char *at = (char *)(c->types + count);
    for (; c->type_count < count; c->type_count++) {
        size_t length = strlen(options->types[c->type_count]) + 1;
        c->types[c->type_count] = memcpy(at, options->types[c->type_count], length);
        at += length;
    }
    return 0;
}

static void take_options(mull__consumer *c, const mull_consumer_options *options)
{
    c->options = *options;
    c->own_prefetch = options->prefetch != 0;
    c->paused = options->paused;
    c->room = UINT32_MAX;
    set_concurrency(c, options->concurrency ? options->concurrency : 1);
    if (c->options.timeout_ms == 0)
        c->options.timeout_ms = TIMEOUT_MS;
    if (c->options.max_body == 0)
        c->options.max_body = MULL__BODY_MAX;
}

/* refuse_options says what a consumer's options lack, if anything. */
static int refuse_options(mull_engine *engine, const mull_consumer_options *options)
{
    const char *name = mull__is_name(options->name) ? options->name : "?";
    const char *missing = !mull__is_name(options->name)    ? "name"
                          : !options->transport            ? "transport"
                          : !mull__is_name(options->queue) ? "queue"
                          : !options->handler              ? "handler"
                                                           : NULL;
    if (missing)
        return MULL__REFUSE(engine,
                            "consumer '%s': `%s` is required; a text isn't empty, and UTF-8", name,
                            missing);
    for (size_t i = 0; i < options->type_count; i++)
        if (!options->types || !mull__is_name(options->types[i]))
            return MULL__REFUSE(engine,
                                "consumer '%s': number %zu of `types` must be a text, which isn't "
                                "empty, and UTF-8",
                                name, i + 1);
    if (options->types && options->type_count == 0)
        return MULL__REFUSE(engine,
                            "consumer '%s': `types` names none; leave it out to take what no "
                            "other consumer of the queue names",
                            name);
    if (options->timeout_ms < MULL_NEVER)
        return MULL__REFUSE(engine,
                            "consumer '%s': `timeout_ms` is below 0; no limit is MULL_NEVER", name);
    return 0;
}

static mull__consumer *consumer_new(mull_engine *engine, mull_port *port,
                                    const mull_consumer_options *options)
{
    size_t name_size = strlen(options->name) + 1, queue_size = strlen(options->queue) + 1;
    mull__consumer *c = mull__zalloc(&engine->allocator, 1, sizeof *c + name_size + queue_size);
    if (!c)
        return NULL;
    *c = (mull__consumer){.engine = engine, .port = port};
    c->label = c->name = memcpy(c->texts, options->name, name_size);
    c->queue = memcpy(c->texts + name_size, options->queue, queue_size);
    mull__list_init(&c->waiting);
    mull__list_init(&c->candidates);
    mull__list_init(&c->retries);
    take_options(c, options);
    if (take_types(c, options) != 0) {
        mull__free(&engine->allocator, c);
        return NULL;
    }
    c->tally.why = mull__why_not(c);
    c->tally.why_since_ms = mull__engine_now(engine);
    c->shares = shares(c);
    c->max_attempts = c->deadline_ms = MULL__OFF;
    engine->limits_stale = 1;
    mull__ticket_give(port, &c->ticket, MULL__TICKET_CONSUMER);
    return c;
}

/* look asks what is promised of its queue. */
static int look(mull__consumer *c)
{
    char why[512] = "";
    const mull_port *port = c->port;
    int status = mull__look(port->ops, port->url, c->queue, &c->floor, why, sizeof why);
    if (status != 0)
        return mull__refuse_url(c->engine, status, port->name, port->url,
                                why[0] ? why : mull_strerror(status));
    c->can = c->floor;
    return 0;
}

/* join takes it among the others, if it can work by the policy in force. No reload is between. */
static int join(void *data, const mull__table *table)
{
    mull__consumer *c = data;
    const mull_engine_options *options = &c->engine->options;
    const mull__worker worker = mull__worker_of(c);
    int status = 0;
    if (c->engine->state == MULL__RUNNING)
        status = mull__check_workers(&worker, 1, table, options->problem, options->data);
    if (status == 0)
        mull__list_push(&c->engine->consumers, &c->link);
    return status;
}

/* leave takes it out, while nobody asks whether consumers can work by a policy. */
static int leave(void *data, const mull__table *table)
{
    (void)table;
    mull__consumer *c = data;
    mull_engine *engine = c->engine;
    mull__list_remove(&engine->consumers, &c->link);
    for (mull__consumer *other = NULL; (other = mull__next_consumer(engine, other));)
        if (!c->shares && mull__same_queue(other, c)) {
            other->shares = 0;
            break;
        }
    return 0;
}

/* free_or_keep keeps one of each queue of which messages are still parked: a stop until empty
 * doesn't wait for them. It needs no memory. */
static void free_or_keep(mull__consumer *c)
{
    mull__list *gone = &c->engine->gone;
    mull__link *link = mull__list_first(gone);
    while (link && !mull__same_queue(MULL__ENTRY(link, mull__consumer, link), c))
        link = mull__list_after(gone, link);
    if (c->let_go > 0 && !link) {
        mull__list_push(gone, &c->link);
        return;
    }
    if (link)
        MULL__ENTRY(link, mull__consumer, link)->let_go += c->let_go;
    mull__free(&c->engine->allocator, c);
}

void mull__consumer_free(mull__consumer *c, int status)
{
    mull_engine *engine = c->engine;
    mull_consumer_removed_fn removed = c->removed;
    void *data = c->removed_data;
    /* Out of a check on this very thread, whose `problem` closes this engine, it is locked. */
    if (c->link.next && mull__policy_validated(engine->options.policy, leave, c) != 0)
        leave(c, NULL);
    if (engine->candidate_of == c)
        engine->candidate_of = NULL;
    mull__ticket_take(engine, &c->ticket);
    mull__engine_cancel(engine, &c->hold_timer);
    mull__engine_cancel(engine, &c->end_timer);
    mull__limits_free(c);
    mull__free(&engine->allocator, c->types);
    c->types = NULL;
    c->type_count = 0;
    free_or_keep(c);
    if (removed)
        removed(status, data);
}

/* most_credit is the most that a consumer ever has, see mull__admission_credit. */
static uint32_t most_credit(const mull_consumer_options *options)
{
    uint64_t most = options->concurrency + 2 * (uint64_t)options->prefetch;
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* need_of is the most credit that a reader ever has, by all consumers of its queue: see
 * mull__admission_credit. It reads bodies as large as any of them takes. */
static uint32_t need_of(mull__consumer *reader)
{
    uint64_t most = 0, concurrency = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(reader->engine, c));) {
        const mull_consumer_options *options = &c->options;
        if (c->is_reader || !mull__same_queue(c, reader))
            continue;
        most += most_credit(options);
        concurrency += options->concurrency;
        reader->options.nservicebus |= options->nservicebus;
        if (options->max_body > reader->options.max_body)
            reader->options.max_body = options->max_body;
    }
    reader->options.concurrency = concurrency < UINT32_MAX ? (uint32_t)concurrency : UINT32_MAX;
    most += concurrency;
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

int mull__consumer_subscribe(mull__consumer *c)
{
    c->most = c->is_reader ? need_of(c) : most_credit(&c->options);
    c->lacking = 0;
    const mull_source source = {
        .size = sizeof source, .queue = c->queue, .most = c->most, .max_body = c->options.max_body};
    int status = mull__refusal(
        c->port->ops->subscribe(c->port->self, c->ticket.number, &source, &c->subscription));
    if (status == MULL_ENOMEM)
        return mull__engine_problem(c->engine, status,
                                    "consumer '%s' can't read the queue '%s': %s", c->label,
                                    c->queue, mull_strerror(status));
    c->subscribed = status == 0;
    if (status != 0)
        mull__source_set(c, MULL_SOURCE_REFUSED, NULL, mull_strerror(status));
    c->lacking |= status != 0;
    mull__port_asked(c->port);
    return 0;
}

static void change(mull__consumer *c, mull__consumer_state state);

/* join_reader has a reader read for a consumer that has no subscription. */
static void join_reader(mull__consumer *c, mull__consumer *reader)
{
    c->reader = reader;
    c->source = reader->source;
    memcpy(c->why, reader->why, sizeof c->why);
    uv_mutex_lock(&c->engine->mutex); /* mull_send reads them on any thread */
    c->can = reader->can;
    uv_mutex_unlock(&c->engine->mutex);
}

/* widen renews a reader whose consumers need more than it was subscribed for. */
static void widen(mull__consumer *reader)
{
    size_t body = reader->options.max_body;
    int more = need_of(reader) > reader->most || reader->options.max_body > body;
    if (more && reader->subscribed && reader->state == MULL__CONSUMER_WORKS)
        change(reader, MULL__CONSUMER_RENEWS);
}

/* reader_new makes a reader for the queue of `c`, and has those join it who read it so far. */
static int reader_new(mull__consumer **out, mull__consumer *c)
{
    mull_engine *engine = c->engine;
    const mull_consumer_options options = {.size = sizeof options, .name = "", .queue = c->queue};
    mull__consumer *reader = consumer_new(engine, c->port, &options);
    if (!reader)
        return MULL_ENOMEM;
    reader->is_reader = 1;
    reader->label = reader->queue;
    int status = look(reader);
    if (status == 0)
        status = mull__policy_validated(engine->options.policy, join, reader);
    if (status == 0 && engine->state == MULL__RUNNING)
        status = mull__consumer_subscribe(reader);
    if (status != 0) {
        mull__consumer_free(reader, status);
        return status;
    }
    *out = reader;
    for (mull__consumer *other = NULL; (other = mull__next_consumer(engine, other));) {
        if (other == c || other == reader || !mull__same_queue(other, reader) || other->reader)
            continue;
        if (engine->state == MULL__NEW)
            join_reader(other, reader);
        else if (other->state == MULL__CONSUMER_WORKS)
            change(other, MULL__CONSUMER_RENEWS);
    }
    return 0;
}

/* share has a consumer that shares its queue by types read by its reader. */
static int share(mull__consumer *c)
{
    mull__consumer *reader = mull__reader_of(c);
    int status = reader ? 0 : reader_new(&reader, c);
    if (status != 0)
        return status;
    join_reader(c, reader);
    widen(reader);
    return 0;
}

static int add(mull_engine *engine, const mull_consumer_options *options)
{
    mull_port *port = mull__port_named(engine, options->transport);
    if (!port) {
        char transport[256]; /* somebody may have given the URL for its name */
        mull__redact(transport, sizeof transport, options->transport, options->transport);
        return MULL__REFUSE(engine, "consumer '%s': there is no transport '%s'", options->name,
                            transport);
    }
    if (has_name(engine, options->name))
        return MULL__REFUSE(engine, "there is a consumer '%s' already; give this one another name",
                            options->name);
    mull__consumer *c = consumer_new(engine, port, options);
    if (!c)
        return MULL_ENOMEM;
    int status = look(c);
    if (status == 0)
        status = mull__types_refuse(c);
    if (status == 0)
        status = mull__policy_validated(engine->options.policy, join, c);
    if (status == 0 && mull__types_share(c))
        status = share(c);
    else if (status == 0 && engine->state == MULL__RUNNING)
        status = mull__consumer_subscribe(c);
    if (status != 0)
        mull__consumer_free(c, status);
    else
        mull__engine_mark_posted(engine);
    return status;
}

int mull_consumer_add(mull_engine *engine, const mull_consumer_options *given)
{
    mull_consumer_options options;
    if (!engine)
        return MULL_EINVAL;
    if (!mull__struct_copy_in(&options, sizeof options, MULL__CONSUMER_OPTIONS_LEAST, given))
        return MULL__REFUSE(
            engine,
            "there are no options of a consumer, or their `size` isn't set, as MULL_INIT does");
    int status = refuse_options(engine, &options);
    if (status != 0)
        return status;
    if (engine->state > MULL__RUNNING || engine->closing)
        return MULL_ESTATE;
    return add(engine, &options);
}

/* ---- While it runs --------------------------------------------------------------------------- */

/* find finds the one of this name that was added last, if it isn't being removed. */
static int find(mull__consumer **out, mull_engine *engine, const char *name)
{
    *out = NULL;
    if (!engine || !name)
        return MULL_EINVAL;
    if (engine->closing)
        return MULL_ESTATE;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        if (!c->is_reader && strcmp(c->name, name) == 0)
            *out = c;
    if (!*out)
        return MULL__REFUSE(engine, "there is no consumer '%s'", name);
    return (*out)->state == MULL__CONSUMER_LEAVES ? MULL_ESTATE : 0;
}

/* tell_of tells what became of a consumer. */
__attribute__((format(printf, 3, 4))) static void tell_of(mull__consumer *c, mull_event_kind kind,
                                                          const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mull__utf8_repair(text, strlen(text)); /* its end may be cut off */
    mull__consumer_event(c, kind, text);
}

/* is_of says whether a delivery is a consumer's, or came by its subscription. */
static int is_of(const mull__delivery *d, const mull__consumer *c)
{
    return d->consumer == c || d->consumer->reader == c;
}

/* give_back_waiting gives back all that no handler works on, once its transport was told to take
 * nothing more: else that could hand out at once what comes back, again and again. */
static void give_back_waiting(mull__consumer *c)
{
    mull__admission_credit(c->engine);
    mull__delivery *d = mull__next_delivery(c->engine, NULL);
    while (d) {
        mull__delivery *next = mull__next_delivery(c->engine, d);
        if (is_of(d, c))
            mull__delivery_give_back(d);
        d = next;
    }
    mull__engine_mark_posted(c->engine);
}

int mull_consumer_pause(mull_engine *engine, const char *name)
{
    mull__consumer *c;
    int status = find(&c, engine, name);
    if (status != 0 || c->paused)
        return status;
    c->paused = 1;
    tell_of(c, MULL_EVENT_PAUSED, "consumer '%s' is paused", c->name);
    give_back_waiting(c);
    return 0;
}

int mull_consumer_resume(mull_engine *engine, const char *name)
{
    mull__consumer *c;
    int status = find(&c, engine, name);
    if (status != 0 || !c->paused)
        return status;
    c->paused = 0;
    tell_of(c, MULL_EVENT_RESUMED, "consumer '%s' goes on", c->name);
    mull__engine_mark_posted(engine);
    return 0;
}

/* change begins to end a subscription. */
static void change(mull__consumer *c, mull__consumer_state state)
{
    c->engine->changing += c->state == MULL__CONSUMER_WORKS;
    c->state = state;
    give_back_waiting(c);
}

int mull_consumer_concurrency(mull_engine *engine, const char *name, uint32_t concurrency)
{
    mull__consumer *c;
    int status = find(&c, engine, name);
    if (status != 0)
        return status;
    if (concurrency == 0)
        return MULL__REFUSE(engine,
                            "consumer '%s': its concurrency is at least 1; to call it no "
                            "more, pause it",
                            c->name);
    set_concurrency(c, concurrency);
    tell_of(c, MULL_EVENT_CONCURRENCY_CHANGED, "consumer '%s' has a concurrency of %u", c->name,
            concurrency);
    if (c->reader)
        widen(c->reader);
    else if (c->subscribed && most_credit(&c->options) > c->most &&
             c->state == MULL__CONSUMER_WORKS)
        change(c, MULL__CONSUMER_RENEWS);
    mull__engine_mark_posted(engine);
    return 0;
}

void mull__consumer_room(mull_engine *engine, const char *name, uint32_t room)
{
    mull__consumer *c = NULL;
    find(&c, engine, name);
    if (!c)
        return;
    c->room = room;
    mull__engine_mark_posted(engine);
}

int mull_consumer_remove(mull_engine *engine, const char *name, mull_consumer_removed_fn removed,
                         void *data)
{
    mull__consumer *c;
    int status = find(&c, engine, name);
    if (status != 0)
        return status;
    c->removed = removed;
    c->removed_data = data;
    c->never_works = engine->state == MULL__NEW;
    change(c, MULL__CONSUMER_LEAVES);
    return 0;
}

int mull_consumer_why_not(mull_engine *engine, const char *name, mull_why_not *why)
{
    mull__consumer *c;
    if (!why)
        return MULL_EINVAL;
    int status = find(&c, engine, name);
    if (c)
        *why = mull__why_not(c);
    return c ? 0 : status;
}

/* ---- The end of a subscription --------------------------------------------------------------- */

/* release_parked lets go of what its transport never settles, and keeps. */
static void release_parked(mull__consumer *c)
{
    mull__delivery *d = mull__next_delivery(c->engine, NULL);
    while (d) {
        mull__delivery *next = mull__next_delivery(c->engine, d);
        if (is_of(d, c) && d->state == MULL__ABANDONED && d->call == 0) {
            d->consumer->let_go += (uint32_t)d->parked;
            mull__message_becomes(d, MULL__LOST);
            mull__delivery_release(d);
        }
        d = next;
    }
}

static void on_unanswered(void *data)
{
    mull__consumer *c = data;
    mull__engine_log(c->engine, MULL_WARNING,
                     "transport %s has not said for %d s that it reads the queue '%s' no more for "
                     "consumer '%s'; it is taken to be so",
                     c->port->name, MULL__ANSWER_MS / 1000, c->queue, c->label);
    c->ended = 1;
    mull__engine_mark_posted(c->engine);
}

/* end_subscription asks for its end, once nothing of it is here. */
static void end_subscription(mull__consumer *c)
{
    release_parked(c);
    if (c->ending || c->deliveries > 0 || mull__has_deferred(c))
        return;
    c->ending = 1;
    mull__engine_cancel(c->engine, &c->hold_timer);
    if (!c->subscribed) {
        c->ended = 1;
        return;
    }
    c->subscribed = 0;
    c->port->ops->unsubscribe(c->port->self, c->subscription);
    mull__port_asked(c->port);
    mull__timer_set(c->engine, &c->end_timer, MULL__ANSWER_MS, on_unanswered, c);
}

static void on_again(void *data)
{
    mull__consumer *c = data;
    c->ended = 1;
    mull__engine_mark_posted(c->engine);
}

/* renew subscribes anew, later where there is no memory for it. Late words of the transport about
 * the old one find no ticket. */
static void renew(mull__consumer *c)
{
    c->state = MULL__CONSUMER_WORKS;
    c->ending = c->ended = 0;
    c->credit = 0;
    c->subscription = NULL;
    c->source = MULL_SOURCE_WAITING;
    c->engine->arrivals++; /* depths that are being asked for don't end a run until empty */
    mull__ticket_take(c->engine, &c->ticket);
    mull__ticket_give(c->port, &c->ticket, MULL__TICKET_CONSUMER);
    mull__consumer *reader = c->is_reader ? NULL : mull__reader_of(c);
    if (reader) {
        join_reader(c, reader);
        return;
    }
    for (mull__consumer *m = NULL; c->is_reader && (m = mull__next_consumer(c->engine, m));)
        if (m->reader == c)
            m->source = MULL_SOURCE_WAITING;
    if (mull__consumer_subscribe(c) == 0)
        return;
    c->engine->changing++;
    c->state = MULL__CONSUMER_RENEWS;
    c->ending = 1;
    mull__timer_set(c->engine, &c->end_timer, MULL__AGAIN_MS, on_again, c);
}

/* next_ended: an answer about depths that isn't there yet still names its consumer, and so does
 * what was delivered although its subscription was to end. */
static mull__consumer *next_ended(mull_engine *engine)
{
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->state != MULL__CONSUMER_WORKS)
            end_subscription(c);
        if (c->ended && c->deliveries == 0 && !mull__has_deferred(c) &&
            (c->state == MULL__CONSUMER_RENEWS || engine->depths.asked == 0))
            return c;
    }
    return NULL;
}

static int is_needed(const mull__consumer *reader)
{
    mull__consumer *c = NULL;
    while ((c = mull__next_consumer(reader->engine, c)) && c->reader != reader)
        continue;
    return c != NULL;
}

void mull__consumers_end(mull_engine *engine)
{
    mull__consumer *c;
    while (engine->changing > 0 && engine->state <= MULL__RUNNING && (c = next_ended(engine))) {
        engine->changing--;
        mull__engine_cancel(engine, &c->end_timer);
        if (c->state == MULL__CONSUMER_RENEWS) {
            renew(c);
            continue;
        }
        mull__consumer *reader = c->reader;
        if (!c->is_reader)
            mull__engine_log(engine, MULL_INFO, "consumer '%s' is removed", c->name);
        mull__limits_end(c);
        mull__consumer_free(c, 0);
        if (reader && !is_needed(reader))
            change(reader, MULL__CONSUMER_LEAVES);
    }
}
