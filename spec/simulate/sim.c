/* sim.c: one seed, from its first step to its last.
 *
 *   chaos ── until it calms down: messages are published, handlers work, everything may fail
 *   calm  ── nothing fails any more: every message must come to its end, in bounded time
 *   end   ── engines stop and close: all of their memory must be back
 */
#include "sim.h"

#include <string.h>

/* ---- Chance ---------------------------------------------------------------------------------- */

int64_t some_time(sim *s)
{
    if (happens(s, s->faults.slow))
        return one_in(s, 3) ? between(s, 100, 4000) : between(s, 0, 100);
    return one_in(s, 3) ? between(s, 0, 2) : 0;
}

int64_t wall_ms(const sim *s)
{
    return WALL_MS + s->k.now_ms;
}

char *keep_text(sim *s, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(keep(s, size), text, size);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static int64_t wants_turn(const process *p)
{
    return !p->engine ? INT64_MAX : p->touched ? p->sim->k.now_ms : p->next_ms;
}

/* go_on moves the clock to where the next thing happens. 0: nothing will. */
static int go_on(sim *s)
{
    int64_t next_ms = next_due_ms(s);
    for (int i = 0; i < s->process_count; i++) {
        int64_t wants_ms = wants_turn(&s->processes[i]);
        next_ms = wants_ms < next_ms ? wants_ms : next_ms;
    }
    if (next_ms == INT64_MAX)
        return 0;
    if (next_ms > s->k.now_ms)
        s->k.now_ms = next_ms;
    return 1;
}

/* step: of what may happen now, one thing, by chance: an event, or a turn of an engine. */
static int step(sim *s)
{
    if (!go_on(s))
        return 0;
    s->k.steps++;
    process *ready[PROCESSES];
    uint64_t count = 0;
    for (int i = 0; i < s->process_count; i++)
        if (wants_turn(&s->processes[i]) <= s->k.now_ms)
            ready[count++] = &s->processes[i];
    if (next_due_ms(s) <= s->k.now_ms && (count == 0 || one_in(s, 2)))
        fire_next(s);
    else
        process_turn(ready[draw(s, count)]);
    return 1;
}

enum { STEPS_MAX = 400000, CALM_MAX_MS = 24 * 3600 * 1000 };

static void step_or_fail(sim *s, const char *what, int64_t until_ms)
{
    if (!step(s))
        violation(s, "nothing will ever happen any more, and %s", what);
    if (s->k.now_ms > until_ms)
        violation(s, "the time is over, and %s", what);
    if (s->k.steps > STEPS_MAX)
        violation(s, "after %d steps %s", STEPS_MAX, what);
}

/* ---- A seed ---------------------------------------------------------------------------------- */

/* some gives a chance that many seeds don't have at all. */
static uint32_t some(sim *s, int64_t high)
{
    return one_in(s, 2) ? 0 : (uint32_t)between(s, 1, high);
}

/* draw_nature, like all that draws, draws once in a statement: in which order an expression does it
 * is the compiler's to choose. */
static void draw_nature(sim *s)
{
    s->faults.settle_fails = some(s, 300);
    s->faults.publish_fails = some(s, 200);
    s->faults.slow = some(s, 400);
    s->faults.loses = some(s, 60);
    s->faults.forgets_hold = some(s, 500);
    s->faults.drops = some(s, 200);
    s->faults.kill_inside = some(s, 15);
    s->faults.mute = one_in(s, 3) ? some(s, 90) : 0;
    s->faults.twice = some(s, 200);
    s->faults.refuses = some(s, 150);
    s->faults.in_slot = one_in(s, 2) ? some(s, 1000) : 0;
    s->faults.no_memory = one_in(s, 2) ? 0 : some(s, 80);
    s->habits.fails = (uint32_t)between(s, 5, 80);
    s->habits.at_once = (uint32_t)between(s, 0, 60);
    s->habits.sends = some(s, 60);
    s->habits.careless = some(s, 30);
    s->habits.stuck = some(s, 25);
}

static void begin(sim *s)
{
    draw_nature(s);
    s->broker_count = one_in(s, 4) ? 2 : 1;
    for (int i = 0; i < s->broker_count; i++)
        broker_init(s, i);
    s->process_count = one_in(s, 3) ? 2 : 1;
    s->publishes_left = (int)between(s, 3, 30);
    at_time(s, 0, work_publish, NULL);
    at_time(s, between(s, 0, 4000), process_changes, NULL);
    for (int i = 0; i < s->process_count; i++)
        at_time(s, i == 0 ? 0 : between(s, 0, 2000), process_start, &s->processes[i]);
}

/* alive counts copies that are still to be handled; what is stuck isn't until its process ends. */
static int alive(sim *s)
{
    int count = s->publishes_left;
    for (int i = 0; i < s->broker_count; i++) {
        mull__list *copies = &s->brokers[i].copies;
        for (mull__link *at = mull__list_first(copies); at; at = mull__list_after(copies, at)) {
            const copy *c = MULL__ENTRY(at, copy, link);
            count += c->queue < QUEUES && !(c->claim && model_stuck(c->claim));
        }
    }
    for (int i = 0; i < s->process_count; i++)
        count += (int)s->processes[i].publishes;
    return count;
}

static int any_engine(const sim *s)
{
    for (int i = 0; i < s->process_count; i++)
        if (s->processes[i].engine)
            return 1;
    return 0;
}

static void run(sim *s)
{
    int64_t chaos_ms = s->k.now_ms + between(s, 1000, 90000);
    while (go_on(s) && s->k.now_ms < chaos_ms)
        step_or_fail(s, "there is no end to it", INT64_MAX);
    s->k.calm = 1;
    note(s, "calm", 0, 0, 0, 0);
    process_calm(s);
    int64_t until_ms = s->k.now_ms + CALM_MAX_MS;
    while (alive(s) > 0)
        step_or_fail(s, "there are messages that came to no end", until_ms);
    s->over = 1;
    process_end_all(s);
    while (any_engine(s))
        step_or_fail(s, "an engine doesn't end", until_ms);
}

void simulate(sim *s, uint64_t seed, totals *sums, int tell)
{
    kernel_begin(&s->k, "simulate", seed, tell);
    *s = (sim){.k = s->k, .messages = s->messages, .message_room = s->message_room, .totals = sums};
    mull__list_init(&s->generations);
    mull__list_init(&s->jobs);
    s->counting_allocator.sim = s;
    s->counting_allocator.no_memory = &s->faults.no_memory;
    s->counting_allocator.failed_ms = INT64_MIN / 2;
    processes_init(s);
    begin(s);
    run(s);
    model_end(s);
    generations_free(s);
    if (s->table_allocator.blocks > 0)
        violation(s, "%zu blocks of tables are left", s->table_allocator.blocks);
}
