/* own_transport.c: an engine on a transport that this program brings along: board/board.c. A thread
 * of the program pins payments to a board, and the engine works them off.
 *
 *   cc -pthread own_transport.c board/board.c $(pkg-config --cflags --libs mulligan libuv) \
 *       -o own_transport && ./own_transport
 */
#include "board/board.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PAYMENTS = 40 };

static const char policy_text[] = "local bus = require('mulligan.policy').bus()\n"
                                  "bus:on('TimeoutError'):retry(3, '5ms')\n"
                                  "bus:on('HttpError'):redeliver { '10ms', '20ms' }\n"
                                  "bus:on('CardDeclined'):dead_letter('declined')\n"
                                  "bus:on('DuplicateMessage'):discard('already paid')\n";

/* shop runs on a thread of its own, which knows nothing of engines. */
static void *shop(void *data)
{
    board *b = data;
    mull_message message = MULL_INIT(mull_message);
    message.queue = "payments";
    for (int number = 1; number <= PAYMENTS; number++) {
        message.body = &number;
        message.body_size = sizeof number;
        if (board_put(b, &message))
            fprintf(stderr, "shop: a payment is lost: there is no memory\n");
    }
    message.type = "closing time";
    message.body_size = 0;
    if (board_put(b, &message))
        fprintf(stderr, "shop: it never closes: there is no memory\n");
    return NULL;
}

/* failing says what goes wrong with a payment; NULL: nothing. */
static const char *failing(int number, const mull_message *message)
{
    switch (number % 10) {
    case 1:
        return message->attempt <= 2 ? "TimeoutError" : NULL;
    case 2:
        return message->redeliveries < 1 ? "HttpError" : NULL;
    case 3:
        return "CardDeclined";
    case 4:
        return "DuplicateMessage";
    default:
        return NULL;
    }
}

static void pay(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    int number;
    mull_error error = MULL_INIT(mull_error);
    (void)data;
    if (message->body_size == sizeof number) {
        memcpy(&number, message->body, sizeof number);
        error.type = failing(number, message);
    } else {
        mull_stop_when_empty(engine);
    }
    mull_done(engine, call, error.type ? &error : NULL);
}

static void complain(const char *file, int line, const char *text, void *data)
{
    (void)data;
    fprintf(stderr, "own_transport: %s:%d: %s\n", file ? file : "-", line, text);
}

static void print_counts(const mull_engine *engine)
{
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(engine, &counts);
    printf("done %llu\nretried %llu\nredelivered %llu\ndead-lettered %llu\ndiscarded %llu\n",
           (unsigned long long)counts.done, (unsigned long long)counts.retried,
           (unsigned long long)counts.redelivered, (unsigned long long)counts.dead_lettered,
           (unsigned long long)counts.discarded);
}

/* work_off runs an engine on a board until closing time, and until the board is empty. */
static int work_off(board *b, mull_policy *policy)
{
    mull_engine *engine;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.problem = complain;
    int status = mull_engine_new(&engine, &options);
    if (status)
        return status;
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "PaymentHandler";
    consumer.transport = "shop";
    consumer.queue = "payments";
    consumer.handler = pay;
    consumer.concurrency = 4;
    status = mull_engine_scheme(engine, &board_transport, b);
    if (!status)
        status = mull_engine_transport(engine, "shop", "board:");
    if (!status)
        status = mull_consumer_add(engine, &consumer);
    if (!status)
        status = mull_engine_run(engine);
    print_counts(engine);
    mull_engine_close(engine, NULL, NULL);
    return status;
}

/* run has a board filled on one thread and worked off on this one. */
static int run(board *b, mull_policy *policy)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, shop, b) != 0)
        return MULL_ENOMEM;
    int status = work_off(b, policy);
    pthread_join(thread, NULL);
    printf("left: payments %llu, declined %llu\n", (unsigned long long)board_count(b, "payments"),
           (unsigned long long)board_count(b, "declined"));
    return status;
}

int main(void)
{
    board *b = board_new();
    mull_policy *policy = NULL;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = policy_text;
    options.problem = complain;
    int status = b ? mull_policy_load(&policy, &options) : MULL_ENOMEM;
    if (!status)
        status = run(b, policy);
    if (status)
        fprintf(stderr, "own_transport: %s\n", mull_strerror(status));
    mull_policy_free(policy);
    board_free(b);
    return status ? 1 : 0;
}
