/* port.c: what transports call; see mulligan/transport.h for the contracts. */
#include "engine.h"

enum { STRAYS_MS = 100 };

/* misused says what a transport did that it may not. It is let be: a message may then come again,
 * and none is lost. */
static void misused(mull_port *port, const char *what)
{
    mull__engine_log(port->engine, MULL_ERROR_LEVEL, "transport %s: %s", port->name, what);
}

/* mull__fault_hit says whether a test wants this operation to fail, and how. */
int mull__fault_hit(mull_port *port, mull__operation operation, int *code)
{
    mull__fault *fault = &port->faults[operation];
    if (fault->times == 0)
        return 0;
    if (fault->skip > 0) {
        fault->skip--;
        return 0;
    }
    fault->times--;
    *code = fault->code;
    return 1;
}

/* ---- Deliveries ------------------------------------------------------------------------------ */

static void on_strays(void *data);

/* stray keeps a delivery for which there was no memory, until there is: its own `runtime` is link
 * enough. At the end nothing is waited for any more. */
static void stray(mull_port *port, mull_delivery *delivery)
{
    if (!port->strays && !port->engine->grace_over)
        mull__timer_set(port->engine, &port->stray_timer, STRAYS_MS, on_strays, port);
    delivery->runtime = port->strays;
    port->strays = delivery;
}

static void on_strays(void *data)
{
    mull__strays_try(data);
}

void mull__strays_try(mull_port *port)
{
    mull__timer_cancel(port->engine, &port->stray_timer);
    mull_delivery *delivery = port->strays;
    port->strays = NULL;
    while (delivery) {
        mull_delivery *next = delivery->runtime;
        delivery->runtime = NULL;
        mull_port_delivered(port, delivery);
        delivery = next;
    }
}

/* is_stray looks through what is only there when memory ran out: the last one's `runtime` is NULL,
 * as if it were new, and that of the others is no flow. */
static int is_stray(const mull_port *port, const mull_delivery *delivery)
{
    const mull_delivery *at = port->strays;
    while (at && at != delivery)
        at = at->runtime;
    return at != NULL;
}

static const char *wrong_with(const mull_port *port, const mull_delivery *delivery)
{
    if (port->state != MULL__PORT_OPEN)
        return "it delivered a message after it was told to close";
    if (!delivery->subscription || delivery->subscription->port != port)
        return "it delivered a message that belongs to none of its subscriptions";
    if (delivery->runtime || is_stray(port, delivery))
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
    else if (mull__flow_arrive(port, delivery) != 0)
        stray(port, delivery);
}

void mull_port_settled(mull_port *port, mull_delivery *delivery, int status)
{
    if (!port || !delivery)
        return;
    mull__flow *flow = delivery->runtime;
    if (!flow || is_stray(port, delivery) || flow->stage != MULL__SETTLING)
        misused(port, "it settled a message that it wasn't asked to settle");
    else
        mull__flow_settled(flow, status);
}

/* mull__strays_release lets go of those that are left when the transport closes: they stay claimed,
 * so that the broker hands them out again when we are gone. */
void mull__strays_release(mull_port *port)
{
    if (port->strays)
        mull__engine_log(port->engine, MULL_ERROR_LEVEL,
                         "transport %s: there was no memory for what it delivered last; that will "
                         "be handed out again",
                         port->name);
    while (port->strays) {
        mull_delivery *first = port->strays;
        port->strays = first->runtime;
        first->runtime = NULL;
        port->ops->release(port->self, first);
    }
}

/* unstray lets go of a stray whose claim is gone. 0: it is none. */
static int unstray(mull_port *port, mull_delivery *delivery)
{
    for (mull_delivery *at = port->strays, *before = NULL; at; before = at, at = at->runtime) {
        if (at != delivery)
            continue;
        if (before)
            before->runtime = delivery->runtime;
        else
            port->strays = delivery->runtime;
        delivery->runtime = NULL;
        port->ops->release(port->self, delivery);
        mull__engine_touch(port->engine); /* a stop may have waited for it */
        return 1;
    }
    return 0;
}

void mull_port_lost(mull_port *port, mull_delivery *delivery)
{
    if (!port || !delivery || unstray(port, delivery))
        return;
    if (delivery->runtime)
        mull__flow_lost(delivery->runtime);
    else
        misused(port, "it lost a message that it never delivered");
}

/* ---- Holding claims -------------------------------------------------------------------------- */

static void on_hold(void *data)
{
    mull_port *port = data;
    for (mull__link *link = mull__list_first(&port->flows); link;
         link = mull__list_after(&port->flows, link)) {
        mull__flow *flow = MULL__ENTRY(link, mull__flow, port_link);
        int code;
        if (flow->stage != MULL__SETTLED && !flow->lost &&
            !mull__fault_hit(port, MULL__HOLD, &code))
            port->ops->hold(port->self, flow->delivery);
    }
    mull__port_begin_holding(port);
}

/* mull__port_begin_holding renews every claim three times in its timeout. */
void mull__port_begin_holding(mull_port *port)
{
    int64_t timeout_ms = port->abilities.claim_timeout_ms;
    if (timeout_ms > 0 && port->abilities.can_hold && port->ops->hold &&
        port->state == MULL__PORT_OPEN)
        mull__timer_set(port->engine, &port->hold_timer, timeout_ms < 3 ? 1 : timeout_ms / 3,
                        on_hold, port);
}

/* ---- The rest -------------------------------------------------------------------------------- */

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
        mull__stop_broken(port, why);
    mull__engine_touch(port->engine);
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
    mull__engine_touch(port->engine);
}

mull_timer *mull_port_after(mull_port *port, int64_t delay_ms, void (*fire)(void *data), void *data)
{
    return port && fire ? mull__timer_add(port->engine, delay_ms, fire, data) : NULL;
}

void mull_port_cancel(mull_port *port, mull_timer *timer)
{
    if (port)
        mull__timer_cancel(port->engine, timer);
}

mull_timer *mull_port_timer_new(mull_port *port, void (*fire)(void *data), void *data)
{
    if (!port || !fire)
        return NULL;
    mull_engine *engine = port->engine;
    mull_timer *timer = mull__zalloc(&engine->allocator, 1, sizeof *timer);
    if (!timer || mull__timer_reserve(engine) != 0) {
        mull__free(&engine->allocator, timer);
        return NULL;
    }
    timer->fire = fire;
    timer->data = data;
    return timer;
}

void mull_port_timer_set(mull_port *port, mull_timer *timer, int64_t delay_ms)
{
    if (!port || !timer)
        return;
    if (delay_ms == MULL_NEVER)
        mull__timer_cancel(port->engine, timer);
    else
        mull__timer_set(port->engine, timer, delay_ms, timer->fire, timer->data);
}

void mull_port_timer_free(mull_port *port, mull_timer *timer)
{
    if (!port || !timer)
        return;
    mull__timer_cancel(port->engine, timer);
    mull__timer_unreserve(port->engine);
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
        mull__engine_touch(port->engine); /* a stop may have waited for it */
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
