/* board.c: the transport `board:`, see board.h. What the engine asks for is done at once, under the
 * board's mutex, and answered on a later turn of the loop:
 *
 *   any thread ── board_put ──┐
 *   engine ── publish, settle ┴─> board ── uv_async_send ──> turn ─┬─ mull_port_settled, _published
 *                                                                  └─ mull_port_delivered
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

/* ---- The board ------------------------------------------------------------------------------- */

/* answer waits for the next turn. One to a settle lies in its item, since settling may not fail for
 * want of memory; `ticket` is its delivery. */
typedef struct answer {
    TAILQ_ENTRY(answer) link;
    enum { SETTLED, PUBLISHED, DEPTH } to;
    void *ticket;
    int status;
    mull_depth depth;
} answer;

struct reader;

/* item is a message on the board, and the delivery when it is handed out: one block, with its texts
 * behind it. What it says never changes, so that a handler may read it for as long as it likes; a
 * message that goes back is a new item. */
typedef struct item {
    mull_delivery delivery; /* first */
    TAILQ_ENTRY(item) link; /* on the board */
    TAILQ_ENTRY(item) out;  /* among those that a transport handed out */
    struct reader *reader;  /* who was handed it; NULL: nobody */
    int64_t due_ms;         /* monotonic, as all engines of a process have it; 0: at once */
    uint64_t sequence;
    int settled;   /* off the board */
    answer answer; /* to its settle */
} item;

TAILQ_HEAD(items, item);
struct transport;

struct board {
    pthread_mutex_t mutex; /* guards all of it, and `reader` of what is on it */
    struct items items;    /* in the order in which they go out */
    TAILQ_HEAD(transports, transport) transports;
    uint64_t sequence;
};

typedef struct reader {
    TAILQ_ENTRY(reader) link;
    mull_subscription *subscription;
    uint32_t credit, out;
    char queue[];
} reader;

/* transport is a board as one engine has it. All but `link` belongs to the loop's thread. */
typedef struct transport {
    TAILQ_ENTRY(transport) link; /* the board's */
    board *board;
    mull_port *port;
    uv_async_t async; /* its turns */
    mull_timer *timer;
    TAILQ_HEAD(, reader) readers;
    struct items out;
    TAILQ_HEAD(answers, answer) answers;
    int awake; /* a test's clock waits for the next turn */
    int closing;
} transport;

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* text_move copies a text to where `at` is, and moves that on. */
static const char *text_move(char **at, const char *text)
{
    char *copy = *at;
    *at += text_size(text);
    return text ? memcpy(copy, text, text_size(text)) : NULL;
}

/* item_new copies a message, with `headers` in place of its own. NULL: out of memory. */
static item *item_new(const mull_message *message, const char *id, const char *queue,
                      const mull_header *headers, size_t header_count)
{
    size_t size = sizeof(item) + header_count * sizeof *headers + text_size(id) +
                  text_size(message->type) + text_size(message->key) + text_size(queue) +
                  message->body_size;
    for (size_t i = 0; i < header_count; i++)
        size += text_size(headers[i].name) + text_size(headers[i].value);
    item *made = calloc(1, size);
    if (!made)
        return NULL;
    mull_header *copies = (mull_header *)(made + 1);
    char *at = (char *)(copies + header_count);
    for (size_t i = 0; i < header_count; i++) {
        copies[i].name = text_move(&at, headers[i].name);
        copies[i].value = text_move(&at, headers[i].value);
    }
    made->delivery.message = (mull_message){.size = sizeof(mull_message),
                                            .id = text_move(&at, id),
                                            .type = text_move(&at, message->type),
                                            .key = text_move(&at, message->key),
                                            .queue = text_move(&at, queue),
                                            .headers = copies,
                                            .header_count = header_count,
                                            .body = at,
                                            .body_size = message->body_size};
    if (message->body_size > 0)
        memcpy(at, message->body, message->body_size);
    return made;
}

/* goes_before: what has been put off goes first, by the time when it is due; the rest as it came.
 */
static int goes_before(const item *one, const item *other)
{
    int64_t due = one->due_ms ? one->due_ms : INT64_MAX;
    int64_t other_due = other->due_ms ? other->due_ms : INT64_MAX;
    return due != other_due ? due < other_due : one->sequence < other->sequence;
}

/* wake_all: whoever reads from a board, which is locked, has another look at it. */
static void wake_all(board *b)
{
    transport *t;
    TAILQ_FOREACH (t, &b->transports, link)
        uv_async_send(&t->async);
}

/* pin puts an item on a board, which is locked, and wakes all who read there. A sequence of 0: it
 * is a new one. */
static void pin(board *b, item *i)
{
    if (i->sequence == 0)
        i->sequence = ++b->sequence;
    item *before = TAILQ_LAST(&b->items, items);
    while (before && goes_before(i, before))
        before = TAILQ_PREV(before, items, link);
    if (before)
        TAILQ_INSERT_AFTER(&b->items, before, i, link);
    else
        TAILQ_INSERT_HEAD(&b->items, i, link);
    wake_all(b);
}

board *board_new(void)
{
    board *b = calloc(1, sizeof *b);
    if (!b || pthread_mutex_init(&b->mutex, NULL) != 0) {
        free(b);
        return NULL;
    }
    TAILQ_INIT(&b->items);
    TAILQ_INIT(&b->transports);
    return b;
}

int board_put(board *b, const mull_message *message)
{
    if (!message->queue)
        return MULL_EINVAL;
    item *made =
        item_new(message, message->id, message->queue, message->headers, message->header_count);
    if (!made)
        return MULL_ENOMEM;
    pthread_mutex_lock(&b->mutex);
    pin(b, made);
    pthread_mutex_unlock(&b->mutex);
    return 0;
}

uint64_t board_count(board *b, const char *queue)
{
    uint64_t count = 0;
    item *i;
    pthread_mutex_lock(&b->mutex);
    TAILQ_FOREACH (i, &b->items, link)
        count += strcmp(i->delivery.message.queue, queue) == 0;
    pthread_mutex_unlock(&b->mutex);
    return count;
}

void board_free(board *b)
{
    if (!b)
        return;
    for (item *i; (i = TAILQ_FIRST(&b->items));) {
        TAILQ_REMOVE(&b->items, i, link);
        free(i);
    }
    pthread_mutex_destroy(&b->mutex);
    free(b);
}

/* ---- Handing out ----------------------------------------------------------------------------- */

/* take hands out the first item of a reader's queue that is due. NULL: there is none. */
static item *take(transport *t, reader *r)
{
    int64_t now_ms = mull_port_now(t->port);
    item *i;
    pthread_mutex_lock(&t->board->mutex);
    TAILQ_FOREACH (i, &t->board->items, link)
        if (!i->reader && i->due_ms <= now_ms && strcmp(i->delivery.message.queue, r->queue) == 0)
            break;
    if (i)
        i->reader = r;
    pthread_mutex_unlock(&t->board->mutex);
    if (!i)
        return NULL;
    i->delivery.subscription = r->subscription;
    i->delivery.runtime = NULL;
    i->delivery.message.deliveries++;
    r->out++;
    TAILQ_INSERT_TAIL(&t->out, i, out);
    return i;
}

static void deliver(transport *t)
{
    reader *r;
    TAILQ_FOREACH (r, &t->readers, link)
        for (item *i; r->credit > r->out && (i = take(t, r));)
            mull_port_delivered(t->port, &i->delivery);
}

/* let_go ends a delivery in memory. One that was never settled is on the board still, for others to
 * take: nothing is lost with an engine. */
static void let_go(transport *t, item *i)
{
    TAILQ_REMOVE(&t->out, i, out);
    if (i->settled) {
        free(i);
        return;
    }
    i->reader->out--;
    pthread_mutex_lock(&t->board->mutex);
    i->reader = NULL;
    wake_all(t->board);
    pthread_mutex_unlock(&t->board->mutex);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static void wake(transport *t)
{
    if (!t->awake)
        mull_port_working(t->port, 1);
    t->awake = 1;
    uv_async_send(&t->async);
}

/* answer_later keeps an answer for the next turn. */
static void answer_later(transport *t, answer *a)
{
    TAILQ_INSERT_TAIL(&t->answers, a, link);
    wake(t);
}

static void on_timer(void *data)
{
    wake(data);
}

/* set_timer: the next turn is when the next item that was put off is due. */
static void set_timer(transport *t)
{
    int64_t now_ms = mull_port_now(t->port), next_ms = MULL_NEVER;
    item *i;
    pthread_mutex_lock(&t->board->mutex);
    TAILQ_FOREACH (i, &t->board->items, link) /* the earliest comes first */
        if (!i->reader && i->due_ms > now_ms) {
            next_ms = i->due_ms - now_ms;
            break;
        }
    pthread_mutex_unlock(&t->board->mutex);
    mull_port_timer_set(t->port, t->timer, next_ms);
}

/* tell answers what was asked for before this turn. What is asked for out of these calls wakes us
 * again. */
static void tell(transport *t)
{
    struct answers now = TAILQ_HEAD_INITIALIZER(now);
    TAILQ_CONCAT(&now, &t->answers, link);
    for (answer *a; (a = TAILQ_FIRST(&now));) {
        TAILQ_REMOVE(&now, a, link);
        if (a->to == SETTLED) {
            mull_port_settled(t->port, a->ticket, a->status); /* and the item may be gone */
            continue;
        }
        if (a->to == PUBLISHED)
            mull_port_published(t->port, a->ticket, a->status);
        else
            mull_port_depth(t->port, a->ticket, a->status, &a->depth);
        free(a);
    }
}

static void on_closed(uv_handle_t *handle)
{
    transport *t = handle->data;
    mull_port *port = t->port;
    for (item *i; (i = TAILQ_FIRST(&t->out));)
        let_go(t, i);
    for (reader *r; (r = TAILQ_FIRST(&t->readers));) {
        TAILQ_REMOVE(&t->readers, r, link);
        free(r);
    }
    mull_port_timer_free(port, t->timer);
    free(t);
    mull_port_closed(port);
}

static void on_turn(uv_async_t *async)
{
    transport *t = async->data;
    if (t->awake)
        mull_port_working(t->port, -1);
    t->awake = 0;
    tell(t);
    if (!t->closing) {
        deliver(t);
        set_timer(t);
    } else if (!t->awake) {
        pthread_mutex_lock(&t->board->mutex);
        TAILQ_REMOVE(&t->board->transports, t, link);
        pthread_mutex_unlock(&t->board->mutex);
        uv_close((uv_handle_t *)async, on_closed);
    }
}

/* ---- Settling -------------------------------------------------------------------------------- */

/* due turns a moment of the wall clock into one of the monotonic clock, which nobody sets. */
static int64_t due(transport *t, int64_t wall_ms)
{
    int64_t left_ms = wall_ms > 0 ? wall_ms - mull_port_wall(t->port) : 0;
    int64_t now_ms = mull_port_now(t->port);
    if (left_ms <= 0)
        return 0;
    return left_ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + left_ms;
}

/* copy_of is what takes a delivery's place: elsewhere or later, or at its old place as if it had
 * never been handed out. NULL: out of memory. */
static item *copy_of(transport *t, const item *i, const mull_settlement *settlement)
{
    const mull_message *message = &i->delivery.message;
    item *copy = item_new(message, message->id ? message->id : settlement->id, settlement->queue,
                          settlement->headers, settlement->header_count);
    if (copy && settlement->kind == MULL_SETTLE_GIVE_BACK) {
        copy->due_ms = i->due_ms;
        copy->sequence = i->sequence;
        copy->delivery.message.deliveries = message->deliveries - 1;
    } else if (copy) {
        copy->due_ms = due(t, settlement->due_ms);
    }
    return copy;
}

/* prepare makes all that a settlement brings about, on no board yet. MULL_ENOMEM: not all. */
static int prepare(struct items *made, transport *t, const item *i,
                   const mull_settlement *settlement)
{
    if (settlement->kind != MULL_SETTLE_ACK && settlement->kind != MULL_SETTLE_DISCARD) {
        item *copy = copy_of(t, i, settlement);
        if (!copy)
            return MULL_ENOMEM;
        TAILQ_INSERT_TAIL(made, copy, link);
    }
    for (size_t n = 0; n < settlement->send_count; n++) {
        const mull_message *sent = &settlement->sends[n].message;
        item *copy = item_new(sent, sent->id, sent->queue, sent->headers, sent->header_count);
        if (!copy)
            return MULL_ENOMEM;
        copy->due_ms = due(t, settlement->sends[n].due_ms);
        TAILQ_INSERT_TAIL(made, copy, link);
    }
    return 0;
}

/* carry_out settles: under one lock, so that nobody sees a message twice, or not at all. */
static int carry_out(transport *t, item *i, const mull_settlement *settlement)
{
    struct items made = TAILQ_HEAD_INITIALIZER(made);
    int status = prepare(&made, t, i, settlement);
    pthread_mutex_lock(&t->board->mutex);
    for (item *one; (one = TAILQ_FIRST(&made));) {
        TAILQ_REMOVE(&made, one, link);
        if (status == 0)
            pin(t->board, one);
        else
            free(one);
    }
    if (status == 0)
        TAILQ_REMOVE(&t->board->items, i, link);
    pthread_mutex_unlock(&t->board->mutex);
    if (status == 0) {
        i->settled = 1;
        i->reader->out--;
    }
    return status;
}

/* ---- The slots ------------------------------------------------------------------------------- */

static void board_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement)
{
    transport *t = self;
    item *i = (item *)delivery;
    i->answer = (answer){.to = SETTLED, .ticket = delivery};
    i->answer.status = carry_out(t, i, settlement);
    answer_later(t, &i->answer);
}

static void board_release(void *self, mull_delivery *delivery)
{
    let_go(self, (item *)delivery);
}

static int board_publish(void *self, const mull_outgoing *message, void *ticket)
{
    transport *t = self;
    const mull_message *m = &message->message;
    answer *a = calloc(1, sizeof *a);
    item *i = a ? item_new(m, m->id, m->queue, m->headers, m->header_count) : NULL;
    if (!i) {
        free(a);
        return MULL_ENOMEM;
    }
    i->due_ms = due(t, message->due_ms);
    pthread_mutex_lock(&t->board->mutex);
    pin(t->board, i);
    pthread_mutex_unlock(&t->board->mutex);
    *a = (answer){.to = PUBLISHED, .ticket = ticket};
    answer_later(t, a);
    return 0;
}

static int board_depth(void *self, const char *queue, void *ticket)
{
    transport *t = self;
    answer *a = calloc(1, sizeof *a);
    if (!a)
        return MULL_ENOMEM;
    *a = (answer){.to = DEPTH, .ticket = ticket, .depth.next_due_ms = INT64_MAX};
    int64_t now_ms = mull_port_now(t->port), to_wall = mull_port_wall(t->port) - now_ms;
    item *i;
    pthread_mutex_lock(&t->board->mutex);
    TAILQ_FOREACH (i, &t->board->items, link) {
        if (strcmp(i->delivery.message.queue, queue) != 0)
            continue;
        if (i->reader)
            a->depth.claimed++;
        else if (i->due_ms <= now_ms)
            a->depth.ready++;
        else if (a->depth.delayed++ == 0 && i->due_ms < INT64_MAX - to_wall)
            a->depth.next_due_ms = i->due_ms + to_wall;
    }
    pthread_mutex_unlock(&t->board->mutex);
    answer_later(t, a);
    return 0;
}

static int board_subscribe(void *self, mull_subscription *subscription, const char *queue)
{
    transport *t = self;
    reader *r = calloc(1, sizeof *r + strlen(queue) + 1);
    if (!r)
        return MULL_ENOMEM;
    r->subscription = subscription;
    memcpy(r->queue, queue, strlen(queue) + 1);
    TAILQ_INSERT_TAIL(&t->readers, r, link);
    return 0;
}

static void board_credit(void *self, mull_subscription *subscription, uint32_t deliveries)
{
    transport *t = self;
    reader *r;
    TAILQ_FOREACH (r, &t->readers, link)
        if (r->subscription == subscription)
            r->credit = deliveries;
    wake(t);
}

static void board_close(void *self)
{
    transport *t = self;
    t->closing = 1;
    mull_port_timer_set(t->port, t->timer, MULL_NEVER);
    wake(t);
}

int board_attach(board *b, void **self, mull_port *port, mull_abilities *abilities)
{
    *self = NULL;
    transport *t = calloc(1, sizeof *t);
    mull_timer *timer = t ? mull_port_timer_new(port, on_timer, t) : NULL;
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
    TAILQ_INIT(&t->out);
    TAILQ_INIT(&t->answers);
    pthread_mutex_lock(&t->board->mutex);
    TAILQ_INSERT_TAIL(&t->board->transports, t, link);
    pthread_mutex_unlock(&t->board->mutex);
    *abilities = (mull_abilities){.can_retry = 1, .can_delay = 1, .counts_deliveries = 1};
    *self = t;
    return 0;
}

static int board_open(void **self, mull_port *port, const char *url, mull_abilities *abilities,
                      char *why, size_t why_size)
{
    board *b = mull_port_data(port); /* what mull_engine_scheme was given */
    if (strcmp(url, "board:") == 0)
        return board_attach(b, self, port, abilities);
    snprintf(why, why_size, "there is one board; leave out what stands behind 'board:'");
    return MULL_EINVAL;
}

const mull_transport_ops board_transport = {
    .version = MULL_TRANSPORT_VERSION,
    .scheme = "board",
    .open = board_open,
    .subscribe = board_subscribe,
    .credit = board_credit,
    .publish = board_publish,
    .settle = board_settle,
    .depth = board_depth,
    .release = board_release,
    .close = board_close,
};
