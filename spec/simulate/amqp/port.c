/* port.c: what the module calls of the engine's, and whether it may. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---------------------------------------------------------------------------------- */

/* ---- Timers, clocks -------------------------------------------------------------------------- */

struct mull_timer {
    mull_port *port;
    void (*fire)(void *data);
    void *data;
    event *event;
};

static mull_timer *port_timer_new(mull_port *p, void (*fire)(void *data), void *data)
{
    mull_timer *timer = keep(p->sim, sizeof *timer);
    *timer = (mull_timer){p, fire, data, NULL};
    p->timers++;
    return timer;
}

static void on_timer(sim *s, void *data)
{
    mull_timer *timer = data;
    (void)s;
    timer->event = NULL;
    timer->fire(timer->data);
}

static void port_timer_set(mull_port *p, mull_timer *timer, int64_t delay_ms)
{
    call_off(&timer->event);
    if (delay_ms != MULL_NEVER)
        timer->event = at_time(p->sim, delay_ms, on_timer, timer);
}

static void port_timer_free(mull_port *p, mull_timer *timer)
{
    if (!timer)
        return;
    call_off(&timer->event);
    p->timers--;
}

static void port_working(mull_port *p, int change)
{
    (void)p;
    (void)change;
}

static int64_t port_now(const mull_port *p)
{
    return p->sim->k.now_ms;
}

static int64_t port_wall(const mull_port *p)
{
    return WALL_MS + p->sim->k.now_ms;
}

static void *port_data(const mull_port *p)
{
    (void)p;
    return NULL;
}

static struct uv_loop_s *port_loop(mull_port *p)
{
    return &p->loop;
}

static const mull_allocator *port_allocator(const mull_port *p)
{
    return &p->allocator;
}

static void port_log(mull_port *p, mull_level level, const char *text)
{
    if (p->sim->k.tell)
        printf("# the module logs (%d): %s\n", level, text);
}

/* ---- What it says ---------------------------------------------------------------------------- */

static void port_state(mull_port *p, mull_health health, const char *why)
{
    if (health == MULL_BROKEN)
        violation(p->sim, "the transport breaks down: %s", why ? why : "");
    if (p->sim->k.tell)
        printf("# the module is %s: %s\n", health == MULL_UP ? "up" : "down", why ? why : "");
    p->health = health;
}

static subscription *sub_of(mull_port *p, mull_ticket of)
{
    for (int i = 0; i < SUBSCRIPTIONS; i++)
        if (p->subs[i].consumer && p->subs[i].consumer == of)
            return &p->subs[i];
    violation(p->sim, "there is no consumer %" PRIu64, of);
}

static void port_source(mull_port *p, mull_ticket of, mull_source_state state,
                        const mull_abilities *found, const char *why)
{
    subscription *sub = sub_of(p, of);
    (void)found;
    if (p->sim->k.tell)
        printf("# queue %d: state %d: %s\n", sub->queue, state, why ? why : "");
    if ((state == MULL_SOURCE_ENDED) != sub->is_ended)
        violation(p->sim, "queue %d is in state %d, when it is ended: %d", sub->queue, state,
                  sub->is_ended);
    sub->state = state;
    if (state == MULL_SOURCE_ENDED)
        sub->consumer = 0;
}

static void outside(const mull_port *p, const char *what)
{
    if (p->in_slot)
        violation(p->sim, "%s from inside a slot", what);
}

static void port_delivered(mull_port *p, mull_ticket of, mull_delivery *d)
{
    subscription *sub = sub_of(p, of);
    outside(p, "a delivery");
    if (p->is_closing || sub->is_ended)
        violation(p->sim, "a delivery for what has ended");
    if (sub->out >= sub->credit)
        violation(p->sim, "a delivery beyond the credit of %u", sub->credit);
    d->ticket = ++p->next_ticket;
    engine_delivered(p->sim, sub, d);
}

static void port_lost(mull_port *p, mull_ticket delivery, const char *why)
{
    outside(p, "a loss");
    for (mull__link *at = mull__list_first(&p->claims); at; at = mull__list_after(&p->claims, at)) {
        claim *c = MULL__ENTRY(at, claim, link);
        if (c->delivery->ticket != delivery)
            continue;
        if (c->is_lost || (c->settling && !c->is_heard) || c->is_settled)
            violation(p->sim, "delivery %" PRIu64 " is lost, but was so, or is settled", delivery);
        if (p->sim->k.tell)
            printf("# delivery %" PRIu64 " is lost: %s\n", delivery, why ? why : "");
        engine_lost(p->sim, c);
        return;
    }
    violation(p->sim, "delivery %" PRIu64 " is lost, which isn't there", delivery);
}

/* ---- Answers --------------------------------------------------------------------------------- */

mull_ticket port_ask(sim *s, ask_kind kind, claim *c, post *p)
{
    mull_port *port = &s->port;
    mull_ticket ticket = ++port->next_ticket;
    if (ticket - FIRST_TICKET >= ASKS)
        violation(s, "more than %d tickets", ASKS);
    port->asks[ticket - FIRST_TICKET] = (ask){kind, c, p, s->k.now_ms, 0};
    port->asked++;
    return ticket;
}

static ask *ask_of(mull_port *p, mull_ticket ticket)
{
    ask *a =
        ticket > FIRST_TICKET && ticket <= p->next_ticket ? &p->asks[ticket - FIRST_TICKET] : NULL;
    if (!a || a->kind == ASK_NOTHING)
        violation(p->sim, "an answer to %" PRIu64 ", which isn't asked", ticket);
    return a;
}

void port_answered(sim *s, mull_ticket ticket)
{
    ask_of(&s->port, ticket)->kind = ASK_NOTHING;
    s->port.asked--;
}

/* heard is what an engine does on its next turn with what a slot answers. */
typedef struct heard {
    ask ask;
} heard;

static void on_heard(sim *s, void *data)
{
    heard *h = data;
    engine_answer(s, &h->ask, h->ask.status);
}

static void port_answer(mull_port *p, mull_ticket ticket, int status, const char *why)
{
    sim *s = p->sim;
    ask *a = ask_of(p, ticket), asked = *a;
    if (s->k.tell)
        printf("# answer to %" PRIu64 ": %d %s\n", ticket, status, why ? why : "");
    if (a->kind == ASK_DEPTH)
        violation(s, "a depth is answered as something else");
    port_answered(s, ticket);
    asked.status = status;
    if (asked.claim && asked.claim->is_counted && status == 0) {
        asked.claim->sub->out--;
        asked.claim->is_counted = 0;
    }
    if (p->in_slot) {
        if (asked.claim)
            asked.claim->is_heard = 1;
        heard *h = keep(s, sizeof *h);
        h->ask = asked;
        at_time(s, 0, on_heard, h);
    } else {
        engine_answer(s, &asked, status);
    }
}

static void port_depth(mull_port *p, mull_ticket ticket, int status, const mull_depth *depth,
                       const char *why)
{
    const ask *a = ask_of(p, ticket);
    (void)why;
    if (a->kind != ASK_DEPTH || (status == 0 && !depth))
        violation(p->sim, "a depth answers something else, or nothing");
    port_answered(p->sim, ticket);
}

static void port_closed(mull_port *p)
{
    if (!p->is_closing)
        violation(p->sim, "the transport closes unasked");
    engine_closed(p->sim);
}

static const mull_port_calls calls = {
    .state = port_state,
    .source = port_source,
    .delivered = port_delivered,
    .lost = port_lost,
    .answer = port_answer,
    .depth = port_depth,
    .closed = port_closed,
    .timer_new = port_timer_new,
    .timer_set = port_timer_set,
    .timer_free = port_timer_free,
    .working = port_working,
    .now = port_now,
    .wall = port_wall,
    .data = port_data,
    .loop = port_loop,
    .allocator = port_allocator,
    .log = port_log,
};

void port_begin(mull_port *p, sim *s)
{
    p->calls = &calls;
    p->sim = s;
    p->loop.data = s;
    p->memory = (counting_allocator){.sim = s, .no_memory = &s->faults.no_memory};
    p->allocator = counting_allocator_ops(&p->memory);
    p->next_ticket = FIRST_TICKET;
    mull__list_init(&p->claims);
}
