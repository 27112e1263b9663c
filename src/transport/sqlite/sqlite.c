/* sqlite.c: the transport sqlite:FILE as the engine sees it: the loop's side of it.
 *
 *   slots ── jobs of this turn ── flush ──────> worker.c
 *   mull_port_... <── answers, deliveries ── async ──┘
 */
#include "base/alloc.h"
#include "worker.h"

#include <stdio.h>
#include <string.h>

extern const mull_transport_ops mull__sqlite;

/* How many bytes of bodies are claimed at most, but for the last one's. */
enum { SQLITE_MOST_BYTES = 64 << 20 };

typedef struct sqlite {
    mull_port *port; /* NULL: open failed, and nobody is told of the end */
    mull_allocator allocator;
    mull__worker worker;
    char *path;
    uv_async_t async; /* rung by the worker where there are answers */
    int asked;        /* `jobs`, `wake` or a wish is to be flushed */

    mull__list jobs;
    mull__list readers;
    mull__list claims; /* delivered and not released */
    int wake;          /* the worker is to claim */
    uint64_t wakes;    /* that were answered */
    mull_timer *timer;
    int64_t timer_ms; /* what it is set for, of mull__store_now; INT64_MAX: it isn't set */
    int closing;
} sqlite;

/* ---- To the worker --------------------------------------------------------------------------- */

/* sqlite_flush: all that one turn of the loop asks for wakes the worker once, and is in one
 * transaction. The engine calls it for what it asked; what is asked here, outside of its turns, is
 * flushed where it is asked. */
static void sqlite_flush(void *data)
{
    sqlite *self = data;
    if (!self->asked)
        return;
    self->asked = 0;
    mull__worker_submit(&self->worker, &self->jobs, &self->readers, self->wake);
    self->wake = 0;
}

static void sqlite_give(sqlite *self, mull__job *job)
{
    mull__list_push(&self->jobs, &job->link);
    mull_port_working(self->port, 1);
    self->asked = 1;
}

static void sqlite_wake(sqlite *self)
{
    if (!self->wake)
        mull_port_working(self->port, 1);
    self->wake = 1;
    self->asked = 1;
}

/* ---- From the worker ------------------------------------------------------------------------- */

static void sqlite_free_claim(sqlite *self, mull__claim *claim)
{
    mull__list_remove(&self->claims, &claim->link);
    mull__claim_free(&self->allocator, claim);
}

/* sqlite_answer: `fault` is what was wrong with the file. */
static void sqlite_answer(sqlite *self, mull__job *job, const char *fault)
{
    const char *why = mull__error_of_job(job->status);
    if (!why && job->status != 0)
        why = fault;
    switch (job->kind) {
    case MULL__JOB_PUBLISH: {
        mull__publish_job *publishing = MULL__ENTRY(job, mull__publish_job, job);
        mull_port_answer(self->port, publishing->ticket, job->status, why);
        mull__free(&self->allocator, publishing);
        break;
    }
    case MULL__JOB_SETTLE:
        mull_port_answer(self->port, MULL__ENTRY(job, mull__claim, job)->ticket, job->status, why);
        break;
    case MULL__JOB_RETURN:
        MULL__ENTRY(job, mull__claim, job)->reader->returning--;
        sqlite_free_claim(self, MULL__ENTRY(job, mull__claim, job));
        break;
    case MULL__JOB_DEPTH: {
        mull__depth_job *counting = MULL__ENTRY(job, mull__depth_job, job);
        mull_port_depth(self->port, counting->ticket, job->status, &counting->depth, why);
        mull__free(&self->allocator, counting);
        break;
    }
    case MULL__JOB_END:
        MULL__ENTRY(job, mull__reader, job)->forgotten = 1;
        break;
    }
    mull_port_working(self->port, -1);
}

/* sqlite_deliver: what was claimed just before a close, or before its reader was told to end, goes
 * back as if it hadn't been. */
static void sqlite_deliver(sqlite *self, mull__claim *claim)
{
    mull__reader *reader = claim->reader;
    if (self->closing || reader->ending) {
        claim->job.kind = MULL__JOB_RETURN;
        reader->returning++;
        sqlite_give(self, &claim->job);
        return;
    }
    mull__list_push(&self->claims, &claim->link);
    mull_port_delivered(self->port, reader->consumer, &claim->delivery);
}

/* sqlite_end_readers frees those that were told to end, and that no claim needs any more. */
static void sqlite_end_readers(sqlite *self)
{
    mull__link *after;
    for (mull__link *link = mull__list_first(&self->readers); link; link = after) {
        mull__reader *reader = MULL__ENTRY(link, mull__reader, own_link);
        after = mull__list_after(&self->readers, link);
        if (!reader->forgotten || reader->returning)
            continue;
        mull_ticket consumer = reader->consumer;
        mull__list_remove(&self->readers, link);
        mull__free(&self->allocator, reader);
        mull_port_source(self->port, consumer, MULL_SOURCE_ENDED, NULL, NULL);
    }
}

static void sqlite_on_due(void *data)
{
    sqlite *self = data;
    self->timer_ms = INT64_MAX;
    sqlite_wake(self);
    sqlite_flush(self);
}

static void sqlite_set_timer(sqlite *self, int64_t due_ms)
{
    if (due_ms == self->timer_ms)
        return;
    self->timer_ms = due_ms;
    int64_t left = due_ms - mull__store_now(&self->worker.store);
    if (due_ms == INT64_MAX)
        left = MULL_NEVER;
    else if (left < 0)
        left = 0;
    mull_port_timer_set(self->port, self->timer, left);
}

static void sqlite_answer_all(sqlite *self, mull__answers *answers)
{
    mull__link *link;
    if (answers->state_news)
        mull_port_state(self->port, answers->health,
                        answers->health == MULL_UP ? NULL : answers->why);
    while ((link = mull__list_pop(&answers->jobs)))
        sqlite_answer(self, MULL__ENTRY(link, mull__job, link), answers->why);
    while ((link = mull__list_pop(&answers->claims)))
        sqlite_deliver(self, MULL__ENTRY(link, mull__claim, link));
    sqlite_end_readers(self);
    sqlite_set_timer(self, self->closing ? INT64_MAX : answers->due_ms);
    for (; self->wakes < answers->wakes; self->wakes++)
        mull_port_working(self->port, -1);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void sqlite_free(sqlite *self)
{
    mull__link *link;
    while ((link = mull__list_first(&self->claims)))
        sqlite_free_claim(self, MULL__ENTRY(link, mull__claim, link));
    while ((link = mull__list_pop(&self->readers)))
        mull__free(&self->allocator, MULL__ENTRY(link, mull__reader, own_link));
    mull_port_timer_free(self->port, self->timer);
    mull_allocator allocator = self->allocator;
    mull__free(&allocator, self->path);
    mull__free(&allocator, self);
}

static void sqlite_on_closed(uv_handle_t *handle)
{
    sqlite *self = handle->data;
    mull_port *port = self->port;
    sqlite_free(self);
    if (port)
        mull_port_closed(port);
}

/* sqlite_end: the worker is gone. What was asked of it too late is answered here. */
static void sqlite_end(sqlite *self)
{
    mull__worker_join(&self->worker);
    mull__link *link;
    mull__list_append(&self->jobs, &self->worker.inbox);
    while ((link = mull__list_pop(&self->jobs))) {
        mull__job *job = MULL__ENTRY(link, mull__job, link);
        job->status = MULL_ESTATE;
        sqlite_answer(self, job, NULL);
    }
    sqlite_end_readers(self);
    uv_close((uv_handle_t *)&self->async, sqlite_on_closed);
}

static void sqlite_on_async(uv_async_t *async)
{
    sqlite *self = async->data;
    mull__answers answers;
    mull__worker_take_answers(&self->worker, &answers);
    sqlite_answer_all(self, &answers);
    if (answers.finished) {
        sqlite_end(self);
        return;
    }
    sqlite_flush(self);
    mull__worker_answers_seen(&self->worker);
}

static void sqlite_close(void *data, int64_t drain_ms)
{
    sqlite *self = data;
    self->closing = 1;
    sqlite_set_timer(self, INT64_MAX);
    sqlite_flush(self);
    mull__worker_close(&self->worker, drain_ms);
}

/* ---- The slots ------------------------------------------------------------------------------- */

static int sqlite_subscribe(void *data, mull_ticket consumer, const mull_source *source,
                            void **subscription)
{
    sqlite *self = data;
    size_t length = strlen(source->queue) + 1;
    mull__reader *reader = mull__zalloc(&self->allocator, 1, sizeof *reader + length);
    if (!reader)
        return MULL_ENOMEM;
    reader->consumer = consumer;
    reader->queue = memcpy(reader + 1, source->queue, length);
    mull__list_push(&self->readers, &reader->own_link);
    mull__worker_add_reader(&self->worker, reader);
    *subscription = reader;
    mull_port_source(self->port, consumer, MULL_SOURCE_READY, NULL, NULL);
    return 0;
}

static void sqlite_credit(void *data, void *subscription, uint32_t deliveries)
{
    sqlite *self = data;
    mull__reader *reader = subscription;
    if (reader->wish == deliveries || self->closing)
        return;
    int more = deliveries > reader->wish;
    reader->wish = deliveries;
    self->asked = 1;
    if (more)
        sqlite_wake(self);
}

static void sqlite_unsubscribe(void *data, void *subscription)
{
    mull__reader *reader = subscription;
    reader->ending = 1;
    reader->job.kind = MULL__JOB_END;
    sqlite_give(data, &reader->job);
}

static int sqlite_publish(void *data, const mull_outgoing *outgoing, mull_ticket ticket)
{
    sqlite *self = data;
    const mull_message *message = outgoing->message;
    mull__publish_job *publishing =
        mull__alloc(&self->allocator, sizeof *publishing + mull_message_size(message, NULL));
    if (!publishing)
        return MULL_ENOMEM;
    *publishing = (mull__publish_job){.job.kind = MULL__JOB_PUBLISH, .ticket = ticket};
    publishing->outgoing = (mull_outgoing){.size = sizeof publishing->outgoing,
                                           .message = &publishing->message,
                                           .due_ms = outgoing->due_ms};
    mull_message_copy(&publishing->message, message, NULL, (mull_header *)(publishing + 1));
    sqlite_give(self, &publishing->job);
    return 0;
}

static void sqlite_settle(void *data, mull_delivery *delivery, const mull_settlement *settlement,
                          mull_ticket ticket)
{
    sqlite *self = data;
    mull__claim *claim = (mull__claim *)delivery;
    claim->settlement = settlement;
    claim->ticket = ticket;
    claim->job.kind = MULL__JOB_SETTLE;
    sqlite_give(self, &claim->job);
}

static int sqlite_depth(void *data, const char *queue, mull_ticket ticket)
{
    sqlite *self = data;
    size_t length = strlen(queue) + 1;
    mull__depth_job *counting = mull__alloc(&self->allocator, sizeof *counting + length);
    if (!counting)
        return MULL_ENOMEM;
    *counting = (mull__depth_job){.job.kind = MULL__JOB_DEPTH, .ticket = ticket};
    counting->queue = memcpy(counting + 1, queue, length);
    sqlite_give(self, &counting->job);
    return 0;
}

static void sqlite_release(void *data, mull_delivery *delivery)
{
    sqlite_free_claim(data, (mull__claim *)delivery);
}

typedef struct sqlite_place {
    char path[4096];
    size_t most_bytes; /* of bodies that may be claimed */
} sqlite_place;

/* sqlite_option reads what follows the path. The number begins with a digit: sscanf would also take
 * a space or a sign. */
static int sqlite_option(sqlite_place *place, const char *text)
{
    static const char name[] = "?claimed=";
    const char *number = text + sizeof name - 1;
    int end = 0;
    long long bytes = 0;
    if (strncmp(text, name, sizeof name - 1) != 0 || number[0] < '0' || number[0] > '9' ||
        sscanf(number, "%18lld%n", &bytes, &end) != 1 || bytes < 1 || number[end])
        return MULL_EINVAL;
    place->most_bytes = (size_t)bytes;
    return 0;
}

static int sqlite_find(sqlite_place *place, const char *url, char *why, size_t why_size)
{
    const char *path = url + strlen("sqlite:");
    size_t length = strcspn(path, "?");
    *place = (sqlite_place){.most_bytes = SQLITE_MOST_BYTES};
    if (length == 0 || strcmp(path, ":memory:") == 0)
        snprintf(why, why_size, "'%s' names no file, as sqlite:orders.db does", url);
    else if (length >= sizeof place->path)
        snprintf(why, why_size, "the path of a sqlite: URL is too long");
    else if (path[length] && sqlite_option(place, path + length) != 0)
        snprintf(why, why_size, "%s: a sqlite: URL has no option but claimed=BYTES, 1 or more",
                 url);
    else {
        memcpy(place->path, path, length);
        return 0;
    }
    return MULL_EINVAL;
}

static const mull_abilities sqlite_abilities = {.size = sizeof sqlite_abilities,
                                                .can_retry = 1,
                                                .can_delay = 1,
                                                .can_note = 1,
                                                .settles_whole = 1,
                                                .counts_at_once = 1,
                                                .deliveries = MULL_COUNTS_DEATHS,
                                                .depth = MULL_DEPTH_EXACT};

static sqlite *sqlite_new(mull_port *port, const char *path)
{
    const mull_allocator *allocator = mull_port_allocator(port);
    sqlite *self = mull__zalloc(allocator, 1, sizeof *self);
    if (!self)
        return NULL;
    self->port = port;
    self->allocator = *allocator;
    self->timer_ms = INT64_MAX;
    mull__list_init(&self->jobs);
    mull__list_init(&self->readers);
    mull__list_init(&self->claims);
    self->path = mull__strdup(allocator, path);
    self->timer = mull_port_timer_new(port, sqlite_on_due, self);
    if (self->path && self->timer)
        return self;
    sqlite_free(self);
    return NULL;
}

/* sqlite_start: the async first, since the thread rings it. Once there it can only be closed on a
 * later turn of the loop. */
static int sqlite_start(sqlite *self, size_t most_bytes, char *why, size_t why_size)
{
    int failed = uv_async_init(mull_port_loop(self->port), &self->async, sqlite_on_async);
    if (failed) {
        snprintf(why, why_size, "%s: no handle for its thread: %s", self->path,
                 uv_strerror(failed));
        mull__store_close(&self->worker.store);
        sqlite_free(self);
        return MULL_EIO;
    }
    self->async.data = self;
    int status = mull__worker_start(&self->worker, self->path, most_bytes, &self->async);
    if (status != 0) {
        snprintf(why, why_size, "%s: its thread can't be started", self->path);
        mull__store_close(&self->worker.store);
        mull_port_timer_free(self->port, self->timer);
        self->timer = NULL;
        self->port = NULL;
        uv_close((uv_handle_t *)&self->async, sqlite_on_closed);
    }
    return status;
}

static int sqlite_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                       size_t why_size)
{
    sqlite_place place;
    (void)queue;
    int status = sqlite_find(&place, url, why, why_size);
    if (status == 0)
        *floor = sqlite_abilities;
    return status;
}

static int sqlite_open(void **out, mull_port *port, const char *url, char *why, size_t why_size)
{
    *out = NULL;
    sqlite_place place;
    int status = sqlite_find(&place, url, why, why_size);
    if (status != 0)
        return status;
    sqlite *self = sqlite_new(port, place.path);
    if (!self) {
        snprintf(why, why_size, "%s: out of memory", url);
        return MULL_ENOMEM;
    }
    status = mull__store_open(&self->worker.store, port, self->path, why, why_size);
    if (status != 0) {
        sqlite_free(self);
        return status;
    }
    status = sqlite_start(self, place.most_bytes, why, why_size);
    if (status != 0)
        return status;
    *out = self;
    mull_port_state(port, MULL_UP, NULL);
    return 0;
}

const mull_transport_ops mull__sqlite = {
    MULL_TRANSPORT_OPS(sqlite),
    .depth = sqlite_depth,
    .flush = sqlite_flush,
};
