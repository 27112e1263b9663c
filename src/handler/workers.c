/* workers.c: the pool of workers: see workers.h. */
#include "workers_internal.h"

#include "base/alloc.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mull__workers_log(const mull__workers *workers, mull_level level, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    workers->calls->log(workers->data, level, text);
}

int64_t mull__workers_now(const mull__workers *workers)
{
    return (int64_t)uv_now(workers->loop);
}

static mull__worker *worker_of(mull__link *link)
{
    return link ? MULL__ENTRY(link, mull__worker, link) : NULL;
}

static mull__worker *next_worker(mull__workers *workers, mull__worker *after)
{
    mull__list *list = &workers->workers;
    return worker_of(after ? mull__list_after(list, &after->link) : mull__list_first(list));
}

/* ---- Consumers ------------------------------------------------------------------------------- */

mull__worker_consumer *mull__workers_consumer_named(mull__workers *workers, const char *name,
                                                    size_t size)
{
    mull__list *list = &workers->consumers;
    for (mull__link *link = mull__list_first(list); link; link = mull__list_after(list, link)) {
        mull__worker_consumer *consumer = MULL__ENTRY(link, mull__worker_consumer, link);
        if (strlen(consumer->name) == size && memcmp(consumer->name, name, size) == 0)
            return consumer;
    }
    return NULL;
}

mull__worker_consumer *mull__workers_consumer(mull__workers *workers, const char *name,
                                              int64_t timeout_ms, size_t max_body)
{
    size_t size = strlen(name) + 1;
    mull__worker_consumer *consumer = mull__zalloc(&workers->allocator, 1, sizeof *consumer + size);
    if (!consumer)
        return NULL;
    memcpy(consumer->name, name, size);
    consumer->workers = workers;
    consumer->timeout_ms = timeout_ms;
    if (workers->most < max_body + MULL__WORKER_FRAME)
        workers->most = max_body + MULL__WORKER_FRAME;
    mull__list_push(&workers->consumers, &consumer->link);
    return consumer;
}

mull__worker_offer *mull__worker_offer_of(const mull__worker *worker,
                                          const mull__worker_consumer *consumer)
{
    for (size_t i = 0; i < worker->offer_count; i++)
        if (worker->offers[i].consumer == consumer)
            return &worker->offers[i];
    return NULL;
}

void mull__workers_remove(mull__worker_consumer *consumer)
{
    mull__workers *workers = consumer->workers;
    for (mull__worker *w = NULL; (w = next_worker(workers, w));) {
        mull__worker_offer *offer = mull__worker_offer_of(w, consumer);
        if (offer)
            *offer = w->offers[--w->offer_count];
    }
    mull__list_remove(&workers->consumers, &consumer->link);
    mull__free(&workers->allocator, consumer);
}

/* may_have says whether a worker takes calls. */
static int may_have(const mull__worker *w)
{
    return w->peer && w->session.state == MULL__SESSION_OPENED && !w->finishes;
}

/* A worker that takes fewer than it has keeps those; others have room all the same. */
void mull__workers_tell_room(mull__worker_consumer *consumer)
{
    uint64_t room = 0, free_slots = 0;
    for (mull__worker *w = NULL; (w = next_worker(consumer->workers, w));) {
        const mull__worker_offer *offer = mull__worker_offer_of(w, consumer);
        uint32_t slots = offer && may_have(w) ? offer->slots : 0;
        free_slots += slots;
        room += !offer ? 0 : slots > offer->open ? slots : offer->open;
    }
    uint32_t told = free_slots == 0 ? 0 : room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    if (told == consumer->room)
        return;
    consumer->room = told;
    consumer->workers->calls->room(consumer->workers->data, consumer->name, told);
}

static void tell_rooms(const mull__worker *w)
{
    for (size_t i = 0; i < w->offer_count; i++)
        mull__workers_tell_room(w->offers[i].consumer);
}

/* ---- What is said ---------------------------------------------------------------------------- */

void mull__worker_touched(mull__worker *w)
{
    w->is_dirty = 1;
}

/* flush writes what the session says, and lets go of a worker whose session has ended. */
static void flush(mull__worker *w)
{
    w->is_dirty = 0;
    if (!w->peer)
        return;
    if (w->session.out.size > 0)
        mull__peer_write(w->peer, w->session.out.memory, w->session.out.size);
    w->session.out.size = 0;
    if (mull__peer_unsent(w->peer) == 0)
        mull__session_sent(&w->session);
    if (w->session.state != MULL__SESSION_ENDED || w->finishes)
        return;
    w->finishes = 1;
    mull__workers_log(w->workers, MULL_WARNING, "a worker is disconnected: %s", w->session.why);
    tell_rooms(w);
    mull__peer_finish(w->peer);
}

static void on_prepare(uv_prepare_t *handle)
{
    mull__workers *workers = handle->data;
    for (mull__worker *w = NULL; (w = next_worker(workers, w));)
        if (w->is_dirty)
            flush(w);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static mull__worker_call *call_of(const mull__worker *w, mull_call call)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (w->calls[i].call == call)
            return &w->calls[i];
    return NULL;
}

void mull__worker_drop_call(mull__worker *w, mull__worker_call *call)
{
    mull__worker_consumer *consumer = call->consumer;
    mull__worker_offer *offer = mull__worker_offer_of(w, consumer);
    mull__free(&w->workers->allocator, call->wrong);
    *call = w->calls[--w->call_count];
    if (offer && offer->open-- > offer->slots)
        mull__workers_tell_room(consumer);
    w->workers->calls->working(w->workers->data, -1);
}

/* most_free gives the worker that has the most free slots for a consumer. */
static mull__worker *most_free(mull__worker_consumer *consumer)
{
    mull__worker *best = NULL;
    uint32_t most = 0;
    for (mull__worker *w = NULL; (w = next_worker(consumer->workers, w));) {
        const mull__worker_offer *offer = mull__worker_offer_of(w, consumer);
        if (!offer || !may_have(w) || offer->slots <= offer->open ||
            offer->slots - offer->open <= most)
            continue;
        best = w;
        most = offer->slots - offer->open;
    }
    return best;
}

static mull__worker_call *new_call(mull__worker *w)
{
    if (w->call_count == w->call_room) {
        size_t room = w->call_room ? 2 * w->call_room : 16;
        mull__worker_call *calls =
            mull__grow(&w->workers->allocator, w->calls, room, sizeof *calls);
        if (!calls)
            return NULL;
        w->calls = calls;
        w->call_room = room;
    }
    return &w->calls[w->call_count++];
}

void mull__workers_handle(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    mull__worker_consumer *consumer = data;
    mull__worker *w = most_free(consumer);
    mull__worker_call *made = w ? new_call(w) : NULL;
    (void)engine;
    if (!made) {
        consumer->workers->calls->no_memory(consumer->workers->data, call);
        return;
    }
    *made = (mull__worker_call){.call = call, .consumer = consumer};
    made->id = mull__worker_say_handle(w, consumer, message);
    mull__worker_offer_of(w, consumer)->open++;
    w->workers->calls->working(w->workers->data, 1);
}

void mull__workers_cancel(mull__worker_consumer *consumer, mull_call call, const char *reason)
{
    for (mull__worker *w = NULL; (w = next_worker(consumer->workers, w));) {
        mull__worker_call *found = call_of(w, call);
        if (!found)
            continue;
        found->cancelled_ms = mull__workers_now(w->workers);
        if (w->peer)
            mull__worker_say_cancel(w, found->id, reason);
        return;
    }
}

/* ---- A worker's end -------------------------------------------------------------------------- */

/* crash ends a call whose worker is gone. */
static void crash(const mull__worker *w, const mull__worker_call *call)
{
    const mull__worker_program *p = w->program;
    mull_field fields[] = {{.name = p && p->signal ? "signal" : "status"}};
    char text[160] = "the worker closed its connection";
    if (p)
        snprintf(text, sizeof text, "worker process %d ended with %s %d", p->child.pid,
                 p->signal ? "signal" : "exit code", p->signal ? p->signal : p->status);
    if (p)
        fields[0].value =
            (mull_value){.kind = MULL_INTEGER, .as.integer = p->signal ? p->signal : p->status};
    const mull_error error = {.size = sizeof error,
                              .type = "HandlerCrashError",
                              .message = text,
                              .fields = fields,
                              .field_count = p ? 1 : 0};
    w->workers->calls->crashed(w->workers->data, call->call, &error);
}

static void free_worker(mull__worker *w)
{
    const mull_allocator allocator = w->workers->allocator;
    mull__session_drop(&w->session);
    mull__free(&allocator, w->offers);
    mull__free(&allocator, w->calls);
    mull__free(&allocator, w);
}

static void end_if_over(mull__workers *workers);

void mull__worker_over(mull__worker *w)
{
    mull__workers *workers = w->workers;
    mull__worker_program *p = w->program;
    while (w->call_count > 0) {
        mull__worker_call *last = &w->calls[w->call_count - 1];
        crash(w, last);
        mull__worker_drop_call(w, last);
    }
    mull__list_remove(&workers->workers, &w->link);
    tell_rooms(w);
    free_worker(w);
    p->worker = NULL;
    mull__worker_program_settle(p);
    end_if_over(workers);
}

/* on_gone: what its process may still do for its calls has to end before they do. */
static void on_gone(void *data)
{
    mull__worker *w = data;
    w->peer = NULL;
    tell_rooms(w);
    if (w->program && w->program->runs)
        mull__worker_program_end(w->program, w->workers->state == MULL__WORKERS_STARTED
                                                 ? MULL__WORKER_LEAVE_MS
                                                 : MULL__WORKER_KILL_MS);
    else
        mull__worker_over(w);
}

/* ---- Its connection -------------------------------------------------------------------------- */

static size_t on_read(void *data, char *bytes, size_t size)
{
    mull__worker *w = data;
    size_t taken = 0, before;
    do {
        before = taken;
        taken += mull__session_feed(&w->session, bytes + taken, size - taken,
                                    mull__workers_now(w->workers));
        flush(w);
    } while (taken > before && taken < size && !mull__session_is_full(&w->session));
    if (!w->finishes)
        mull__peer_reads(w->peer, !mull__session_is_full(&w->session));
    return taken;
}

static void on_sent(void *data)
{
    mull__worker *w = data;
    mull__session_sent(&w->session);
    mull__peer_reads(w->peer, 1);
    mull__peer_feed(w->peer);
}

static void *on_accepted(void *data, mull__peer *peer)
{
    mull__workers *workers = data;
    mull__worker *w = mull__zalloc(&workers->allocator, 1, sizeof *w);
    if (!w)
        return NULL;
    w->workers = workers;
    w->peer = peer;
    w->program = workers->adopting;
    w->program->worker = w;
    mull__session_begin(&w->session, &mull__worker_session, w, &workers->allocator,
                        mull__workers_now(workers));
    w->session.most = workers->most;
    mull__list_push(&workers->workers, &w->link);
    return w;
}

static void on_refused(void *data, const char *why)
{
    mull__workers_log(data, MULL_WARNING, "%s", why);
}

static void on_listener_closed(void *data)
{
    mull__workers_handle_closed(data);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static int has_overdue(const mull__worker *w, int64_t now_ms)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (w->calls[i].cancelled_ms && now_ms - w->calls[i].cancelled_ms >= MULL__WORKER_KILL_MS)
            return 1;
    return 0;
}

static void tick(mull__worker *w, int64_t now_ms)
{
    if (w->program->runs && has_overdue(w, now_ms)) {
        if (w->program->ends == 0)
            mull__workers_log(w->workers, MULL_WARNING,
                              "worker process %d is ended: it didn't answer a cancel within %d s",
                              w->program->child.pid, MULL__WORKER_KILL_MS / 1000);
        mull__worker_program_end(w->program, 0);
    }
    if (!w->peer)
        return;
    mull__session_tick(&w->session, now_ms);
    flush(w);
    int has_ended = w->finishes && now_ms - w->session.since_ms >= MULL__SESSION_HELLO_MS;
    if (has_ended || !w->program->runs) /* all that it said came before this tick */
        mull__peer_end(w->peer);
}

static void on_tick(uv_timer_t *timer)
{
    mull__workers *workers = timer->data;
    for (mull__worker *w = NULL; (w = next_worker(workers, w));)
        tick(w, mull__workers_now(workers));
}

/* ---- The pool -------------------------------------------------------------------------------- */

static void free_workers(mull__workers *workers)
{
    const mull_allocator allocator = workers->allocator;
    for (size_t i = 0; workers->words && workers->words[i]; i++)
        mull__free(&allocator, workers->words[i]);
    for (mull__link *link; (link = mull__list_pop(&workers->consumers));)
        mull__free(&allocator, MULL__ENTRY(link, mull__worker_consumer, link));
    mull__free(&allocator, workers->words);
    mull__free(&allocator, workers);
}

void mull__workers_handle_closed(mull__workers *workers)
{
    workers->handles--;
    if (workers->handles > 0) {
        end_if_over(workers);
        return;
    }
    const mull__workers_calls *calls = workers->calls;
    void *data = workers->data;
    free_workers(workers);
    calls->closed(data);
}

static void on_closed(uv_handle_t *handle)
{
    mull__workers_handle_closed(handle->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    const mull__worker_program *p = handle->data;
    mull__workers_handle_closed(p->workers);
}

/* end_if_over closes the last handles once every process and connection is gone. */
static void end_if_over(mull__workers *workers)
{
    if (workers->state != MULL__WORKERS_CLOSING || uv_is_closing((uv_handle_t *)&workers->tick) ||
        mull__list_first(&workers->workers))
        return;
    for (uint32_t i = 0; i < workers->count; i++)
        if (workers->programs[i].runs || workers->programs[i].open > 0)
            return;
    for (uint32_t i = 0; i < workers->count; i++)
        uv_close((uv_handle_t *)&workers->programs[i].timer, on_timer_closed);
    uv_close((uv_handle_t *)&workers->tick, on_closed);
    uv_close((uv_handle_t *)&workers->flush, on_closed);
    mull__listener_close(workers->listener);
}

static char **copy_words(const mull_allocator *allocator, const char *const *words)
{
    size_t count = 0;
    while (words[count])
        count++;
    char **copy = mull__zalloc(allocator, count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = mull__strdup(allocator, words[i])))
            return copy; /* shorter than it is to be: see open_parts */
    return copy;
}

static const mull__listener_calls listener_calls = {on_accepted, on_read,    on_sent,
                                                    on_gone,     on_refused, on_listener_closed};

static int open_parts(mull__workers *workers, const mull__workers_options *options)
{
    char why[MULL__LISTENER_WHY];
    workers->words = copy_words(&workers->allocator, options->words);
    for (size_t i = 0; options->words[i]; i++)
        if (!workers->words || !workers->words[i])
            return MULL_ENOMEM;
    return mull__listener_open(&workers->listener, workers->loop, &workers->allocator, NULL,
                               &listener_calls, workers, why);
}

int mull__workers_open(mull__workers **out, const mull__workers_options *options)
{
    mull__workers *workers = mull__zalloc(
        &options->allocator, 1, sizeof *workers + options->processes * sizeof *workers->programs);
    if (!workers)
        return MULL_ENOMEM;
    workers->allocator = options->allocator;
    workers->loop = options->loop;
    workers->engine = options->engine;
    workers->calls = options->calls;
    workers->data = options->data;
    workers->count = options->processes;
    mull__list_init(&workers->consumers);
    mull__list_init(&workers->workers);
    if (open_parts(workers, options) != 0) {
        free_workers(workers);
        return MULL_ENOMEM;
    }
    uv_timer_init(workers->loop, &workers->tick);
    uv_prepare_init(workers->loop, &workers->flush);
    uv_unref((uv_handle_t *)&workers->flush);
    workers->tick.data = workers->flush.data = workers;
    for (uint32_t i = 0; i < workers->count; i++) {
        workers->programs[i].workers = workers;
        uv_timer_init(workers->loop, &workers->programs[i].timer);
        workers->programs[i].timer.data = &workers->programs[i];
    }
    workers->handles = 3 + (int)workers->count; /* tick, flush, the listener */
    *out = workers;
    return 0;
}

/* ---- Its life -------------------------------------------------------------------------------- */

void mull__workers_start(void *data)
{
    mull__workers *workers = data;
    workers->state = MULL__WORKERS_STARTED;
    uv_timer_start(&workers->tick, on_tick, MULL__WORKER_TICK_MS, MULL__WORKER_TICK_MS);
    uv_prepare_start(&workers->flush, on_prepare);
    for (uint32_t i = 0; i < workers->count; i++)
        mull__worker_program_start(&workers->programs[i]);
}

/* end_starting: a process that hasn't said hello has nothing to finish. */
static void end_starting(mull__workers *workers)
{
    for (uint32_t i = 0; i < workers->count; i++) {
        mull__worker_program *p = &workers->programs[i];
        if (!p->runs)
            uv_timer_stop(&p->timer);
        else if (p->starting)
            mull__worker_program_end(p, 0);
    }
}

void mull__workers_stop(void *data, int64_t grace_ms)
{
    mull__workers *workers = data;
    if (workers->state != MULL__WORKERS_STARTED)
        return;
    workers->state = MULL__WORKERS_STOPPING;
    end_starting(workers);
    for (mull__worker *w = NULL; (w = next_worker(workers, w));)
        if (may_have(w))
            mull__worker_say_stop(w, grace_ms);
}

void mull__workers_close(void *data)
{
    mull__workers *workers = data;
    workers->state = MULL__WORKERS_CLOSING;
    end_starting(workers);
    for (mull__worker *w = NULL; (w = next_worker(workers, w));) {
        if (w->peer && !w->finishes) {
            flush(w);
            w->finishes = 1;
            mull__peer_finish(w->peer);
        }
        mull__worker_program_end(w->program, MULL__WORKER_KILL_MS);
    }
    end_if_over(workers);
}
