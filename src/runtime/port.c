/* port.c: what transports call, see mulligan/transport.h, and what they are asked from outside of a
 * handler: to publish, and for depths. */
#include "port.h"

#include "copy.h"
#include "delivery.h"
#include "settlement.h"
#include "timers.h"

#include <assert.h>
#include <stddef.h>

/* misused logs what a transport may not do, and nothing else comes of it. */
static void misused(mull_port *port, const char *what)
{
    mull__engine_log(port->engine, MULL_ERROR_LEVEL, "transport %s: %s", port->name, what);
}

/* ---- Deliveries ------------------------------------------------------------------------------ */

/* defer keeps a delivery for which there is no memory now. Its `runtime` links it to the next. */
static void defer(mull_port *port, mull_delivery *delivery)
{
    if (!port->deferred && !port->engine->grace_over)
        mull__timer_set(port->engine, &port->deferred_timer, MULL__AGAIN_MS, mull__deferred_try,
                        port);
    delivery->runtime = port->deferred;
    port->deferred = delivery;
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
        mull_port_delivered(port, delivery);
        delivery = next;
    }
}

/* deferred_at finds what points to a deferred delivery. NULL: it isn't one. */
static void **deferred_at(mull_port *port, const mull_delivery *delivery)
{
    void **at = &port->deferred;
    while (*at && *at != delivery)
        at = &((mull_delivery *)*at)->runtime;
    return *at ? at : NULL;
}

static const char *wrong_with(mull_port *port, const mull_delivery *delivery)
{
    if (port->state != MULL__PORT_OPEN)
        return "it delivered a message after it was told to close";
    if (!delivery->subscription || delivery->subscription->port != port)
        return "it delivered a message that belongs to none of its subscriptions";
    if (delivery->runtime || deferred_at(port, delivery))
        return "it delivered a message that isn't new";
    return NULL;
}

void mull_port_delivered(mull_port *port, mull_delivery *delivery)
{
    if (!port || !delivery)
        return;
    const char *wrong = wrong_with(port, delivery);
    if (wrong)
        misused(port, wrong);
    else if (mull__delivery_arrive(port, delivery) != 0)
        defer(port, delivery);
}

void mull_port_settled(mull_port *port, mull_delivery *delivery, int status)
{
    if (!port || !delivery)
        return;
    mull__delivery *d = delivery->runtime;
    if (!d || deferred_at(port, delivery) || !d->asked)
        misused(port, "it settled a message that it wasn't asked to settle");
    else
        mull__settlement_answered(d, status);
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
    while (port->deferred)
        let_go(port, &port->deferred);
}

void mull_port_lost(mull_port *port, mull_delivery *delivery)
{
    if (!port || !delivery)
        return;
    void **deferred = deferred_at(port, delivery);
    if (deferred) {
        let_go(port, deferred);
        mull__engine_mark_posted(port->engine); /* a stop may have waited for it */
    } else if (delivery->runtime) {
        mull__delivery_lost(delivery->runtime);
    } else {
        misused(port, "it lost a message that it never delivered");
    }
}

/* ---- Holding claims -------------------------------------------------------------------------- */

static void on_hold(void *data)
{
    mull_port *port = data;
    for (mull__delivery *d = NULL; (d = mull__next_delivery(port->engine, d));)
        if (d->consumer->port == port && d->state < MULL__SETTLED && !d->claim_lost &&
            mull__fault_hit(port, MULL__HOLD) == 0)
            port->ops->hold(port->self, d->handed);
    mull__port_begin_holding(port);
}

void mull__port_begin_holding(mull_port *port)
{
    int64_t timeout_ms = port->abilities.claim_timeout_ms;
    if (timeout_ms > 0 && port->abilities.can_hold && port->ops->hold &&
        port->state == MULL__PORT_OPEN)
        mull__timer_set(port->engine, &port->hold_timer, timeout_ms < 3 ? 1 : timeout_ms / 3,
                        on_hold, port);
}

/* ---- Health, closing, timers and the rest ---------------------------------------------------- */

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

void mull_port_state(mull_port *port, mull_health health, const char *why)
{
    static const char *const words[] = {
        [MULL_DOWN] = "down", [MULL_UP] = "up again", [MULL_BROKEN] = "broken"};
    if (!port || health == port->health || port->health == MULL_BROKEN)
        return;
    if ((unsigned)health >= sizeof words / sizeof *words) {
        misused(port, "its health is none that is known");
        return;
    }
    port->health = health;
    mull__engine_log(port->engine, health == MULL_UP ? MULL_INFO : MULL_ERROR_LEVEL,
                     "transport %s is %s%s%s", port->name, words[health], why && *why ? ": " : "",
                     why ? why : "");
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

mull_timer *mull_port_after(mull_port *port, int64_t delay_ms, void (*fire)(void *data), void *data)
{
    return port && fire ? mull__engine_after(port->engine, delay_ms, fire, data) : NULL;
}

void mull_port_cancel(mull_port *port, mull_timer *timer)
{
    if (port)
        mull__engine_cancel(port->engine, timer);
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
    port->engine->working += change;
    if (port->engine->working == 0)
        mull__engine_mark_posted(port->engine); /* a stop may have waited for it */
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

/* ---- Publishing, and depths: each question has a ticket, which its answer brings back -------- */

typedef struct ticket {
    mull_port *port;
    mull_published_fn published;
    mull_depth_fn answer;
    void *data;
    int code; /* of a fault that stands in for the transport */
} ticket;

static void on_fault(void *data)
{
    ticket *t = data;
    if (t->answer)
        mull_port_depth(t->port, t, t->code, NULL);
    else
        mull_port_published(t->port, t, t->code);
}

/* ask publishes `outgoing`, or asks for the depth of `queue`, with a copy of this ticket. */
static int ask(const ticket *given, const mull_outgoing *outgoing, const char *queue)
{
    mull_port *port = given->port;
    const mull_allocator *allocator = &port->engine->allocator;
    ticket *t = mull__alloc(allocator, sizeof *t);
    if (!t)
        return MULL_ENOMEM;
    *t = *given;
    t->code = mull__fault_hit(port, queue ? MULL__DEPTH : MULL__PUBLISH);
    int status = t->code ? (mull__engine_after(port->engine, 0, on_fault, t) ? 0 : MULL_ENOMEM)
                 : queue ? port->ops->depth(port->self, queue, t)
                         : port->ops->publish(port->self, outgoing, t);
    if (status != 0)
        mull__free(allocator, t);
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

int mull_publish(mull_engine *engine, const char *transport, const mull_message *message,
                 int64_t delay_ms, mull_published_fn published, void *data)
{
    if (!engine || !transport || delay_ms < 0)
        return MULL_EINVAL;
    mull_port *port = NULL;
    char id[33];
    mull_outgoing outgoing = {.due_ms = mull__engine_due(engine, delay_ms)};
    int status = mull__message_take(engine, &outgoing.message, id, message);
    if (status == 0)
        status = reachable(&port, engine, transport);
    if (status == 0)
        status = mull__delay_check(&port->abilities, delay_ms);
    if (status != 0)
        return status;
    return ask(&(ticket){.port = port, .published = published, .data = data}, &outgoing, NULL);
}

void mull_port_published(mull_port *port, void *data, int status)
{
    if (!port || !data)
        return;
    ticket t = *(ticket *)data;
    mull__free(&port->engine->allocator, data);
    mull__engine_mark_posted(port->engine);
    if (t.published)
        t.published(status, t.data);
}

int mull_queue_depth(mull_engine *engine, const char *transport, const char *queue,
                     mull_depth_fn answer, void *data)
{
    if (!engine || !transport || !queue || !queue[0] || !answer)
        return MULL_EINVAL;
    mull_port *port;
    int status = reachable(&port, engine, transport);
    if (status != 0)
        return status;
    return ask(&(ticket){.port = port, .answer = answer, .data = data}, NULL, queue);
}

void mull_port_depth(mull_port *port, void *data, int status, const mull_depth *depth)
{
    if (!port || !data)
        return;
    ticket t = *(ticket *)data;
    mull__free(&port->engine->allocator, data);
    mull__engine_mark_posted(port->engine);
    static const mull_depth unknown = {.next_due_ms = INT64_MAX};
    if (status == 0 && !depth)
        status = MULL_EINVAL;
    t.answer(status, status == 0 ? depth : &unknown, t.data);
}

/* ---- For modules ----------------------------------------------------------------------------- */

#define CALL(name, parameters, arguments)             .name = mull_port_##name,
#define CALL_GIVES(type, name, parameters, arguments) .name = mull_port_##name,

const mull_port_calls mull__port_calls = {MULL__PORT_CALLS(CALL, CALL_GIVES)};

static_assert(offsetof(mull_port, calls) == 0, "modules look there");
