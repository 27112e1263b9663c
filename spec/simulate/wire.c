/* wire.c: what a connection is asked goes over a wire: it leaves at once or with the next flush,
 * reaches the broker some time later, and the answer comes back later still, twice, or never.
 *
 *   settle ── leave ── reach: the broker does it, or not, or half of it ── answer: mull_port_answer
 */
#include "sim.h"

#include "runtime/engine_state.h"

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
    mull_ticket ticket;
    mull_depth depth;
    int left, reached, status;
    int mute; /* no answer comes, or one when it is too late */
    event *next;
} wire;

static sim *sim_of(const connection *c)
{
    return c->broker->sim;
}

/* ---- Tickets --------------------------------------------------------------------------------- */

/* ticket_given keeps the numbers in order: as a rule the new one is the largest. */
void ticket_given(process *p, mull_ticket ticket)
{
    if (p->ticket_count == p->ticket_room) {
        size_t room = p->ticket_room ? 2 * p->ticket_room : 64;
        mull_ticket *more = keep(p->sim, room * sizeof *more);
        if (p->ticket_count > 0)
            memcpy(more, p->tickets, p->ticket_count * sizeof *more);
        p->tickets = more;
        p->ticket_room = room;
    }
    size_t at = p->ticket_count++;
    for (; at > 0 && p->tickets[at - 1] > ticket; at--)
        p->tickets[at] = p->tickets[at - 1];
    if (ticket == 0 || (at > 0 && p->tickets[at - 1] == ticket))
        violation(p->sim, "the number %llu is given twice", (unsigned long long)ticket);
    p->tickets[at] = ticket;
}

/* misuse is an answer that nobody asked for: it goes to the log, and nothing else comes of it. */
typedef struct misuse {
    connection *connection;
    mull_ticket ticket;
    asked asked;
    int lost;
} misuse;

static void misanswer(const misuse *m)
{
    static const mull_depth depth = {.ready = 1, .next_due_ms = INT64_MAX};
    connection *c = m->connection;
    sim *s = sim_of(c);
    if (!c->port || c->dead || c->closing)
        return;
    int64_t errors = c->process->errors;
    int status = one_in(s, 2) ? 0 : MULL_EIO;
    s->totals->twice++;
    if (m->lost)
        mull_port_lost(c->port, m->ticket, NULL);
    else if (m->asked == DEPTH)
        mull_port_depth(c->port, m->ticket, status, &depth, NULL);
    else
        mull_port_answer(c->port, m->ticket, status, NULL);
    if (c->process->errors == errors)
        violation(s, "an answer too many isn't told to the log");
    c->process->touched = 1;
}

static void on_misuse(sim *s, void *data)
{
    (void)s;
    misanswer(data);
}

static void misuse_later(connection *c, mull_ticket ticket, asked what, int lost)
{
    sim *s = sim_of(c);
    misuse *m = keep(s, sizeof *m);
    *m = (misuse){c, ticket, what, lost};
    at_time(s, one_in(s, 2) ? 0 : between(s, 0, 3000), on_misuse, m);
}

void stray_loss(connection *c, mull_ticket delivery)
{
    sim *s = sim_of(c);
    if (delivery != 0 && happens(s, s->faults.twice / 4))
        misuse_later(c, delivery, SETTLE, 1);
}

/* ---- At the broker --------------------------------------------------------------------------- */

static void count_depth(wire *w)
{
    sim *s = sim_of(w->connection);
    const broker *b = w->connection->broker;
    mull_depth *depth = &w->depth;
    *depth = (mull_depth){.next_due_ms = INT64_MAX};
    mull__list *copies = &w->connection->broker->copies;
    for (mull__link *at = mull__list_first(copies); at; at = mull__list_after(copies, at)) {
        const copy *c = MULL__ENTRY(at, copy, link);
        if (c->queue != w->queue)
            continue;
        if (c->claim || c->rests_ms > s->k.now_ms)
            depth->claimed++;
        else if (c->due_ms <= wall_ms(s))
            depth->ready++;
        else {
            depth->delayed++;
            if (c->due_ms < depth->next_due_ms)
                depth->next_due_ms = c->due_ms;
        }
    }
    if (b->abilities.depth == MULL_DEPTH_ROUGH) {
        depth->claimed = MULL_UNKNOWN;
        depth->next_due_ms = INT64_MAX;
        if (b->reverses)
            depth->delayed = MULL_UNKNOWN;
    } else if (b->abilities.depth == MULL_DEPTH_NONE) {
        *depth = (mull_depth){MULL_UNKNOWN, MULL_UNKNOWN, MULL_UNKNOWN, INT64_MAX};
    }
}

/* reach has the broker do what was asked. */
static void reach(wire *w)
{
    w->reached = 1;
    if (w->asked == SETTLE)
        w->status = broker_settle(w->handout, w->settlement);
    else if (w->asked == PUBLISH)
        broker_put(w->connection->broker, w->message, w->due_ms, &w->content);
    else if (w->asked == DEPTH)
        count_depth(w);
}

/* fail answers an error. Some of it may have been done all the same. */
static void fail(wire *w)
{
    sim *s = sim_of(w->connection);
    w->reached = 1;
    if (w->asked == PUBLISH && one_in(s, 3))
        reach(w);
    else if (w->asked == SETTLE && w->connection->broker->midway && one_in(s, 2)) {
        broker_settle_half(w->handout, w->settlement);
        s->totals->midways += w->handout->half != 0;
    }
    w->status = w->connection->down ? MULL_EDOWN : MULL_EIO;
}

/* ---- The answer ------------------------------------------------------------------------------ */

/* answer_given_up answers what its engine no longer waits for. */
static void answer_given_up(const wire *w)
{
    connection *c = w->connection;
    int64_t errors = c->process->errors;
    if (!c->port || c->dead)
        return;
    mull_port_answer(c->port, w->ticket, w->status, NULL);
    if (c->process->errors != errors)
        violation(sim_of(c), "an answer that was asked for is told to be too many");
}

static void answer_settle(wire *w)
{
    connection *c = w->connection;
    process *p = c->process;
    handout *h = w->handout;
    h->wire = NULL;
    h->mute = 0;
    if (h->unanswered) {
        answer_given_up(w);
        return;
    }
    if (h->told_lost && w->status != 0)
        w->status = MULL_ELOST;
    model_answered(h, w->status);
    if (h->stage == SETTLED)
        call_off(&h->lost);
    int refused = w->status == MULL_EREFUSED;
    mull_port_answer(c->port, w->ticket, w->status, w->status ? "as the seed wants it" : NULL);
    if (refused)
        model_refused(h);
    if (refused && sim_of(c)->k.calm && h->stage == PARKED)
        process_stop(p); /* a person acts */
    if (w->status != 0 && !c->dead)
        process_troubled(p);
}

static void answer(wire *w)
{
    connection *c = w->connection;
    sim *s = sim_of(c);
    call_off(&w->next);
    mull__list_remove(&c->wires, &w->link);
    c->process->touched = 1;
    switch (w->asked) {
    case SETTLE:
        answer_settle(w);
        break;
    case PUBLISH:
        mull_port_answer(c->port, w->ticket, w->status, NULL);
        break;
    case DEPTH:
        mull_port_depth(c->port, w->ticket, w->status, &w->depth, NULL);
        break;
    case CLOSE:
        mull_port_closed(c->port);
        c->port = NULL;
        return;
    }
    if (!c->dead && happens(s, s->faults.twice))
        misuse_later(c, w->ticket, one_in(s, 8) ? DEPTH : w->asked, 0);
}

static void on_answer(sim *s, void *data)
{
    (void)s;
    wire *w = data;
    w->next = NULL;
    answer(w);
}

/* too_late is an answer to a question that has expired. */
static void on_too_late(sim *s, void *data)
{
    (void)s;
    wire *w = data;
    w->next = NULL;
    if (w->asked == SETTLE) {
        answer(w);
        return;
    }
    mull__list_remove(&w->connection->wires, &w->link);
    misanswer(&(misuse){.connection = w->connection, .ticket = w->ticket, .asked = w->asked});
}

static void on_reach(sim *s, void *data)
{
    wire *w = data;
    uint32_t chance = w->asked == SETTLE ? s->faults.settle_fails : s->faults.publish_fails;
    if (process_is_stopping(w->connection->process))
        chance *= 3; /* the end is where it hurts */
    w->next = NULL;
    if (w->mute && one_in(s, 2)) {
        w->status = MULL_EIO; /* it got lost on its way */
        w->reached = 1;
    } else if (w->connection->down || happens(s, chance)) {
        fail(w);
    } else {
        reach(w);
    }
    if (!w->mute)
        w->next = at_time(s, some_time(s), on_answer, w);
    else if (one_in(s, 2))
        w->next = at_time(s, EXPIRES_MS + between(s, 1, 30000), on_too_late, w);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static wire *ask(connection *c, asked what, mull_ticket ticket)
{
    sim *s = sim_of(c);
    wire *w = keep(s, sizeof *w);
    w->connection = c;
    w->asked = what;
    w->ticket = ticket;
    if (what != CLOSE)
        ticket_given(c->process, ticket);
    mull__list_push(&c->wires, &w->link);
    return w;
}

/* leave sends a question off; those of a dead connection are answered when its engine is taken
 * down.
 */
static void leave(wire *w)
{
    sim *s = sim_of(w->connection);
    w->left = 1;
    if (w->connection->dead)
        return;
    w->mute = happens(s, s->faults.mute);
    s->totals->mutes += w->mute != 0;
    if (w->handout)
        w->handout->mute = w->mute;
    if (happens(s, s->faults.twice / 4)) /* an answer of the wrong kind */
        misuse_later(w->connection, w->ticket, w->asked == DEPTH ? PUBLISH : DEPTH, 0);
    if (happens(s, s->faults.kill_inside))
        process_kill(w->connection->process);
    else
        w->next = at_time(s, some_time(s), on_reach, w);
}

/* answer_at_once answers from within the slot that asks: it is taken on a later turn. What may be
 * refused isn't answered so, since the model expects what comes of that at once. */
static int answer_at_once(wire *w)
{
    connection *c = w->connection;
    sim *s = sim_of(c);
    if (c->dead || !happens(s, s->faults.in_slot) ||
        (w->asked == SETTLE && broker_refuses(w->handout, w->settlement)))
        return 0;
    if (c->down || happens(s, s->faults.settle_fails))
        fail(w);
    else
        reach(w);
    s->totals->in_slot++;
    c->process->in_slot = 1;
    c->process->in_slot_ms = s->k.now_ms;
    answer(w);
    if (happens(s, s->faults.twice))
        misanswer(&(misuse){.connection = c, .ticket = w->ticket, .asked = w->asked});
    c->process->in_slot = 0;
    return 1;
}

void not_in_slot(const process *p)
{
    if (p->in_slot)
        violation(p->sim, "what a slot answers is taken at once");
}

static void leave_unless_batched(wire *w)
{
    if (!answer_at_once(w) && !w->connection->broker->batches)
        leave(w);
}

void wires_leave(connection *c)
{
    mull__link *next;
    for (mull__link *at = mull__list_first(&c->wires); at; at = next) {
        next = mull__list_after(&c->wires, at);
        wire *w = MULL__ENTRY(at, wire, link);
        if (!w->left && w->asked != CLOSE)
            leave(w);
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

void wire_publish(connection *c, message *m, const mull_outgoing *outgoing, mull_ticket ticket)
{
    wire *w = ask(c, PUBLISH, ticket);
    w->message = m;
    w->content = keep_content(sim_of(c), outgoing->message);
    w->due_ms = outgoing->due_ms;
    leave_unless_batched(w);
}

void wire_settle(handout *h, const mull_settlement *settlement, mull_ticket ticket)
{
    wire *w = ask(h->connection, SETTLE, ticket);
    w->handout = h;
    w->settlement = settlement;
    h->wire = w;
    leave_unless_batched(w);
}

void wire_depth(connection *c, int queue, mull_ticket ticket)
{
    wire *w = ask(c, DEPTH, ticket);
    w->queue = queue;
    leave_unless_batched(w);
}

/* ---- The end --------------------------------------------------------------------------------- */

static wire *first_wire(connection *c)
{
    mull__link *link = mull__list_first(&c->wires);
    return link ? MULL__ENTRY(link, wire, link) : NULL;
}

void wires_last_words(connection *c)
{
    sim *s = sim_of(c);
    for (mull__link *at = mull__list_first(&c->wires); at; at = mull__list_after(&c->wires, at)) {
        wire *w = MULL__ENTRY(at, wire, link);
        call_off(&w->next);
        if (w->reached || !one_in(s, 3))
            continue;
        if (w->asked == SETTLE && c->broker->halves && one_in(s, 2)) {
            broker_settle_half(w->handout, w->settlement);
            s->totals->halves += w->handout->half != 0;
        } else {
            reach(w);
        }
    }
}

/* leave_unanswered forgets a question from which no answer comes. */
static void leave_unanswered(wire *w)
{
    call_off(&w->next);
    mull__list_remove(&w->connection->wires, &w->link);
    if (w->handout)
        w->handout->wire = NULL;
}

/* let_go: what is on its way never arrives. Nothing else may be left but what wasn't answered. */
static void let_go(connection *c)
{
    for (mull__link *at; (at = mull__list_first(&c->handouts));) {
        handout *h = MULL__ENTRY(at, handout, link);
        if (h->stage != ON_ITS_WAY && !h->unanswered && !c->dead)
            violation(sim_of(c), "message %d isn't released when its transport is closed",
                      h->message->number);
        if (h->copy)
            broker_take_back(h, 0);
        handout_free(h);
    }
}

void wires_answer(connection *c)
{
    while (c->port && c->port->deferred)
        mull_port_lost(c->port, ((mull_delivery *)c->port->deferred)->ticket, NULL);
    for (wire *w; (w = first_wire(c));) {
        w->status = w->asked == SETTLE ? MULL_ELOST : w->asked == CLOSE ? 0 : MULL_EIO;
        if (w->asked == CLOSE)
            let_go(c);
        answer(w);
    }
}

/* on_close carries out and answers what was taken. */
static void on_close(sim *s, void *data)
{
    (void)s;
    connection *c = data;
    wire *closing = NULL;
    for (wire *w; (w = first_wire(c));) {
        if (w->asked == CLOSE || w->mute) {
            closing = w->asked == CLOSE ? w : closing;
            leave_unanswered(w);
            continue;
        }
        if (!w->reached)
            reach(w);
        answer(w);
    }
    let_go(c);
    call_off(&c->hand_out);
    mull__list_remove(&c->broker->connections, &c->link);
    c->dead = 1;
    answer(closing);
}

void wire_close(connection *c, int64_t drain_ms)
{
    sim *s = sim_of(c);
    wire *w = ask(c, CLOSE, 0);
    if (c->dead)
        return;
    int64_t after_ms = some_time(s);
    w->next = at_time(s, after_ms < drain_ms ? after_ms : drain_ms, on_close, c);
}
