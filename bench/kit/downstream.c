#include "kit/downstream.h"

#include "mulligan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 256, PEAK_MS = 100 };

static const char first_tenant[] = "tenant-0";

/* working is a call that the service is at. */
typedef struct working {
    mull_call call;
    int64_t end_ms;
    const char *error; /* its type; NULL: it will succeed */
    int is_others;     /* of a tenant that is never down */
} working;

typedef struct simulation {
    const bench_outage *outage;
    bench_outage_run *run;
    mull_policy *policy;
    mull_engine *engine;
    mull_clock clock;
    int64_t now_ms, even_ms; /* even_ms: when the next call would begin if all came evenly */
    working working[MOST_CALLS];
    int working_count;
    int64_t others_left;
    uint32_t lately[PEAK_MS]; /* calls of each of the last milliseconds, */
    int64_t lately_ms;        /* until this one, */
    int64_t lately_sum;
    size_t step_room;
    int failed; /* no memory */
} simulation;

static int64_t now(void *data)
{
    return ((simulation *)data)->now_ms;
}

static int64_t wall(void *data)
{
    return 1700000000000 + ((simulation *)data)->now_ms;
}

/* ---- What is noted --------------------------------------------------------------------------- */

static int64_t over(const simulation *s)
{
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(s->engine, &counts);
    return (int64_t)(counts.done + counts.dead_lettered);
}

/* pass_steps notes the backlog of the steps that are over, and gives the one of now. */
static bench_step *pass_steps(simulation *s)
{
    bench_outage_run *run = s->run;
    size_t now_step = (size_t)(s->now_ms / BENCH_STEP_MS);
    if (now_step >= s->step_room) {
        size_t room = 2 * now_step + 1024;
        bench_step *grown = realloc(run->steps, room * sizeof *grown);
        s->failed |= !grown;
        if (!grown)
            return NULL;
        run->steps = grown;
        s->step_room = room;
    }
    uint32_t left = (uint32_t)(run->messages - over(s));
    for (; run->step_count <= now_step; run->step_count++)
        run->steps[run->step_count] = (bench_step){.backlog = left};
    run->steps[now_step].backlog = left;
    return &run->steps[now_step];
}

static void note_peak(simulation *s)
{
    for (int passed = 0; s->lately_ms < s->now_ms && passed < PEAK_MS; passed++) {
        uint32_t *oldest = &s->lately[++s->lately_ms % PEAK_MS];
        s->lately_sum -= *oldest;
        *oldest = 0;
    }
    s->lately_ms = s->now_ms;
    s->lately[s->now_ms % PEAK_MS]++;
    if (++s->lately_sum > s->run->peak)
        s->run->peak = s->lately_sum;
}

static void note_call(simulation *s)
{
    bench_step *step = pass_steps(s);
    if (step)
        step->calls++;
    if (s->now_ms < s->outage->down_ms)
        s->run->calls_while_down++;
    else
        note_peak(s);
}

/* ---- The service ----------------------------------------------------------------------------- */

static int is_of_others(const simulation *s, const mull_message *message)
{
    return s->outage->tenants > 0 && strcmp(message->headers[0].value, first_tenant) != 0;
}

/* takes says whether a call is not one too many. */
static int takes(simulation *s)
{
    if (s->even_ms - s->outage->early_ms > s->now_ms)
        return 0;
    s->even_ms = (s->even_ms > s->now_ms ? s->even_ms : s->now_ms) + s->outage->interval_ms;
    return 1;
}

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    simulation *s = data;
    const bench_outage *outage = s->outage;
    (void)engine;
    note_call(s);
    working *w = &s->working[s->working_count++];
    *w = (working){.call = call, .is_others = is_of_others(s, message)};
    int64_t takes_ms = outage->works_ms;
    if (s->now_ms < outage->down_ms && !w->is_others) {
        w->error = outage->fails_ms > 1000 ? "TimeoutError" : "ConnectionRefusedError";
        takes_ms = outage->fails_ms;
    } else if (!takes(s)) {
        w->error = "TooManyRequestsError";
        takes_ms = outage->refuses_ms;
    }
    w->end_ms = s->now_ms + takes_ms;
}

static int64_t next_end_ms(const simulation *s)
{
    int64_t next_ms = INT64_MAX;
    for (int i = 0; i < s->working_count; i++)
        if (s->working[i].end_ms < next_ms)
            next_ms = s->working[i].end_ms;
    return next_ms;
}

static void end_call(simulation *s, const working *w)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = w->error;
    if (mull_done(s->engine, w->call, w->error ? &error : NULL) != 0)
        s->failed = 1;
    if (!w->error && w->is_others && --s->others_left == 0)
        s->run->others_gone_ms = s->now_ms;
}

/* end_calls ends those that are due, in the order in which they began. */
static void end_calls(simulation *s)
{
    int left = 0;
    for (int i = 0; i < s->working_count; i++) {
        working w = s->working[i];
        if (w.end_ms <= s->now_ms)
            end_call(s, &w);
        else
            s->working[left++] = w;
    }
    s->working_count = left;
}

/* ---- The engine ------------------------------------------------------------------------------ */

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    fprintf(stderr, "%s:%d: %s\n", file ? file : "", line, text);
}

static int set_up(simulation *s)
{
    mull_policy_options policy = MULL_INIT(mull_policy_options);
    policy.text = s->outage->policy;
    policy.problem = on_problem;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.problem = on_problem;
    options.clock = &s->clock;
    options.seed = 1;
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "C";
    consumer.transport = "t";
    consumer.queue = "q";
    consumer.handler = handle;
    consumer.data = s;
    consumer.concurrency = (uint32_t)s->outage->concurrency;
    consumer.timeout_ms = MULL_NEVER; /* the handler has its own */
    if (mull_policy_load(&s->policy, &policy) != 0)
        return -1;
    options.policy = s->policy;
    return mull_engine_new(&s->engine, &options) != 0 ||
                   mull_engine_transport(s->engine, "t", "memory:") != 0 ||
                   mull_consumer_add(s->engine, &consumer) != 0
               ? -1
               : 0;
}

static int publish(simulation *s)
{
    const bench_outage *outage = s->outage;
    char id[24], tenant[24];
    mull_header header = {.name = "tenant", .value = tenant};
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = id;
    message.body = "body";
    message.body_size = 4;
    message.headers = &header;
    message.header_count = outage->tenants > 0;
    for (int i = 0; i < outage->messages; i++) {
        int of = outage->tenants > 0 ? i % outage->tenants : 0;
        if (of == 0 && outage->lacks_first)
            continue;
        snprintf(id, sizeof id, "message-%d", i);
        snprintf(tenant, sizeof tenant, "tenant-%d", of);
        if (mull_publish(s->engine, "t", &message, 0, NULL, NULL) != 0)
            return -1;
        s->run->messages++;
        s->others_left += outage->tenants > 0 && of != 0;
    }
    return 0;
}

static void run_until_over(simulation *s)
{
    const bench_outage *outage = s->outage;
    while (over(s) < s->run->messages && !s->failed) {
        int64_t next_ms = mull_engine_turn(s->engine), end_ms = next_end_ms(s);
        next_ms = next_ms < end_ms ? next_ms : end_ms;
        s->failed |= next_ms == INT64_MAX && over(s) < s->run->messages;
        if (s->now_ms < outage->down_ms && next_ms >= outage->down_ms)
            s->run->backlog_at_back = s->run->messages - over(s);
        if (over(s) < s->run->messages && next_ms > s->now_ms)
            s->now_ms = next_ms;
        pass_steps(s);
        end_calls(s);
    }
    s->run->gone_ms = s->now_ms;
}

int bench_outage_measure(bench_outage_run *run, const bench_outage *outage)
{
    simulation *s = calloc(1, sizeof *s);
    *run = (bench_outage_run){0};
    if (!s || outage->concurrency > MOST_CALLS) {
        free(s);
        return -1;
    }
    s->outage = outage;
    s->run = run;
    s->clock = (mull_clock){now, wall, s};
    s->failed = set_up(s) != 0 || publish(s) != 0 || mull_engine_start(s->engine) != 0;
    run_until_over(s);
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(s->engine, &counts);
    run->dead_lettered = (int64_t)counts.dead_lettered;
    int failed = s->failed;
    mull_engine_close(s->engine, NULL, NULL);
    mull_policy_free(s->policy);
    free(s);
    return failed ? -1 : 0;
}
