/* tell.c: who hears of events: the embedder at once, and then the policy's own `notify`.
 *
 *   met while a failure is judged ──> kept at its flow ──┐
 *   the verdict is carried out ──> event function ───────┴──> notify
 *   a reload ends, on any thread ──> news ──> the pump ─────> notify
 *
 * A notify is called in the seat that the verdict came from, on the loop's thread. It can't change
 * anything; what it fails at is told to the embedder alone. */
#include "engine.h"

#include <string.h>

/* ---- Calling notify -------------------------------------------------------------------------- */

static void notify_failed(mull_engine *engine, const mull_event *event, const char *why)
{
    const mull_engine_options *options = &engine->options;
    engine->counts.notify_failed++;
    if (!options->event) {
        const mull_failure *failure = event->failure;
        mull__engine_log(engine, MULL_WARNING, "%s%snotify_failed: at %s%s%s: %s",
                         failure ? failure->consumer : "", failure ? ": " : "",
                         mull_event_name(event->kind), failure ? " of message " : "",
                         failure ? failure->message->id : "", why);
        return;
    }
    mull_event failed = *event;
    failed.kind = MULL_EVENT_NOTIFY_FAILED;
    failed.rule = NULL;
    failed.text = why;
    options->event(&failed, options->data);
}

static void call(mull_engine *engine, mull__seat *seat, uint32_t notify, const mull_event *event)
{
    char why[512] = "";
    if (mull__seat_notify(seat, notify, event, why, sizeof why) < 0)
        notify_failed(engine, event, why);
}

/* keep_event copies what is told later. NULL: there is no memory for it, which is logged. */
static mull__met *keep_event(mull_engine *engine, const mull_event *event)
{
    size_t size = strlen(event->text) + 1;
    mull__met *met = mull__alloc(&engine->allocator, sizeof *met + size);
    if (!met) {
        mull__engine_log(engine, MULL_ERROR_LEVEL, "not enough memory for notify to hear of %s: %s",
                         mull_event_name(event->kind), event->text);
        return NULL;
    }
    *met = (mull__met){.kind = event->kind, .rule = event->rule};
    memcpy(met->generation, event->generation, sizeof met->generation);
    memcpy(met->text, event->text, size);
    return met;
}

/* notify_for says which function hears of what happens to a consumer and transport, by name or
 * NULL, where the decider is at. -1: none does. */
static int64_t notify_for(const mull_engine *engine, const char *consumer, const char *transport)
{
    const mull__table *table = mull__generation_table(mull__decider_generation(engine->decider));
    if (mull__table_functions(table) == 0)
        return -1;
    mull__in_force in_force;
    mull__table_in_force(table, consumer, transport, &in_force);
    return in_force.notify == MULL__OFF ? -1 : in_force.notify - 1;
}

/* ---- What is about a message ----------------------------------------------------------------- */

void mull__tell_begin(mull__flow *flow)
{
    mull_engine *engine = flow->consumer->engine;
    int64_t notify = notify_for(engine, flow->consumer->name, flow->consumer->port->name);
    if (notify < 0)
        return;
    flow->seat = mull__decider_seat(engine->decider);
    flow->notify = (uint32_t)notify;
}

/* hear is told what the decider meets. */
static void hear(const mull_event *event, void *data)
{
    mull_engine *engine = data;
    mull__flow *flow = engine->judged;
    if (!flow || !flow->seat)
        return;
    mull__met *met = keep_event(engine, event);
    if (met)
        mull__list_push(&flow->met, &met->link);
}

void mull__tell_end(mull__flow *flow, const mull_event *about)
{
    if (!flow->seat)
        return;
    mull_engine *engine = flow->consumer->engine;
    for (mull__link *link; (link = mull__list_pop(&flow->met));) {
        mull__met *met = MULL__ENTRY(link, mull__met, link);
        mull_event event = *about;
        event.kind = met->kind;
        event.rule = met->rule;
        event.text = met->text;
        call(engine, flow->seat, flow->notify, &event);
        mull__free(&engine->allocator, met);
    }
    mull__seat_drop(flow->seat);
    flow->seat = NULL;
}

void mull__tell(mull__flow *flow, const mull_event *event)
{
    mull_engine *engine = flow->consumer->engine;
    if (engine->options.event)
        engine->options.event(event, engine->options.data);
    if (!flow->seat)
        return;
    mull__seat *seat = mull__seat_keep(flow->seat);
    mull__tell_end(flow, event);
    call(engine, seat, flow->notify, event);
    mull__seat_drop(seat);
}

/* ---- What became of reloads ------------------------------------------------------------------ */

/* mull__news_add keeps what the policy in force has no ear for, too: the next one may have. */
void mull__news_add(void *data, const mull_event *event)
{
    mull_engine *engine = data;
    mull__met *news = keep_event(engine, event);
    if (!news)
        return;
    uv_mutex_lock(&engine->mutex);
    mull__list_push(&engine->news, &news->link);
    mull__engine_wake(engine);
    uv_mutex_unlock(&engine->mutex);
}

static mull__met *next_news(mull_engine *engine)
{
    uv_mutex_lock(&engine->mutex);
    mull__link *link = mull__list_pop(&engine->news);
    uv_mutex_unlock(&engine->mutex);
    return link ? MULL__ENTRY(link, mull__met, link) : NULL;
}

/* mull__news_tell: of several reloads in a row the notify of the last one hears; not of one that
 * came just as the engine stopped. */
void mull__news_tell(mull_engine *engine)
{
    for (mull__met *news; (news = next_news(engine));) {
        mull__decider_latest(engine->decider);
        int64_t notify = notify_for(engine, NULL, NULL);
        if (notify >= 0 && !engine->told_stopped) {
            mull__seat *seat = mull__decider_seat(engine->decider);
            call(engine, seat, (uint32_t)notify,
                 &(mull_event){
                     .kind = news->kind, .text = news->text, .generation = news->generation});
            mull__seat_drop(seat);
        }
        mull__free(&engine->allocator, news);
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

void mull__tell_open(mull_engine *engine)
{
    mull__decider_hear(engine->decider, hear, engine);
}

void mull__tell_close(mull_engine *engine)
{
    for (mull__met *news; (news = next_news(engine));)
        mull__free(&engine->allocator, news);
}
