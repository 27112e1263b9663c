/* sim.c: one seed, from its first step to its last.
 *
 *   chaos ── until it calms down: the module is asked for all it can, and everything may fail
 *   calm  ── nothing fails any more: every message must come to its end, in bounded time
 *   end   ── the transport closes: all of its memory must be back, and no message be gone
 */
#include "sim.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Chance ---------------------------------------------------------------------------------- */

uint64_t draw(sim *s, uint64_t choices)
{
    return mull__rand_next(&s->chance) % choices;
}

int64_t between(sim *s, int64_t low, int64_t high)
{
    return low + (int64_t)draw(s, (uint64_t)(high - low) + 1);
}

int one_in(sim *s, uint64_t choices)
{
    return draw(s, choices) == 0;
}

int happens(sim *s, uint32_t permille)
{
    return !s->calm && permille > 0 && draw(s, 1000) < permille;
}

/* ---- Memory that lives as long as a seed ----------------------------------------------------- */

/* The chunks are the program's: each seed begins with them anew. */
enum { CHUNK = 1024 * 1024 };

typedef struct chunk {
    struct chunk *next;
    size_t size, used;
    _Alignas(16) char bytes[];
} chunk;

static chunk *chunks, *filling;

static chunk *chunk_for(sim *s, size_t bytes)
{
    chunk **at = filling ? &filling->next : &chunks, *next = *at;
    if (!next || next->size < bytes) {
        size_t size = bytes > CHUNK ? bytes : CHUNK;
        next = malloc(sizeof *next + size);
        if (!next)
            violation(s, "out of memory");
        *next = (chunk){.next = *at, .size = size};
        *at = next;
    }
    next->used = 0;
    return filling = next;
}

void *keep(sim *s, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!filling || filling->size - filling->used < bytes)
        chunk_for(s, bytes);
    void *room = filling->bytes + filling->used;
    filling->used += bytes;
    return memset(room, 0, bytes);
}

amqp_bytes_t keep_bytes(sim *s, amqp_bytes_t bytes)
{
    char *made = keep(s, bytes.len + 1);
    if (bytes.len > 0)
        memcpy(made, bytes.bytes, bytes.len);
    return (amqp_bytes_t){bytes.len, made};
}

/* ---- What is due ----------------------------------------------------------------------------- */

static int earlier(const event *a, const event *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void grow_events(sim *s)
{
    s->event_room = s->event_room ? 2 * s->event_room : 256;
    event **more = realloc(s->events, s->event_room * sizeof *more);
    if (!more)
        violation(s, "out of memory");
    s->events = more;
}

event *at_time(sim *s, int64_t delay_ms, void (*fire)(sim *s, void *data), void *data)
{
    event *made = keep(s, sizeof *made);
    *made = (event){s->now_ms + delay_ms, s->next_order++, fire, data};
    if (s->event_count == s->event_room)
        grow_events(s);
    size_t at = s->event_count++;
    for (; at > 0 && earlier(made, s->events[(at - 1) / 2]); at = (at - 1) / 2)
        s->events[at] = s->events[(at - 1) / 2];
    s->events[at] = made;
    return made;
}

void call_off(event **due)
{
    if (*due)
        (*due)->fire = NULL;
    *due = NULL;
}

static event *pop_event(sim *s)
{
    event *first = s->events[0], *last = s->events[--s->event_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->event_count; at = child) {
        if (child + 1 < s->event_count && earlier(s->events[child + 1], s->events[child]))
            child++;
        if (!earlier(s->events[child], last))
            break;
        s->events[at] = s->events[child];
    }
    s->events[at] = last;
    return first;
}

/* ---- What happened --------------------------------------------------------------------------- */

static void show(const record *r)
{
    printf("# %8" PRId64 " ms  ", r->now_ms);
    printf(r->format, (long long)r->values[0], (long long)r->values[1], (long long)r->values[2],
           (long long)r->values[3]);
    putchar('\n');
}

void note(sim *s, const char *format, int64_t a, int64_t b, int64_t c, int64_t d)
{
    record *r = &s->records[s->record_count++ % RECORDS];
    *r = (record){.now_ms = s->now_ms, .format = format, .values = {a, b, c, d}};
    const uint64_t words[] = {s->hash,
                              mull__hash_text(format),
                              (uint64_t)s->now_ms,
                              (uint64_t)a,
                              (uint64_t)b,
                              (uint64_t)c,
                              (uint64_t)d};
    s->hash = mull__hash_words(words, sizeof words / sizeof *words);
    if (s->tell)
        show(r);
}

void violation(sim *s, const char *format, ...)
{
    uint64_t first = s->record_count > RECORDS ? s->record_count - RECORDS : 0;
    for (uint64_t i = first; i < s->record_count && !s->tell; i++)
        show(&s->records[i % RECORDS]);
    printf("seed %" PRIu64 ", step %" PRIu64 ", at %" PRId64 " ms: ", s->seed, s->steps, s->now_ms);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nagain, every step: simulate_amqp --seed %" PRIu64 " --trace\n", s->seed);
    fflush(stdout);
    _Exit(1);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

enum { STEPS_MAX = 1000000, CALM_MAX_MS = 3600 * 1000 };

static void step(sim *s, const char *what, int64_t until_ms)
{
    while (s->event_count > 0 && !s->events[0]->fire)
        pop_event(s);
    if (s->event_count == 0)
        violation(s, "nothing will ever happen any more, and %s", what);
    event *first = pop_event(s);
    if (first->due_ms > s->now_ms)
        s->now_ms = first->due_ms;
    if (s->now_ms > until_ms)
        violation(s, "the time is over, and %s", what);
    if (++s->steps > STEPS_MAX)
        violation(s, "after %d steps %s", STEPS_MAX, what);
    first->fire(s, first->data);
}

/* ---- A seed ---------------------------------------------------------------------------------- */

/* left is a queue that is read, or one of delays, with something in it; NULL: there is none. */
static const queue *left(sim *s)
{
    mull__list *queues = &s->broker.queues;
    for (mull__link *link = mull__list_first(queues); link; link = mull__list_after(queues, link)) {
        const queue *q = MULL__ENTRY(link, queue, link);
        if ((q->name[0] == 'q' || q->is_delay) && (q->ready.count > 0 || q->unacked > q->parked))
            return q;
    }
    return NULL;
}

static void drain(sim *s)
{
    const queue *q;
    int64_t until_ms = s->now_ms + CALM_MAX_MS;
    while ((q = left(s)) || !engine_is_done(s)) {
        if (s->now_ms > until_ms && q)
            violation(s, "'%s' has %zu messages that are ready, and %zu that are out", q->name,
                      q->ready.count, q->unacked);
        step(s, "there are messages that came to no end", until_ms + CALM_MAX_MS);
    }
}

static void run(sim *s)
{
    int64_t chaos_ms = s->now_ms + between(s, 1000, 60000);
    while (s->now_ms < chaos_ms)
        step(s, "there is no end to it", INT64_MAX);
    s->calm = 1;
    note(s, "calm", 0, 0, 0, 0);
    trouble_calm(s);
    engine_calm(s);
    drain(s);
    s->over = 1;
    engine_close(s, 5000);
    int64_t until_ms = s->now_ms + 60000;
    while (s->port.transport || s->link)
        step(s, "the transport doesn't close", until_ms);
    while (s->broker.conns.count > 0) /* of a mute one it hears after two heartbeats */
        step(s, "the broker has connections", until_ms + 120000);
}

void simulate(sim *s, uint64_t seed, totals *sums, int tell)
{
    const sim kept = {.events = s->events,
                      .event_room = s->event_room,
                      .messages = s->messages,
                      .message_room = s->message_room,
                      .handouts = s->handouts,
                      .handout_room = s->handout_room};
    filling = NULL;
    *s = kept;
    s->seed = seed;
    s->totals = sums;
    s->tell = tell;
    s->now_ms = 1000;
    const uint64_t words[] = {seed};
    mull__rand_init(&s->chance, mull__hash_words(words, 1) | 1);
    mull__list_init(&s->wires);
    broker_begin(&s->broker, s);
    port_begin(&s->port, s);
    trouble_begin(s);
    engine_begin(s);
    run(s);
    ledger_end(s);
    wires_free(s);
    broker_end(&s->broker);
}
