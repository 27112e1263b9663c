/* memory.c: the transport memory:NAME, private to one engine; for tests, and for work that may be
 * forgotten. A slot does its work at once; what is to be told of it waits for the next turn:
 *
 *   slots ── queue_store.c ── answers ──> memory_turn
 *     memory_turn ── mull_port_settled, _published, _depth, _lost
 *                 └── mull_port_delivered, as far as there is credit
 */
#include "base/alloc.h"
#include "base/duration.h"
#include "queue_store.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

extern const mull_transport_ops mull__memory;

/* memory_options is what may stand behind the question mark of a URL. */
typedef struct memory_options {
    int64_t claim_timeout_ms;           /* 0: claims last */
    int64_t longest_delay_ms;           /* 0: any */
    int retry, delay, deliveries, hold; /* what it can do */
} memory_options;

typedef struct memory_reader {
    mull__link link;
    mull_subscription *subscription;
    mull__queue *queue;
    uint32_t credit, out;
} memory_reader;

/* memory_answer is what the next turn tells of a settle, a publish or a depth. */
typedef struct memory_answer {
    mull__link link;
    enum { MEMORY_SETTLED, MEMORY_PUBLISHED, MEMORY_DEPTH } kind;
    void *ticket;
    mull_depth depth;
} memory_answer;

/* memory_claim is a delivery. Its item is NULL once the claim is gone; what the message says stays
 * until release. */
typedef struct memory_claim {
    mull_delivery delivery; /* first */
    mull__link link;
    memory_reader *reader;
    mull__item *item;
    mull__content *content;
    int64_t deadline_ms;
    memory_answer answer; /* to a settle */
    int status, settling, released;
} memory_claim;

typedef struct memory {
    mull_port *port;
    mull_allocator allocator;
    memory_options options;
    mull__queue_store store;
    mull__list readers;
    mull__list claims; /* not released; those with an item are in the order of their deadlines */
    mull__list answers;
    uv_idle_t idle; /* runs the next turn */
    int awake;
    mull_timer *timer;
    int64_t timer_ms; /* monotonic; INT64_MAX: not set */
    int closing;
} memory;

enum { MEMORY_RETRY_MS = 100 }; /* where there was no memory for a delivery */

/* ---- Turns ----------------------------------------------------------------------------------- */

static void memory_turn(uv_idle_t *idle);

static void memory_wake(memory *self)
{
    if (self->awake)
        return;
    self->awake = 1;
    mull_port_working(self->port, 1);
    uv_idle_start(&self->idle, memory_turn);
}

static void memory_on_timer(void *data)
{
    memory *self = data;
    self->timer_ms = INT64_MAX;
    memory_wake(self);
}

static void memory_set_timer(memory *self, int64_t at_ms)
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

/* ---- Claims ---------------------------------------------------------------------------------- */

static void memory_free_claim(memory *self, memory_claim *claim)
{
    mull__list_remove(&self->claims, &claim->link);
    mull__content_drop(&self->allocator, claim->content);
    mull__free(&self->allocator, claim);
}

/* memory_unclaim takes the item out of a claim, which keeps what it needs to read on. */
static mull__item *memory_unclaim(memory_claim *claim)
{
    mull__item *item = claim->item;
    claim->item = NULL;
    claim->reader->out--;
    item->queue->claimed--;
    return item;
}

/* memory_claim_item makes a claim for an item that was taken. NULL: out of memory. */
static memory_claim *memory_claim_item(memory *self, memory_reader *reader, mull__item *item)
{
    memory_claim *claim = mull__zalloc(&self->allocator, 1, sizeof *claim);
    if (!claim)
        return NULL;
    claim->reader = reader;
    claim->item = item;
    claim->content = item->content;
    item->content->references++;
    item->deliveries++;
    item->queue->claimed++;
    reader->out++;
    claim->deadline_ms = mull_port_now(self->port) + self->options.claim_timeout_ms;
    mull__list_push(&self->claims, &claim->link);
    claim->delivery.subscription = reader->subscription;
    mull_message *message = &claim->delivery.message;
    *message = item->content->message;
    message->queue = item->queue->name;
    message->deliveries = self->options.deliveries ? item->deliveries : 1;
    return claim;
}

/* memory_next_to_expire: NULL where there is none, or claims last. */
static memory_claim *memory_next_to_expire(memory *self)
{
    mull__link *link = self->options.claim_timeout_ms > 0 ? mull__list_first(&self->claims) : NULL;
    while (link && !MULL__ENTRY(link, memory_claim, link)->item)
        link = mull__list_after(&self->claims, link);
    return link ? MULL__ENTRY(link, memory_claim, link) : NULL;
}

/* memory_expire takes back what was held too long; this hand-out counts. */
static void memory_expire(memory *self)
{
    memory_claim *claim;
    while ((claim = memory_next_to_expire(self)) &&
           claim->deadline_ms <= mull_port_now(self->port)) {
        mull__queue_store_requeue(memory_unclaim(claim));
        mull_port_lost(self->port, &claim->delivery);
    }
}

/* memory_deliver_to hands out one message after another. 0: out of memory. */
static int memory_deliver_to(memory *self, memory_reader *reader)
{
    while (reader->credit > reader->out && !self->closing) {
        mull__item *item = mull__queue_take(reader->queue, mull_port_now(self->port));
        if (!item)
            return 1;
        memory_claim *claim = memory_claim_item(self, reader, item);
        if (!claim) {
            mull__queue_store_requeue(item);
            return 0;
        }
        mull_port_delivered(self->port, &claim->delivery);
    }
    return 1;
}

static int memory_deliver(memory *self)
{
    mull__link *link = mull__list_first(&self->readers);
    for (; link; link = mull__list_after(&self->readers, link))
        if (!memory_deliver_to(self, MULL__ENTRY(link, memory_reader, link)))
            return 0;
    return 1;
}

/* ---- One turn -------------------------------------------------------------------------------- */

static void memory_give_answer(memory *self, memory_answer *answer)
{
    if (answer->kind == MEMORY_SETTLED) {
        memory_claim *claim = MULL__ENTRY(answer, memory_claim, answer);
        int released = claim->released;
        claim->settling = 0;
        mull_port_settled(self->port, &claim->delivery, claim->status);
        if (released)
            memory_free_claim(self, claim);
        return;
    }
    if (answer->kind == MEMORY_DEPTH)
        mull_port_depth(self->port, answer->ticket, 0, &answer->depth);
    else
        mull_port_published(self->port, answer->ticket, 0);
    mull__free(&self->allocator, answer);
}

/* memory_give_answers gives those that are there now: callbacks may add to the list. */
static void memory_give_answers(memory *self)
{
    for (size_t left = self->answers.count; left > 0; left--)
        memory_give_answer(self, MULL__ENTRY(mull__list_pop(&self->answers), memory_answer, link));
}

static int64_t memory_next(memory *self)
{
    int64_t now_ms = mull_port_now(self->port);
    memory_claim *claim = memory_next_to_expire(self);
    int64_t next_ms = claim ? claim->deadline_ms : INT64_MAX;
    mull__link *link = mull__list_first(&self->store.queues);
    for (; link; link = mull__list_after(&self->store.queues, link)) {
        mull_depth depth = mull__queue_count(MULL__ENTRY(link, mull__queue, link), now_ms);
        next_ms = depth.next_due_ms < next_ms ? depth.next_due_ms : next_ms;
    }
    return next_ms;
}

static void memory_free(memory *self)
{
    mull__link *link;
    while ((link = mull__list_first(&self->claims))) {
        memory_claim *claim = MULL__ENTRY(link, memory_claim, link);
        if (claim->item)
            mull__item_free(&self->store, memory_unclaim(claim));
        memory_free_claim(self, claim);
    }
    while ((link = mull__list_pop(&self->readers)))
        mull__free(&self->allocator, MULL__ENTRY(link, memory_reader, link));
    mull__queue_store_free(&self->store);
    mull_port_timer_free(self->port, self->timer);
    mull_allocator allocator = self->allocator;
    mull__free(&allocator, self);
}

static void memory_on_closed(uv_handle_t *handle)
{
    memory *self = handle->data;
    mull_port *port = self->port;
    memory_free(self);
    mull_port_closed(port);
}

/* memory_turn tells what happened, then delivers. What its callbacks ask for comes next turn. */
static void memory_turn(uv_idle_t *idle)
{
    memory *self = idle->data;
    self->awake = 0;
    uv_idle_stop(idle);
    mull_port_working(self->port, -1);
    memory_give_answers(self);
    if (self->closing) {
        if (!self->awake)
            uv_close((uv_handle_t *)&self->idle, memory_on_closed);
        return;
    }
    memory_expire(self);
    int64_t retry_ms = INT64_MAX;
    if (!memory_deliver(self))
        retry_ms = mull_port_now(self->port) + MEMORY_RETRY_MS;
    if (self->closing)
        return;
    int64_t next_ms = memory_next(self);
    memory_set_timer(self, next_ms < retry_ms ? next_ms : retry_ms);
}

/* ---- Settling -------------------------------------------------------------------------------- */

/* memory_due turns a due time of the wall clock into one of the monotonic clock. */
static int64_t memory_due(memory *self, int64_t due_ms)
{
    int64_t left = due_ms - mull_port_wall(self->port);
    int64_t now = mull_port_now(self->port);
    if (due_ms <= 0 || left <= 0)
        return MULL__AT_ONCE;
    return left > INT64_MAX - now ? INT64_MAX : now + left;
}

static int memory_cannot_delay(memory *self, int64_t due_ms)
{
    int64_t left = due_ms > 0 ? due_ms - mull_port_wall(self->port) : 0;
    int64_t longest_ms = self->options.longest_delay_ms;
    return left > 0 && (!self->options.delay || (longest_ms > 0 && left > longest_ms));
}

/* memory_prepare makes items of what a handler sent, linked into a list. */
static int memory_prepare(memory *self, mull__list *items, const mull_settlement *settlement)
{
    for (size_t i = 0; i < settlement->send_count; i++) {
        const mull_outgoing *outgoing = &settlement->sends[i];
        if (memory_cannot_delay(self, outgoing->due_ms))
            return MULL_EREFUSED;
        mull__item *item =
            mull__item_new(&self->store, &outgoing->message, memory_due(self, outgoing->due_ms));
        if (!item)
            return MULL_ENOMEM;
        mull__list_push(items, &item->link);
    }
    return 0;
}

static int memory_end(memory *self, memory_claim *claim, const mull_settlement *settlement)
{
    mull__list items;
    mull__list_init(&items);
    int status = memory_prepare(self, &items, settlement);
    mull__link *link;
    while ((link = mull__list_pop(&items))) {
        mull__item *item = MULL__ENTRY(link, mull__item, link);
        if (status == 0)
            mull__queue_store_push(&self->store, item);
        else
            mull__item_free(&self->store, item);
    }
    if (status == 0)
        mull__item_free(&self->store, memory_unclaim(claim));
    return status;
}

/* memory_rewrite gives an item the finished headers, and the id where it came without one; once
 * nothing else can fail any more. */
static int memory_rewrite(memory *self, mull__item *item, const mull_settlement *settlement)
{
    mull_message message = item->content->message;
    message.headers = settlement->headers;
    message.header_count = settlement->header_count;
    if (!message.id)
        message.id = settlement->id;
    mull__content *content = mull__content_new(&self->allocator, &message);
    if (!content)
        return MULL_ENOMEM;
    mull__content_drop(&self->allocator, item->content);
    item->content = content;
    return 0;
}

static int memory_give_back(memory *self, memory_claim *claim, const mull_settlement *settlement)
{
    int status = memory_rewrite(self, claim->item, settlement);
    if (status != 0)
        return status;
    mull__item *item = memory_unclaim(claim);
    item->deliveries--;
    mull__queue_store_requeue(item);
    return 0;
}

/* memory_move: back to its own queue, or to another, as a copy that nobody was handed yet. */
static int memory_move(memory *self, memory_claim *claim, const mull_settlement *settlement)
{
    if (memory_cannot_delay(self, settlement->due_ms))
        return MULL_EREFUSED;
    mull__queue *queue = claim->item->queue;
    if (settlement->kind == MULL_SETTLE_DEAD_LETTER)
        queue = mull__queue_store_queue(&self->store, settlement->queue);
    int status = queue ? memory_rewrite(self, claim->item, settlement) : MULL_ENOMEM;
    if (status != 0)
        return status;
    mull__item *item = memory_unclaim(claim);
    item->queue = queue;
    item->deliveries = 0;
    item->due_ms = memory_due(self, settlement->due_ms);
    mull__queue_store_push(&self->store, item);
    return 0;
}

static int memory_carry_out(memory *self, memory_claim *claim, const mull_settlement *settlement)
{
    if (!claim->item)
        return MULL_ELOST;
    switch (settlement->kind) {
    case MULL_SETTLE_REDELIVER:
    case MULL_SETTLE_DEAD_LETTER:
        return memory_move(self, claim, settlement);
    case MULL_SETTLE_GIVE_BACK:
        return memory_give_back(self, claim, settlement);
    default:
        return memory_end(self, claim, settlement);
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

/* memory_text is a part of the URL. */
typedef struct memory_text {
    const char *start;
    size_t length;
} memory_text;

static int memory_is(memory_text part, const char *word)
{
    return part.length == strlen(word) && memcmp(part.start, word, part.length) == 0;
}

/* until cuts `from` at the first `mark`, and moves it behind that; the rest where there is none. */
static memory_text memory_until(memory_text *from, char mark)
{
    memory_text part = *from;
    const char *found = memchr(from->start, mark, from->length);
    if (found)
        part.length = (size_t)(found - from->start);
    size_t step = part.length + (found != NULL);
    from->start += step;
    from->length -= step;
    return part;
}

/* memory_read_duration and _flag answer NULL, or what is wrong. */
static const char *memory_read_duration(int64_t *out, memory_text value, char *why, size_t size)
{
    if (mull__duration_read(out, value.start, value.length, why, size) != 0)
        return why;
    return *out > 0 ? NULL : "must be more than 0; leave it out for no limit";
}

static const char *memory_read_flag(int *out, memory_text value)
{
    *out = memory_is(value, "yes");
    return *out || memory_is(value, "no") ? NULL : "must be yes or no";
}

static int memory_read_option(memory_options *options, memory_text option, const char *url,
                              char *why, size_t why_size)
{
    const struct {
        const char *name;
        int64_t *duration;
        int *flag;
    } known[] = {
        {"claim_timeout", &options->claim_timeout_ms, NULL},
        {"longest_delay", &options->longest_delay_ms, NULL},
        {"hold", NULL, &options->hold},
        {"retry", NULL, &options->retry},
        {"delay", NULL, &options->delay},
        {"deliveries", NULL, &options->deliveries},
    };
    memory_text value = option, name = memory_until(&value, '=');
    char problem[160];
    const char *wrong =
        "is no option; there are claim_timeout, hold, retry, delay, longest_delay and deliveries";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (memory_is(name, known[i].name))
            wrong = known[i].flag
                        ? memory_read_flag(known[i].flag, value)
                        : memory_read_duration(known[i].duration, value, problem, sizeof problem);
    if (wrong)
        snprintf(why, why_size, "%s: %.*s %s", url, (int)name.length, name.start, wrong);
    return wrong ? MULL_EINVAL : 0;
}

/* memory_read_options reads a whole URL: memory:NAME?claim_timeout=30s&retry=no&... MULL_EINVAL,
 * with what would be right in `why`. */
static int memory_read_options(memory_options *options, const char *url, char *why, size_t why_size)
{
    *options = (memory_options){.retry = 1, .delay = 1, .deliveries = 1, .hold = 1};
    const char *mark = strchr(url, '?');
    memory_text rest = mark ? (memory_text){mark + 1, strlen(mark + 1)} : (memory_text){url, 0};
    int status = 0;
    while (status == 0 && rest.length > 0)
        status = memory_read_option(options, memory_until(&rest, '&'), url, why, why_size);
    return status;
}

/* ---- The slots ------------------------------------------------------------------------------- */

static void memory_answer_later(memory *self, memory_answer *answer)
{
    mull__list_push(&self->answers, &answer->link);
    memory_wake(self);
}

static void memory_settle(void *data, mull_delivery *delivery, const mull_settlement *settlement)
{
    memory *self = data;
    memory_claim *claim = (memory_claim *)delivery;
    claim->status = memory_carry_out(self, claim, settlement);
    claim->settling = 1;
    memory_answer_later(self, &claim->answer);
}

static void memory_hold(void *data, mull_delivery *delivery)
{
    memory *self = data;
    memory_claim *claim = (memory_claim *)delivery;
    if (!claim->item || self->options.claim_timeout_ms == 0)
        return;
    claim->deadline_ms = mull_port_now(self->port) + self->options.claim_timeout_ms;
    mull__list_remove(&self->claims, &claim->link);
    mull__list_push(&self->claims, &claim->link);
}

static void memory_release(void *data, mull_delivery *delivery)
{
    memory *self = data;
    memory_claim *claim = (memory_claim *)delivery;
    if (claim->settling)
        claim->released = 1;
    else if (!claim->item)
        memory_free_claim(self, claim);
    /* With its item still claimed, after close began: memory_free sees to it. */
}

static int memory_publish(void *data, const mull_outgoing *outgoing, void *ticket)
{
    memory *self = data;
    if (memory_cannot_delay(self, outgoing->due_ms))
        return MULL_EREFUSED;
    memory_answer *answer = mull__alloc(&self->allocator, sizeof *answer);
    int64_t due_ms = memory_due(self, outgoing->due_ms);
    mull__item *item = answer ? mull__item_new(&self->store, &outgoing->message, due_ms) : NULL;
    if (!item) {
        mull__free(&self->allocator, answer);
        return MULL_ENOMEM;
    }
    mull__queue_store_push(&self->store, item);
    *answer = (memory_answer){.kind = MEMORY_PUBLISHED, .ticket = ticket};
    memory_answer_later(self, answer);
    return 0;
}

static int memory_depth(void *data, const char *name, void *ticket)
{
    memory *self = data;
    mull__queue *queue = mull__queue_store_queue(&self->store, name);
    memory_answer *answer = queue ? mull__alloc(&self->allocator, sizeof *answer) : NULL;
    if (!answer)
        return MULL_ENOMEM;
    int64_t now_ms = mull_port_now(self->port);
    *answer = (memory_answer){
        .kind = MEMORY_DEPTH, .ticket = ticket, .depth = mull__queue_count(queue, now_ms)};
    if (answer->depth.next_due_ms != INT64_MAX)
        answer->depth.next_due_ms += mull_port_wall(self->port) - now_ms;
    memory_answer_later(self, answer);
    return 0;
}

static int memory_subscribe(void *data, mull_subscription *subscription, const char *name)
{
    memory *self = data;
    mull__queue *queue = mull__queue_store_queue(&self->store, name);
    memory_reader *reader = queue ? mull__zalloc(&self->allocator, 1, sizeof *reader) : NULL;
    if (!reader)
        return MULL_ENOMEM;
    reader->subscription = subscription;
    reader->queue = queue;
    mull__list_push(&self->readers, &reader->link);
    return 0;
}

static void memory_credit(void *data, mull_subscription *subscription, uint32_t deliveries)
{
    memory *self = data;
    mull__link *link = mull__list_first(&self->readers);
    for (; link; link = mull__list_after(&self->readers, link)) {
        memory_reader *reader = MULL__ENTRY(link, memory_reader, link);
        if (reader->subscription != subscription)
            continue;
        if (deliveries > reader->credit)
            memory_wake(self);
        reader->credit = deliveries;
    }
}

static void memory_close(void *data)
{
    memory *self = data;
    self->closing = 1;
    memory_set_timer(self, INT64_MAX);
    memory_wake(self);
}

static mull_abilities memory_abilities(const memory_options *options)
{
    return (mull_abilities){.can_retry = options->retry,
                            .can_delay = options->delay,
                            .longest_delay_ms = options->longest_delay_ms,
                            .can_hold = options->hold,
                            .counts_deliveries = options->deliveries,
                            .counts_at_once = 1,
                            .claim_timeout_ms = options->claim_timeout_ms};
}

static int memory_look(const char *url, mull_abilities *abilities, char *why, size_t why_size)
{
    memory_options options;
    int status = memory_read_options(&options, url, why, why_size);
    if (status == 0)
        *abilities = memory_abilities(&options);
    return status;
}

static int memory_open(void **out, mull_port *port, const char *url, mull_abilities *abilities,
                       char *why, size_t why_size)
{
    *out = NULL;
    memory_options options;
    int status = memory_read_options(&options, url, why, why_size);
    if (status != 0)
        return status;
    const mull_allocator *allocator = mull_port_allocator(port);
    memory *self = mull__zalloc(allocator, 1, sizeof *self);
    mull_timer *timer = self ? mull_port_timer_new(port, memory_on_timer, self) : NULL;
    if (!timer) {
        mull__free(allocator, self);
        snprintf(why, why_size, "%s: out of memory", url);
        return MULL_ENOMEM;
    }
    self->timer = timer;
    self->port = port;
    self->allocator = *allocator;
    self->options = options;
    self->timer_ms = INT64_MAX;
    mull__queue_store_init(&self->store, allocator);
    mull__list_init(&self->readers);
    mull__list_init(&self->claims);
    mull__list_init(&self->answers);
    uv_idle_init(mull_port_loop(port), &self->idle);
    self->idle.data = self;
    *abilities = memory_abilities(&options);
    *out = self;
    return 0;
}

const mull_transport_ops mull__memory = {
    .version = MULL_TRANSPORT_VERSION,
    .scheme = "memory",
    .open = memory_open,
    .subscribe = memory_subscribe,
    .credit = memory_credit,
    .publish = memory_publish,
    .settle = memory_settle,
    .hold = memory_hold,
    .depth = memory_depth,
    .release = memory_release,
    .close = memory_close,
    .look = memory_look,
};
