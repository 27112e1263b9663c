/* reloads_engine.c: a policy is reloaded 700 times while an engine works by it: three consumers
 * whose handlers fail in many ways, and others that read the dead letters.
 *
 *   main     reloads, see reload_load.h
 *   engine   its verdicts, as its events tell them, and all that is written on dead letters, are
 *            wholly of the generation that they name, and that one may be in force
 *
 * A message that had more calls by the first text than the second one allows ends without being
 * called, and no rule is asked. */
#include "reload_load.h"

#include <pthread.h>

enum { WORKERS = 3, IN_FLIGHT = 24, MAX_ATTEMPTS_B = 5 };

/* plant is an engine on a thread of its own. So many messages are under way: each that ends is
 * followed by another in its place. */
typedef struct plant {
    stage stage;
    counting_allocator counting_allocator;
    mull_engine *engine;
    oracle oracle;
    pthread_t thread;
    atomic_long told; /* verdicts */
    long published, letters, kinds[4];
    long ended_at[IN_FLIGHT]; /* what `done` was when a place's last call was ended */
    int called[IN_FLIGHT];    /* since its last verdict */
} plant;

/* publish puts a message on its way whose id begins with its place. */
static void publish(plant *p, long place)
{
    static const char *const queues[WORKERS] = {"work-0", "work-1", "work-2"};
    char id[48];
    snprintf(id, sizeof id, "%ld-%ld", place, p->published);
    mull_message message = message_to(queues[p->published % WORKERS], id);
    if (mull_publish(p->engine, "t", &message, 0, NULL, NULL) != 0)
        blame(&p->stage, "a message couldn't be published");
    p->published++;
}

static long place_of(const mull_message *message)
{
    return strtol(message->id, NULL, 10);
}

static void follow(plant *p, long place)
{
    if (p->stage.stop)
        mull_stop_when_empty(p->engine);
    else
        publish(p, place);
}

static void work(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    static const char *const types[] = {NULL, "Field", "Short", "Function", "Unknown"};
    plant *p = data;
    long place = place_of(message);
    const char *type = types[strtol(strchr(message->id, '-') + 1, NULL, 10) % 5];
    mull_error error = error_of(type ? type : "none");
    p->ended_at[place] = p->stage.done;
    p->called[place] = 1;
    if (mull_done(engine, call, type ? &error : NULL) != 0)
        blame(&p->stage, "a call couldn't be ended");
    if (!type)
        follow(p, place);
}

/* ends_unasked says whether all of a dead letter is as the second text gives it to a message that
 * may not be called again. */
static int ends_unasked(long generation, const char *queue, const char *reason, const char *rule)
{
    return generation % 2 == 1 && same(queue, "b-rest") && same(reason, "max_attempts") && !rule;
}

static void check_uncalled(plant *p, long before, const mull_event *event)
{
    const mull_verdict *verdict = event->verdict;
    long number = number_of(&p->stage, verdict->generation, before);
    if (event->failure->calls < MAX_ATTEMPTS_B || verdict->action != MULL_DEAD_LETTER ||
        !ends_unasked(number, verdict->queue, mull_reason_name(verdict->reason),
                      verdict->rule.file))
        blame(&p->stage, "a verdict without a call is not wholly of the second text");
}

/* on_event: a verdict came to be between the end of its call and now. */
static void on_event(const mull_event *event, void *data)
{
    plant *p = data;
    if (event->kind != MULL_EVENT_DECIDED) {
        blame(&p->stage, "an event of the engine's that isn't about a verdict");
        return;
    }
    const mull_verdict *verdict = event->verdict;
    long place = place_of(event->failure->message);
    if (p->called[place])
        check_verdict(&p->stage, &p->oracle, p->ended_at[place], event->failure, verdict);
    else
        check_uncalled(p, p->ended_at[place], event);
    p->called[place] = 0;
    if (!same(event->generation, verdict->generation))
        blame(&p->stage, "an event of another generation than its verdict");
    p->kinds[verdict->action]++;
    p->told++;
    if (verdict->action == MULL_DEAD_LETTER || verdict->action == MULL_DISCARD)
        follow(p, place);
}

static const char *header(const mull_message *message, const char *name)
{
    for (size_t i = 0; i < message->header_count; i++)
        if (strcmp(message->headers[i].name, name) == 0)
            return message->headers[i].value;
    return NULL;
}

/* read_letter: all that a dead letter says of its verdict is of the generation that it names. */
static void read_letter(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    plant *p = data;
    const char *type = header(message, "mulligan-error-type");
    const char *named = header(message, "mulligan-generation");
    long number = number_of(&p->stage, named, 0);
    mull_error error = error_of(type ? type : "none");
    mull_message original = message_to(header(message, "mulligan-queue"), message->id);
    mull_failure failure = MULL_INIT(mull_failure);
    mull_verdict whole = MULL_INIT(mull_verdict);
    failure.error = &error;
    failure.message = &original;
    failure.consumer = header(message, "mulligan-consumer");
    failure.transport = "t";
    failure.attempt = failure.redeliveries = 1000; /* a dead letter has none left */
    if (number < 0 || mull_decide(p->oracle.deciders[number % 2], &failure, &whole) != 0)
        blame(&p->stage, "a dead letter without a known generation");
    char rule[64] = "";
    if (whole.rule.file)
        snprintf(rule, sizeof rule, "%s:%d", whole.rule.file, whole.rule.line);
    const char *told = header(message, "mulligan-rule");
    const char *reason = header(message, "mulligan-reason");
    int as_asked = whole.action == MULL_DEAD_LETTER && same(whole.queue, message->queue) &&
                   same(told ? told : "", rule) && same(reason, mull_reason_name(whole.reason));
    if (!as_asked && !ends_unasked(number, message->queue, reason, told))
        blame(&p->stage, "a dead letter is not wholly of one generation");
    p->letters++;
    mull_done(engine, call, NULL);
}

static int add_consumer(plant *p, const char *name, const char *queue, mull_handler handler)
{
    mull_consumer_options options = MULL_INIT(mull_consumer_options);
    options.name = name;
    options.transport = "t";
    options.queue = queue;
    options.handler = handler;
    options.data = p;
    options.concurrency = 4;
    return mull_consumer_add(p->engine, &options);
}

static int add_consumers(plant *p)
{
    int status = add_consumer(p, "Worker-0", "work-0", work);
    status |= add_consumer(p, "Worker-1", "work-1", work);
    status |= add_consumer(p, "Worker-2", "work-2", work);
    for (size_t i = 0; i < sizeof letter_queues / sizeof *letter_queues; i++) {
        char name[32];
        snprintf(name, sizeof name, "of %s", letter_queues[i]);
        status |= add_consumer(p, name, letter_queues[i], read_letter);
    }
    return status;
}

static int open_plant(plant *p)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = p->stage.policy;
    options.problem = test_engine_problem;
    options.event = on_event;
    options.data = p;
    options.allocator = counting_allocator_ops(&p->counting_allocator);
    int status = open_oracle(&p->oracle);
    if (status == 0)
        status = mull_engine_new(&p->engine, &options);
    if (status == 0)
        status = mull_engine_transport(p->engine, "t", "memory:");
    return status ? status : add_consumers(p);
}

static void *be_engine(void *data)
{
    plant *p = data;
    stage *s = &p->stage;
    if (open_plant(p) != 0) {
        blame(s, "no engine");
        return NULL;
    }
    for (long place = 0; place < IN_FLIGHT; place++)
        publish(p, place);
    if (mull_engine_run(p->engine) != 0)
        blame(s, "the engine doesn't run");
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(p->engine, &counts);
    if ((long)(counts.done + counts.dead_lettered + counts.discarded) != p->published + p->letters)
        blame(s, "not every message came to its end");
    if ((long)counts.dead_lettered != p->letters)
        blame(s, "not every dead letter was read");
    mull_engine_close(p->engine, NULL, NULL);
    close_oracle(&p->oracle);
    return NULL;
}

static void meet(void *data)
{
    plant *p = data;
    wait_for(&p->stage, &p->told, p->told + 100);
}

static void reloads_under_an_engine_mix_nothing_and_leave_nothing(void **state)
{
    (void)state;
    static plant p;
    stage_open(&p.stage, 1, 7);
    assert_int_equal(pthread_create(&p.thread, NULL, be_engine, &p), 0);
    reload_often(&p.stage, meet, &p);
    p.stage.stop = 1;
    assert_int_equal(pthread_join(p.thread, NULL), 0);
    print_message("%ld messages: %ld retries, %ld redeliveries, %ld dead letters, %ld discarded\n",
                  p.published, p.kinds[MULL_RETRY], p.kinds[MULL_REDELIVER],
                  p.kinds[MULL_DEAD_LETTER], p.kinds[MULL_DISCARD]);
    assert_nothing_wrong(&p.stage);
    for (size_t i = 0; i < 4; i++)
        assert_true(p.kinds[i] > 0);
    stage_close(&p.stage);
    assert_int_equal(p.counting_allocator.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reloads_under_an_engine_mix_nothing_and_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
