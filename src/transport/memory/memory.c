/* memory.c: the transport memory:NAME, private to one engine; for tests, and for work that may be
 * forgotten. A slot does its work and answers, and a turn hands out what is there:
 *
 *   slots ── claim.c, queue_store.c ── mull_port_answer, _depth, _source
 *     └── memory_wake ──> memory_turn ── mull_port_lost
 *                                     └── mull_port_delivered, as far as there is credit
 *
 * Where its URL asks for it, misbehave.c comes in between.
 */
#include "base/alloc.h"
#include "misbehave.h"

#include <stdio.h>

extern const mull_transport_ops mull__memory;

enum { MEMORY_RETRY_MS = 100 }; /* where there was no memory for a delivery */

/* ---- Turns ----------------------------------------------------------------------------------- */

static void memory_turn(uv_idle_t *idle);

static void memory_wake(mull__memory_transport *self)
{
    if (self->awake)
        return;
    self->awake = 1;
    mull_port_working(self->port, 1);
    uv_idle_start(&self->idle, memory_turn);
}

static void memory_on_timer(void *data)
{
    mull__memory_transport *self = data;
    self->timer_ms = INT64_MAX;
    memory_wake(self);
}

static void memory_set_timer(mull__memory_transport *self, int64_t at_ms)
{
    if (at_ms == self->timer_ms)
        return;
    self->timer_ms = at_ms;
    int64_t left = at_ms - mull_port_now(self->port);
    if (at_ms == INT64_MAX)
        left = MULL_NEVER;
    else if (left < 0)
        left = 0;
    mull_port_timer_set(self->port, self->timer, left);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void memory_tell(mull__memory_transport *self, const mull__memory_answer *answer)
{
    if (answer->kind == MULL__MEMORY_DEPTH)
        mull_port_depth(self->port, answer->ticket, 0, &answer->depth, NULL);
    else
        mull_port_answer(self->port, answer->ticket, answer->status, answer->why);
}

static void memory_answer(mull__memory_transport *self, const mull__memory_answer *answer)
{
    for (int times = mull__misbehave_answers(self, answer); times > 0; times--)
        memory_tell(self, answer);
}

void mull__memory_tell_later(mull__memory_transport *self, mull__memory_answer *answer)
{
    mull__list_push(&self->late, &answer->link);
    memory_wake(self);
}

static void memory_tell_late(mull__memory_transport *self)
{
    for (size_t left = self->late.count; left > 0; left--) {
        mull__memory_answer *answer =
            MULL__ENTRY(mull__list_pop(&self->late), mull__memory_answer, link);
        memory_tell(self, answer);
        mull__free(&self->allocator, answer);
    }
}

/* ---- Subscriptions --------------------------------------------------------------------------- */

/* memory_read begins to read a queue. */
static void memory_read(mull__memory_transport *self, mull__memory_reader *reader)
{
    int refused = mull__memory_refuses(self->url, reader->queue->name);
    reader->state = refused ? MULL_SOURCE_REFUSED : MULL_SOURCE_READY;
    mull_port_source(self->port, reader->consumer, reader->state, NULL,
                     refused ? "its URL says refuse= of this queue; leave that out" : NULL);
}

static void memory_connect(mull__memory_transport *self)
{
    if (self->up || self->up_ms > mull_port_now(self->port))
        return;
    self->up = 1;
    mull_port_state(self->port, MULL_UP, NULL);
    mull__link *link = mull__list_first(&self->readers);
    for (; link; link = mull__list_after(&self->readers, link)) {
        mull__memory_reader *reader = MULL__ENTRY(link, mull__memory_reader, link);
        if (reader->state == MULL_SOURCE_WAITING)
            memory_read(self, reader);
    }
}

/* memory_forget frees a reader that has ended; what it left claimed has none any more. */
static void memory_forget(mull__memory_transport *self, mull__memory_reader *reader)
{
    mull__link *link = mull__list_first(&self->claims);
    for (; link; link = mull__list_after(&self->claims, link)) {
        mull__memory_claim *claim = MULL__ENTRY(link, mull__memory_claim, link);
        if (claim->reader == reader)
            claim->reader = NULL;
    }
    mull__list_remove(&self->readers, &reader->link);
    mull__free(&self->allocator, reader);
}

/* ---- Deliveries ------------------------------------------------------------------------------ */

/* memory_next_to_expire: NULL where there is none, or claims last. */
static mull__memory_claim *memory_next_to_expire(mull__memory_transport *self)
{
    mull__link *link = self->options.claim_timeout_ms > 0 ? mull__list_first(&self->claims) : NULL;
    while (link && !MULL__ENTRY(link, mull__memory_claim, link)->item)
        link = mull__list_after(&self->claims, link);
    return link ? MULL__ENTRY(link, mull__memory_claim, link) : NULL;
}

/* memory_expire takes back what was held too long; this hand-out counts. */
static void memory_expire(mull__memory_transport *self)
{
    mull__memory_claim *claim;
    while ((claim = memory_next_to_expire(self)) &&
           claim->deadline_ms <= mull_port_now(self->port)) {
        mull__queue_store_requeue(mull__memory_claim_take(claim));
        if (claim->released)
            mull__memory_claim_free(self, claim);
        else
            mull_port_lost(self->port, claim->delivery.ticket, "it was claimed for too long");
    }
}

/* memory_deliver_to hands out one message after another. 0: out of memory. */
static int memory_deliver_to(mull__memory_transport *self, mull__memory_reader *reader)
{
    while (reader->state == MULL_SOURCE_READY && reader->credit > reader->out && !self->closing) {
        mull__item *item = mull__queue_take(reader->queue, mull_port_now(self->port));
        if (!item)
            return 1;
        mull__memory_claim *claim = mull__memory_claim_new(self, reader, item);
        if (!claim) {
            mull__queue_store_requeue(item);
            return 0;
        }
        mull_port_delivered(self->port, reader->consumer, &claim->delivery);
    }
    return 1;
}

static int memory_deliver(mull__memory_transport *self)
{
    mull__link *link = mull__list_first(&self->readers);
    for (; link; link = mull__list_after(&self->readers, link))
        if (!memory_deliver_to(self, MULL__ENTRY(link, mull__memory_reader, link)))
            return 0;
    return 1;
}

/* ---- One turn -------------------------------------------------------------------------------- */

static int64_t memory_next(mull__memory_transport *self)
{
    if (!self->up)
        return self->up_ms;
    int64_t now_ms = mull_port_now(self->port);
    mull__memory_claim *claim = memory_next_to_expire(self);
    int64_t next_ms = claim ? claim->deadline_ms : INT64_MAX;
    mull__link *link = mull__list_first(&self->store.queues);
    for (; link; link = mull__list_after(&self->store.queues, link)) {
        mull_depth depth = mull__queue_count(MULL__ENTRY(link, mull__queue, link), now_ms);
        next_ms = depth.next_due_ms < next_ms ? depth.next_due_ms : next_ms;
    }
    return next_ms;
}

static void memory_free(mull__memory_transport *self)
{
    mull__link *link;
    while ((link = mull__list_first(&self->claims))) {
        mull__memory_claim *claim = MULL__ENTRY(link, mull__memory_claim, link);
        if (claim->item)
            mull__item_free(&self->store, mull__memory_claim_take(claim));
        mull__memory_claim_free(self, claim);
    }
    while ((link = mull__list_pop(&self->readers)))
        mull__free(&self->allocator, MULL__ENTRY(link, mull__memory_reader, link));
    mull__queue_store_free(&self->store);
    mull_port_timer_free(self->port, self->timer);
    mull__free(&self->allocator, self->url);
    mull_allocator allocator = self->allocator;
    mull__free(&allocator, self);
}

static void memory_on_closed(uv_handle_t *handle)
{
    mull__memory_transport *self = handle->data;
    mull_port *port = self->port;
    memory_free(self);
    mull_port_closed(port);
}

/* memory_turn tells what happened, then delivers. */
static void memory_turn(uv_idle_t *idle)
{
    mull__memory_transport *self = idle->data;
    self->awake = 0;
    uv_idle_stop(idle);
    mull_port_working(self->port, -1);
    memory_tell_late(self);
    if (self->closing) {
        if (!self->awake)
            uv_close((uv_handle_t *)&self->idle, memory_on_closed);
        return;
    }
    memory_connect(self);
    memory_expire(self);
    int64_t retry_ms = INT64_MAX;
    if (!memory_deliver(self))
        retry_ms = mull_port_now(self->port) + MEMORY_RETRY_MS;
    if (self->closing)
        return;
    int64_t next_ms = memory_next(self);
    memory_set_timer(self, next_ms < retry_ms ? next_ms : retry_ms);
}

/* ---- The slots ------------------------------------------------------------------------------- */

static int memory_subscribe(void *data, mull_ticket consumer, const mull_source *source,
                            void **subscription)
{
    mull__memory_transport *self = data;
    mull__queue *queue = mull__queue_store_queue(&self->store, source->queue);
    mull__memory_reader *reader = queue ? mull__zalloc(&self->allocator, 1, sizeof *reader) : NULL;
    if (!reader)
        return MULL_ENOMEM;
    reader->consumer = consumer;
    reader->queue = queue;
    mull__list_push(&self->readers, &reader->link);
    *subscription = reader;
    if (self->up)
        memory_read(self, reader);
    return 0;
}

static void memory_credit(void *data, void *subscription, uint32_t deliveries)
{
    mull__memory_transport *self = data;
    mull__memory_reader *reader = subscription;
    if (deliveries > reader->credit)
        memory_wake(self);
    reader->credit = deliveries;
}

static void memory_unsubscribe(void *data, void *subscription)
{
    mull__memory_transport *self = data;
    mull__memory_reader *reader = subscription;
    mull_port_source(self->port, reader->consumer, MULL_SOURCE_ENDED, NULL, NULL);
    memory_forget(self, reader);
}

static int memory_publish(void *data, const mull_outgoing *outgoing, mull_ticket ticket)
{
    mull__memory_transport *self = data;
    int64_t due_ms;
    if (!self->up)
        return MULL_EDOWN;
    if (mull__memory_delay(self, outgoing->due_ms, &due_ms) != 0)
        return MULL_EREFUSED;
    mull__item *item = mull__item_new(&self->store, outgoing->message, due_ms);
    if (!item)
        return MULL_ENOMEM;
    mull__queue_store_push(&self->store, item);
    memory_answer(self, &(mull__memory_answer){.kind = MULL__MEMORY_PUBLISHED, .ticket = ticket});
    memory_wake(self);
    return 0;
}

static void memory_settle(void *data, mull_delivery *delivery, const mull_settlement *settlement,
                          mull_ticket ticket)
{
    mull__memory_transport *self = data;
    mull__memory_claim *claim = (mull__memory_claim *)delivery;
    claim->answer = (mull__memory_answer){.kind = MULL__MEMORY_SETTLED, .ticket = ticket};
    claim->answer.status = mull__misbehave_settle(self, claim, settlement);
    memory_answer(self, &claim->answer);
    memory_wake(self);
}

/* memory_hold: what is held moves behind the rest, which keeps the order of the deadlines. */
static void memory_hold(void *data, void *subscription)
{
    mull__memory_transport *self = data;
    mull__list held;
    mull__list_init(&held);
    mull__link *next, *link = mull__list_first(&self->claims);
    for (; link && self->options.claim_timeout_ms > 0; link = next) {
        next = mull__list_after(&self->claims, link);
        mull__memory_claim *claim = MULL__ENTRY(link, mull__memory_claim, link);
        if (claim->reader != subscription || !claim->item)
            continue;
        claim->deadline_ms = mull_port_now(self->port) + self->options.claim_timeout_ms;
        mull__list_remove(&self->claims, link);
        mull__list_push(&held, link);
    }
    mull__list_append(&self->claims, &held);
}

static void memory_release(void *data, mull_delivery *delivery)
{
    mull__memory_transport *self = data;
    mull__memory_claim *claim = (mull__memory_claim *)delivery;
    claim->released = 1;
    mull__misbehave_released(self, claim);
    if (!claim->item)
        mull__memory_claim_free(self, claim);
    /* With its item still claimed, memory_expire or memory_free sees to it. */
}

static int memory_depth(void *data, const char *name, mull_ticket ticket)
{
    mull__memory_transport *self = data;
    if (!self->up)
        return MULL_EDOWN;
    mull__queue *queue = mull__queue_store_queue(&self->store, name);
    if (!queue)
        return MULL_ENOMEM;
    int64_t now_ms = mull_port_now(self->port);
    mull__memory_answer answer = {
        .kind = MULL__MEMORY_DEPTH, .ticket = ticket, .depth = mull__queue_count(queue, now_ms)};
    if (answer.depth.next_due_ms != INT64_MAX)
        answer.depth.next_due_ms += mull_port_wall(self->port) - now_ms;
    mull__misbehave_depth(self, &answer.depth);
    memory_answer(self, &answer);
    return 0;
}

/* memory_close has no use for a time to drain: all that was taken is done. */
static void memory_close(void *data, int64_t drain_ms)
{
    mull__memory_transport *self = data;
    (void)drain_ms;
    self->closing = 1;
    memory_set_timer(self, INT64_MAX);
    memory_wake(self);
}

static int memory_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                       size_t why_size)
{
    (void)queue;
    mull__memory_options options;
    int status = mull__memory_options_read(&options, url, why, why_size);
    if (status == 0)
        *floor = mull__memory_abilities(&options);
    return status;
}

/* memory_begin: it is up at once, or says why not yet. */
static void memory_begin(mull__memory_transport *self)
{
    self->up = self->options.connect_ms == 0;
    mull_port_state(self->port, self->up ? MULL_UP : MULL_DOWN,
                    self->up ? NULL : "it connects later, as connect= of its URL says");
    if (self->up)
        return;
    self->up_ms = mull_port_now(self->port) + self->options.connect_ms;
    memory_set_timer(self, self->up_ms);
}

static int memory_open(void **out, mull_port *port, const char *url, char *why, size_t why_size)
{
    *out = NULL;
    mull__memory_options options;
    int status = mull__memory_options_read(&options, url, why, why_size);
    if (status != 0)
        return status;
    const mull_allocator *allocator = mull_port_allocator(port);
    mull__memory_transport *self = mull__zalloc(allocator, 1, sizeof *self);
    char *copy = self ? mull__strdup(allocator, url) : NULL;
    mull_timer *timer = copy ? mull_port_timer_new(port, memory_on_timer, self) : NULL;
    if (!timer) {
        mull__free(allocator, copy);
        mull__free(allocator, self);
        snprintf(why, why_size, "%s: out of memory", url);
        return MULL_ENOMEM;
    }
    *self = (mull__memory_transport){.port = port,
                                     .allocator = *allocator,
                                     .options = options,
                                     .url = copy,
                                     .timer = timer,
                                     .timer_ms = INT64_MAX};
    mull__queue_store_init(&self->store, allocator);
    mull__list_init(&self->readers);
    mull__list_init(&self->claims);
    mull__list_init(&self->late);
    uv_idle_init(mull_port_loop(port), &self->idle);
    self->idle.data = self;
    memory_begin(self);
    *out = self;
    return 0;
}

const mull_transport_ops mull__memory = {
    MULL_TRANSPORT_OPS(memory),
    .depth = memory_depth,
    .hold = memory_hold,
};
