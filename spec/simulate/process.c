/* process.c: engines, as processes that come and go over brokers that stay: each start has its own
 * policy, consumers and engine.
 *
 *   down ── start ── running ── stop ── stopping ── stopped ── close ── closing ── down
 *                       ├── close: without grace
 *                       └── kill: dead from that moment; what is left of it is taken down
 */
#include "sim.h"

#include "runtime/engine_control.h"

#include <stdlib.h>
#include <string.h>

/* The loops are the program's: an engine closes all that it opened in one. */
static uv_loop_t loops[PROCESSES];

void processes_init(sim *s)
{
    static int made;
    for (int i = 0; i < PROCESSES; i++) {
        if (!made && uv_loop_init(&loops[i]) != 0)
            violation(s, "there is no loop");
        s->processes[i] = (process){.sim = s, .index = i, .loop = &loops[i]};
    }
    made = 1;
}

int process_is_stopping(const process *p)
{
    return p->life != RUNNING ||
           (p->engine && (mull__engine_emptied(p->engine) || mull_engine_status(p->engine) != 0));
}

int process_accepts(const consumer *c)
{
    return !process_is_stopping(c->process) && c->place == WORKS && !c->paused;
}

int process_drained(const process *p)
{
    return process_is_stopping(p) && p->sim->k.now_ms >= p->drain_ends_ms;
}

/* ---- Starting -------------------------------------------------------------------------------- */

static int64_t engine_now(void *data)
{
    return ((process *)data)->sim->k.now_ms;
}

static int64_t engine_wall(void *data)
{
    return wall_ms(((process *)data)->sim);
}

static void on_log(mull_level level, const char *text, void *data)
{
    (void)text;
    ((process *)data)->errors += level == MULL_ERROR_LEVEL;
}

static void on_event(const mull_event *told, void *data)
{
    process *p = data;
    model_event(p, told);
    if (happens(p->sim, p->sim->faults.kill_inside))
        process_kill(p);
    else if (told->kind == MULL_EVENT_DECIDED && happens(p->sim, 10))
        process_reload(p);
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    process *p = data;
    sim *s = p->sim;
    not_in_slot(p);
    p->asked--;
    s->totals->depths++;
    note(s, "process %lld is told: %lld ready, %lld delayed, %lld claimed", p->index,
         (int64_t)depth->ready, (int64_t)depth->delayed, (int64_t)depth->claimed);
    if (status != 0 && (depth->ready != MULL_UNKNOWN || depth->delayed != MULL_UNKNOWN ||
                        depth->claimed != MULL_UNKNOWN))
        violation(s, "a depth that isn't known");
}

static void ask_depth(process *p)
{
    sim *s = p->sim;
    int queue = (int)draw(s, QUEUES);
    if (mull_queue_depth(p->engine, queue % s->broker_count ? "t1" : "t0", queue_name(queue),
                         on_depth, p) == 0)
        p->asked++;
    p->touched = 1;
}

static void on_closed(void *data)
{
    process *p = data;
    sim *s = p->sim;
    note(s, "process %lld is gone", p->index, 0, 0, 0);
    p->engine = NULL;
    p->life = DOWN;
    mull_policy_free(p->policy);
    p->policy = NULL;
    if (p->publishes + p->asked > 0 && !p->dead)
        violation(s, "%d publishes and %d questions were never answered", (int)p->publishes,
                  p->asked);
    p->publishes = 0;
    if (!s->over)
        at_time(s, s->k.calm || one_in(s, 2) ? 0 : between(s, 0, 8000), process_start, p);
}

static void on_stopped(void *data)
{
    process *p = data;
    sim *s = p->sim;
    note(s, "process %lld has stopped", p->index, 0, 0, 0);
    model_stopped(p);
    if (p->life == CLOSING)
        return;
    p->life = STOPPED;
    if (!p->drained)
        p->drain_ends_ms = INT64_MAX;
    if (one_in(s, 2))
        process_close(p);
    else
        at_time(s, between(s, 0, 2000), process_close_later, p);
}

void process_close_later(sim *s, void *data)
{
    (void)s;
    process *p = data;
    if ((p->life == STOPPING || p->life == STOPPED) && p->engine)
        process_close(p);
}

/* load puts another policy in force, one that may be broken. */
static int load(process *p, uint64_t number, int broken)
{
    sim *s = p->sim;
    char text[40];
    policy_text(text, number, broken);
    const generation *made = broken ? NULL : generation_of(s, number);
    int same = made && made == p->generation;
    uint64_t failures = s->counting_allocator.failures;
    int status;
    if (!p->policy) {
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.allocator = counting_allocator_ops(&s->counting_allocator);
        options.text = text;
        status = mull__policy_new(&p->policy, &options, &sim_guest, s);
    } else {
        status = mull_policy_reload(p->policy, text, strlen(text));
    }
    int expected = broken ? MULL_EPOLICY : same ? 1 : 0;
    if (status == MULL_ENOMEM && s->counting_allocator.failures > failures)
        expected = MULL_ENOMEM;
    note(s, "process %lld loads policy %lld: %lld", p->index, (int64_t)number, status, 0);
    if (status == MULL_EREFUSED && !broken)
        return status;
    if (status != expected)
        violation(s, "loading policy %d gave %d, not %d", (int)number, status, expected);
    if (status == 0) {
        p->generation = made;
        p->unheard_of = s->counting_allocator.failures > failures;
        notes_go_by_it(p);
    }
    char name[33];
    mull_policy_generation(p->policy, name);
    if (strcmp(name, p->generation->name) != 0)
        violation(s, "generation %s is in force, not %s", name, p->generation->name);
    return status;
}

static uint64_t draw_policy(sim *s)
{
    return 1 + draw(s, 1 << 20);
}

/* add_consumer gives the engine one; while that runs, its policy may be one that can't do with it.
 */
static int add_consumer(process *p, int queue)
{
    static const size_t sizes[] = {0, 0, 8, 16};
    static const int64_t timeouts_ms[] = {MULL_NEVER, 20, 150, 900, 30000};
    sim *s = p->sim;
    consumer *c = &p->consumers[queue];
    *c = (consumer){
        .process = p,
        .queue = queue,
        .broker = queue % s->broker_count,
        .idle_since_ms = INT64_MAX,
    };
    c->concurrency = (uint32_t)between(s, 1, 4);
    c->prefetch = (uint32_t)between(s, 1, 5);
    c->timeout_ms = timeouts_ms[draw(s, 5)];
    c->max_body = sizes[draw(s, 4)];
    snprintf(c->name, sizeof c->name, "c%d", queue);
    mull_consumer_options options = MULL_INIT(mull_consumer_options);
    options.name = c->name;
    options.transport = c->broker ? "t1" : "t0";
    options.queue = queue_name(queue);
    options.handler = work_on_call;
    options.cancel = work_on_cancel;
    options.data = c;
    options.concurrency = c->concurrency;
    options.prefetch = c->prefetch;
    options.timeout_ms = c->timeout_ms;
    options.max_body = c->max_body;
    uint64_t failures = s->counting_allocator.failures;
    int status = mull_consumer_add(p->engine, &options);
    c->place = status == 0 ? WORKS : ABSENT;
    if (status != 0 && (p->life != RUNNING ||
                        (status != MULL_EREFUSED && s->counting_allocator.failures == failures)))
        violation(s, "there is no consumer: %d", status);
    return status;
}

static void make_engine(process *p)
{
    sim *s = p->sim;
    const mull_clock clock = {engine_now, engine_wall, p};
    p->grace_ms = one_in(s, 4) ? 0 : between(s, 1, 3000);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = p->policy;
    options.loop = p->loop;
    options.grace_ms = p->grace_ms;
    options.log = on_log;
    options.event = on_event;
    options.stopped = on_stopped;
    options.data = p;
    options.clock = &clock;
    options.seed = draw(s, 1 << 30) + 1;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    if (mull_engine_new(&p->engine, &options) != 0)
        violation(s, "there is no engine");
    if (p->grace_ms == 0)
        p->grace_ms = 10000;
    if (mull_engine_scheme(p->engine, &simulated, NULL) != 0)
        violation(s, "there is no scheme");
    for (int i = 0; i < s->broker_count; i++) {
        serve(p);
        if (mull_engine_transport(p->engine, i ? "t1" : "t0", i ? "simulated:1" : "simulated:0") !=
            0)
            violation(s, "there is no transport");
    }
    for (int queue = 0; queue < QUEUES; queue++)
        add_consumer(p, queue);
}

/* start: a policy that the engine refuses is replaced by another, at last by a tame one. */
static void start(process *p)
{
    sim *s = p->sim;
    for (int tries = 0;; tries++) {
        int status = mull_engine_start(p->engine);
        if (status == 0)
            return;
        if (status != MULL_EREFUSED || tries > 6)
            violation(s, "the engine doesn't start: %d", status);
        s->totals->starts_refused++;
        load(p, tries < 6 ? draw_policy(s) : 0, 0);
    }
}

void process_start(sim *s, void *data)
{
    process *p = data;
    if (p->engine || s->over)
        return;
    *p = (process){.sim = s,
                   .index = p->index,
                   .loop = p->loop,
                   .touched = 1,
                   .epoch = p->epoch + 1,
                   .grace_ends_ms = INT64_MAX,
                   .drain_ends_ms = INT64_MAX};
    note(s, "process %lld starts", p->index, 0, 0, 0);
    int scarce = s->counting_allocator.scarce;
    s->counting_allocator.scarce = 0;
    load(p, draw_policy(s), 0);
    make_engine(p);
    start(p);
    p->life = RUNNING;
    s->counting_allocator.scarce = scarce;
}

/* ---- Turning --------------------------------------------------------------------------------- */

/* bury takes down what is left of a process that was killed. Its handlers are gone, time stands. */
static void bury(process *p)
{
    sim *s = p->sim;
    s->counting_allocator.scarce = 0;
    work_end_all(p);
    if (p->life != CLOSING)
        mull_engine_close(p->engine, on_closed, p);
    p->life = CLOSING;
    for (int turns = 0; p->engine; turns++) {
        for (int i = 0; i < s->broker_count; i++)
            wires_answer(p->connections[i]);
        mull_engine_turn(p->engine);
        if (turns > 1000)
            violation(s, "a dead engine can't be taken down");
    }
}

void process_turn(process *p)
{
    sim *s = p->sim;
    p->touched = 0;
    s->counting_allocator.scarce = !p->dead;
    p->turning = 1;
    int64_t next_ms = mull_engine_turn(p->engine);
    p->turning = 0;
    p->touched = 0;
    p->next_ms = next_ms;
    if (p->engine && p->dead)
        bury(p);
    if (p->engine)
        model_turned(p);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

void process_stop(process *p)
{
    sim *s = p->sim;
    if (!p->engine || p->life != RUNNING || p->dead)
        return;
    note(s, "process %lld is to stop within %lld ms", p->index, p->grace_ms, 0, 0);
    s->totals->stops++;
    p->life = STOPPING;
    p->asked_in = s->k.steps;
    p->grace_ends_ms = s->k.now_ms + p->grace_ms;
    p->drain_ends_ms = p->grace_ends_ms + DRAIN_MS;
    p->touched = 1;
    mull_stop(p->engine);
    if (one_in(s, 2))
        at_time(s, between(s, 0, p->grace_ms + 500), process_close_later, p);
    if (happens(s, 3 * s->faults.drops))
        connection_drop(p->connections[0], between(s, 0, 20000));
}

void process_close(process *p)
{
    sim *s = p->sim;
    if (!p->engine || p->life == CLOSING || p->dead)
        return;
    note(s, "process %lld is closed", p->index, 0, 0, 0);
    s->totals->closes++;
    p->life = CLOSING;
    p->asked_in = s->k.steps;
    if (s->k.now_ms < p->grace_ends_ms)
        p->grace_ends_ms = s->k.now_ms;
    if (s->k.now_ms + DRAIN_MS < p->drain_ends_ms)
        p->drain_ends_ms = s->k.now_ms + DRAIN_MS;
    p->touched = 1;
    mull_engine_close(p->engine, on_closed, p);
}

/* process_troubled: who waits for it to stop may lose patience; or the policy is mended. */
void process_troubled(process *p)
{
    sim *s = p->sim;
    if (happens(s, 80))
        process_reload(p);
    if ((p->life == STOPPING || p->life == STOPPED) && one_in(s, 3))
        at_time(s, between(s, 0, 200), process_close_later, p);
}

void process_kill(process *p)
{
    sim *s = p->sim;
    if (!p->engine || p->dead)
        return;
    note(s, "process %lld is killed", p->index, 0, 0, 0);
    s->totals->kills++;
    p->dead = 1;
    p->touched = 1;
    for (int i = 0; i < s->broker_count; i++)
        connection_die(p->connections[i]);
}

/* process_reload: where there was no memory to write a settlement, nobody is told of its verdict
 * before there is. So that it is known which generation gave it, none comes within a turn then. */
void process_reload(process *p)
{
    sim *s = p->sim;
    if (!p->engine || p->dead || (p->turning && s->faults.no_memory > 0))
        return;
    int broken = one_in(s, 4);
    uint64_t number = one_in(s, 6) ? p->generation->number : draw_policy(s);
    if (load(p, number, broken) < 0)
        s->totals->reloads_refused++;
    else
        s->totals->reloads++;
}

/* ---- Consumers come and go ------------------------------------------------------------------- */

static void on_removed(int status, void *data)
{
    consumer *c = data;
    process *p = c->process;
    note(p->sim, "process %lld, queue %lld: its consumer is removed: %lld", p->index, c->queue,
         status, 0);
    if (c->place != LEAVES || status != (p->life == CLOSING ? MULL_ESTATE : 0))
        violation(p->sim, "consumer %d is removed: %d", c->queue, status);
    c->place = ABSENT;
    for (const handout *h = NULL; (h = model_next(p, h));)
        if (h->consumer == c->queue && h->stage != ON_ITS_WAY && !p->dead && status == 0)
            violation(p->sim, "consumer %d is removed, and has message %d", c->queue,
                      h->message->number);
}

static void begins_to_refuse(consumer *c)
{
    c->changed_in = c->process->sim->k.steps;
    c->process->touched = 1;
}

static void pause_or_resume(consumer *c)
{
    process *p = c->process;
    note(p->sim, "process %lld, queue %lld: its consumer is paused: %lld", p->index, c->queue,
         !c->paused, 0);
    p->sim->totals->pauses++;
    c->paused = !c->paused; /* what is done at once is to be right */
    int status = c->paused ? mull_consumer_pause(p->engine, c->name)
                           : mull_consumer_resume(p->engine, c->name);
    if (status != 0)
        violation(p->sim, "consumer %d can't be paused: %d", c->queue, status);
    begins_to_refuse(c);
}

static void set_concurrency(consumer *c)
{
    process *p = c->process;
    c->concurrency = (uint32_t)between(p->sim, 1, 6);
    note(p->sim, "process %lld, queue %lld: concurrency %lld", p->index, c->queue, c->concurrency,
         0);
    const reader *r = process_reader(p, c->queue);
    if (r && c->place == WORKS && c->concurrency + 2 * c->prefetch > r->most)
        c->place = RENEWS;
    int status = mull_consumer_concurrency(p->engine, c->name, c->concurrency);
    if (status != 0)
        violation(p->sim, "consumer %d can't have another concurrency: %d", c->queue, status);
    begins_to_refuse(c);
}

static void remove_consumer(consumer *c)
{
    process *p = c->process;
    note(p->sim, "process %lld, queue %lld: its consumer is to leave", p->index, c->queue, 0, 0);
    p->sim->totals->removals++;
    c->place = LEAVES;
    int status = mull_consumer_remove(p->engine, c->name, on_removed, c);
    if (status != 0)
        violation(p->sim, "consumer %d can't be removed: %d", c->queue, status);
    begins_to_refuse(c);
}

const reader *process_reader(const process *p, int queue)
{
    const connection *c = p->connections[queue % p->sim->broker_count];
    for (int i = 0; i < c->reader_count; i++)
        if (c->readers[i]->consumer == queue)
            return c->readers[i];
    return NULL;
}

void process_consumers(process *p)
{
    sim *s = p->sim;
    consumer *c = &p->consumers[draw(s, QUEUES)];
    uint64_t change = draw(s, 4);
    if (p->life != RUNNING || process_is_stopping(p) || c->place == LEAVES)
        return;
    if (c->place == ABSENT)
        s->totals->additions += add_consumer(p, c->queue) == 0;
    else if (change == 0)
        remove_consumer(c);
    else if (change == 1)
        set_concurrency(c);
    else
        pause_or_resume(c);
    p->touched = 1;
}

/* ---- What happens to them -------------------------------------------------------------------- */

static handout *any_claim(process *p)
{
    sim *s = p->sim;
    connection *c = p->connections[draw(s, (uint64_t)s->broker_count)];
    handout *found = NULL;
    uint64_t count = 0;
    for (mull__link *at = mull__list_first(&c->handouts); at;
         at = mull__list_after(&c->handouts, at))
        if (MULL__ENTRY(at, handout, link)->copy && one_in(s, ++count))
            found = MULL__ENTRY(at, handout, link);
    return found;
}

static void lose_any(process *p)
{
    handout *h = p->sim->faults.loses ? any_claim(p) : NULL;
    if (h)
        connection_lose(h);
}

static void drop_any(process *p)
{
    sim *s = p->sim;
    connection *c = p->connections[draw(s, (uint64_t)s->broker_count)];
    if (happens(s, s->faults.drops * 3))
        connection_drop(c, between(s, 0, 5000));
}

void process_changes(sim *s, void *none)
{
    if (s->k.calm)
        return;
    at_time(s, between(s, 0, 6000), process_changes, none);
    process *p = &s->processes[draw(s, (uint64_t)s->process_count)];
    if (!p->engine || p->dead)
        return;
    broker_put_back(&s->brokers[draw(s, (uint64_t)s->broker_count)]);
    switch (draw(s, 16)) {
    case 0:
        process_stop(p);
        break;
    case 1:
        if (p->life == STOPPING || one_in(s, 2))
            process_close(p);
        break;
    case 2:
    case 3:
        process_kill(p);
        break;
    case 4:
    case 5:
        lose_any(p);
        break;
    case 6:
        drop_any(p);
        break;
    case 7:
        ask_depth(p);
        break;
    case 8:
    case 9:
        process_consumers(p);
        break;
    default:
        process_reload(p);
    }
}

static void resume_all(process *p)
{
    for (int queue = 0; queue < QUEUES; queue++)
        if (p->life == RUNNING && p->consumers[queue].paused && p->consumers[queue].place < LEAVES)
            pause_or_resume(&p->consumers[queue]);
}

/* process_calm: a person has made the queues that were missing, and sees to what is stuck. */
void process_calm(sim *s)
{
    for (int i = 0; i < s->broker_count; i++)
        s->brokers[i].missing = 0;
    for (int i = 0; i < s->process_count; i++) {
        process *p = &s->processes[i];
        if (!p->engine || p->dead) {
            at_time(s, 0, process_start, p);
            continue;
        }
        for (int b = 0; b < s->broker_count; b++)
            connection_calm(p->connections[b]);
        resume_all(p);
        if (model_is_stuck(p))
            process_stop(p);
        p->until_empty = p->life == RUNNING && one_in(s, 4);
        if (p->until_empty)
            mull_stop_when_empty(p->engine);
        p->touched = 1;
    }
    work_calm(s);
}

void process_end_all(sim *s)
{
    for (int i = 0; i < s->process_count; i++) {
        process *p = &s->processes[i];
        if (p->until_empty && p->engine && !model_is_stuck(p) && one_in(s, 2))
            continue; /* it ends by itself */
        if (one_in(s, 2))
            process_stop(p);
        else
            process_close(p);
    }
}
