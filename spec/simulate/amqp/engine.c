/* engine.c: asks of the module what an engine asks: queues are read, messages published, what comes
 * is settled in every way. It knows no policy: what it asks for is drawn. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const mull_transport_ops *ops(void)
{
    return mull_module.transport;
}

static void open_transport(sim *s, void *data);
static void decide(sim *s, void *data);

static int is_open(const sim *s)
{
    return s->port.transport && !s->port.is_closing;
}

/* touched: at the end of a turn the module is told that all was asked. */
static void on_turns_end(sim *s, void *data)
{
    (void)data;
    s->port.is_touched = 0;
    if (is_open(s))
        SLOT(s, ops()->flush(s->port.transport));
}

static void touched(sim *s)
{
    if (!s->port.is_touched)
        at_time(s, 0, on_turns_end, NULL);
    s->port.is_touched = 1;
}

/* ---- Posts ----------------------------------------------------------------------------------- */

static int64_t some_due(sim *s)
{
    if (!s->declares)
        return 0; /* then there are none */
    if (!happens(s, s->faults.delay) && !(s->k.calm && one_in(s, 4)))
        return 0;
    int64_t delay_ms = one_in(s, 2)    ? between(s, 1, 300)
                       : !one_in(s, 8) ? between(s, 1, 20000)
                                       : between(s, 1, 600000);
    return WALL_MS + s->k.now_ms + delay_ms;
}

static size_t some_size(sim *s)
{
    if (one_in(s, 4))
        return 0;
    if (happens(s, s->faults.big))
        return (size_t)between(s, 4000, one_in(s, 6) ? 140000 : 20000);
    return (size_t)between(s, 1, 200);
}

static const char *read_queue(int i)
{
    static const char *const names[READ_QUEUES] = {"q0", "q1", "q2"};
    return names[i];
}

static post *post_new(sim *s, message *of, const char *to, int64_t due_ms)
{
    post *p = keep(s, sizeof *p);
    *p = (post){.of = of, .queue = to, .due_ms = due_ms, .asked_ms = s->k.now_ms};
    return p;
}

/* sending_fill writes a new message, as it is published. */
static void sending_fill(sim *s, struct sending *to, mull_outgoing *outgoing, const post *p)
{
    char *body = keep(s, p->of->body_size + 1);
    message_body(p->of, body);
    snprintf(to->number, sizeof to->number, "%" PRIu64, p->of->number);
    snprintf(to->id, sizeof to->id, "m%" PRIu64, p->of->number);
    snprintf(to->queue, sizeof to->queue, "%s", p->queue);
    to->headers[0] = (mull_header){"number", to->number};
    to->headers[1] = (mull_header){"extra", "worth keeping"};
    to->message = MULL_INIT(mull_message);
    to->message.id = to->id;
    to->message.queue = to->queue;
    to->message.key = "a key";
    to->message.headers = to->headers;
    to->message.header_count = 2;
    to->message.body = body;
    to->message.body_size = p->of->body_size;
    *outgoing = (mull_outgoing){sizeof *outgoing, &to->message, p->due_ms};
}

static post *new_message(sim *s, const char *to)
{
    message *m = message_new(s, some_size(s));
    return m->as_post = post_new(s, m, to, some_due(s));
}

static const char *where_to(sim *s)
{
    return one_in(s, 6) ? "dead0" : read_queue((int)draw(s, READ_QUEUES));
}

static void publish(sim *s)
{
    struct sending sending;
    mull_outgoing outgoing;
    post *p = new_message(s, where_to(s));
    sending_fill(s, &sending, &outgoing, p);
    mull_ticket ticket = port_ask(s, ASK_PUBLISH, NULL, p);
    int status = 0;
    note(s, "message %lld is to be published, in %lld ms", (int64_t)p->of->number,
         p->due_ms ? p->due_ms - WALL_MS - s->k.now_ms : 0, 0, 0);
    SLOT(s, status = ops()->publish(s->port.transport, &outgoing, ticket));
    memset(&sending, 0xDD, sizeof sending);
    if (status != 0)
        port_answered(s, ticket);
    if (status != 0 && status != MULL_EDOWN && status != MULL_ENOMEM)
        violation(s, "publish gives %d", status);
    touched(s);
}

/* ---- What it is told of its posts ------------------------------------------------------------ */

static void published(sim *s, post *p, int status)
{
    s->totals->failed += status != 0;
    if (status != 0)
        return;
    if (!p->is_confirmed)
        violation(s, "message %" PRIu64 " is said to be safe, and isn't", p->of->number);
    p->of->is_accepted = 1;
    ledger_holds(s, p->of);
}

static void excuse(const claim *c)
{
    c->of->is_excused = 1;
    for (size_t i = 0; i < c->send_count; i++)
        c->sends[i]->of->is_excused = 1;
}

void engine_excuse(sim *s)
{
    for (mull_ticket i = 0; i <= s->port.next_ticket - FIRST_TICKET; i++) {
        const ask *a = &s->port.asks[i];
        if (a->kind == ASK_SETTLE)
            excuse(a->claim);
        else if (a->kind == ASK_PUBLISH)
            a->post->of->is_excused = 1;
    }
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static void on_leave(sim *s, void *data);

static void spoil(claim *c)
{
    if (!c->settling)
        return;
    memset(c->settling, 0xDD, sizeof *c->settling);
    free(c->settling);
    c->settling = NULL;
}

static void release(sim *s, claim *c)
{
    mull__list_remove(&s->port.claims, &c->link);
    if (c->is_counted)
        c->sub->out--;
    if (c->is_parked)
        c->sub->parked--, c->handout->from->parked--;
    c->sub->claims--;
    SLOT(s, ops()->release(s->port.transport, c->delivery));
    if (c->sub->is_leaving)
        at_time(s, 0, on_leave, c->sub);
    touched(s);
}

static void on_release(sim *s, void *data)
{
    claim *c = data;
    if (c->link.next)
        release(s, c);
}

/* leave ends a subscription, all claims of which are released; what is parked stays claimed until
 * then. */
static void leave(sim *s, subscription *sub)
{
    mull__link *after;
    if (!sub->is_leaving || sub->is_ended || sub->claims > sub->parked || !is_open(s))
        return;
    for (mull__link *at = mull__list_first(&s->port.claims); at; at = after) {
        claim *c = MULL__ENTRY(at, claim, link);
        after = mull__list_after(&s->port.claims, at);
        if (c->sub == sub)
            release(s, c);
    }
    sub->is_ended = 1;
    SLOT(s, ops()->unsubscribe(s->port.transport, sub->handle));
    touched(s);
}

static void on_leave(sim *s, void *data)
{
    subscription *sub = data;
    if (sub->consumer)
        leave(s, sub);
}

static void credit(sim *s, subscription *sub, uint32_t wanted)
{
    sub->zero_ms = wanted > 0                            ? -1
                   : sub->credit > 0 || sub->zero_ms < 0 ? s->k.now_ms
                                                         : sub->zero_ms;
    sub->credit = wanted;
    sub->peak = wanted > sub->peak ? wanted : sub->peak;
    SLOT(s, ops()->credit(s->port.transport, sub->handle, wanted));
    touched(s);
}

/* park: it can't be settled, and stays out. */
static void park(sim *s, claim *c)
{
    note(s, "hand-out %lld is parked", (int64_t)c->handout->serial, 0, 0, 0);
    c->is_parked = 1;
    c->sub->parked++;
    c->handout->from->parked++;
    if (c->sub->is_leaving)
        leave(s, c->sub);
    else
        credit(s, c->sub, c->sub->credit + 1);
}

/* ---- What becomes of one --------------------------------------------------------------------- */

static const char *dead_queue(sim *s)
{
    static char too_long[301];
    memset(too_long, 'x', sizeof too_long - 1);
    if (happens(s, 60))
        return too_long;
    return one_in(s, 2) ? "dead0" : "dead1";
}

static void choose_kind(sim *s, claim *c)
{
    static const mull_settle_kind kinds[] = {
        MULL_SETTLE_ACK,         MULL_SETTLE_ACK,       MULL_SETTLE_ACK,     MULL_SETTLE_REDELIVER,
        MULL_SETTLE_DEAD_LETTER, MULL_SETTLE_GIVE_BACK, MULL_SETTLE_DISCARD, MULL_SETTLE_REDELIVER};
    uint64_t choices = s->k.calm && !one_in(s, 4) ? 3 : 8;
    c->kind = kinds[draw(s, choices)];
    if (c->refusals > 0)
        c->kind = MULL_SETTLE_DEAD_LETTER;
}

/* plan draws what shall become of a claim. */
static void plan(sim *s, claim *c)
{
    const char *own = read_queue(c->sub->queue);
    int64_t due_ms = 0;
    choose_kind(s, c);
    c->copy = NULL;
    c->send_count = 0;
    c->as_it_came = c->kind == MULL_SETTLE_GIVE_BACK && one_in(s, 2);
    if (c->kind == MULL_SETTLE_REDELIVER || c->kind == MULL_SETTLE_GIVE_BACK)
        due_ms = some_due(s);
    if (c->kind == MULL_SETTLE_DEAD_LETTER)
        own = c->refusals > 0 ? "dead1" : dead_queue(s);
    int has_copy = c->kind == MULL_SETTLE_REDELIVER || c->kind == MULL_SETTLE_DEAD_LETTER ||
                   (c->kind == MULL_SETTLE_GIVE_BACK && (!c->as_it_came || due_ms > 0));
    if (has_copy)
        c->copy = post_new(s, c->of, own, due_ms);
    if (has_copy && !c->as_it_came)
        c->copy->settled = ++s->settlements;
    uint64_t sends = c->kind != MULL_SETTLE_ACK || s->k.calm ? 0 : draw(s, SENDS + 3);
    for (uint64_t i = 0; i < sends && i < SENDS; i++)
        c->sends[c->send_count++] = new_message(s, where_to(s));
}

static settling *settling_new(sim *s, claim *c)
{
    settling *made = calloc(1, sizeof *made);
    if (!made)
        violation(s, "out of memory");
    mull_settlement *to = &made->settlement;
    *to = MULL_INIT(mull_settlement);
    to->kind = c->kind;
    to->as_it_came = c->as_it_came;
    snprintf(made->id, sizeof made->id, "m%" PRIu64, c->of->number);
    snprintf(made->queue, sizeof made->queue, "%s",
             c->copy ? c->copy->queue : read_queue(c->sub->queue));
    to->id = made->id;
    to->queue = made->queue;
    to->due_ms = c->copy ? c->copy->due_ms : 0;
    if (c->copy && c->copy->settled) {
        snprintf(made->settled, sizeof made->settled, "%" PRIu64, c->copy->settled);
        made->ours[0] = (mull_header){"mulligan-settled", made->settled};
        to->ours = made->ours;
        to->our_count = 1;
    }
    to->sends = made->sends;
    to->send_count = c->send_count;
    for (size_t i = 0; i < c->send_count; i++)
        sending_fill(s, &made->messages[i], &made->sends[i], c->sends[i]);
    return made;
}

static void settle(sim *s, claim *c)
{
    mull_ticket ticket = port_ask(s, ASK_SETTLE, c, NULL);
    c->settling = settling_new(s, c);
    c->may_ack = c->kind != MULL_SETTLE_GIVE_BACK || c->copy;
    c->may_nack = !c->may_ack;
    note(s, "hand-out %lld is to be settled: kind %lld, %lld sends, in %lld ms",
         (int64_t)c->handout->serial, c->kind, (int64_t)c->send_count,
         c->copy && c->copy->due_ms ? c->copy->due_ms - WALL_MS - s->k.now_ms : 0);
    SLOT(s, ops()->settle(s->port.transport, c->delivery, &c->settling->settlement, ticket));
    touched(s);
}

/* decide: a handler has ended, or what failed is tried again. */
static void decide(sim *s, void *data)
{
    claim *c = data;
    if (!c->link.next || !is_open(s) || c->settling || c->is_settled || c->is_parked)
        return;
    if (c->is_lost) {
        release(s, c);
        return;
    }
    plan(s, c);
    settle(s, c);
}

static void again(sim *s, void *data)
{
    claim *c = data;
    if (!c->link.next || !is_open(s) || c->settling || c->is_settled)
        return;
    if (c->is_lost)
        release(s, c);
    else
        settle(s, c);
}

static void settled_well(sim *s, claim *c)
{
    c->is_settled = 1;
    if (c->copy && !c->copy->is_confirmed)
        violation(s, "hand-out %" PRIu64 " is settled before its copy is safe", c->handout->serial);
    for (size_t i = 0; i < c->send_count; i++)
        published(s, c->sends[i], 0);
    if (one_in(s, 6)) /* a handler that was cut off is still at it */
        at_time(s, between(s, 0, 2000), on_release, c);
    else
        release(s, c);
}

static void settled(sim *s, claim *c, int status)
{
    spoil(c);
    c->is_heard = 0;
    note(s, "hand-out %lld: settled, %lld", (int64_t)c->handout->serial, status, 0, 0);
    if (s->port.is_closing && s->k.now_ms >= s->port.late_ms)
        excuse(c); /* its acknowledgement can't go out any more */
    if (status != 0) {
        excuse(c);
        c->may_ack = c->may_nack = 0;
    }
    c->is_lost |= status == MULL_ELOST;
    if (status == 0) {
        settled_well(s, c);
    } else if (s->port.is_closing || c->is_lost) {
        release(s, c);
    } else if (status == MULL_EREFUSED) {
        s->totals->refused++;
        if (c->refusals++ == 0)
            at_time(s, 0, decide, c);
        else
            park(s, c);
    } else {
        s->totals->failed++;
        at_time(s, between(s, 50, 1000), again, c);
    }
}

void engine_cut(sim *s)
{
    mull__list *list = &s->port.claims;
    if (s->port.is_closing)
        return;
    for (mull__link *at = mull__list_first(list); at; at = mull__list_after(list, at)) {
        const claim *c = MULL__ENTRY(at, claim, link);
        if (!c->is_lost && !c->is_settled && !c->is_heard)
            violation(s, "hand-out %" PRIu64 " is lost, and nobody says so", c->handout->serial);
    }
    if (s->port.asked > 0)
        violation(s, "the connection is gone, and %zu answers are due", s->port.asked);
    for (int i = 0; i < SUBSCRIPTIONS; i++) {
        subscription *sub = &s->port.subs[i];
        if (sub->consumer && sub->state == MULL_SOURCE_READY)
            violation(s, "the connection is gone, and queue %d is read", sub->queue);
        if (sub->credit == 0)
            sub->zero_ms = s->k.now_ms;
    }
}

subscription *engine_sub(sim *s, const char *name)
{
    for (int i = 0; i < SUBSCRIPTIONS; i++)
        if (s->port.subs[i].consumer && strcmp(read_queue(s->port.subs[i].queue), name) == 0)
            return &s->port.subs[i];
    return NULL;
}

void engine_answer(sim *s, ask *a, int status)
{
    if (a->kind == ASK_SETTLE) {
        settled(s, a->claim, status);
        return;
    }
    note(s, "message %lld is published: %lld", (int64_t)a->post->of->number, status, 0, 0);
    published(s, a->post, status);
}

void engine_lost(sim *s, claim *c)
{
    note(s, "hand-out %lld is lost", (int64_t)c->handout->serial, 0, 0, 0);
    s->totals->lost++;
    c->is_lost = 1;
    if (c->is_heard)
        return; /* its release follows the answer */
    if (one_in(s, 2))
        release(s, c);
    else
        at_time(s, between(s, 0, 1000), on_release, c);
}

/* ---- What comes ------------------------------------------------------------------------------ */

static const char *header_of(const mull_message *m, const char *name)
{
    for (size_t i = 0; i < m->header_count; i++)
        if (strcmp(m->headers[i].name, name) == 0)
            return m->headers[i].value;
    return "";
}

/* look compares what was handed over with what the broker handed out. */
static void look(sim *s, const subscription *sub, const mull_message *m, const handout *h)
{
    int64_t count = h->from->is_quorum ? h->count + 1 : h->count > 0 ? 2 : 1;
    char id[24];
    snprintf(id, sizeof id, "m%" PRIu64, h->of->of->number);
    message_check_body(s, h->of->of, m->body, m->body_size);
    if (h->seen_ms || h->state == HANDOUT_ENDING || h->state == HANDOUT_ENDED)
        violation(s, "hand-out %" PRIu64 " comes twice", h->serial);
    if (strcmp(h->from->name, m->queue) != 0 || strcmp(m->queue, read_queue(sub->queue)) != 0)
        violation(s, "hand-out %" PRIu64 " is of another queue", h->serial);
    if (m->deliveries != count)
        violation(s, "hand-out %" PRIu64 " is number %" PRId64 " of its message, and not %" PRId64,
                  h->serial, count, m->deliveries);
    if (!m->id || strcmp(m->id, id) != 0)
        violation(s, "hand-out %" PRIu64 " has another id", h->serial);
    for (size_t i = 0; i < m->header_count; i++)
        if (m->headers[i].name[0] == 'x')
            violation(s, "a handler sees the header %s", m->headers[i].name);
}

void engine_delivered(sim *s, subscription *sub, mull_delivery *d)
{
    handout *h = handout_at(&s->broker, strtoull(header_of(d->message, "hand-out"), NULL, 10));
    if (!h || d->unreadable)
        violation(s, "a delivery that the broker doesn't know");
    look(s, sub, d->message, h);
    claim *c = keep(s, sizeof *c);
    *c = (claim){.delivery = d, .sub = sub, .handout = h, .of = h->of->of, .is_counted = 1};
    h->claim = c;
    h->seen_ms = s->k.now_ms;
    sub->out++;
    sub->claims++;
    mull__list_push(&s->port.claims, &c->link);
    note(s, "hand-out %lld arrives", (int64_t)h->serial, 0, 0, 0);
    if (one_in(s, 8))
        decide(s, c);
    else
        at_time(s, one_in(s, 6) ? between(s, 0, 4000) : between(s, 0, 40), decide, c);
}

/* ---- Subscriptions --------------------------------------------------------------------------- */

static void subscribe(sim *s, subscription *sub)
{
    mull_source source = MULL_INIT(mull_source);
    *sub = (subscription){.consumer = ++s->port.next_ticket, .queue = sub->queue};
    sub->most = sub->peak = (uint32_t)between(s, 1, 8);
    sub->zero_ms = s->k.now_ms;
    source.queue = read_queue(sub->queue);
    source.most = sub->most;
    source.max_body = 1 << 20;
    int status = 0;
    SLOT(s, status = ops()->subscribe(s->port.transport, sub->consumer, &source, &sub->handle));
    if (status != 0 && status != MULL_ENOMEM)
        violation(s, "subscribe gives %d", status);
    if (status != 0)
        sub->consumer = 0;
    else
        credit(s, sub, one_in(s, 4) ? 0 : sub->most);
}

static void change_sub(sim *s, subscription *sub)
{
    if (!sub->consumer) {
        subscribe(s, sub);
    } else if (sub->is_leaving) {
        leave(s, sub);
    } else if (one_in(s, 6) && sub->parked == 0) {
        sub->is_leaving = 1;
        credit(s, sub, 0);
        at_time(s, 0, on_leave, sub);
    } else {
        uint32_t wanted = one_in(s, 2) ? sub->most : (uint32_t)draw(s, sub->most + 1u);
        credit(s, sub, wanted + sub->parked);
    }
}

/* ---- Its life -------------------------------------------------------------------------------- */

enum { STOCK_MS = 1500 };

/* is_kept: the module has it in stock, for long. */
static int is_kept(const sim *s, const handout *h, const subscription *sub)
{
    return h->state == HANDOUT_OUT && !h->seen_ms && h->out_ms < s->k.now_ms - STOCK_MS &&
           strcmp(h->from->name, read_queue(sub->queue)) == 0;
}

/* look_at_stock: without credit, what wasn't handed over has gone back. */
static void look_at_stock(sim *s, const subscription *sub)
{
    mull__link *first = mull__list_first(&s->broker.conns);
    conn *c = first ? MULL__ENTRY(first, conn, link) : NULL;
    if (!sub->consumer || sub->zero_ms < 0 || s->k.now_ms < sub->zero_ms + STOCK_MS || !c ||
        !c->wire->client || c->was_slow || c->wire->is_cut || c->wire->is_mute)
        return;
    for (int i = 0; i < CHANNELS; i++) {
        mull__list *list = &c->channels[i].handouts;
        for (mull__link *at = mull__list_first(list); at; at = mull__list_after(list, at))
            if (is_kept(s, MULL__ENTRY(at, handout, link), sub))
                violation(s, "hand-out %" PRIu64 " is kept, and nothing is to be taken",
                          MULL__ENTRY(at, handout, link)->serial);
    }
}

/* act: one thing is asked for, now and then. */
static void act(sim *s, void *data)
{
    (void)data;
    if (s->k.calm)
        return;
    at_time(s, one_in(s, 3) ? 0 : between(s, 0, 400), act, NULL);
    if (!is_open(s))
        return;
    for (int i = 0; i < SUBSCRIPTIONS; i++)
        look_at_stock(s, &s->port.subs[i]);
    if (s->publishes_left > 0 && one_in(s, 2)) {
        s->publishes_left--;
        publish(s);
    } else if (one_in(s, 3)) {
        change_sub(s, &s->port.subs[draw(s, SUBSCRIPTIONS)]);
    } else if (one_in(s, 6)) {
        mull_ticket ticket = port_ask(s, ASK_DEPTH, NULL, NULL);
        int status = 0;
        SLOT(s, status =
                    ops()->depth(s->port.transport, read_queue((int)draw(s, READ_QUEUES)), ticket));
        if (status != 0)
            port_answered(s, ticket);
    } else if (happens(s, s->faults.reopen)) {
        engine_close(s, one_in(s, 3) ? 0 : between(s, 0, 3000));
    }
}

static void open_transport(sim *s, void *data)
{
    char why[256] = "", url[128];
    void *transport = NULL;
    static const char *const heartbeats[] = {"off", "10s", "60s"};
    (void)data;
    const char *heartbeat = heartbeats[s->faults.mute ? between(s, 1, 2) : between(s, 0, 2)];
    snprintf(url, sizeof url, "amqp://broker/?heartbeat=%s%s", heartbeat,
             !s->declares         ? "&declare=no"
             : s->k.seed % 4 == 0 ? "&queue_type=classic"
                                  : "");
    note(s, "the transport is opened", 0, 0, 0, 0);
    int status = ops()->open(&transport, &s->port, url, why, sizeof why);
    if (status != 0)
        violation(s, "the transport can't be opened: %s", why);
    s->port.transport = transport;
    s->port.memory.scarce = transport != NULL;
    s->port.is_closing = 0;
    s->port.health = MULL_DOWN;
    for (int i = 0; i < SUBSCRIPTIONS; i++) {
        s->port.subs[i] = (subscription){.queue = i};
        if (s->k.calm || !one_in(s, 3))
            subscribe(s, &s->port.subs[i]);
    }
}

void engine_begin(sim *s)
{
    s->publishes_left = (int)between(s, 1, 40);
    open_transport(s, NULL);
    at_time(s, 0, act, NULL);
}

/* keep_reading: once all is calm, every queue is read. */
static void keep_reading(sim *s, void *data)
{
    (void)data;
    if (s->over)
        return;
    at_time(s, 1000, keep_reading, NULL);
    for (int i = 0; i < SUBSCRIPTIONS && is_open(s); i++) {
        subscription *sub = &s->port.subs[i];
        if (!sub->consumer)
            subscribe(s, sub);
        else if (sub->is_leaving)
            leave(s, sub);
        else if (sub->credit != sub->most + sub->parked)
            credit(s, sub, sub->most + sub->parked);
    }
}

void engine_calm(sim *s)
{
    s->publishes_left = 0;
    keep_reading(s, NULL);
}

int engine_is_done(sim *s)
{
    size_t parked = 0;
    for (int i = 0; i < SUBSCRIPTIONS; i++) {
        const subscription *sub = &s->port.subs[i];
        parked += sub->parked;
        if (!sub->consumer || sub->is_leaving || sub->state != MULL_SOURCE_READY)
            return 0;
    }
    return is_open(s) && s->port.health == MULL_UP && s->port.asked == 0 &&
           s->port.claims.count == parked;
}

void engine_close(sim *s, int64_t drain_ms)
{
    mull_port *p = &s->port;
    mull__link *after;
    note(s, "the transport is to close within %lld ms", drain_ms, 0, 0, 0);
    s->totals->closes++;
    p->is_closing = 1;
    p->late_ms = s->k.now_ms + drain_ms;
    SLOT(s, ops()->close(p->transport, drain_ms));
    for (mull__link *at = mull__list_first(&p->claims); at; at = after) {
        claim *c = MULL__ENTRY(at, claim, link);
        after = mull__list_after(&p->claims, at);
        if (!c->settling)
            release(s, c);
    }
}

void engine_closed(sim *s)
{
    mull_port *p = &s->port;
    note(s, "the transport has closed", 0, 0, 0, 0);
    if (p->asked > 0)
        violation(s, "the transport has closed, and %zu answers are due", p->asked);
    if (p->memory.blocks > 0 || p->timers > 0)
        violation(s, "%zu blocks and %zu timers are left", p->memory.blocks, p->timers);
    p->transport = NULL;
    p->memory.scarce = 0;
    for (int i = 0; i < SUBSCRIPTIONS; i++)
        p->subs[i].consumer = 0;
    while (p->claims.count > 0) { /* settled in the slot of close, and not heard yet */
        claim *c = MULL__ENTRY(mull__list_pop(&p->claims), claim, link);
        spoil(c);
    }
    if (!s->over)
        at_time(s, between(s, 0, 1000), open_transport, NULL);
}
