/* broker.c: keeps messages. Naive: a list, looked through each time. It never forgets anything and
 * never makes a message twice, but where a connection died in the midst of a settlement. */
#include "sim.h"

#include <string.h>

static const char *const names[QUEUES + DEAD_QUEUES] = {"q0",    "q1",     "q2",  "q3",
                                                        "error", "parked", "late"};

const char *queue_name(int number)
{
    return names[number];
}

int queue_number(const char *name)
{
    for (int i = 0; i < QUEUES + DEAD_QUEUES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* draw_abilities: most brokers can do most things. */
static void draw_abilities(sim *s, broker *b)
{
    static const int64_t longest_ms[] = {0, 0, 0, 700, 5000, 20000};
    static const int64_t timeouts_ms[] = {0, 0, 1000, 5000, 20000};
    mull_abilities *can = &b->abilities;
    can->can_retry = !one_in(s, 8);
    can->can_delay = !one_in(s, 8);
    can->counts_deliveries = !one_in(s, 4);
    can->longest_delay_ms = longest_ms[draw(s, 6)];
    can->claim_timeout_ms = timeouts_ms[draw(s, 5)];
    can->can_hold = can->claim_timeout_ms > 0 && !one_in(s, 4);
    b->adopts_ids = one_in(s, 2);
    b->halves = one_in(s, 2);
    b->reverses = one_in(s, 2);
}

void broker_init(sim *s, int index)
{
    broker *b = &s->brokers[index];
    *b = (broker){.sim = s, .index = index};
    mull__list_init(&b->copies);
    mull__list_init(&b->connections);
    draw_abilities(s, b);
    const mull_abilities *can = &b->abilities;
    note(s, "broker %lld: longest delay %lld, claim timeout %lld, abilities %lld", index,
         can->longest_delay_ms, can->claim_timeout_ms,
         can->can_retry + 2 * can->can_delay + 4 * can->counts_deliveries + 8 * can->can_hold);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void set_headers(broker *b, copy *c, const mull_header *headers, size_t count)
{
    sim *s = b->sim;
    mull_header *kept = keep(s, (count + 1) * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[b->reverses ? count - 1 - i : i] =
            (mull_header){keep_text(s, headers[i].name), keep_text(s, headers[i].value)};
    c->headers = kept;
    c->header_count = count;
}

static void enqueue(broker *b, copy *c, int queue, int64_t due_ms)
{
    c->queue = queue;
    c->due_ms = due_ms;
    c->deliveries = 0;
    c->place = b->next_place++;
    b->dead_count += queue >= QUEUES;
    broker_stir(b);
}

copy *broker_put(broker *b, message *m, int64_t due_ms, const mull_message *content)
{
    sim *s = b->sim;
    copy *c = keep(s, sizeof *c);
    c->message = m;
    c->id = content->id ? keep_text(s, content->id) : NULL;
    c->counters.not_before_ms = due_ms;
    set_headers(b, c, content->headers, content->header_count);
    mull__list_push(&b->copies, &c->link);
    m->copies++;
    m->exists = 1;
    if (m->origin != SENT)
        s->published_ms = s->now_ms;
    enqueue(b, c, m->queue, due_ms);
    return c;
}

void broker_put_back(broker *b)
{
    sim *s = b->sim;
    copy *found = NULL;
    uint64_t count = 0;
    for (mull__link *at = mull__list_first(&b->copies); at; at = mull__list_after(&b->copies, at)) {
        copy *c = MULL__ENTRY(at, copy, link);
        if (c->queue >= QUEUES && one_in(s, ++count))
            found = c;
    }
    if (!found)
        return;
    int queue = one_in(s, 2) ? found->message->queue
                             : b->index + s->broker_count * (int)draw(s, QUEUES / BROKERS);
    note(s, "message %lld is put back, to queue %lld", found->message->number, queue, 0, 0);
    s->totals->put_back++;
    b->dead_count--;
    enqueue(b, found, queue, 0);
}

copy *broker_next(broker *b, int queue, int64_t *next_ms)
{
    sim *s = b->sim;
    copy *first = NULL;
    for (mull__link *at = mull__list_first(&b->copies); at; at = mull__list_after(&b->copies, at)) {
        copy *c = MULL__ENTRY(at, copy, link);
        if (c->claim || c->queue != queue)
            continue;
        int64_t ready_ms = c->due_ms - WALL_MS > c->rests_ms ? c->due_ms - WALL_MS : c->rests_ms;
        if (ready_ms > s->now_ms)
            *next_ms = ready_ms < *next_ms ? ready_ms : *next_ms;
        else if (!first || c->place < first->place)
            first = c;
    }
    return first;
}

void broker_stir(broker *b)
{
    for (mull__link *at = mull__list_first(&b->connections); at;
         at = mull__list_after(&b->connections, at))
        connection_stir(MULL__ENTRY(at, connection, link), 0);
}

/* ---- Settling -------------------------------------------------------------------------------- */

/* unclaim takes a claim's message out of it. */
static copy *unclaim(handout *h)
{
    copy *c = h->copy;
    c->claim = NULL;
    h->copy = NULL;
    connection *from = h->connection;
    for (int i = 0; i < from->reader_count; i++)
        from->readers[i].out -= from->readers[i].consumer == h->consumer;
    return c;
}

void broker_take_back(handout *h, int64_t rests_ms)
{
    broker *b = h->connection->broker;
    copy *c = unclaim(h);
    c->rests_ms = b->sim->now_ms + rests_ms;
    broker_stir(b);
}

static void end(broker *b, copy *c)
{
    c->message->copies--;
    c->message->ends++;
    mull__list_remove(&b->copies, &c->link);
}

static void rewrite(broker *b, copy *c, const handout *h, const mull_settlement *settlement)
{
    set_headers(b, c, settlement->headers, settlement->header_count);
    c->counters = h->after;
    if (!c->id && b->adopts_ids)
        c->id = keep_text(b->sim, settlement->id);
}

static void put_sends(broker *b, const mull_settlement *settlement, const handout *h)
{
    const message *m = h->sent;
    for (size_t i = 0; i < settlement->send_count; i++, m = m->next_sent)
        broker_put(b, b->sim->messages[m->number], settlement->sends[i].due_ms,
                   &settlement->sends[i].message);
}

/* settle_half: the connection died between the copy and the acknowledgement, so there are both. */
static void settle_half(broker *b, handout *h, const mull_settlement *settlement)
{
    copy *c = h->copy;
    b->sim->totals->halves++;
    if (settlement->kind == MULL_SETTLE_ACK)
        put_sends(b, settlement, h);
    if (settlement->kind != MULL_SETTLE_REDELIVER && settlement->kind != MULL_SETTLE_DEAD_LETTER)
        return;
    copy *second = keep(b->sim, sizeof *second);
    *second = (copy){.message = c->message, .id = c->id};
    rewrite(b, second, h, settlement);
    mull__list_push(&b->copies, &second->link);
    c->message->copies++;
    c->message->extra++;
    enqueue(b, second, queue_number(settlement->queue), settlement->due_ms);
}

int broker_settle(handout *h, const mull_settlement *settlement, int half)
{
    broker *b = h->connection->broker;
    if (!h->copy)
        return MULL_ELOST;
    if (half) {
        settle_half(b, h, settlement);
        return 0;
    }
    copy *c = unclaim(h);
    switch (settlement->kind) {
    case MULL_SETTLE_ACK:
        put_sends(b, settlement, h);
        end(b, c);
        break;
    case MULL_SETTLE_DISCARD:
        end(b, c);
        break;
    case MULL_SETTLE_REDELIVER:
    case MULL_SETTLE_DEAD_LETTER:
        rewrite(b, c, h, settlement);
        enqueue(b, c, queue_number(settlement->queue), settlement->due_ms);
        break;
    case MULL_SETTLE_GIVE_BACK:
        rewrite(b, c, h, settlement);
        c->deliveries--;
        break;
    }
    broker_stir(b);
    return 0;
}
