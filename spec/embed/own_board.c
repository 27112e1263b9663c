/* own_board.c: the transport of examples/board under threads: four pin messages while two engines,
 * each on a thread of its own, work them off. Each message comes to one end, by the policy. */
#include "board/board.h"
#include "test_engine.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PINNERS = 4, EACH = 250, MESSAGES = PINNERS * EACH, ENGINES = 2 };

static const char policy_text[] = "local bus = require('mulligan.policy').bus()\n"
                                  "bus:on('Again'):retry(1, '1ms')\n"
                                  "bus:on('Later'):redeliver { '1ms', '2ms' }\n"
                                  "bus:on('Never'):dead_letter('never')\n";

typedef struct hall {
    board *board;
    mull_engine *engines[ENGINES];
    atomic_int ends[MESSAGES]; /* how often each came to its end */
    atomic_int ended;
} hall;

typedef struct pinner {
    pthread_t thread;
    hall *hall;
    int first;
} pinner;

static void *pin_all(void *data)
{
    pinner *p = data;
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    for (int number = p->first; number < p->first + EACH; number++) {
        message.body = &number;
        message.body_size = sizeof number;
        assert_int_equal(board_put(p->hall->board, &message), 0);
    }
    return NULL;
}

/* wrong_with: what goes wrong with a message; NULL: nothing. */
static const char *wrong_with(int number, const mull_message *message)
{
    if (number % 5 == 1 && message->attempt == 1)
        return "Again";
    if (number % 5 == 2 && message->redeliveries < 2)
        return "Later";
    return number % 5 == 3 ? "Never" : NULL;
}

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    hall *h = data;
    int number;
    memcpy(&number, message->body, sizeof number);
    mull_error error = MULL_INIT(mull_error);
    error.type = wrong_with(number, message);
    int over = !error.type || strcmp(error.type, "Never") == 0;
    if (over)
        atomic_fetch_add(&h->ends[number], 1);
    mull_done(engine, call, error.type ? &error : NULL);
    if (over && atomic_fetch_add(&h->ended, 1) + 1 == MESSAGES)
        for (int i = 0; i < ENGINES; i++)
            mull_stop(h->engines[i]);
}

static void *run(void *engine)
{
    assert_int_equal(mull_engine_run(engine), 0);
    return NULL;
}

static mull_engine *new_engine(hall *h, mull_policy *policy)
{
    mull_engine *engine = NULL;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.problem = test_engine_problem;
    mull_consumer_options consumer = test_engine_consumer(handle, h);
    consumer.concurrency = 8;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_scheme(engine, &board_transport, h->board), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "board:"), 0);
    assert_int_equal(mull_consumer_add(engine, &consumer), 0);
    return engine;
}

/* check_ends: every message has one end, and the engines say the same. */
static void check_ends(hall *h)
{
    mull_counts sum = {0};
    for (int number = 0; number < MESSAGES; number++)
        assert_int_equal(atomic_load(&h->ends[number]), 1);
    for (int i = 0; i < ENGINES; i++) {
        mull_counts counts = MULL_INIT(mull_counts);
        assert_int_equal(mull_engine_counts(h->engines[i], &counts), 0);
        sum.done += counts.done;
        sum.retried += counts.retried;
        sum.redelivered += counts.redelivered;
        sum.dead_lettered += counts.dead_lettered;
        sum.discarded += counts.discarded;
    }
    assert_int_equal(sum.done, MESSAGES / 5 * 4);
    assert_int_equal(sum.retried, MESSAGES / 5);
    assert_int_equal(sum.redelivered, MESSAGES / 5 * 2);
    assert_int_equal(sum.dead_lettered, MESSAGES / 5);
    assert_int_equal(sum.discarded, 0);
    assert_int_equal(board_count(h->board, "q"), 0);
    assert_int_equal(board_count(h->board, "never"), MESSAGES / 5);
}

static void each_message_comes_to_one_end(void **state)
{
    (void)state;
    static hall h;
    pthread_t threads[ENGINES];
    pinner pinners[PINNERS];
    mull_policy *policy = test_engine_policy(policy_text);
    h = (hall){.board = board_new()};
    assert_non_null(h.board);
    for (int i = 0; i < ENGINES; i++)
        h.engines[i] = new_engine(&h, policy);
    for (int i = 0; i < ENGINES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, h.engines[i]), 0);
    for (int i = 0; i < PINNERS; i++) {
        pinners[i] = (pinner){.hall = &h, .first = i * EACH};
        assert_int_equal(pthread_create(&pinners[i].thread, NULL, pin_all, &pinners[i]), 0);
    }
    for (int i = 0; i < PINNERS; i++)
        pthread_join(pinners[i].thread, NULL);
    for (int i = 0; i < ENGINES; i++)
        pthread_join(threads[i], NULL);
    check_ends(&h);
    for (int i = 0; i < ENGINES; i++)
        mull_engine_close(h.engines[i], NULL, NULL);
    board_free(h.board);
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_comes_to_one_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
