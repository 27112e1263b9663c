/* delays.c: what delays are made of, see state.h. A queue holds each of its messages for 2^level
 * steps; a delay is the sum of those of its bits that are set:
 *
 *   exchange 3 ── bit 3 ──> queue 3: 0.4 s ──┐
 *        └──── no bit 3 ──> exchange 2 <─────┘
 *                            ├── bit 2 ──> queue 2: 0.2 s ──┐
 *                            └ no bit 2 ──> exchange 1 <────┘ ... exchange `out` ──> the queue
 *
 * All messages of a queue wait for the same time, so that none waits behind a longer one, and there
 * are no more queues than bits. A message has a header for each bit, and as its routing key the
 * queue that it is for, which is bound to `out`. What finds no queue there, since it was deleted,
 * is kept in the queue `astray`. Levels are declared when they are first needed. */
#include "base/alloc.h"
#include "state.h"

#include <stdio.h>
#include <string.h>

enum { STEP_MS = MULL__AMQP_DELAY_STEP_MS, FIRST = 4, OF_LEVEL = 4, NAME = 64 };

/* names are those of one kind of queues: they are of one kind all, and others have other names. */
static void name_it(const mull__amqp *t, const char *what, char name[NAME])
{
    snprintf(name, NAME, "mulligan.delay.%s.%s", t->options.classic ? "classic" : "quorum", what);
}

void mull__amqp_delay_exchange(const mull__amqp *t, int level, char name[NAME])
{
    char number[16];
    snprintf(number, sizeof number, "%d", level);
    name_it(t, level < 0 ? "out" : number, name);
}

mull__amqp_delay mull__amqp_delay_of(int64_t delay_ms)
{
    mull__amqp_delay delay = {0, 0};
    if (delay_ms <= 0)
        return delay;
    if (delay_ms > MULL__AMQP_LONGEST_MS)
        delay_ms = MULL__AMQP_LONGEST_MS;
    delay.steps = (uint64_t)((delay_ms + STEP_MS - 1) / STEP_MS);
    while (delay.steps >> (delay.level + 1))
        delay.level++;
    return delay;
}

static amqp_table_entry_t text(const char *name, const char *value)
{
    return (amqp_table_entry_t){
        mull__amqp_text(name),
        {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = mull__amqp_text(value)}};
}

static int exchange(mull__amqp *t, const char *name, const char *type, const char *alternate)
{
    amqp_table_entry_t entry = text("alternate-exchange", alternate);
    amqp_exchange_declare_t declare = {.exchange = mull__amqp_text(name),
                                       .type = mull__amqp_text(type),
                                       .durable = 1,
                                       .arguments = {alternate != NULL, &entry}};
    return mull__amqp_send(&t->session, MULL__AMQP_ASKS, AMQP_EXCHANGE_DECLARE_METHOD, &declare);
}

/* queue declares one of ours. With a `next` exchange, messages go there after `ttl_ms`; on quorum
 * queues no message leaves before it is safe there. */
static int queue(mull__amqp *t, const char *name, int64_t ttl_ms, const char *next)
{
    const char *type = t->options.classic ? "classic" : "quorum";
    amqp_table_entry_t entries[5] = {
        text("x-queue-type", type),
        {mull__amqp_text("x-message-ttl"), {.kind = AMQP_FIELD_KIND_I64, .value.i64 = ttl_ms}},
        text("x-dead-letter-exchange", next),
        text("x-dead-letter-strategy", "at-least-once"),
        text("x-overflow", "reject-publish")};
    amqp_queue_declare_t declare = {.queue = mull__amqp_text(name),
                                    .durable = 1,
                                    .arguments = {!next                ? 1
                                                  : t->options.classic ? 3
                                                                       : 5,
                                                  entries}};
    return mull__amqp_send(&t->session, MULL__AMQP_ASKS, AMQP_QUEUE_DECLARE_METHOD, &declare);
}

static int bind_queue(mull__amqp *t, const char *name, const char *source, const char *key,
                      amqp_table_t arguments)
{
    amqp_queue_bind_t bind = {.queue = mull__amqp_text(name),
                              .exchange = mull__amqp_text(source),
                              .routing_key = mull__amqp_text(key),
                              .arguments = arguments};
    return mull__amqp_send(&t->session, MULL__AMQP_ASKS, AMQP_QUEUE_BIND_METHOD, &bind);
}

/* bind_level binds what messages with, or without, the bit of a level go to. */
static int bind_level(mull__amqp *t, int level, const char *name, const char *next)
{
    char bit[NAME];
    snprintf(bit, sizeof bit, MULL__AMQP_BIT_FORMAT, level);
    amqp_table_entry_t entries[] = {
        text("x-match", "all"),
        {mull__amqp_text(bit), {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = next == NULL}}};
    amqp_table_t arguments = {2, entries};
    if (!next)
        return bind_queue(t, name, name, "", arguments);
    amqp_exchange_bind_t bind = {.destination = mull__amqp_text(next),
                                 .source = mull__amqp_text(name),
                                 .routing_key = amqp_empty_bytes,
                                 .arguments = arguments};
    return mull__amqp_send(&t->session, MULL__AMQP_ASKS, AMQP_EXCHANGE_BIND_METHOD, &bind);
}

/* first declares what all levels need. */
static int first(mull__amqp *t, int number)
{
    char out[NAME], astray[NAME];
    name_it(t, "out", out);
    name_it(t, "astray", astray);
    switch (number) {
    case 0:
        return exchange(t, astray, "fanout", NULL);
    case 1:
        return queue(t, astray, 0, NULL);
    case 2:
        return bind_queue(t, astray, astray, "", amqp_empty_table);
    default:
        return exchange(t, out, "direct", astray);
    }
}

/* of_level declares a level, whose next is there already. */
static int of_level(mull__amqp *t, int level, int number)
{
    char name[NAME], next[NAME];
    mull__amqp_delay_exchange(t, level, name);
    mull__amqp_delay_exchange(t, level - 1, next);
    switch (number) {
    case 0:
        return exchange(t, name, "headers", NULL);
    case 1:
        return queue(t, name, (int64_t)STEP_MS << level, next);
    case 2:
        return bind_level(t, level, name, NULL);
    default:
        return bind_level(t, level, name, next);
    }
}

int mull__amqp_delay_declared(const mull__amqp *t, int level)
{
    return t->delay_statements >= FIRST + OF_LEVEL * (level + 1);
}

int mull__amqp_delay_send(mull__amqp *t, int level)
{
    int number = t->delay_statements;
    if (mull__amqp_delay_declared(t, level))
        return 1;
    return number < FIRST ? first(t, number)
                          : of_level(t, (number - FIRST) / OF_LEVEL, (number - FIRST) % OF_LEVEL);
}

int mull__amqp_bind_send(mull__amqp *t, const char *name)
{
    char out[NAME];
    name_it(t, "out", out);
    return bind_queue(t, name, out, name, amqp_empty_table);
}
