/* board.c: the transport `board:`, see board.h. A slot does its work under the board's mutex, and
 * answers. A turn hands out what is due:
 *
 *   engine ── publish, settle ────┬──> mull_port_answer
 *                                  │
 *   any thread ── board_put ───────┴─ uv_async_send ──> turn ──> mull_port_delivered
 *
 * A board is one list, which is walked: good for thousands of messages, not for millions.
 */
#include "board.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <uv.h>

#define AT_ONCE INT64_MAX /* is due after all that had to wait */

/* item is a message on the board, and the delivery when it is handed out: one block, with its texts
 * behind it. What it says never changes, so that a handler may read it for as long as it likes; in
 * place of a message that goes back there is a new item. */
typedef struct item {
    mull_delivery delivery; /* first */
    mull_message message;
    TAILQ_ENTRY(item) link;
    int64_t due_ms;        /* monotonic */
    struct reader *reader; /* who was handed it; NULL: nobody */
    int settled;           /* it is off the board, and `release` frees it */
} item;

TAILQ_HEAD(items, item);

struct board {
    pthread_mutex_t mutex; /* guards the lists, and `reader` of what is on the board */
    struct items items;
    TAILQ_HEAD(, transport) transports;
};

typedef struct reader {
    TAILQ_ENTRY(reader) link;
    mull_ticket consumer;
    uint32_t credit, out;
    char queue[];
} reader;

/* transport is a board as one engine has it. All but `link` belongs to the loop's thread. */
typedef struct transport {
    TAILQ_ENTRY(transport) link;
    board *board;
    mull_port *port;
    uv_async_t async; /* its turns */
    mull_timer *timer;
    TAILQ_HEAD(, reader) readers;
    int wakes; /* for the next turn, which a test's clock waits for */
    int closing;
} transport;

/* ---- Items ----------------------------------------------------------------------------------- */

/* item_new copies a message as a settlement makes it (NULL: as it is). NULL: out of memory. */
static item *item_new(const mull_message *from, const mull_settlement *settlement, int64_t due_ms)
{
    item *made = calloc(1, sizeof *made + mull_message_size(from, settlement));
    if (!made)
        return NULL;
    mull_message_copy(&made->message, from, settlement, (mull_header *)(made + 1));
    made->due_ms = due_ms;
    return made;
}

static void free_all(struct items *items)
{
    for (item *i; (i = TAILQ_FIRST(items));) {
        TAILQ_REMOVE(items, i, link);
        free(i);
    }
}

/* ---- The board ------------------------------------------------------------------------------- */

board *board_new(void)
{
    board *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    TAILQ_INIT(&b->items);
    TAILQ_INIT(&b->transports);
    return b;
}

/* unlock lets all who have the board look at what changed there. */
static void unlock(board *b)
{
    transport *t;
    TAILQ_FOREACH (t, &b->transports, link)
        uv_async_send(&t->async);
    pthread_mutex_unlock(&b->mutex);
}

static void pin(board *b, item *i)
{
    pthread_mutex_lock(&b->mutex);
    TAILQ_INSERT_TAIL(&b->items, i, link);
    unlock(b);
}

/* replace takes a message off, for what was made of it. Given back at once it has its old place. */
static void replace(board *b, item *old, mull_settle_kind kind, struct items *made)
{
    item *copy = TAILQ_FIRST(made);
    pthread_mutex_lock(&b->mutex);
    if (kind == MULL_SETTLE_GIVE_BACK && copy->due_ms == AT_ONCE) {
        TAILQ_REMOVE(made, copy, link);
        TAILQ_INSERT_BEFORE(old, copy, link);
        copy->due_ms = old->due_ms;
    }
    TAILQ_REMOVE(&b->items, old, link);
    TAILQ_CONCAT(&b->items, made, link);
    unlock(b);
}

int board_put(board *b, const mull_message *message)
{
    item *made = message->queue ? item_new(message, NULL, AT_ONCE) : NULL;
    if (made)
        pin(b, made);
    return made ? 0 : message->queue ? MULL_ENOMEM : MULL_EINVAL;
}

/* look_over adds what is in a queue at one moment to `depth`, and hands its first message that is
 * due to a reader, where there is one. NULL: none is due. */
static item *look_over(board *b, const char *queue, reader *r, int64_t now_ms, mull_depth *depth)
{
    item *i, *first = NULL;
    pthread_mutex_lock(&b->mutex);
    TAILQ_FOREACH (i, &b->items, link) {
        if (strcmp(i->message.queue, queue) != 0)
            continue;
        if (i->reader) {
            depth->claimed++;
        } else if (i->due_ms > now_ms && i->due_ms != AT_ONCE) {
            depth->delayed++;
            if (i->due_ms < depth->next_due_ms)
                depth->next_due_ms = i->due_ms;
        } else {
            depth->ready++;
            if (!first || i->due_ms < first->due_ms)
                first = i;
        }
    }
    if (first)
        first->reader = r;
    pthread_mutex_unlock(&b->mutex);
    return first;
}

uint64_t board_count(board *b, const char *queue)
{
    mull_depth depth = {0};
    look_over(b, queue, NULL, 0, &depth);
    return depth.ready + depth.delayed + depth.claimed;
}

void board_free(board *b)
{
    if (!b)
        return;
    free_all(&b->items);
    pthread_mutex_destroy(&b->mutex);
    free(b);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

/* wake asks for a turn; it is what the timer does, too. */
static void wake(void *self)
{
    transport *t = self;
    mull_port_working(t->port, 1);
    t->wakes++;
    uv_async_send(&t->async);
}

static void hand_out(transport *t, reader *r, item *i)
{
    r->out++;
    i->message.deliveries++;
    i->delivery = (mull_delivery){.size = sizeof i->delivery, .message = &i->message};
    mull_port_delivered(t->port, r->consumer, &i->delivery);
}

/* serve hands out as far as there is credit. */
static void serve(transport *t)
{
    int64_t now_ms = mull_port_now(t->port);
    mull_depth depth = {.next_due_ms = INT64_MAX};
    reader *r;
    TAILQ_FOREACH (r, &t->readers, link)
        for (item *i; r->credit > r->out && (i = look_over(t->board, r->queue, r, now_ms, &depth));)
            hand_out(t, r, i);
    mull_port_timer_set(t->port, t->timer,
                        depth.next_due_ms < INT64_MAX ? depth.next_due_ms - now_ms : MULL_NEVER);
}

static void on_closed(uv_handle_t *handle)
{
    transport *t = handle->data;
    mull_port_closed(t->port);
    free(t);
}

/* leave lets others have what was handed out and never settled. */
static void leave(transport *t)
{
    item *i;
    pthread_mutex_lock(&t->board->mutex);
    TAILQ_REMOVE(&t->board->transports, t, link);
    for (reader *r; (r = TAILQ_FIRST(&t->readers));) {
        TAILQ_FOREACH (i, &t->board->items, link)
            i->reader = i->reader == r ? NULL : i->reader;
        TAILQ_REMOVE(&t->readers, r, link);
        free(r);
    }
    unlock(t->board);
    mull_port_timer_free(t->port, t->timer);
    uv_close((uv_handle_t *)&t->async, on_closed);
}

static void on_turn(uv_async_t *async)
{
    transport *t = async->data;
    mull_port_working(t->port, -t->wakes);
    t->wakes = 0;
    if (t->closing)
        leave(t);
    else
        serve(t);
}

/* ---- The slots that are answered ------------------------------------------------------------- */

/* due_at turns a moment of the wall clock into one of the monotonic clock, which nobody sets and
 * all engines of a process have. */
static int64_t due_at(const transport *t, int64_t wall_ms)
{
    int64_t now_ms = mull_port_now(t->port);
    int64_t left_ms = wall_ms > 0 ? wall_ms - mull_port_wall(t->port) : 0;
    if (left_ms <= 0)
        return AT_ONCE;
    return left_ms < AT_ONCE - now_ms ? now_ms + left_ms : AT_ONCE - 1;
}

static item *sent_item(transport *t, const mull_outgoing *sent)
{
    return item_new(sent->message, NULL, due_at(t, sent->due_ms));
}

static int board_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    transport *t = self;
    item *made = sent_item(t, outgoing);
    if (!made)
        return MULL_ENOMEM;
    pin(t->board, made);
    mull_port_answer(t->port, ticket, 0, NULL);
    wake(t);
    return 0;
}

/* prepare makes all that a settlement brings about, on no board yet: what takes the message's
 * place, or what its handler sent. 0: not all, out of memory. */
static int prepare(struct items *made, transport *t, const item *i, const mull_settlement *s)
{
    size_t copies = s->kind != MULL_SETTLE_ACK && s->kind != MULL_SETTLE_DISCARD;
    for (size_t n = 0; n < copies + s->send_count; n++) {
        item *one = n < copies ? item_new(&i->message, s, due_at(t, s->due_ms))
                               : sent_item(t, &s->sends[n - copies]);
        if (!one)
            return 0;
        if (s->kind == MULL_SETTLE_GIVE_BACK)
            one->message.deliveries = i->message.deliveries - 1;
        TAILQ_INSERT_TAIL(made, one, link);
    }
    return 1;
}

static void board_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                         mull_ticket ticket)
{
    transport *t = self;
    item *i = (item *)delivery;
    struct items made = TAILQ_HEAD_INITIALIZER(made);
    int good = prepare(&made, t, i, settlement);
    if (good) {
        i->settled = 1;
        i->reader->out--;
        replace(t->board, i, settlement->kind, &made);
    }
    free_all(&made); /* none, where they are pinned */
    mull_port_answer(t->port, ticket, good ? 0 : MULL_ENOMEM, good ? NULL : "out of memory");
    wake(t);
}

/* What was never settled is on the board still. */
static void board_release(void *self, mull_delivery *delivery)
{
    item *i = (item *)delivery;
    (void)self;
    if (i->settled)
        free(i);
}

static int board_depth(void *self, const char *queue, mull_ticket ticket)
{
    transport *t = self;
    mull_depth depth = {.next_due_ms = INT64_MAX};
    int64_t now_ms = mull_port_now(t->port);
    look_over(t->board, queue, NULL, now_ms, &depth);
    if (depth.next_due_ms < INT64_MAX)
        depth.next_due_ms += mull_port_wall(t->port) - now_ms;
    mull_port_depth(t->port, ticket, 0, &depth, NULL);
    return 0;
}

/* ---- The others ------------------------------------------------------------------------------ */

static int board_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                      size_t why_size)
{
    (void)queue; /* all are alike */
    if (strcmp(url, "board:") != 0) {
        snprintf(why, why_size, "there is one board; leave out what stands behind 'board:'");
        return MULL_EINVAL;
    }
    floor->can_retry = floor->can_delay = floor->settles_whole = 1;
    floor->deliveries = MULL_COUNTS_DEATHS;
    floor->depth = MULL_DEPTH_EXACT;
    return 0;
}

int board_attach(board *b, void **self, mull_port *port)
{
    *self = NULL;
    transport *t = calloc(1, sizeof *t);
    mull_timer *timer = t ? mull_port_timer_new(port, wake, t) : NULL;
    if (!timer || uv_async_init(mull_port_loop(port), &t->async, on_turn) != 0) {
        mull_port_timer_free(port, timer);
        free(t);
        return MULL_ENOMEM;
    }
    t->async.data = t;
    t->timer = timer;
    t->port = port;
    t->board = b;
    TAILQ_INIT(&t->readers);
    pthread_mutex_lock(&b->mutex);
    TAILQ_INSERT_TAIL(&b->transports, t, link);
    pthread_mutex_unlock(&b->mutex);
    mull_port_state(port, MULL_UP, NULL);
    *self = t;
    return 0;
}

static int board_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    mull_abilities floor = MULL_INIT(mull_abilities);
    board *b = mull_port_data(port); /* what mull_engine_scheme was given */
    int status = board_look(url, NULL, &floor, why, why_size);
    return status == 0 ? board_attach(b, self, port) : status;
}

static int board_subscribe(void *self, mull_ticket consumer, const mull_source *source,
                           void **subscription)
{
    transport *t = self;
    reader *r = calloc(1, sizeof *r + strlen(source->queue) + 1);
    *subscription = r;
    if (!r)
        return MULL_ENOMEM;
    r->consumer = consumer;
    strcpy(r->queue, source->queue);
    TAILQ_INSERT_TAIL(&t->readers, r, link);
    mull_port_source(t->port, consumer, MULL_SOURCE_READY, NULL, NULL);
    return 0;
}

static void board_credit(void *self, void *subscription, uint32_t deliveries)
{
    ((reader *)subscription)->credit = deliveries;
    wake(self);
}

static void board_unsubscribe(void *self, void *subscription)
{
    transport *t = self;
    reader *r = subscription;
    TAILQ_REMOVE(&t->readers, r, link);
    mull_port_source(t->port, r->consumer, MULL_SOURCE_ENDED, NULL, NULL);
    free(r);
}

/* Nothing is under way. The turn comes after the engine has released what is out, which others may
 * have then. */
static void board_close(void *self, int64_t drain_ms)
{
    (void)drain_ms;
    ((transport *)self)->closing = 1;
    wake(self);
}

const mull_transport_ops board_transport = {
    MULL_TRANSPORT_OPS(board),
    .depth = board_depth,
};
