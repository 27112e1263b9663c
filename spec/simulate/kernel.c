/* kernel.c: see kernel.h. */
#include "kernel.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sim begins with its kernel. */
static kernel *of(sim *s)
{
    return (kernel *)s;
}

/* ---- Chance ---------------------------------------------------------------------------------- */

uint64_t draw(sim *s, uint64_t choices)
{
    return mull__rand_next(&of(s)->chance) % choices;
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
    return !of(s)->calm && permille > 0 && draw(s, 1000) < permille;
}

/* ---- Memory that lives as long as a seed ----------------------------------------------------- */

/* The chunks are the program's: each seed begins with them anew. */
enum { CHUNK = 256 * 1024 };

typedef struct chunk {
    struct chunk *next;
    size_t size, used;
    _Alignas(16) char bytes[];
} chunk;

static chunk *chunks, *filling;

static void fill_next(sim *s, size_t bytes)
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
    filling = next;
}

void *keep(sim *s, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!filling || filling->size - filling->used < bytes)
        fill_next(s, bytes);
    void *room = filling->bytes + filling->used;
    filling->used += bytes;
    return memset(room, 0, bytes);
}

/* ---- What is due ----------------------------------------------------------------------------- */

static int earlier(const event *a, const event *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void grow_events(sim *s)
{
    kernel *k = of(s);
    k->event_room = k->event_room ? 2 * k->event_room : 256;
    event **more = realloc(k->events, k->event_room * sizeof *more);
    if (!more)
        violation(s, "out of memory");
    k->events = more;
}

event *at_time(sim *s, int64_t delay_ms, void (*fire)(sim *s, void *data), void *data)
{
    kernel *k = of(s);
    event *made = keep(s, sizeof *made);
    *made = (event){k->now_ms + delay_ms, k->next_order++, fire, data};
    if (k->event_count == k->event_room)
        grow_events(s);
    size_t at = k->event_count++;
    for (; at > 0 && earlier(made, k->events[(at - 1) / 2]); at = (at - 1) / 2)
        k->events[at] = k->events[(at - 1) / 2];
    k->events[at] = made;
    return made;
}

void call_off(event **due)
{
    if (*due)
        (*due)->fire = NULL;
    *due = NULL;
}

static event *pop_event(kernel *k)
{
    event *first = k->events[0], *last = k->events[--k->event_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < k->event_count; at = child) {
        if (child + 1 < k->event_count && earlier(k->events[child + 1], k->events[child]))
            child++;
        if (!earlier(k->events[child], last))
            break;
        k->events[at] = k->events[child];
    }
    k->events[at] = last;
    return first;
}

int64_t next_due_ms(sim *s)
{
    kernel *k = of(s);
    while (k->event_count > 0 && !k->events[0]->fire)
        pop_event(k);
    return k->event_count > 0 ? k->events[0]->due_ms : INT64_MAX;
}

void fire_next(sim *s)
{
    kernel *k = of(s);
    event *first = pop_event(k);
    if (first->due_ms > k->now_ms)
        k->now_ms = first->due_ms;
    first->fire(s, first->data);
}

/* ---- Memory that is counted ------------------------------------------------------------------ */

typedef struct block {
    _Alignas(16) size_t bytes;
} block;

static void *resize(void *pointer, size_t bytes, void *data)
{
    counting_allocator *p = data;
    block *old = pointer ? (block *)pointer - 1 : NULL, *made = NULL;
    if (bytes > 0) {
        if (p->scarce && happens(p->sim, *p->no_memory)) {
            p->failures++;
            p->failed_ms = of(p->sim)->now_ms;
            return NULL;
        }
        made = malloc(sizeof *made + bytes);
        if (!made)
            return NULL;
        made->bytes = bytes;
        p->blocks++;
        p->bytes += bytes;
    }
    if (old) {
        if (made)
            memcpy(made + 1, old + 1, old->bytes < bytes ? old->bytes : bytes);
        p->blocks--;
        p->bytes -= old->bytes;
        memset(old + 1, 0xDD, old->bytes);
        free(old);
    }
    return made ? made + 1 : NULL;
}

mull_allocator counting_allocator_ops(counting_allocator *p)
{
    return (mull_allocator){resize, p};
}

/* ---- What happened --------------------------------------------------------------------------- */

/* The hash is of everything, the records are of the last moments: they are numbers, and text is
 * only made of them when somebody wants to read it. */
static void show(const record *r)
{
    printf("# %8" PRId64 " ms  ", r->now_ms);
    printf(r->format, (long long)r->values[0], (long long)r->values[1], (long long)r->values[2],
           (long long)r->values[3]);
    putchar('\n');
}

void note(sim *s, const char *format, int64_t a, int64_t b, int64_t c, int64_t d)
{
    kernel *k = of(s);
    record *r = &k->records[k->record_count++ % RECORDS];
    *r = (record){.now_ms = k->now_ms, .format = format, .values = {a, b, c, d}};
    const uint64_t words[] = {k->hash,
                              mull__hash_text(format),
                              (uint64_t)k->now_ms,
                              (uint64_t)a,
                              (uint64_t)b,
                              (uint64_t)c,
                              (uint64_t)d};
    k->hash = mull__hash_words(words, sizeof words / sizeof *words);
    if (k->tell)
        show(r);
}

void violation(sim *s, const char *format, ...)
{
    const kernel *k = of(s);
    uint64_t first = k->record_count > RECORDS ? k->record_count - RECORDS : 0;
    for (uint64_t i = first; i < k->record_count && !k->tell; i++)
        show(&k->records[i % RECORDS]);
    printf("seed %" PRIu64 ", step %" PRIu64 ", at %" PRId64 " ms: ", k->seed, k->steps, k->now_ms);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nagain, every step: %s --seed %" PRIu64 " --trace\n", k->program, k->seed);
    fflush(stdout);
    _Exit(1);
}

/* ---- A seed ---------------------------------------------------------------------------------- */

void kernel_begin(kernel *k, const char *program, uint64_t seed, int tell)
{
    const uint64_t words[] = {seed};
    filling = NULL;
    *k = (kernel){.program = program,
                  .seed = seed,
                  .now_ms = 1000,
                  .events = k->events,
                  .event_room = k->event_room,
                  .tell = tell};
    mull__rand_init(&k->chance, mull__hash_words(words, 1) | 1);
}
