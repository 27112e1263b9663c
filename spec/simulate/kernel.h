/* kernel.h: what both simulators stand on: chance, time, what is due, memory, and what happened. A
 * simulator's `struct sim` begins with a kernel, as its member `k`. */
#ifndef KERNEL_H
#define KERNEL_H

#include "base/rand.h"
#include "mulligan.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sim sim;

/* WALL_MS is what the wall clock shows when the other one shows 0. */
#define WALL_MS INT64_C(1700000000000)

enum { RECORDS = 200 };

typedef struct event {
    int64_t due_ms;
    uint64_t order;
    void (*fire)(sim *s, void *data); /* NULL: it was called off */
    void *data;
} event;

typedef struct record {
    int64_t now_ms;
    const char *format;
    int64_t values[4];
} record;

typedef struct kernel {
    const char *program;
    uint64_t seed;
    mull__rand chance;
    int64_t now_ms;
    uint64_t steps;
    int calm; /* faults are off */

    event **events; /* a heap, kept from seed to seed */
    size_t event_count, event_room;
    uint64_t next_order;

    record records[RECORDS];
    uint64_t record_count, hash;
    int tell; /* every step */
} kernel;

/* kernel_begin begins a seed: all is as at first but for the room of `events`. */
void kernel_begin(kernel *k, const char *program, uint64_t seed, int tell);

/* ---- Chance ---------------------------------------------------------------------------------- */

uint64_t draw(sim *s, uint64_t choices); /* 0 ... choices - 1 */
int64_t between(sim *s, int64_t low, int64_t high);
int one_in(sim *s, uint64_t choices);

/* happens: a fault with a chance in a thousand; none once the seed has calmed down. */
int happens(sim *s, uint32_t permille);

/* ---- What is due ----------------------------------------------------------------------------- */

/* at_time has `fire` called `delay_ms` from now. */
event *at_time(sim *s, int64_t delay_ms, void (*fire)(sim *s, void *data), void *data);

/* call_off: it isn't called, if it is due at all. */
void call_off(event **due);

/* next_due_ms is when the next event is due; INT64_MAX: there is none. fire_next calls it; the
 * clock shows its time then. */
int64_t next_due_ms(sim *s);
void fire_next(sim *s);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* keep gives zeroed memory that lives as long as the seed. */
void *keep(sim *s, size_t bytes);

/* counting_allocator counts what is out, moves whatever grows, and spoils what is freed, so that
 * what is read too late is seen without a sanitizer as well. Where it is scarce, `*no_memory` of
 * a thousand requests fail. One thread. */
typedef struct counting_allocator {
    size_t blocks, bytes;
    sim *sim;
    int scarce;
    const uint32_t *no_memory;
    uint64_t failures;
    int64_t failed_ms; /* the last one */
} counting_allocator;

mull_allocator counting_allocator_ops(counting_allocator *p);

/* ---- What happened --------------------------------------------------------------------------- */

/* note keeps what happened; `format` takes up to four %lld. */
void note(sim *s, const char *format, int64_t a, int64_t b, int64_t c, int64_t d);

/* violation tells what is wrong, and how it came to it, and ends the program. */
void violation(sim *s, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

#endif
