/* delivery.c: what RabbitMQ has handed out: to whom, until it is acknowledged, or back. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { ENDING_MS = 30 };

/* ---- Handing out ----------------------------------------------------------------------------- */

static amqp_table_entry_t text_entry(const char *name, amqp_bytes_t value)
{
    return (amqp_table_entry_t){bytes_of(name),
                                {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = value}};
}

static amqp_table_entry_t number_entry(const char *name, int64_t value)
{
    return (amqp_table_entry_t){bytes_of(name), {.kind = AMQP_FIELD_KIND_I64, .value.i64 = value}};
}

/* x_death is what dead-lettering leaves in a message. */
static amqp_table_entry_t x_death(broker *b, const copy *c)
{
    size_t count = (size_t)c->death_count;
    amqp_field_value_t *deaths = amqp_pool_alloc(&b->pool, count * sizeof *deaths);
    amqp_table_entry_t *entries = amqp_pool_alloc(&b->pool, 2 * count * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        entries[2 * i] = text_entry("reason", bytes_of("expired"));
        entries[2 * i + 1] = text_entry("queue", bytes_of(c->deaths[i]));
        deaths[i] = (amqp_field_value_t){.kind = AMQP_FIELD_KIND_TABLE,
                                         .value.table = {2, &entries[2 * i]}};
    }
    return (amqp_table_entry_t){
        bytes_of("x-death"),
        {.kind = AMQP_FIELD_KIND_ARRAY, .value.array = {c->death_count, deaths}}};
}

/* handed_properties are a copy's as they are handed out: with what the broker adds, and a header
 * `hand-out` of the simulator's, by which it knows this hand-out again. */
static amqp_bytes_t handed_properties(broker *b, const handout *h)
{
    sim *s = b->sim;
    const copy *c = h->of;
    void *decoded = NULL;
    amqp_bytes_t out = {c->properties.len + 8192,
                        amqp_pool_alloc(&b->pool, c->properties.len + 8192)};
    if (amqp_decode_properties(AMQP_BASIC_CLASS, &b->pool, c->properties, &decoded) < 0)
        violation(s, "properties that can't be read were published");
    amqp_basic_properties_t properties = *(amqp_basic_properties_t *)decoded;
    amqp_table_t old = properties.headers, table = {0, NULL};
    if (!(properties._flags & AMQP_BASIC_HEADERS_FLAG))
        old = amqp_empty_table;
    table.entries =
        amqp_pool_alloc(&b->pool, ((size_t)old.num_entries + 4) * sizeof *table.entries);
    for (int i = 0; i < old.num_entries; i++)
        if (!same(old.entries[i].key, "hand-out") && !same(old.entries[i].key, "x-delivery-count"))
            table.entries[table.num_entries++] = old.entries[i];
    table.entries[table.num_entries++] = number_entry("hand-out", (int64_t)h->serial);
    if (h->from->is_quorum && c->count > 0)
        table.entries[table.num_entries++] = number_entry("x-delivery-count", c->count);
    if (c->death_count > 0)
        table.entries[table.num_entries++] = x_death(b, c);
    if (c->death_count > 0)
        table.entries[table.num_entries++] =
            text_entry("x-first-death-queue", bytes_of(c->deaths[0]));
    properties.headers = table;
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    int size = amqp_encode_properties(AMQP_BASIC_CLASS, &properties, out);
    if (size < 0)
        violation(s, "properties can't be handed out");
    out.len = (size_t)size;
    return out;
}

static handout *handout_new(sim *s, consumer *by, copy *of)
{
    broker *b = &s->broker;
    handout *h = keep(s, sizeof *h);
    if (b->handouts == s->handout_room) {
        s->handout_room = s->handout_room ? 2 * s->handout_room : 1024;
        s->handouts = realloc(s->handouts, s->handout_room * sizeof(void *));
        if (!s->handouts)
            violation(s, "out of memory");
    }
    s->handouts[b->handouts] = h;
    h->serial = ++b->handouts;
    h->tag = ++by->on->delivery_tag;
    h->on = by->on;
    h->on_life = by->on->life;
    h->by = by;
    h->of = of;
    h->count = of->count;
    h->from = of->in;
    h->out_ms = s->k.now_ms;
    return h;
}

handout *handout_at(broker *b, uint64_t serial)
{
    return serial > 0 && serial <= b->handouts ? b->sim->handouts[serial - 1] : NULL;
}

static void hand_out(sim *s, consumer *by, copy *of)
{
    queue *q = by->of;
    handout *h = handout_new(s, by, of);
    mull__list_remove(&q->ready, &of->link);
    q->unacked++;
    by->out++;
    mull__list_push(&by->on->handouts, &h->link);
    s->totals->handed_out++;
    note(s, "hand-out %lld: message %lld, channel %lld, tag %lld", (int64_t)h->serial,
         (int64_t)of->of->number, by->on->number, (int64_t)h->tag);
    amqp_basic_deliver_t deliver = {.consumer_tag = bytes_of(by->tag),
                                    .delivery_tag = h->tag,
                                    .redelivered = of->redelivered,
                                    .exchange = amqp_empty_bytes,
                                    .routing_key = bytes_of(of->key)};
    conn_send_content(by->on->conn, by->on->number, AMQP_BASIC_DELIVER_METHOD, &deliver,
                      handed_properties(&s->broker, h), of->body);
    recycle_amqp_pool(&s->broker.pool);
}

/* free_consumer is one that may have more; each has its turn. */
static consumer *free_consumer(queue *q)
{
    for (size_t left = q->consumers.count; left > 0; left--) {
        mull__link *link = mull__list_pop(&q->consumers);
        consumer *c = MULL__ENTRY(link, consumer, link);
        mull__list_push(&q->consumers, link);
        if (c->is_told && (c->prefetch == 0 || c->out < c->prefetch))
            return c;
    }
    return NULL;
}

static void pump(sim *s, void *data)
{
    queue *q = data;
    consumer *by;
    mull__link *first;
    q->pump = NULL;
    while ((first = mull__list_first(&q->ready)) && (by = free_consumer(q)))
        hand_out(s, by, MULL__ENTRY(first, copy, link));
}

void queue_pump(sim *s, queue *q)
{
    if (q->pump || q->consumers.count == 0 || q->ready.count == 0)
        return;
    int64_t wait_ms = one_in(s, 3) ? between(s, 0, 20) : 0;
    q->pump = at_time(s, wait_ms, pump, q);
}

/* ---- Its end --------------------------------------------------------------------------------- */

static void leave_queue(handout *h)
{
    h->from->unacked--;
    if (h->by)
        h->by->out--;
}

static void on_ending(sim *s, void *data)
{
    handout *h = data;
    h->ending = NULL;
    mull__list_remove(&h->on->handouts, &h->link);
    h->state = HANDOUT_ENDED;
    h->of->of->live--;
    leave_queue(h);
    ledger_ended(s, h);
    queue_pump(s, h->from);
}

/* handout_ack: a quorum queue takes it a little later than the channel. */
void handout_ack(handout *h)
{
    sim *s = h->on->conn->broker->sim;
    int is_stale = h->state == HANDOUT_STALE;
    mull__list_remove(&h->on->handouts, &h->link);
    if (is_stale)
        return;
    h->state = HANDOUT_ENDING;
    if (h->from->is_quorum) {
        mull__list_push(&h->on->handouts, &h->link);
        h->ending = at_time(s, between(s, 0, ENDING_MS), on_ending, h);
    } else {
        on_ending(s, h);
    }
}

/* handout_back: to the tail of a quorum queue, to the head of a classic one. */
void handout_back(handout *h)
{
    sim *s = h->on->conn->broker->sim;
    copy *c = h->of;
    int was_in = h->state != HANDOUT_STALE;
    mull__list_remove(&h->on->handouts, &h->link);
    if (h->state == HANDOUT_ENDING) {
        s->totals->acks_lost++;
        call_off(&h->ending);
    }
    h->state = HANDOUT_BACK;
    if (!was_in)
        return;
    leave_queue(h);
    c->count++;
    c->redelivered = 1;
    note(s, "hand-out %lld is back", (int64_t)h->serial, 0, 0, 0);
    copy_put(&s->broker, h->from, c, !h->from->is_quorum);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

consumer *consumer_find(channel *on, amqp_bytes_t tag)
{
    mull__list *queues = &on->conn->broker->queues;
    for (mull__link *at = mull__list_first(queues); at; at = mull__list_after(queues, at)) {
        mull__list *list = &MULL__ENTRY(at, queue, link)->consumers;
        for (mull__link *one = mull__list_first(list); one; one = mull__list_after(list, one)) {
            consumer *c = MULL__ENTRY(one, consumer, link);
            if (c->on == on && same(tag, c->tag))
                return c;
        }
    }
    return NULL;
}

void consumer_end(consumer *c)
{
    c->on->conn->broker->sim->totals->cancelled++;
    amqp_basic_cancel_t cancel = {.consumer_tag = bytes_of(c->tag), .nowait = 1};
    consumer_tell(c);
    mull__list_remove(&c->of->consumers, &c->link);
    conn_send(c->on->conn, c->on->number, AMQP_BASIC_CANCEL_METHOD, &cancel);
}

/* forget_on: a channel still knows the tags of what was out of a queue that is gone. */
static void forget_on(channel *c, const queue *q)
{
    mull__link *after;
    for (mull__link *at = mull__list_first(&c->handouts); at; at = after) {
        handout *h = MULL__ENTRY(at, handout, link);
        after = mull__list_after(&c->handouts, at);
        if (h->from != q || h->state == HANDOUT_STALE)
            continue;
        call_off(&h->ending);
        leave_queue(h);
        h->state = HANDOUT_STALE;
        copy_drop(c->conn->broker, h->of);
    }
}

void handouts_forget(broker *b, const queue *q)
{
    for (mull__link *at = mull__list_first(&b->conns); at; at = mull__list_after(&b->conns, at)) {
        conn *c = MULL__ENTRY(at, conn, link);
        for (int i = 0; i < CHANNELS; i++)
            if (c->channels[i].state == CHANNEL_OPEN)
                forget_on(&c->channels[i], q);
    }
}

/* take_away: what a channel has of a queue goes back there; the channel still knows the tags. */
static void take_away(channel *c, queue *q)
{
    mull__link *after;
    for (mull__link *at = mull__list_first(&c->handouts); at; at = after) {
        handout *h = MULL__ENTRY(at, handout, link);
        after = mull__list_after(&c->handouts, at);
        if (h->from != q || h->state == HANDOUT_STALE)
            continue;
        ledger_excuse(h);
        if (h->state == HANDOUT_ENDING)
            continue; /* the channel may close before the queue takes that */
        leave_queue(h);
        h->state = HANDOUT_STALE;
        h->of->count++;
        h->of->redelivered = 1;
        copy_put(c->conn->broker, q, h->of, 0);
    }
}

void consumers_away(sim *s, queue *q)
{
    mull__link *link;
    while ((link = mull__list_first(&q->consumers)))
        consumer_end(MULL__ENTRY(link, consumer, link));
    mull__list *conns = &s->broker.conns;
    for (link = mull__list_first(conns); link; link = mull__list_after(conns, link))
        for (int i = 0; i < CHANNELS; i++)
            take_away(&MULL__ENTRY(link, conn, link)->channels[i], q);
    s->totals->taken_away++;
}
