/* port.c: what transports call, see mulligan/transport.h, and what they are asked from outside of a
 * handler: to publish, and for depths. */
#include "port.h"

#include "base/compiler.h"
#include "base/struct_compat.h"
#include "base/utf8.h"
#include "copy.h"
#include "delivery.h"
#include "engine_control.h"
#include "questions.h"
#include "settlement.h"
#include "timers.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* As in base/struct_compat.h, of mulligan/transport.h. */
enum {
    ABILITIES_LEAST = MULL__SIZE_TO(mull_abilities, claim_timeout_ms),
    DELIVERY_LEAST = MULL__SIZE_TO(mull_delivery, runtime)
};

/* misused logs what a transport may not do, and nothing else comes of it. */
static void misused(mull_port *port, const char *what)
{
    mull__engine_log(port->engine, MULL_ERROR_LEVEL, "transport %s: %s", port->name, what);
}

/* ---- Deliveries ------------------------------------------------------------------------------ */

/* defer keeps a delivery for which there is no memory now, behind those before it. Its `runtime`
 * links it to the next. */
static void defer(mull_port *port, mull_delivery *delivery)
{
    void **end = &port->deferred;
    while (*end)
        end = &((mull_delivery *)*end)->runtime;
    if (!port->deferred && !port->engine->grace_over)
        mull__timer_set(port->engine, &port->deferred_timer, MULL__AGAIN_MS, mull__deferred_try,
                        port);
    delivery->ticket = ++port->engine->tickets.last;
    *end = delivery;
}

void mull__deferred_try(void *data)
{
    mull_port *port = data;
    mull__engine_cancel(port->engine, &port->deferred_timer);
    mull_delivery *delivery = port->deferred;
    port->deferred = NULL;
    while (delivery) {
        mull_delivery *next = delivery->runtime;
        delivery->runtime = NULL;
        mull_port_delivered(port, delivery->consumer, delivery);
        delivery = next;
    }
}

/* find_deferred finds what points to the first deferred delivery that is `delivery`, or has this
 * ticket. NULL: there is none. */
static void **find_deferred(mull_port *port, const mull_delivery *delivery, mull_ticket ticket)
{
    void **at = &port->deferred;
    while (*at && *at != delivery && ((mull_delivery *)*at)->ticket != ticket)
        at = &((mull_delivery *)*at)->runtime;
    return *at ? at : NULL;
}

int mull__has_deferred(const mull__consumer *c)
{
    const mull_delivery *delivery = c->port->deferred;
    while (delivery && delivery->consumer != c->ticket.number)
        delivery = delivery->runtime;
    return delivery != NULL;
}

/* consumer_of finds a consumer by its ticket, NULL: there is none of this port. */
static mull__consumer *consumer_of(const mull_port *port, mull_ticket number)
{
    mull__ticket *ticket = mull__ticket_find(port, number);
    int is_one = ticket && ticket->kind == MULL__TICKET_CONSUMER;
    return is_one ? MULL__ENTRY(ticket, mull__consumer, ticket) : NULL;
}

static const char *wrong_with(mull_port *port, const mull__consumer *consumer,
                              const mull_delivery *delivery)
{
    if (port->state != MULL__PORT_OPEN)
        return "it delivered a message after it was told to close";
    if (!consumer)
        return "it delivered a message that belongs to none of its subscriptions";
    if (delivery->size < DELIVERY_LEAST ||
        (delivery->message && delivery->message->size < MULL__MESSAGE_LEAST))
        return "it delivered a message whose `size`, or that of its delivery, isn't set";
    if (!delivery->message || delivery->runtime || find_deferred(port, delivery, 0))
        return "it delivered a message that isn't new";
    return NULL;
}

void mull_port_delivered(mull_port *port, mull_ticket number, mull_delivery *delivery)
{
    if (!port || !delivery)
        return;
    mull__consumer *consumer = consumer_of(port, number);
    const char *wrong = wrong_with(port, consumer, delivery);
    if (wrong) {
        misused(port, wrong);
        return;
    }
    delivery->consumer = number;
    port->engine->active_ms = mull__turn_ms(port->engine);
    if (port->deferred || mull__delivery_arrive(consumer, delivery) != 0) /* none overtakes */
        defer(port, delivery);
}

/* let_go releases a deferred delivery, which `at` points to. */
static void let_go(mull_port *port, void **at)
{
    mull_delivery *delivery = *at;
    *at = delivery->runtime;
    delivery->runtime = NULL;
    port->ops->release(port->self, delivery);
}

void mull__deferred_release(mull_port *port)
{
    if (port->deferred)
        mull__engine_log(port->engine, MULL_ERROR_LEVEL,
                         "transport %s: there was no memory for what it delivered last; that will "
                         "be handed out again",
                         port->name);
    if (port->state == MULL__PORT_CLOSED) /* it has freed them */
        port->deferred = NULL;
    while (port->deferred)
        let_go(port, &port->deferred);
}

void mull_port_lost(mull_port *port, mull_ticket number, const char *why)
{
    if (!port)
        return;
    mull__ticket *ticket = mull__ticket_find(port, number);
    void **deferred = ticket ? NULL : find_deferred(port, NULL, number);
    if (deferred) {
        let_go(port, deferred);
        mull__engine_mark_posted(port->engine); /* a stop may have waited for it */
    } else if (ticket && ticket->kind == MULL__TICKET_DELIVERY) {
        mull__delivery_lost(MULL__ENTRY(ticket, mull__delivery, ticket), why);
    } else {
        misused(port, "it lost a message that it never delivered");
    }
}

/* ---- Sources --------------------------------------------------------------------------------- */

static void begin_holding(mull__consumer *c);

static void on_hold(void *data)
{
    mull__consumer *c = data;
    mull_port *port = c->port;
    if (c->deliveries > 0 && mull__fault_hit(port, MULL__HOLD) == 0) {
        port->ops->hold(port->self, c->subscription);
        mull__port_asked(port);
    }
    begin_holding(c);
}

/* begin_holding renews claims three times in their timeout. */
static void begin_holding(mull__consumer *c)
{
    int64_t timeout_ms = c->can.claim_timeout_ms;
    if (timeout_ms > 0 && c->can.can_hold && c->port->state == MULL__PORT_OPEN)
        mull__timer_set(c->engine, &c->hold_timer, timeout_ms < 3 ? 1 : timeout_ms / 3, on_hold, c);
}

/* shortfall names an ability that was promised and isn't there, NULL: all are. */
static const char *shortfall(const mull_abilities *promised, const mull_abilities *found)
{
    int64_t longest_ms = found->longest_delay_ms ? found->longest_delay_ms : INT64_MAX;
    int64_t claim_ms = found->claim_timeout_ms ? found->claim_timeout_ms : INT64_MAX;
    int64_t least_ms = promised->claim_timeout_ms ? promised->claim_timeout_ms : INT64_MAX;
    int64_t step_ms = promised->delay_step_ms > 1 ? promised->delay_step_ms : 1;
    return found->can_retry < promised->can_retry   ? "retries"
           : found->can_delay < promised->can_delay ? "delays"
           : longest_ms < (promised->longest_delay_ms ? promised->longest_delay_ms : INT64_MAX)
               ? "delays as long as that"
           : found->delay_step_ms > step_ms                   ? "delays as exact as that"
           : found->can_hold < promised->can_hold             ? "holding claims"
           : claim_ms < least_ms                              ? "claims as long as that"
           : found->can_note < promised->can_note             ? "notes"
           : found->settles_whole < promised->settles_whole   ? "settlements in one transaction"
           : found->deliveries < promised->deliveries         ? "counts of deliveries"
           : found->depth < promised->depth                   ? "depths"
           : found->counts_at_once < promised->counts_at_once ? "depths of one moment"
                                                              : NULL;
}

static void source_refused(mull__consumer *c, const char *why)
{
    char text[sizeof c->why];
    snprintf(text, sizeof text, "%s", why && *why ? why : mull_strerror(MULL_EREFUSED));
    mull__utf8_repair(text, strlen(text));
    if (c->source == MULL_SOURCE_REFUSED && strcmp(text, c->why) == 0)
        return;
    c->source = MULL_SOURCE_REFUSED;
    memcpy(c->why, text, sizeof text);
    mull__engine_cancel(c->engine, &c->hold_timer);
    if (!c->is_reader) /* its consumers are told of, each */
        mull__engine_log(c->engine, MULL_ERROR_LEVEL, "consumer '%s' can't read the queue '%s': %s",
                         c->name, c->queue, c->why);
}

static void source_waits(mull__consumer *c, const char *why)
{
    char text[sizeof c->why];
    snprintf(text, sizeof text, "%s", why ? why : "");
    mull__utf8_repair(text, strlen(text));
    c->source = MULL_SOURCE_WAITING;
    if (text[0] && strcmp(text, c->why) != 0 && !c->is_reader)
        mull__engine_log(c->engine, MULL_WARNING, "consumer '%s' waits for its queue '%s': %s",
                         c->name, c->queue, text);
    memcpy(c->why, text, sizeof text);
}

static void source_ready(mull__consumer *c, const mull_abilities *found)
{
    const char *less = found ? shortfall(&c->floor, found) : NULL;
    if (less) {
        char why[128];
        snprintf(why, sizeof why, "the transport promised %s, and hasn't got them for it", less);
        c->lacking = 1;
        source_refused(c, why);
        return;
    }
    if (c->why[0] && !c->is_reader)
        mull__engine_log(c->engine, MULL_INFO, "consumer '%s' reads the queue '%s'", c->name,
                         c->queue);
    c->why[0] = 0;
    uv_mutex_lock(&c->engine->mutex); /* mull_send reads them on any thread */
    c->can = found ? *found : c->floor;
    c->can.can_hold &= c->port->ops->hold != NULL;
    if (!c->port->ops->depth)
        c->can.depth = MULL_DEPTH_NONE;
    uv_mutex_unlock(&c->engine->mutex);
    c->source = MULL_SOURCE_READY;
    if (!c->reader)
        begin_holding(c);
}

static void set_source(mull__consumer *c, mull_source_state state, const mull_abilities *found,
                       const char *why)
{
    if (state == MULL_SOURCE_READY)
        source_ready(c, found);
    else if (state == MULL_SOURCE_WAITING)
        source_waits(c, why);
    else
        source_refused(c, why);
}

void mull__source_set(mull__consumer *c, mull_source_state state, const mull_abilities *found,
                      const char *why)
{
    set_source(c, state, found, why);
    for (mull__consumer *m = NULL; c->is_reader && (m = mull__next_consumer(c->engine, m));)
        if (m->reader == c)
            set_source(m, state, found, why);
}

void mull_port_source(mull_port *port, mull_ticket number, mull_source_state state,
                      const mull_abilities *found, const char *why)
{
    if (!port)
        return;
    mull__consumer *c = consumer_of(port, number);
    mull_abilities own;
    if (found && !mull__struct_copy_in(&own, sizeof own, ABILITIES_LEAST, found)) {
        misused(port, "it says what holds for a queue without its `size`");
        return;
    }
    int over = port->state != MULL__PORT_OPEN || (c && c->lacking);
    if (!c)
        misused(port, "it speaks of a subscription that isn't one of its own");
    if (!c || (c->ending ? state != MULL_SOURCE_ENDED : over))
        return;
    mull__engine_mark_posted(port->engine);
    if (state != MULL_SOURCE_ENDED)
        mull__source_set(c, state, found ? &own : NULL, why);
    else if (c->ending)
        c->ended = 1;
    else
        misused(port, "it ended a subscription without being asked to");
}

/* ---- Health, closing, timers and the rest ---------------------------------------------------- */

const char *mull__transport_why(mull_engine *engine, const char *transport)
{
    const mull_port *port = mull__port_named(engine, transport);
    return port ? port->why : "";
}

/* break_down stops the engine, since this transport won't work again. No try to settle waits. */
static void break_down(mull_port *port, const char *why)
{
    mull_engine *engine = port->engine;
    if (engine->state != MULL__STOPPED)
        engine->status = mull__engine_problem(engine, MULL_EIO, "transport '%s': %s", port->name,
                                              why && *why ? why : "it is broken");
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));)
        if (d->consumer->port == port)
            mull__settlement_retry_now(d);
    mull_stop(engine);
}

/* tell_state tells the log of a change, but not that a transport which was never down is up. */
static void tell_state(mull_port *port)
{
    if (port->health == MULL_UP) {
        if (port->told)
            mull__engine_log(port->engine, MULL_INFO, "transport %s is up%s", port->name,
                             port->was_up ? " again" : "");
        port->was_up = 1;
    } else {
        mull__engine_log(port->engine, MULL_ERROR_LEVEL, "transport %s is %s%s%s", port->name,
                         port->health == MULL_DOWN ? "down" : "broken", port->why[0] ? ": " : "",
                         port->why);
    }
    port->told = port->health != MULL_UP;
}

void mull_port_state(mull_port *port, mull_health health, const char *why)
{
    if (!port || port->health == MULL_BROKEN)
        return;
    if (health != MULL_DOWN && health != MULL_UP && health != MULL_BROKEN) {
        misused(port, "its health is none that is known");
        return;
    }
    char text[sizeof port->why];
    snprintf(text, sizeof text, "%s", why && health != MULL_UP ? why : "");
    mull__utf8_repair(text, strlen(text));
    if (health == port->health && strcmp(text, port->why) == 0)
        return;
    port->came_up |= health == MULL_UP && port->engine->state != MULL__NEW;
    if (health != port->health)
        port->since_ms = mull__engine_now(port->engine);
    port->health = health;
    memcpy(port->why, text, sizeof text);
    tell_state(port);
    if (health == MULL_BROKEN)
        break_down(port, why);
    mull__engine_mark_posted(port->engine);
}

void mull_port_closed(mull_port *port)
{
    if (!port)
        return;
    if (port->state != MULL__PORT_CLOSING) {
        misused(port, "it closed without being asked to");
        return;
    }
    port->state = MULL__PORT_CLOSED;
    mull__engine_mark_posted(port->engine);
}

mull_timer *mull_port_timer_new(mull_port *port, void (*fire)(void *data), void *data)
{
    if (!port || !fire)
        return NULL;
    mull_timer *timer = mull__zalloc(&port->engine->allocator, 1, sizeof *timer);
    if (timer)
        *timer = (mull_timer){.fire = fire, .data = data};
    return timer;
}

void mull_port_timer_set(mull_port *port, mull_timer *timer, int64_t delay_ms)
{
    if (!port || !timer)
        return;
    if (delay_ms == MULL_NEVER)
        mull__engine_cancel(port->engine, timer);
    else
        mull__timer_set(port->engine, timer, delay_ms, timer->fire, timer->data);
}

void mull_port_timer_free(mull_port *port, mull_timer *timer)
{
    if (!port || !timer)
        return;
    mull__engine_cancel(port->engine, timer);
    mull__free(&port->engine->allocator, timer);
}

void mull_port_working(mull_port *port, int change)
{
    if (!port)
        return;
    if (port->engine->working + change < 0) {
        misused(port, "it ended more work than it began");
        return;
    }
    mull__engine_working(port->engine, change);
}

void *mull_port_data(const mull_port *port)
{
    return port ? port->data : NULL;
}

int64_t mull_port_now(const mull_port *port)
{
    return port ? mull__engine_now(port->engine) : 0;
}

int64_t mull_port_wall(const mull_port *port)
{
    return port ? mull__engine_wall(port->engine) : 0;
}

struct uv_loop_s *mull_port_loop(mull_port *port)
{
    return port ? port->engine->loop : NULL;
}

const mull_allocator *mull_port_allocator(const mull_port *port)
{
    return port ? &port->engine->allocator : NULL;
}

void mull_port_log(mull_port *port, mull_level level, const char *text)
{
    if (port && text)
        mull__engine_log(port->engine, level, "transport %s: %s", port->name, text);
}

/* ---- Publishing, and depths ------------------------------------------------------------------ */

/* asking is a question with those who wait for its answer. */
typedef struct asking {
    mull__question question; /* first */
    mull_engine *engine;
    mull_depth found; /* as it was answered */
    mull_published_fn published;
    mull_depth_fn depth;
    void *data;
} asking;

/* answer tells who asked, and is the end of the question. */
static void answer(asking *a, int status)
{
    static const mull_depth unknown = {MULL_UNKNOWN, MULL_UNKNOWN, MULL_UNKNOWN, INT64_MAX};
    const asking asked = *a;
    mull__question_end(a->engine, &a->question);
    mull__free(&asked.engine->allocator, a);
    mull__engine_mark_posted(asked.engine);
    if (asked.depth)
        asked.depth(status, status == 0 ? &asked.found : &unknown, asked.data);
    else if (asked.published)
        asked.published(status, asked.data);
}

static const char unpublished[] = "a message isn't published";

/* tell_why tells the log why something could not be done, when that changes. */
static void tell_why(mull_port *port, const char *what, int status, const char *why)
{
    char text[sizeof port->failed_why];
    snprintf(text, sizeof text, "%s", status != 0 && why ? why : "");
    if (text[0] && strcmp(text, port->failed_why) != 0)
        mull__engine_log(port->engine, MULL_WARNING, "transport %s: %s: %s", port->name, what,
                         text);
    memcpy(port->failed_why, text, sizeof text);
}

static void on_answered(mull__question *question, int status, const char *why)
{
    asking *a = (asking *)question;
    tell_why(question->ticket.port,
             a->depth ? "the messages of a queue aren't counted" : unpublished, status, why);
    answer(a, status);
}

static void on_unanswered(mull__question *question)
{
    const mull_port *port = question->ticket.port;
    asking *a = (asking *)question;
    mull__engine_log(port->engine, MULL_WARNING, "transport %s has not said for %d s %s",
                     port->name, MULL__ANSWER_MS / 1000,
                     a->depth ? "how many messages are in a queue"
                              : "whether a message that is published is safe");
    answer(a, MULL_EIO);
}

static const mull__asker asker = {.answered = on_answered, .unanswered = on_unanswered};

void mull__questions_fail(mull_engine *engine)
{
    for (mull__link *link; (link = mull__list_first(&engine->questions));)
        answer((asking *)MULL__ENTRY(link, mull__question, link), MULL_EIO);
}

/* ask publishes `outgoing`, or asks for the depth of `queue`, for a copy of `asked`. */
static int ask(mull_port *port, const asking *asked, const mull_outgoing *outgoing,
               const char *queue)
{
    mull_engine *engine = port->engine;
    asking *a = mull__alloc(&engine->allocator, sizeof *a);
    if (!a)
        return MULL_ENOMEM;
    *a = *asked;
    a->engine = engine;
    mull_ticket ticket = mull__question_ask(
        port, &a->question, queue ? MULL__TICKET_DEPTH : MULL__TICKET_PUBLISH, &asker);
    int fault = mull__fault_hit(port, queue ? MULL__DEPTH : MULL__PUBLISH), status = 0;
    if (fault != 0)
        mull__question_answered(&a->question, fault, NULL);
    else if (queue)
        status = port->ops->depth(port->self, queue, ticket);
    else
        status = port->ops->publish(port->self, outgoing, ticket);
    mull__question_asked(&a->question);
    if (status != 0) {
        mull__question_end(engine, &a->question);
        mull__free(&engine->allocator, a);
    }
    return mull__refusal(status);
}

/* reachable finds a transport that can be asked something. */
static int reachable(mull_port **out, mull_engine *engine, const char *name)
{
    if (engine->closing)
        return MULL_ESTATE;
    *out = mull__port_named(engine, name);
    if (!*out)
        return MULL_EINVAL;
    return (*out)->health == MULL_BROKEN ? MULL_EIO : 0;
}

/* check_delay goes by what is promised of the queue; the log tells why it is refused. */
MULL__COLD static int check_delay(mull_port *port, const char *queue, int64_t delay_ms)
{
    mull_abilities floor;
    char why[256] = "";
    int status = mull__look(port->ops, port->url, queue, &floor, why, sizeof why);
    if (status == 0) {
        status = mull__delay_check(&floor, delay_ms);
        snprintf(why, sizeof why, "it can't be delayed%s", floor.can_delay ? " for so long" : "");
    }
    if (status != 0)
        tell_why(port, unpublished, status, why);
    return status;
}

int mull_publish(mull_engine *engine, const char *transport, const mull_message *message,
                 int64_t delay_ms, mull_published_fn published, void *data)
{
    if (!engine || !transport || delay_ms < 0)
        return MULL_EINVAL;
    mull_port *port = NULL;
    char id[33];
    mull_message own;
    const mull_outgoing outgoing = {
        .size = sizeof outgoing, .message = &own, .due_ms = mull__engine_due(engine, delay_ms)};
    int status = mull__message_take(engine, &own, id, message);
    if (status == 0)
        status = reachable(&port, engine, transport);
    if (status == 0 && delay_ms > 0)
        status = check_delay(port, own.queue, delay_ms);
    if (status != 0)
        return status;
    return ask(port, &(asking){.published = published, .data = data}, &outgoing, NULL);
}

int mull_queue_depth(mull_engine *engine, const char *transport, const char *queue,
                     mull_depth_fn depth, void *data)
{
    if (!engine || !transport || !queue || !queue[0] || !depth)
        return MULL_EINVAL;
    mull_port *port;
    int status = reachable(&port, engine, transport);
    if (status != 0)
        return status;
    if (!port->ops->depth)
        return MULL_EREFUSED;
    return ask(port, &(asking){.depth = depth, .data = data}, NULL, queue);
}

/* unanswered finds what a transport was asked and hasn't answered yet. NULL, and the log knows:
 * there is none that takes this kind of answer. */
static mull__question *unanswered(mull_port *port, mull_ticket number, int depth)
{
    mull__ticket *ticket = mull__ticket_find(port, number);
    int is_question = ticket && ticket->kind >= MULL__TICKET_SETTLEMENT &&
                      depth == (ticket->kind == MULL__TICKET_DEPTH);
    mull__question *question = is_question ? MULL__ENTRY(ticket, mull__question, ticket) : NULL;
    if (question && !question->kept)
        return question;
    misused(port, "it answered what it wasn't asked");
    return NULL;
}

void mull_port_answer(mull_port *port, mull_ticket number, int status, const char *why)
{
    mull__question *question = port ? unanswered(port, number, 0) : NULL;
    if (question)
        mull__question_answered(question, mull__refusal(status), why);
}

void mull_port_depth(mull_port *port, mull_ticket number, int status, const mull_depth *depth,
                     const char *why)
{
    mull__question *question = port ? unanswered(port, number, 1) : NULL;
    if (!question)
        return;
    if (depth)
        ((asking *)question)->found = *depth;
    mull__question_answered(question, status == 0 && !depth ? MULL_EINVAL : mull__refusal(status),
                            why);
}

/* ---- For modules ----------------------------------------------------------------------------- */

#define CALL(name, parameters, arguments)             .name = mull_port_##name,
#define CALL_GIVES(type, name, parameters, arguments) .name = mull_port_##name,

const mull_port_calls mull__port_calls = {MULL__PORT_CALLS(CALL, CALL_GIVES)};

static_assert(offsetof(mull_port, calls) == 0, "modules look there");
