/* plain.h: RabbitMQ by rabbitmq-c's blocking API: queues that are filled and removed, and a plain
 * loop that does by hand what an engine is measured with. Each call has a connection of its own to
 * "amqp://USER:PASSWORD@HOST:PORT/VHOST". Whatever fails ends the process. */
#ifndef BENCH_AMQP_PLAIN_H
#define BENCH_AMQP_PLAIN_H

#include <stdint.h>

/* bench_plain_fill declares a quorum queue as the engine does, and puts so many persistent messages
 * into it. They are all confirmed when it returns. */
void bench_plain_fill(const char *url, const char *queue, int messages);

/* bench_plain_remove deletes a queue, bench_plain_purge empties it; they give how many messages
 * were ready in it. */
uint32_t bench_plain_remove(const char *url, const char *queue);
uint32_t bench_plain_purge(const char *url, const char *queue);

typedef struct bench_plain_work {
    const char *queue;
    int messages;
    int prefetch; /* messages that may be out */
    int group;    /* messages that one acknowledgement is for */
    /* Each message fails once: a copy of it goes through the engine's delay of one step, and when
     * that is confirmed, the message is acknowledged. 0: each is acknowledged at once. */
    int fails;
} bench_plain_work;

/* bench_span is the time of a run: at its first message and at its last one, in ns. */
typedef struct bench_span {
    double first, last, first_cpu, last_cpu;
} bench_span;

/* bench_span_note notes a message. */
void bench_span_note(bench_span *span);

/* bench_plain_run works a queue off. */
bench_span bench_plain_run(const char *url, const bench_plain_work *work);

#endif
