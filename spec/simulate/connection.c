/* connection.c: the broker as an engine sees it: the slots of a transport. What they are asked goes
 * over a wire: it reaches the broker some time later, and the answer comes back later still.
 *
 *   settle ── wire ── reach: the broker does it, or not ── answer: mull_port_settled
 *
 * A connection that is dead changes nothing at the broker any more; its engine doesn't know. */
#include "sim.h"

#include "runtime/engine_state.h"

#include <stdlib.h>
#include <string.h>

typedef enum asked { SETTLE, PUBLISH, DEPTH, CLOSE } asked;

typedef struct wire {
    mull__link link;
    connection *connection;
    asked asked;
    handout *handout;
    const mull_settlement *settlement; /* the engine's, until it is answered */
    message *message;
    mull_message content;
    int64_t due_ms;
    int queue;
    void *ticket;
    mull_depth depth;
    int reached, status;
    event *next;
} wire;

static process *opening;

void serve(process *p)
{
    opening = p;
}

static sim *sim_of(const connection *c)
{
    return c->broker->sim;
}

static void call_off(event **e)
{
    if (*e)
        (*e)->fire = NULL;
    *e = NULL;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static void free_handout(handout *h)
{
    call_off(&h->on_its_way);
    call_off(&h->deadline);
    call_off(&h->lost);
    mull__list_remove(&h->connection->handouts, &h->link);
    free(h);
}

static void on_lost(sim *s, void *data)
{
    handout *h = data;
    h->lost = NULL;
    s->totals->lost++;
    h->process->touched = 1;
    model_lost(h);
    mull_port_lost(h->connection->port, &h->delivery); /* which may release it */
}

/* tells_of says whether the engine is yet to learn that a claim is gone. */
static int to_be_told(const handout *h)
{
    return !h->told_lost && h->stage != SETTLED && !h->lost;
}

void connection_lose(handout *h)
{
    sim *s = sim_of(h->connection);
    note(s, "process %lld loses its claim on message %lld", h->process->index, h->message->number,
         0, 0);
    broker_take_back(h, between(s, 0, 500));
    if (h->stage == ON_ITS_WAY)
        free_handout(h);
    else if (to_be_told(h))
        h->lost = at_time(s, some_time(s), on_lost, h);
}

static void on_deadline(sim *s, void *data)
{
    handout *h = data;
    h->deadline = NULL;
    if (!h->copy)
        return;
    if (h->deadline_ms > s->now_ms)
        h->deadline = at_time(s, h->deadline_ms - s->now_ms, on_deadline, h);
    else
        connection_lose(h);
}

static void begin_claim(handout *h)
{
    sim *s = sim_of(h->connection);
    int64_t timeout_ms = h->connection->broker->abilities.claim_timeout_ms;
    if (timeout_ms == 0 && happens(s, s->faults.loses))
        timeout_ms = between(s, 0, 4000); /* it loses it for no reason that we know */
    if (timeout_ms == 0)
        return;
    h->deadline_ms = s->now_ms + timeout_ms;
    h->deadline = at_time(s, timeout_ms, on_deadline, h);
}

/* ---- Handing out ----------------------------------------------------------------------------- */

/* on_delivered: a transport that is being closed delivers nothing more. */
static void on_delivered(sim *s, void *data)
{
    handout *h = data;
    h->on_its_way = NULL;
    if (h->connection->closing)
        return;
    h->process->touched = 1;
    model_delivered(h);
    mull_port_delivered(h->connection->port, &h->delivery);
    model_looked(h);
    if (h->stage == STRAYED && happens(s, 300)) {
        connection_lose(h);
        if (one_in(s, 2))
            process_stop(h->process); /* which may have nothing else to wait for */
    }
}

int connection_strayed(const handout *h)
{
    const mull_delivery *at = h->connection->port->deferred;
    while (at && at != &h->delivery)
        at = at->runtime;
    return at != NULL;
}

/* id_of is the id that a copy came with, or was given by an engine; "": none so far. */
static const char *id_of(const copy *c)
{
    for (size_t i = 0; !c->id && i < c->header_count; i++)
        if (strcmp(c->headers[i].name, "mulligan-id") == 0)
            return c->headers[i].value;
    return c->id ? c->id : "";
}

static void describe(handout *h, const reader *r)
{
    const copy *c = h->copy;
    take_id(h->id, id_of(c));
    h->delivery.subscription = r->subscription;
    h->delivery.message = (mull_message){
        .id = c->id ? h->id : NULL,
        .body = message_body(c->message, h->body),
        .body_size = message_body_size(c->message),
        .headers = c->headers,
        .header_count = c->header_count,
        .deliveries = h->connection->broker->abilities.counts_deliveries ? c->deliveries : 1,
    };
}

static void claim(connection *c, reader *r, copy *taken)
{
    sim *s = sim_of(c);
    handout *h = calloc(1, sizeof *h);
    if (!h)
        violation(s, "out of memory");
    h->connection = c;
    h->process = c->process;
    h->consumer = r->consumer;
    h->message = taken->message;
    h->copy = taken;
    h->claimed = taken->counters;
    taken->claim = h;
    taken->deliveries++;
    r->out++;
    describe(h, r);
    mull__list_push(&c->handouts, &h->link);
    note(s, "message %lld (delivery %lld) goes to process %lld", taken->message->number,
         taken->deliveries, c->process->index, 0);
    h->on_its_way = at_time(s, some_time(s), on_delivered, h);
    begin_claim(h);
}

static void on_hand_out(sim *s, void *data)
{
    connection *c = data;
    int64_t next_ms = INT64_MAX;
    c->hand_out = NULL;
    if (c->dead || c->down || c->closing || c->reader_count == 0)
        return;
    uint64_t first = draw(s, (uint64_t)c->reader_count);
    for (int i = 0; i < c->reader_count; i++) {
        reader *r = &c->readers[(first + (uint64_t)i) % (uint64_t)c->reader_count];
        while (r->out < r->credit) {
            copy *taken = broker_next(c->broker, r->queue, &next_ms);
            if (!taken)
                break;
            claim(c, r, taken);
        }
    }
    if (next_ms != INT64_MAX)
        connection_stir(c, next_ms - s->now_ms);
}

void connection_stir(connection *c, int64_t delay_ms)
{
    sim *s = sim_of(c);
    if (c->hand_out && c->hand_out->due_ms <= s->now_ms + delay_ms)
        return;
    call_off(&c->hand_out);
    c->hand_out = at_time(s, delay_ms, on_hand_out, c);
}

/* ---- Over the wire --------------------------------------------------------------------------- */

static void count_depth(wire *w)
{
    sim *s = sim_of(w->connection);
    w->depth = (mull_depth){.next_due_ms = INT64_MAX};
    mull__list *copies = &w->connection->broker->copies;
    for (mull__link *at = mull__list_first(copies); at; at = mull__list_after(copies, at)) {
        const copy *c = MULL__ENTRY(at, copy, link);
        if (c->queue != w->queue)
            continue;
        if (c->claim || c->rests_ms > s->now_ms)
            w->depth.claimed++;
        else if (c->due_ms <= wall_ms(s))
            w->depth.ready++;
        else {
            w->depth.delayed++;
            if (c->due_ms < w->depth.next_due_ms)
                w->depth.next_due_ms = c->due_ms;
        }
    }
}

/* reach has the broker do what was asked. */
static void reach(wire *w, int half)
{
    broker *b = w->connection->broker;
    w->reached = 1;
    if (w->asked == SETTLE)
        w->status = broker_settle(w->handout, w->settlement, half);
    else if (w->asked == PUBLISH)
        broker_put(b, w->message, w->due_ms, &w->content);
    else if (w->asked == DEPTH)
        count_depth(w);
}

static void answer(wire *w)
{
    connection *c = w->connection;
    handout *h = w->handout;
    call_off(&w->next);
    mull__list_remove(&c->wires, &w->link);
    c->process->touched = 1;
    switch (w->asked) {
    case SETTLE:
        if (h->told_lost && w->status != 0)
            w->status = MULL_ELOST;
        h->wire = NULL;
        model_answered(h, w->status);
        if (h->stage == SETTLED)
            call_off(&h->lost);
        mull_port_settled(c->port, &h->delivery, w->status);
        if (w->status != 0 && !c->dead)
            process_troubled(c->process);
        break;
    case PUBLISH:
        mull_port_published(c->port, w->ticket, w->status);
        break;
    case DEPTH:
        mull_port_depth(c->port, w->ticket, w->status, &w->depth);
        break;
    case CLOSE:
        mull_port_closed(c->port);
        c->port = NULL;
        break;
    }
}

static void on_answer(sim *s, void *data)
{
    (void)s;
    wire *w = data;
    w->next = NULL;
    answer(w);
}

static void on_reach(sim *s, void *data)
{
    wire *w = data;
    uint32_t chance = w->asked == SETTLE ? s->faults.settle_fails : s->faults.publish_fails;
    if (process_is_stopping(w->connection->process))
        chance *= 3; /* the end is where it hurts */
    int fails = w->connection->down || happens(s, chance);
    if (fails) {
        w->reached = 1;
        w->status = MULL_EIO;
    } else {
        reach(w, 0);
    }
    /* A publish that fails may have got there all the same. */
    if (fails && w->asked == PUBLISH && one_in(s, 3))
        reach(w, 0);
    w->next = at_time(s, some_time(s), on_answer, w);
}

static wire *ask(connection *c, asked what)
{
    wire *w = keep(sim_of(c), sizeof *w);
    w->connection = c;
    w->asked = what;
    mull__list_push(&c->wires, &w->link);
    return w;
}

/* send_off: what a dead connection was asked is answered when its engine is taken down. */
static void send_off(wire *w)
{
    sim *s = sim_of(w->connection);
    if (w->connection->dead)
        return;
    if (happens(s, s->faults.kill_inside))
        process_kill(w->connection->process);
    else
        w->next = at_time(s, some_time(s), on_reach, w);
}

/* ---- Death, and trouble ---------------------------------------------------------------------- */

static wire *first_wire(connection *c)
{
    mull__link *link = mull__list_first(&c->wires);
    return link ? MULL__ENTRY(link, wire, link) : NULL;
}

/* last_words: some of what was asked reaches the broker, and nobody will know. */
static void last_words(connection *c)
{
    sim *s = sim_of(c);
    for (mull__link *at = mull__list_first(&c->wires); at; at = mull__list_after(&c->wires, at)) {
        wire *w = MULL__ENTRY(at, wire, link);
        call_off(&w->next);
        if (!w->reached && one_in(s, 3))
            reach(w, w->asked == SETTLE && c->broker->halves && one_in(s, 2));
    }
}

void connection_die(connection *c)
{
    sim *s = sim_of(c);
    last_words(c);
    c->dead = 1;
    call_off(&c->hand_out);
    mull__list_remove(&c->broker->connections, &c->link);
    mull__link *next;
    for (mull__link *at = mull__list_first(&c->handouts); at; at = next) {
        handout *h = MULL__ENTRY(at, handout, link);
        next = mull__list_after(&c->handouts, at);
        if (h->copy)
            broker_take_back(h, one_in(s, 2) ? 0 : between(s, 0, 3000));
        call_off(&h->deadline);
        call_off(&h->lost);
        if (h->stage == ON_ITS_WAY)
            free_handout(h);
    }
}

void connection_flush(connection *c)
{
    while (c->port && c->port->deferred)
        mull_port_lost(c->port, c->port->deferred);
    for (wire *w; (w = first_wire(c));) {
        w->status = w->asked == SETTLE ? MULL_ELOST : w->asked == CLOSE ? 0 : MULL_EIO;
        answer(w);
    }
}

static void on_up(sim *s, void *data)
{
    connection *c = data;
    if (c->dead || !c->down)
        return;
    note(s, "broker %lld is up again for process %lld", c->broker->index, c->process->index, 0, 0);
    c->down = 0;
    mull_port_state(c->port, 1, NULL);
    c->process->touched = 1;
    connection_stir(c, 0);
}

void connection_drop(connection *c, int64_t for_ms)
{
    sim *s = sim_of(c);
    if (c->dead || c->down || c->closing)
        return;
    note(s, "broker %lld is down for process %lld, for %lld ms", c->broker->index,
         c->process->index, for_ms, 0);
    c->down = 1;
    mull_port_state(c->port, 0, "as the seed wants it");
    c->process->touched = 1;
    at_time(s, for_ms, on_up, c);
}

void connection_calm(connection *c)
{
    on_up(sim_of(c), c);
}

/* ---- The slots ------------------------------------------------------------------------------- */

/* asked_in_time: once it is closed, a transport is asked nothing more. */
static void asked_in_time(const connection *c, const char *slot)
{
    if (c->closing && !c->process->dead)
        violation(sim_of(c), "a transport that was closed is asked to %s", slot);
}

static int sim_open(void **self, mull_port *port, const char *url, mull_abilities *abilities,
                    char *why, size_t why_size)
{
    (void)why, (void)why_size;
    process *p = opening;
    broker *b = &p->sim->brokers[atoi(url + strlen("simulated:"))];
    connection *c = keep(p->sim, sizeof *c);
    c->broker = b;
    c->process = p;
    c->port = port;
    mull__list_init(&c->handouts);
    mull__list_init(&c->wires);
    mull__list_push(&b->connections, &c->link);
    p->connections[b->index] = c;
    *abilities = b->abilities;
    *self = c;
    return 0;
}

static int sim_subscribe(void *self, mull_subscription *subscription, const char *queue)
{
    connection *c = self;
    int number = queue_number(queue);
    c->readers[c->reader_count++] =
        (reader){.subscription = subscription, .queue = number, .consumer = number};
    return 0;
}

static void sim_credit(void *self, mull_subscription *subscription, uint32_t deliveries)
{
    connection *c = self;
    asked_in_time(c, "take a credit");
    for (int i = 0; i < c->reader_count; i++) {
        reader *r = &c->readers[i];
        if (r->subscription != subscription)
            continue;
        note(sim_of(c), "process %lld, queue %lld: credit %lld", c->process->index, r->queue,
             deliveries, 0);
        if (deliveries > r->credit && !c->dead)
            connection_stir(c, 0);
        r->credit = deliveries;
    }
}

/* keep_content copies what the broker needs of a message. */
static mull_message keep_content(sim *s, const mull_message *content)
{
    mull_message kept = *content;
    mull_header *headers = keep(s, (content->header_count + 1) * sizeof *headers);
    for (size_t i = 0; i < content->header_count; i++)
        headers[i] = (mull_header){keep_text(s, content->headers[i].name),
                                   keep_text(s, content->headers[i].value)};
    kept.headers = headers;
    kept.id = keep_text(s, content->id);
    return kept;
}

static int sim_publish(void *self, const mull_outgoing *outgoing, void *ticket)
{
    connection *c = self;
    sim *s = sim_of(c);
    asked_in_time(c, "publish");
    if (happens(s, s->faults.publish_fails / 4))
        return MULL_EIO;
    wire *w = ask(c, PUBLISH);
    w->message = model_published(c, outgoing);
    w->content = keep_content(s, &outgoing->message);
    w->due_ms = outgoing->due_ms;
    w->ticket = ticket;
    send_off(w);
    return 0;
}

static void sim_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement)
{
    connection *c = self;
    handout *h = (handout *)(void *)delivery;
    asked_in_time(c, "settle");
    if (h->wire)
        violation(sim_of(c), "message %d is settled twice at once", h->message->number);
    model_settle(h, settlement);
    wire *w = ask(c, SETTLE);
    w->handout = h;
    w->settlement = settlement;
    h->wire = w;
    send_off(w);
}

static void sim_hold(void *self, mull_delivery *delivery)
{
    connection *c = self;
    handout *h = (handout *)(void *)delivery;
    sim *s = sim_of(c);
    asked_in_time(c, "hold a claim");
    h->held_ms = s->now_ms;
    if (!c->dead && h->copy && !c->down && !happens(s, s->faults.forgets_hold))
        h->deadline_ms = s->now_ms + c->broker->abilities.claim_timeout_ms;
}

static int sim_depth(void *self, const char *queue, void *ticket)
{
    asked_in_time(self, "count");
    wire *w = ask(self, DEPTH);
    w->queue = queue_number(queue);
    w->ticket = ticket;
    send_off(w);
    return 0;
}

/* sim_release: one that the engine could not settle before its end goes back to the broker. */
static void sim_release(void *self, mull_delivery *delivery)
{
    connection *c = self;
    handout *h = (handout *)(void *)delivery;
    model_released(h);
    if (h->copy && !c->dead)
        broker_take_back(h, 0);
    free_handout(h);
}

/* on_close carries out and answers what was taken; what is on its way never arrives. */
static void on_close(sim *s, void *data)
{
    connection *c = data;
    wire *closing = NULL;
    for (wire *w; (w = first_wire(c));) {
        mull__list_remove(&c->wires, &w->link);
        if (w->asked == CLOSE) {
            closing = w;
            continue;
        }
        mull__list_push(&c->wires, &w->link);
        if (!w->reached)
            reach(w, 0);
        answer(w);
    }
    for (mull__link *at; (at = mull__list_first(&c->handouts));) {
        handout *h = MULL__ENTRY(at, handout, link);
        if (h->stage != ON_ITS_WAY)
            violation(s, "message %d isn't released when its transport is closed",
                      h->message->number);
        if (h->copy)
            broker_take_back(h, 0);
        free_handout(h);
    }
    call_off(&c->hand_out);
    mull__list_remove(&c->broker->connections, &c->link);
    c->dead = 1;
    answer(closing);
}

static void sim_close(void *self)
{
    connection *c = self;
    c->closing = 1;
    wire *w = ask(c, CLOSE);
    if (!c->dead)
        w->next = at_time(sim_of(c), some_time(sim_of(c)), on_close, c);
}

const mull_transport_ops simulated = {
    .version = MULL_TRANSPORT_VERSION,
    .scheme = "simulated",
    .open = sim_open,
    .subscribe = sim_subscribe,
    .credit = sim_credit,
    .publish = sim_publish,
    .settle = sim_settle,
    .hold = sim_hold,
    .depth = sim_depth,
    .release = sim_release,
    .close = sim_close,
};
