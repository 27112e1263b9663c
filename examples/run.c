/* run.c: an engine in a C program. Thirty payments are published to a queue in memory; a handler
 * in C takes them, some fail, and the policy below says what happens to those.
 *
 *   cc run.c $(pkg-config --cflags --libs mulligan) -o run && ./run
 */
#include <mulligan.h>
#include <stdio.h>
#include <string.h>

static const char policy_text[] =
    "local policy = require 'mulligan.policy'\n"
    "local bus = policy.bus()\n"
    "bus:on('TimeoutError'):retry(3, '10ms')\n"
    "bus:on('HttpError', { status = 503 }):redeliver { '20ms', '40ms' }\n"
    "bus:on('CardDeclined'):dead_letter('declined')\n"
    "bus:on('DuplicateMessage'):discard('already paid')\n";

enum { PAYMENTS = 30 };

/* fail ends a call with an error of a type; `status` is a field that matchers can look at. */
static void fail(mull_engine *engine, mull_call call, const char *type, int status)
{
    mull_field field = {"status", {.kind = MULL_INTEGER, .as.integer = status}};
    mull_error error = MULL_INIT(mull_error);
    error.type = type;
    error.message = "the payment did not go through";
    if (status) {
        error.fields = &field;
        error.field_count = 1;
    }
    mull_done(engine, call, &error);
}

/* pay is the handler. It ends its call at once; it could as well keep the number and end the call
 * later, from any thread. What goes wrong depends on the payment's number and on how often it was
 * tried, as it would with a service that comes back after a while. */
static void pay(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    int number = 0;
    char text[16] = "";
    (void)data;
    memcpy(text, message->body, message->body_size < 15 ? message->body_size : 15);
    if (sscanf(text, "payment %d", &number) != 1)
        fail(engine, call, "MessageDeserializationError", 0);
    else if (number % 5 == 1 && message->attempt <= 2)
        fail(engine, call, "TimeoutError", 0);
    else if (number % 5 == 2 && message->redeliveries < 1)
        fail(engine, call, "HttpError", 503);
    else if (number % 10 == 3)
        fail(engine, call, "CardDeclined", 0);
    else if (number % 10 == 8)
        fail(engine, call, "DuplicateMessage", 0);
    else
        mull_done(engine, call, NULL);
}

static void complain(const char *file, int line, const char *text, void *data)
{
    (void)data;
    if (file)
        fprintf(stderr, "%s:%d: ", file, line);
    fprintf(stderr, "%s\n", text);
}

/* tell hears of each verdict once it is carried out; a person wants to know of dead letters. */
static void tell(const mull_event *event, void *data)
{
    (void)data;
    if (event->kind == MULL_EVENT_DECIDED && event->verdict->action == MULL_DEAD_LETTER)
        printf("dead letter: %s in '%s', for a %s\n", event->failure->message->id,
               event->verdict->queue, event->failure->error->type);
}

/* published counts the payments that are safe; after the last one, an empty queue is the end. */
static void published(int status, void *data)
{
    static int safe;
    if (status)
        fprintf(stderr, "not published: %s\n", mull_strerror(status));
    if (++safe == PAYMENTS)
        mull_stop_when_empty(data);
}

static int publish(mull_engine *engine)
{
    for (int number = 1; number <= PAYMENTS; number++) {
        char id[16], body[24];
        snprintf(id, sizeof id, "p-%d", number);
        snprintf(body, sizeof body, "payment %d", number);
        if (number == PAYMENTS) /* one that can't be read */
            body[0] = '?';
        mull_message message = MULL_INIT(mull_message);
        message.id = id;
        message.queue = "payments";
        message.body = body;
        message.body_size = strlen(body);
        int status = mull_publish(engine, "bank", &message, 0, published, engine);
        if (status)
            return status;
    }
    return 0;
}

/* run sets an engine up and runs it until the queue is empty. */
static int run(mull_engine *engine)
{
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "PaymentHandler";
    consumer.transport = "bank";
    consumer.queue = "payments";
    consumer.handler = pay;
    consumer.concurrency = 4;

    int status = mull_engine_transport(engine, "bank", "memory:");
    if (!status)
        status = mull_consumer_add(engine, &consumer);
    if (!status)
        status = publish(engine);
    return status ? status : mull_engine_run(engine);
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

int main(void)
{
    mull_policy *policy;
    mull_policy_options policy_options = MULL_INIT(mull_policy_options);
    policy_options.text = policy_text;
    policy_options.problem = complain;
    if (mull_policy_load(&policy, &policy_options))
        return 2;

    mull_engine *engine;
    mull_engine_options engine_options = MULL_INIT(mull_engine_options);
    engine_options.policy = policy;
    engine_options.problem = complain;
    engine_options.event = tell;
    int status = mull_engine_new(&engine, &engine_options);
    if (!status) {
        status = run(engine);
        print_counts(engine);
        mull_engine_close(engine, NULL, NULL);
    }
    if (status)
        fprintf(stderr, "run: %s\n", mull_strerror(status));
    mull_policy_free(policy);
    return status ? 1 : 0;
}
