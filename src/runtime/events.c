/* events.c: who hears of events: the embedder at once, and then the policy's own `notify`.
 *
 *   while a failure is judged ──> pending at its delivery ──┐
 *   the verdict is carried out ──> event function ──────────┴──> notify
 *   the engine starts ──────────────┐
 *   a reload ends, on any thread ───┴──> policy events ── the loop drains them ──> notify
 *   a transport comes up ── the loop drains it ──> event function
 *
 * A notify is called in the decider state that the verdict came from, on the loop's thread. It
 * can't change anything. What it fails at is told to the embedder alone. */
#include "events.h"

#include "policy/resolve.h"

#include <stdio.h>
#include <string.h>

/* mull__pending is an event of which notify hears later. One block. */
typedef struct mull__pending {
    mull__link link;
    mull_event_kind kind;
    const mull_rule *rule; /* in the delivery's generation, NULL: none */
    char generation[33];   /* of policy_loaded, policy_refused */
    char text[];
} mull__pending;

/* ---- Calling notify -------------------------------------------------------------------------- */

static void notify_failed(mull_engine *engine, const mull_event *event, const char *why)
{
    const mull_engine_options *options = &engine->options;
    const mull_failure *failure = event->failure;
    const char *about = failure ? failure->consumer : NULL;
    engine->counts.notify_failed++;
    if (!options->event) {
        mull__engine_log(engine, MULL_WARNING, "%s%snotify_failed: at %s%s%s: %s",
                         about ? about : "", about ? ": " : "", mull_event_name(event->kind),
                         failure ? " of message " : "", failure ? failure->message->id : "", why);
        return;
    }
    mull_event failed = *event;
    failed.kind = MULL_EVENT_NOTIFY_FAILED;
    failed.rule = NULL;
    failed.text = why;
    options->event(&failed, options->data);
}

/* call calls a notify, which takes its steps from those that are left. */
static void call(mull_engine *engine, mull__decider_state *decider_state, uint32_t notify,
                 const mull_event *event, int64_t *steps)
{
    char why[512] = "";
    if (mull__decider_state_notify(decider_state, notify, event, steps, why, sizeof why) < 0)
        notify_failed(engine, event, why);
}

/* keep_event copies what is told later. NULL: there is no memory for it, which is logged. */
static mull__pending *keep_event(mull_engine *engine, const mull_event *event)
{
    size_t size = strlen(event->text) + 1;
    mull__pending *kept = mull__alloc(&engine->allocator, sizeof *kept + size);
    if (!kept) {
        mull__engine_log(engine, MULL_ERROR_LEVEL, "not enough memory for notify to hear of %s: %s",
                         mull_event_name(event->kind), event->text);
        return NULL;
    }
    *kept = (mull__pending){.kind = event->kind, .rule = event->rule};
    memcpy(kept->generation, event->generation, sizeof kept->generation);
    memcpy(kept->text, event->text, size);
    return kept;
}

/* notify_for gives the function that hears of a consumer and transport (or NULL), -1: none does. */
static int64_t notify_for(const mull_engine *engine, const char *consumer, const char *transport)
{
    const mull__table *table = mull__generation_table(mull__decider_generation(engine->decider));
    if (table->function_count == 0)
        return -1;
    const mull__settings effective =
        mull__effective_settings_of(table, consumer, transport).settings;
    return effective.notify == MULL__OFF ? -1 : effective.notify - 1;
}

/* ---- About a message ------------------------------------------------------------------------- */

mull_failure mull__failure_of(const mull__delivery *d)
{
    const mull_port *port = d->consumer->port;
    uint32_t no_retry = d->consumer->can.can_retry ? 0 : MULL_CANNOT_RETRY;
    uint32_t no_delay = d->consumer->can.can_delay ? 0 : MULL_CANNOT_DELAY;
    return (mull_failure){.size = sizeof(mull_failure),
                          .error = d->error,
                          .message = &d->message,
                          .consumer = mull__consumer_name(d->consumer),
                          .transport = port->name,
                          .attempt = d->attempt,
                          .redeliveries = d->record.redeliveries,
                          .calls = d->record.calls + d->crashes + d->attempt,
                          .deliveries = d->message.deliveries,
                          .age_ms = d->age_ms,
                          .chance = d->chance,
                          .flags = MULL_HAS_CHANCE | no_retry | no_delay,
                          .held_ms = d->record.held_ms};
}

void mull__events_begin(mull__delivery *d)
{
    int64_t notify = notify_for(d->engine, d->consumer->name, d->consumer->port->name);
    if (notify < 0)
        return;
    d->decider_state = mull__decider_state_ref(d->engine->decider);
    d->notify = (uint32_t)notify;
}

void mull__event_from_decision(const mull_event *event, void *data)
{
    mull_engine *engine = data;
    mull__delivery *d = engine->judged;
    if (!d || !d->decider_state)
        return;
    mull__pending *kept = keep_event(engine, event);
    if (kept)
        mull__list_push(&d->pending, &kept->link);
}

/* tell_pending: what came up on the way to one verdict shares a budget. */
static void tell_pending(mull__delivery *d, const mull_event *about)
{
    mull_engine *engine = d->engine;
    int64_t steps = MULL__DECISION_STEPS;
    uint32_t skipped = 0;
    for (mull__link *link; (link = mull__list_pop(&d->pending));) {
        mull__pending *kept = MULL__ENTRY(link, mull__pending, link);
        mull_event event = *about;
        event.kind = kept->kind;
        event.rule = kept->rule;
        event.text = kept->text;
        if (steps > 0)
            call(engine, d->decider_state, d->notify, &event, &steps);
        else
            skipped++;
        if (skipped > 0 && d->pending.count == 0) {
            char why[128];
            snprintf(why, sizeof why,
                     "not told of %u event(s) of this message: those before took ten calls' budget",
                     skipped);
            notify_failed(engine, &event, why);
        }
        mull__free(&engine->allocator, kept);
    }
}

/* tell tells the embedder's event function first, then notify: what is pending, and this. */
static void tell(mull__delivery *d, const mull_event *event)
{
    int64_t steps = MULL__DECISION_STEPS;
    if (d->engine->options.event)
        d->engine->options.event(event, d->engine->options.data);
    if (!d->decider_state)
        return;
    tell_pending(d, event);
    call(d->engine, d->decider_state, d->notify, event, &steps);
    mull__events_end(d);
}

/* verdict_of gives the event of a delivery's verdict. It points to `failure`. */
static mull_event verdict_of(const mull__delivery *d, const mull_failure *failure)
{
    return (mull_event){.kind = MULL_EVENT_DECIDED,
                        .failure = failure,
                        .verdict = &d->verdict,
                        .rule = d->verdict.rule.file ? &d->verdict.rule : NULL,
                        .generation = d->verdict.generation};
}

void mull__event_decided(mull__delivery *d)
{
    mull_failure failure = mull__failure_of(d);
    mull_event event = verdict_of(d, &failure);
    tell(d, &event);
}

void mull__event_header_ignored(mull__delivery *d, const char *name)
{
    mull_failure failure = mull__failure_of(d);
    mull__decider_refresh(d->engine->decider);
    mull__events_begin(d);
    tell(d, &(mull_event){.kind = MULL_EVENT_HEADER_IGNORED, .failure = &failure, .text = name});
}

void mull__events_end(mull__delivery *d)
{
    if (!d->decider_state)
        return;
    mull_failure failure = mull__failure_of(d);
    mull_event event = verdict_of(d, &failure);
    tell_pending(d, &event);
    mull__decider_state_unref(d->decider_state);
    d->decider_state = NULL;
}

/* ---- About a consumer ------------------------------------------------------------------------ */

void mull__event_tell(mull_engine *engine, const mull_event *event, const char *consumer,
                      const char *transport)
{
    int64_t steps = MULL__DECISION_STEPS;
    mull_event told = *event;
    told.generation = mull__generation_name(mull__decider_refresh(engine->decider));
    if (engine->stop_reported)
        return;
    if (engine->options.event)
        engine->options.event(&told, engine->options.data);
    int64_t notify = notify_for(engine, consumer, transport);
    if (notify < 0)
        return;
    mull__decider_state *decider_state = mull__decider_state_ref(engine->decider);
    call(engine, decider_state, (uint32_t)notify, &told, &steps);
    mull__decider_state_unref(decider_state);
}

/* ---- About the policy ------------------------------------------------------------------------ */

/* The policy in force may have no notify for it, but the next one may. */
void mull__policy_event_add(void *data, const mull_event *event)
{
    mull_engine *engine = data;
    mull__pending *kept = keep_event(engine, event);
    if (!kept)
        return;
    uv_mutex_lock(&engine->mutex);
    mull__list_push(&engine->policy_events, &kept->link);
    mull__engine_wake(engine);
    uv_mutex_unlock(&engine->mutex);
}

/* A notify that can hear of reloads hears first what it is in. */
void mull__policy_event_at_start(mull_engine *engine)
{
    char text[1024];
    const mull__generation *generation = mull__decider_refresh(engine->decider);
    if (notify_for(engine, NULL, NULL) < 0)
        return;
    mull__policy_loaded_text(engine->options.policy, generation, text, sizeof text);
    mull__policy_event_add(engine, &(mull_event){.kind = MULL_EVENT_POLICY_LOADED,
                                                 .text = text,
                                                 .generation = mull__generation_name(generation)});
}

static mull__pending *next_policy_event(mull_engine *engine)
{
    uv_mutex_lock(&engine->mutex);
    mull__link *link = mull__list_pop(&engine->policy_events);
    uv_mutex_unlock(&engine->mutex);
    return link ? MULL__ENTRY(link, mull__pending, link) : NULL;
}

/* Of several reloads in a row the notify of the last one hears, and none after the stop. */
void mull__policy_events_deliver(mull_engine *engine)
{
    for (mull__pending *kept; (kept = next_policy_event(engine));) {
        int64_t steps = MULL__DECISION_STEPS;
        mull__decider_refresh(engine->decider);
        int64_t notify = notify_for(engine, NULL, NULL);
        if (notify >= 0 && !engine->stop_reported) {
            mull__decider_state *decider_state = mull__decider_state_ref(engine->decider);
            call(engine, decider_state, (uint32_t)notify,
                 &(mull_event){
                     .kind = kept->kind, .text = kept->text, .generation = kept->generation},
                 &steps);
            mull__decider_state_unref(decider_state);
        }
        mull__free(&engine->allocator, kept);
    }
}

/* ---- About a transport ----------------------------------------------------------------------- */

void mull__event_transports_up(mull_engine *engine)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));) {
        int tells = port->came_up && port->health == MULL_UP && !engine->stop_reported;
        port->came_up = 0;
        if (tells && engine->options.event)
            engine->options.event(
                &(mull_event){.kind = MULL_EVENT_TRANSPORT_UP, .text = port->name},
                engine->options.data);
    }
}
