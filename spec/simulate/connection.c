/* connection.c: the broker as an engine sees it: the slots of a transport. It connects now or
 * later, goes down and comes back, and reads its queues, or is refused one of them. What it is
 * asked goes over a wire (wire.c).
 *
 * A connection that is dead changes nothing at the broker any more; its engine doesn't know. */
#include "sim.h"

#include "runtime/engine_state.h"

#include <stdlib.h>
#include <string.h>

static process *opening;

void serve(process *p)
{
    opening = p;
}

static sim *sim_of(const connection *c)
{
    return c->broker->sim;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

void handout_free(handout *h)
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
    mull_port_lost(h->connection->port, h->delivery.ticket,
                   one_in(s, 2) ? "its time is over" : NULL);
    /* which may have released it */
}

/* to_be_told says whether the engine is yet to learn that a claim is gone. */
static int to_be_told(const handout *h)
{
    return !h->told_lost && h->stage != SETTLED && !h->lost;
}

static void lose(handout *h, int64_t rests_ms)
{
    sim *s = sim_of(h->connection);
    note(s, "process %lld loses its claim on message %lld", h->process->index, h->message->number,
         0, 0);
    broker_take_back(h, rests_ms);
    if (h->stage == ON_ITS_WAY)
        handout_free(h);
    else if (to_be_told(h))
        h->lost = at_time(s, some_time(s), on_lost, h);
}

void connection_lose(handout *h)
{
    lose(h, between(sim_of(h->connection), 0, 500));
}

static void on_deadline(sim *s, void *data)
{
    handout *h = data;
    h->deadline = NULL;
    if (!h->copy)
        return;
    if (h->deadline_ms > s->k.now_ms)
        h->deadline = at_time(s, h->deadline_ms - s->k.now_ms, on_deadline, h);
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
    h->deadline_ms = s->k.now_ms + timeout_ms;
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
    mull_port_delivered(h->connection->port, h->reader->ticket, &h->delivery);
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

static void describe(handout *h)
{
    const copy *c = h->copy;
    take_id(h->id, id_of(c));
    int counts = h->connection->broker->abilities.deliveries != MULL_COUNTS_NOTHING;
    h->content = (mull_message){
        .size = sizeof h->content,
        .id = c->id ? h->id : NULL,
        .body = message_body(c->message, h->body),
        .body_size = message_body_size(c->message),
        .key = c->message->key,
        .type = c->message->type,
        .headers = c->headers,
        .header_count = c->header_count,
        .deliveries = counts ? c->deliveries : 1,
    };
    h->delivery = (mull_delivery){.size = sizeof h->delivery, .message = &h->content};
}

static void claim(connection *c, reader *r, copy *taken)
{
    sim *s = sim_of(c);
    handout *h = calloc(1, sizeof *h);
    if (!h)
        violation(s, "out of memory");
    h->connection = c;
    h->reader = r;
    h->process = c->process;
    h->consumer = r->consumer;
    h->message = taken->message;
    h->copy = h->origin = taken;
    h->claimed = taken->counters;
    taken->claim = h;
    taken->deliveries++;
    r->out++;
    describe(h);
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
        reader *r = c->readers[(first + (uint64_t)i) % (uint64_t)c->reader_count];
        while (r->state == MULL_SOURCE_READY && r->out < r->credit) {
            copy *taken = broker_next(c->broker, r->queue, &next_ms);
            if (!taken)
                break;
            claim(c, r, taken);
        }
    }
    if (next_ms != INT64_MAX)
        connection_stir(c, next_ms - s->k.now_ms);
}

void connection_stir(connection *c, int64_t delay_ms)
{
    sim *s = sim_of(c);
    if (c->hand_out && c->hand_out->due_ms <= s->k.now_ms + delay_ms)
        return;
    call_off(&c->hand_out);
    c->hand_out = at_time(s, delay_ms, on_hand_out, c);
}

/* ---- How it is, and its queues --------------------------------------------------------------- */

/* held_from_now: what isn't read isn't held either. */
static void held_from_now(const reader *r)
{
    mull__list *all = &r->connection->handouts;
    for (mull__link *at = mull__list_first(all); at; at = mull__list_after(all, at)) {
        handout *h = MULL__ENTRY(at, handout, link);
        if (h->reader == r)
            h->held_ms = sim_of(r->connection)->k.now_ms;
    }
}

static void tell_source(reader *r, mull_source_state state)
{
    connection *c = r->connection;
    const mull_abilities *found =
        r->tells && state == MULL_SOURCE_READY ? &c->broker->abilities : NULL;
    note(sim_of(c), "process %lld, queue %lld: its source is %lld", c->process->index, r->queue,
         state, 0);
    r->state = state;
    if (found)
        r->can = *found;
    held_from_now(r);
    mull_port_source(c->port, r->ticket, state, found,
                     state == MULL_SOURCE_READY ? NULL : "as the seed wants it");
    c->process->touched = 1;
    connection_stir(c, 0);
}

/* find_queue: it is read, or not until a person acts. */
static void find_queue(reader *r)
{
    sim *s = sim_of(r->connection);
    int refused = happens(s, s->faults.refuses);
    s->totals->sources_refused += refused != 0;
    tell_source(r, refused ? MULL_SOURCE_REFUSED : MULL_SOURCE_READY);
}

static void on_found(sim *s, void *data)
{
    (void)s;
    reader *r = data;
    connection *c = r->connection;
    int open = c->port && !c->dead && !c->down && !c->closing && !r->over;
    if (open && r->state == MULL_SOURCE_WAITING)
        find_queue(r);
}

/* look_for finds a queue now, where `now` allows it, or some time later. */
static void look_for(reader *r, int now)
{
    sim *s = sim_of(r->connection);
    int64_t after_ms = some_time(s);
    if (now && after_ms == 0)
        find_queue(r);
    else
        at_time(s, after_ms, on_found, r);
}

static void come_up(connection *c)
{
    c->down = 0;
    mull_port_state(c->port, MULL_UP, NULL);
    c->process->touched = 1;
    for (int i = 0; i < c->reader_count; i++)
        if (c->readers[i]->state == MULL_SOURCE_WAITING)
            look_for(c->readers[i], 1);
    connection_stir(c, 0);
}

static void on_up(sim *s, void *data)
{
    connection *c = data;
    c->up = NULL;
    if (c->dead || !c->down || !c->port)
        return;
    note(s, "broker %lld is up for process %lld", c->broker->index, c->process->index, 0, 0);
    come_up(c);
}

/* lose_claims: what a broker hands out again since the connection was lost counts as no death. */
static void lose_claims(connection *c)
{
    mull__link *next;
    for (mull__link *at = mull__list_first(&c->handouts); at; at = next) {
        handout *h = MULL__ENTRY(at, handout, link);
        next = mull__list_after(&c->handouts, at);
        if (!h->copy)
            continue;
        if (c->broker->abilities.deliveries == MULL_COUNTS_DEATHS) {
            h->copy->deliveries--;
            h->copy->account.exempt |= h->stage != ON_ITS_WAY;
        }
        connection_lose(h);
    }
}

void connection_drop(connection *c, int64_t for_ms)
{
    sim *s = sim_of(c);
    if (c->dead || c->down || c->closing)
        return;
    note(s, "broker %lld is down for process %lld, for %lld ms", c->broker->index,
         c->process->index, for_ms, 0);
    c->down = 1;
    mull_port_state(c->port, MULL_DOWN, "as the seed wants it");
    c->process->touched = 1;
    for (int i = 0; i < c->reader_count; i++)
        if (c->readers[i]->state == MULL_SOURCE_READY && one_in(s, 2))
            tell_source(c->readers[i], MULL_SOURCE_WAITING);
    if (c->broker->drops_claims)
        lose_claims(c);
    c->up = at_time(s, for_ms, on_up, c);
}

/* connection_calm: it is up, and reads all queues but those that it was refused. */
void connection_calm(connection *c)
{
    call_off(&c->up);
    on_up(sim_of(c), c);
    for (int i = 0; i < c->reader_count && !c->dead && !c->closing; i++)
        if (c->readers[i]->state == MULL_SOURCE_WAITING)
            tell_source(c->readers[i], MULL_SOURCE_READY);
}

/* ---- Death ----------------------------------------------------------------------------------- */

void connection_die(connection *c)
{
    sim *s = sim_of(c);
    wires_last_words(c);
    c->dead = 1;
    call_off(&c->hand_out);
    call_off(&c->up);
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
            handout_free(h);
    }
}

/* ---- The slots ------------------------------------------------------------------------------- */

/* asked_in_time: once it is closed, a transport is asked nothing more. */
static void asked_in_time(const connection *c, const char *slot)
{
    if (c->closing && !c->process->dead)
        violation(sim_of(c), "a transport that was closed is asked to %s", slot);
}

static broker *broker_at(const char *url)
{
    return &opening->sim->brokers[atoi(url + strlen("simulated:"))];
}

static int sim_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                    size_t why_size)
{
    (void)queue, (void)why, (void)why_size;
    *floor = broker_at(url)->floor;
    return 0;
}

static int sim_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    (void)why, (void)why_size;
    process *p = opening;
    sim *s = p->sim;
    broker *b = broker_at(url);
    connection *c = keep(s, sizeof *c);
    c->broker = b;
    c->process = p;
    c->port = port;
    c->down = 1;
    mull__list_init(&c->handouts);
    mull__list_init(&c->wires);
    mull__list_push(&b->connections, &c->link);
    p->connections[b->index] = c;
    *self = c;
    if (happens(s, s->faults.drops * 2)) {
        s->totals->late_connects++;
        mull_port_state(port, MULL_DOWN, "it isn't there yet");
        c->up = at_time(s, between(s, 0, 20000), on_up, c);
    } else if (one_in(s, 2)) {
        c->up = at_time(s, some_time(s), on_up, c);
    } else {
        come_up(c);
    }
    return 0;
}

static int sim_subscribe(void *self, mull_ticket ticket, const mull_source *source,
                         void **subscription)
{
    connection *c = self;
    sim *s = sim_of(c);
    int number = queue_number(source->queue);
    reader *r = keep(s, sizeof *r);
    c->readers[c->reader_count++] = r;
    *r = (reader){.connection = c,
                  .ticket = ticket,
                  .queue = number,
                  .consumer = number,
                  .most = source->most,
                  .can = c->broker->floor};
    r->tells = one_in(s, 2);
    *subscription = r;
    ticket_given(c->process, ticket);
    model_subscribed(c->process, r, source);
    if (!c->down)
        look_for(r, 1);
    return 0;
}

/* not_over: a subscription that was ended is the transport's. */
static void not_over(const reader *r, const char *what)
{
    if (r->over)
        violation(sim_of(r->connection), "queue %d is %s after its subscription was ended",
                  r->queue, what);
}

static void on_ended(sim *s, void *data)
{
    (void)s;
    const reader *r = data;
    connection *c = r->connection;
    if (!c->port || c->dead || c->closing)
        return;
    mull_port_source(c->port, r->ticket, MULL_SOURCE_ENDED, NULL, NULL);
    c->process->touched = 1;
}

/* take_back_strays: what is on its way to a reader that is no more. */
static void take_back_strays(reader *r)
{
    mull__list *all = &r->connection->handouts;
    mull__link *next;
    for (mull__link *at = mull__list_first(all); at; at = next) {
        handout *h = MULL__ENTRY(at, handout, link);
        next = mull__list_after(all, at);
        if (h->reader != r)
            continue;
        if (h->stage != ON_ITS_WAY)
            violation(sim_of(r->connection), "queue %d is given up before message %d is released",
                      r->queue, h->message->number);
        if (h->copy)
            broker_take_back(h, 0);
        handout_free(h);
    }
}

static void sim_unsubscribe(void *self, void *subscription)
{
    connection *c = self;
    reader *r = subscription;
    sim *s = sim_of(c);
    asked_in_time(c, "end a subscription");
    not_over(r, "ended again");
    note(s, "process %lld gives up queue %lld", c->process->index, r->queue, 0, 0);
    model_unsubscribed(c->process, r);
    take_back_strays(r);
    r->over = 1;
    for (int i = 0; i < c->reader_count; i++)
        if (c->readers[i] == r)
            c->readers[i] = c->readers[--c->reader_count];
    if (!happens(s, s->faults.mute))
        at_time(s, some_time(s), on_ended, r);
}

static void sim_credit(void *self, void *subscription, uint32_t deliveries)
{
    connection *c = self;
    reader *r = subscription;
    asked_in_time(c, "take a credit");
    not_over(r, "given credit");
    note(sim_of(c), "process %lld, queue %lld: credit %lld", c->process->index, r->queue,
         deliveries, 0);
    if (deliveries > r->most + model_parked(r))
        violation(sim_of(c), "queue %d has a credit of %u, and %u is the most", r->queue,
                  deliveries, r->most);
    if (deliveries > r->credit && !c->dead)
        connection_stir(c, 0);
    r->credit = deliveries;
}

static int sim_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    connection *c = self;
    sim *s = sim_of(c);
    asked_in_time(c, "publish");
    if (c->down && one_in(s, 2))
        return MULL_EDOWN;
    if (happens(s, s->faults.publish_fails / 4))
        return MULL_EIO;
    wire_publish(c, model_published(c, outgoing), outgoing, ticket);
    return 0;
}

static void sim_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                       mull_ticket ticket)
{
    handout *h = (handout *)(void *)delivery;
    asked_in_time(self, "settle");
    if (h->wire)
        violation(sim_of(self), "message %d is settled twice at once", h->message->number);
    model_settle(h, settlement);
    wire_settle(h, settlement, ticket);
}

/* sim_hold keeps what is claimed of a queue, delivered or not. */
static void sim_hold(void *self, void *subscription)
{
    connection *c = self;
    const reader *r = subscription;
    sim *s = sim_of(c);
    asked_in_time(c, "hold claims");
    not_over(r, "held");
    for (mull__link *at = mull__list_first(&c->handouts); at;
         at = mull__list_after(&c->handouts, at)) {
        handout *h = MULL__ENTRY(at, handout, link);
        if (h->reader != r)
            continue;
        h->held_ms = s->k.now_ms;
        if (!c->dead && h->copy && !c->down && !happens(s, s->faults.forgets_hold))
            h->deadline_ms = s->k.now_ms + c->broker->abilities.claim_timeout_ms;
    }
}

static int sim_depth(void *self, const char *queue, mull_ticket ticket)
{
    connection *c = self;
    asked_in_time(c, "count");
    if (c->down && one_in(sim_of(c), 2))
        return MULL_EDOWN;
    if (happens(sim_of(c), sim_of(c)->faults.publish_fails / 4))
        return MULL_EIO;
    wire_depth(c, queue_number(queue), ticket);
    return 0;
}

/* sim_release: one that the engine could not settle before its end goes back to the broker. */
static void sim_release(void *self, mull_delivery *delivery)
{
    connection *c = self;
    handout *h = (handout *)(void *)delivery;
    if (h->wire)
        violation(sim_of(c), "message %d is released while it is settled", h->message->number);
    not_in_slot(c->process);
    model_released(h);
    if (h->copy && !c->dead)
        broker_take_back(h, 0);
    stray_loss(c, delivery->ticket);
    handout_free(h);
}

static void sim_close(void *self, int64_t drain_ms)
{
    connection *c = self;
    c->closing = 1;
    call_off(&c->up);
    wire_close(c, drain_ms);
}

static void sim_flush(void *self)
{
    wires_leave(self);
}

const mull_transport_ops simulated = {
    .size = sizeof simulated,
    .version = MULL_TRANSPORT_VERSION,
    .scheme = "simulated",
    .look = sim_look,
    .open = sim_open,
    .subscribe = sim_subscribe,
    .credit = sim_credit,
    .unsubscribe = sim_unsubscribe,
    .publish = sim_publish,
    .settle = sim_settle,
    .depth = sim_depth,
    .release = sim_release,
    .close = sim_close,
    .hold = sim_hold,
    .flush = sim_flush,
};
