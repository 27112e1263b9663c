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

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* draw_abilities: most brokers can do most things. */
static void draw_abilities(sim *s, mull_abilities *can)
{
    static const int64_t steps_ms[] = {0, 0, 1, 40, 500};
    static const int64_t longest_ms[] = {0, 0, 0, 700, 5000, 20000};
    static const int64_t timeouts_ms[] = {0, 0, 1000, 5000, 20000};
    static const mull_counting countings[] = {MULL_COUNTS_DEATHS, MULL_COUNTS_DEATHS,
                                              MULL_COUNTS_HANDOUTS, MULL_COUNTS_NOTHING};
    static const mull_depth_kind depths[] = {MULL_DEPTH_EXACT, MULL_DEPTH_EXACT, MULL_DEPTH_ROUGH,
                                             MULL_DEPTH_NONE};
    can->size = sizeof *can;
    can->can_retry = !one_in(s, 8);
    can->can_delay = !one_in(s, 8);
    can->can_note = one_in(s, 2);
    can->settles_whole = one_in(s, 3);
    can->deliveries = countings[draw(s, 4)];
    can->depth = depths[draw(s, 4)];
    can->delay_step_ms = steps_ms[draw(s, 5)];
    can->longest_delay_ms = longest_ms[draw(s, 6)];
    can->claim_timeout_ms = timeouts_ms[draw(s, 5)];
    can->can_hold = can->claim_timeout_ms > 0 && !one_in(s, 4);
}

/* draw_floor: most brokers promise what they can do, and some of them less. */
static void draw_floor(sim *s, broker *b)
{
    mull_abilities *floor = &b->floor;
    *floor = b->abilities;
    if (!one_in(s, 4))
        return;
    floor->can_retry &= one_in(s, 2);
    floor->can_delay &= !one_in(s, 4);
    floor->can_hold &= one_in(s, 2);
    floor->settles_whole = 0;
    if (one_in(s, 2))
        floor->deliveries = (mull_counting)draw(s, (uint64_t)floor->deliveries + 1);
    if (one_in(s, 2))
        floor->depth = (mull_depth_kind)draw(s, (uint64_t)floor->depth + 1);
    if (one_in(s, 2))
        floor->longest_delay_ms =
            floor->longest_delay_ms > 0 ? smaller(floor->longest_delay_ms, 1500) : 1500;
}

static void draw_misbehaviour(sim *s, broker *b)
{
    int whole = b->abilities.settles_whole;
    b->adopts_ids = one_in(s, 2);
    b->halves = one_in(s, 2) && !whole;
    b->midway = one_in(s, 2) && !whole;
    b->reverses = one_in(s, 2);
    b->to_tail = one_in(s, 3);
    b->counts_given_back = one_in(s, 2);
    b->drops_claims = one_in(s, 2);
    b->batches = one_in(s, 3);
    b->refuses_big = one_in(s, 6);
    if (one_in(s, 4))
        b->missing = (unsigned)draw(s, 1U << DEAD_QUEUES);
}

void broker_init(sim *s, int index)
{
    broker *b = &s->brokers[index];
    *b = (broker){.sim = s, .index = index};
    mull__list_init(&b->copies);
    mull__list_init(&b->connections);
    mull_abilities *can = &b->abilities;
    draw_abilities(s, can);
    draw_floor(s, b);
    draw_misbehaviour(s, b);
    note(s, "broker %lld: longest delay %lld, claim timeout %lld, abilities %lld", index,
         can->longest_delay_ms, can->claim_timeout_ms,
         can->can_retry + 2 * can->can_delay + 4 * (int)can->deliveries + 16 * can->can_hold);
    note(s, "... step %lld, depth %lld, lacks queues %lld, misbehaves %lld", can->delay_step_ms,
         can->depth, b->missing,
         b->halves + 2 * b->midway + 4 * b->to_tail + 8 * b->drops_claims + 16 * b->batches +
             32 * b->refuses_big);
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

/* in_steps rounds a delay up to what the broker can do. */
static int64_t in_steps(const broker *b, int64_t due_ms)
{
    int64_t step_ms = b->abilities.delay_step_ms, delay_ms = due_ms - wall_ms(b->sim);
    return step_ms > 1 && delay_ms > 0 ? due_ms + (step_ms - delay_ms % step_ms) % step_ms : due_ms;
}

static void enqueue(broker *b, copy *c, int queue, int64_t due_ms)
{
    c->queue = queue;
    c->due_ms = in_steps(b, due_ms);
    c->deliveries = 0;
    c->place = b->next_place++;
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
        s->published_ms = s->k.now_ms;
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
        if (ready_ms > s->k.now_ms)
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
    h->reader->out--;
    return c;
}

void broker_take_back(handout *h, int64_t rests_ms)
{
    broker *b = h->connection->broker;
    copy *c = unclaim(h);
    account_died(h);
    c->rests_ms = b->sim->k.now_ms + rests_ms;
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
    mull_header *headers =
        keep(b->sim, (h->content.header_count + settlement->our_count + 1) * sizeof *headers);
    size_t count = mull_settled_headers(headers, &h->content, settlement);
    set_headers(b, c, headers, count);
    c->counters = h->after;
    if (c->account.first_written_ms == 0)
        c->account.first_written_ms = h->after.first_failure_ms;
    if (!c->id && b->adopts_ids)
        c->id = keep_text(b->sim, settlement->id);
}

static void put_sends(broker *b, const mull_settlement *settlement, const handout *h)
{
    const message *m = h->sent;
    for (size_t i = 0; i < settlement->send_count; i++, m = m->next_sent)
        broker_put(b, b->sim->messages[m->number], settlement->sends[i].due_ms,
                   settlement->sends[i].message);
}

static int makes_copy(const mull_settlement *settlement)
{
    return settlement->kind == MULL_SETTLE_REDELIVER || settlement->kind == MULL_SETTLE_DEAD_LETTER;
}

int broker_refuses(const handout *h, const mull_settlement *settlement)
{
    const broker *b = h->connection->broker;
    int rewrites =
        settlement->kind == MULL_SETTLE_REDELIVER || settlement->kind == MULL_SETTLE_NOTE;
    int big = b->refuses_big && rewrites && h->message->big;
    const message *m = settlement->kind == MULL_SETTLE_ACK ? h->sent : NULL;
    for (; m; m = m->next_sent)
        big |= b->refuses_big && m->big;
    int queue = settlement->kind == MULL_SETTLE_DEAD_LETTER ? queue_number(settlement->queue) : 0;
    return big || (queue >= QUEUES && (b->missing >> (queue - QUEUES) & 1));
}

/* broker_settle_half: the connection died, or an error was answered, between the copy and the end
 * of the message, so there are both. */
void broker_settle_half(handout *h, const mull_settlement *settlement)
{
    broker *b = h->connection->broker;
    copy *c = h->copy;
    if (!c || h->half || broker_refuses(h, settlement))
        return;
    if (settlement->kind == MULL_SETTLE_ACK)
        put_sends(b, settlement, h);
    h->half = settlement->kind == MULL_SETTLE_ACK || makes_copy(settlement);
    if (!makes_copy(settlement))
        return;
    copy *second = keep(b->sim, sizeof *second);
    *second = (copy){.message = c->message, .id = c->id, .account = c->account};
    rewrite(b, second, h, settlement);
    mull__list_push(&b->copies, &second->link);
    c->message->copies++;
    c->message->extra++;
    enqueue(b, second, queue_number(settlement->queue), settlement->due_ms);
}

/* settle_rest ends a message whose copy, or what its handler sent, is there already. */
static void settle_rest(broker *b, copy *c, const mull_settlement *settlement)
{
    end(b, c);
    if (!makes_copy(settlement))
        return;
    c->message->ends--; /* the copy has taken its place */
    c->message->extra--;
}

static void give_back(broker *b, copy *c, const handout *h, const mull_settlement *settlement)
{
    rewrite(b, c, h, settlement);
    c->due_ms = in_steps(b, settlement->due_ms);
    if (b->abilities.deliveries != MULL_COUNTS_HANDOUTS || !b->counts_given_back)
        c->deliveries--;
    if (b->to_tail)
        c->place = b->next_place++;
}

static void settle_whole(broker *b, copy *c, const handout *h, const mull_settlement *settlement)
{
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
        give_back(b, c, h, settlement);
        break;
    case MULL_SETTLE_NOTE:
        break;
    }
}

int broker_settle(handout *h, const mull_settlement *settlement)
{
    broker *b = h->connection->broker;
    if (!h->copy)
        return MULL_ELOST;
    if (!h->half && broker_refuses(h, settlement))
        return MULL_EREFUSED;
    if (settlement->kind == MULL_SETTLE_NOTE) {
        rewrite(b, h->copy, h, settlement);
        return 0;
    }
    copy *c = unclaim(h);
    if (h->half)
        settle_rest(b, c, settlement);
    else
        settle_whole(b, c, h, settlement);
    broker_stir(b);
    return 0;
}
