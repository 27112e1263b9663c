/* limits.c: the model's half that knows rate_limit and limit: which calls may begin, which failures
 * are kept, when limits start and end. Naive: all ends are kept in a list, which is looked through
 * each time. Waits are longer by chance: what the engine drew is held against what it may be. */
#include "sim.h"

#include "base/hash.h"
#include "policy/delay.h"
#include "runtime/limit_values.h"

#include <string.h>

#define WRONG(h, ...) violation((h)->process->sim, __VA_ARGS__)
#define NS_PER_MS     INT64_C(1000000)

enum { SOON_MS = 1000, AGAIN_MS = 100 };

int memory_is_short(const sim *s)
{
    return s->counting_allocator.failed_ms == s->k.now_ms;
}

static consumer *consumer_of(const handout *h)
{
    return &h->process->consumers[h->consumer];
}

static int64_t now_of(const consumer *c)
{
    return c->process->sim->k.now_ms;
}

/* ---- Statements and values ------------------------------------------------------------------- */

static const mull__per *per_of(const statement *l)
{
    return l->rate ? &l->rate->per : &l->calls->per;
}

static int is_whole(const statement *l)
{
    return per_of(l)->kind == MULL__PER_CONSUMER;
}

static int same_per(const mull__per *a, const mull__per *b)
{
    return a->kind == b->kind && (a->kind != MULL__PER_HEADER || strcmp(a->header, b->header) == 0);
}

/* value_in gives a message's value; NULL: the statement isn't for it. */
static const char *value_in(const statement *l, const message *m)
{
    switch (per_of(l)->kind) {
    case MULL__PER_CONSUMER:
        return "";
    case MULL__PER_KEY:
        return m->key;
    case MULL__PER_TYPE:
        return m->type;
    case MULL__PER_HEADER:
        return m->tenant;
    }
    return NULL;
}

static limit_value *value_named(sim *s, statement *l, const char *name)
{
    limit_value *v = l->values;
    while (v && strcmp(v->value, name) != 0)
        v = v->next;
    if (v)
        return v;
    v = keep(s, sizeof *v);
    *v = (limit_value){.next = l->values, .value = name};
    l->values = v;
    return v;
}

/* value_of gives what is known for a message; NULL: the statement isn't for it. */
static limit_value *value_of(statement *l, const handout *h)
{
    const char *name = value_in(l, h->message);
    return name ? value_named(h->process->sim, l, name) : NULL;
}

/* at_work counts handlers of a value, or those whose end the engine may not have seen, too. */
static uint32_t at_work(const consumer *c, const statement *l, const limit_value *v, int unlooked)
{
    uint32_t count = 0;
    for (const handout *h = NULL; (h = model_next(c->process, h));) {
        const char *name = h->consumer == c->queue ? value_in(l, h->message) : NULL;
        count += name && strcmp(name, v->value) == 0 && (h->at_work || (unlooked && h->unlooked));
    }
    return count;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void expect_event(const consumer *c, mull_event_kind kind, const statement *l,
                         const limit_value *v)
{
    process *p = c->process;
    if (p->expected_count == EXPECTED_MAX)
        violation(p->sim, "more limits start and end in a turn than the model notes");
    p->expected[p->expected_count++] = (limit_event){kind, c->queue, *per_of(l), v->value};
}

static int is_of(const limit_event *e, const mull_event *told)
{
    static const char *const words[] = {NULL, "key", "type", "header "};
    char per[64] = "";
    if (e->per.kind != MULL__PER_CONSUMER)
        snprintf(per, sizeof per, "%s%s", words[e->per.kind], e->per.header ? e->per.header : "");
    return e->kind == told->kind && told->consumer[1] == '0' + e->queue &&
           same_text(told->limit->per, per[0] ? per : NULL) &&
           same_text(told->limit->value, per[0] ? e->value : NULL);
}

/* limits_told: each start and each end is told once. */
void limits_told(process *p, const mull_event *told)
{
    const sim *s = p->sim;
    note(p->sim, "process %lld tells of consumer %lld: a limit, event %lld", p->index,
         told->consumer[1] - '0', told->kind, 0);
    if (told->kind == MULL_EVENT_RATE_LIMIT_FORGOT)
        violation(p->sim, "a value is forgotten, and there are few");
    int at = 0;
    while (at < p->expected_count && !is_of(&p->expected[at], told))
        at++;
    if (at < p->expected_count)
        p->expected[at] = p->expected[--p->expected_count];
    else if (!memory_is_short(s))
        violation(p->sim, "it is told that a limit of %s starts or ends, and none does",
                  told->consumer);
    if (told->kind == MULL_EVENT_RATE_LIMIT_STARTED && told->limit->since_ms != wall_ms(s))
        violation(p->sim, "a limit of %s is told to start at another moment", told->consumer);
}

/* ---- What the engine drew -------------------------------------------------------------------- */

/* adopt: what was done where memory was short is taken as it is. */
static void adopt(const consumer *c, const statement *l, limit_value *v)
{
    const mull__limit_state *in = view_state(c, l, v->value);
    const mull__rate *rate = in ? &in->rate : NULL;
    v->unsure = 1;
    v->even_ns = in ? in->pace.even_ns : 0;
    int limited = rate && rate->limited;
    if (limited != v->limited)
        expect_event(c, limited ? MULL_EVENT_RATE_LIMIT_STARTED : MULL_EVENT_RATE_LIMIT_ENDED, l,
                     v);
    if (limited && !v->limited)
        v->since_ms = rate->since_ms;
    v->limited = limited;
    v->ramp_ms = rate ? rate->ramp_ms : 0;
    if (!rate)
        return;
    v->next_ms = rate->next_ms;
    v->wait_ms = rate->wait_ms;
    v->successes = rate->successes;
    v->ramp_from_ms = rate->ramp_from_ms;
}

/* next_probe_at takes the moment that the engine drew. */
static void next_probe_at(const handout *h, const statement *l, limit_value *v, int64_t from_ms,
                          int64_t to_ms)
{
    const mull__limit_state *in = view_state(consumer_of(h), l, v->value);
    if (!in || in->rate.next_ms < from_ms || in->rate.next_ms > to_ms)
        WRONG(h, "the next probe of consumer %d is %d ms off", h->consumer,
              in ? (int)(in->rate.next_ms - from_ms) : -1);
    v->next_ms = in->rate.next_ms;
}

/* ---- The policy in force --------------------------------------------------------------------- */

static int counts_as(const mull__rate_limit *a, const mull__rate_limit *b)
{
    return a->after == b->after && a->messages == b->messages && a->within_ms == b->within_ms &&
           a->window_ms == b->window_ms && a->least == b->least && a->ratio >= b->ratio &&
           a->ratio <= b->ratio;
}

/* interval_ns is the time between two calls of a `limit`, early_ns how much earlier than that one
 * may begin: a burst, or as many as fit into a millisecond. */
static int64_t interval_ns(const statement *l)
{
    return (l->calls->unit_ms * NS_PER_MS + l->calls->count - 1) / l->calls->count;
}

static int64_t early_ns(const statement *l)
{
    int64_t burst_ns = (l->calls->burst - 1) * interval_ns(l);
    int64_t least_ns = NS_PER_MS - interval_ns(l);
    return burst_ns > least_ns ? burst_ns : least_ns;
}

/* go_on: a statement goes on with what one of the same `per` knew. No rate of before puts a call
 * off for longer than all would that the new one lets begin at once. */
static void go_on(statement *l, const statement *before, int64_t now_ms)
{
    l->values = before->values;
    for (limit_value *v = l->values; v; v = v->next) {
        int64_t most_ns = l->rate ? 0 : now_ms * NS_PER_MS + early_ns(l) + interval_ns(l);
        if (l->rate)
            v->unsure |= !counts_as(l->rate, before->rate);
        else if (v->even_ns > most_ns)
            v->even_ns = most_ns;
    }
}

static void add(consumer *c, statement made, statement *before, int count)
{
    if (c->limit_count == LIMITS_MAX)
        violation(c->process->sim, "a policy has more limits than the model notes");
    for (int i = 0; i < count; i++) {
        statement *old = &before[i];
        if (!old->rate == !made.rate && same_per(per_of(old), per_of(&made))) {
            go_on(&made, old, now_of(c));
            old->values = NULL; /* they didn't end */
        }
    }
    c->limits[c->limit_count++] = made;
}

static void drop(const consumer *c, const statement *l)
{
    for (const limit_value *v = l->values; v; v = v->next)
        if (v->limited) {
            c->process->sim->totals->limits_dropped++;
            expect_event(c, MULL_EVENT_RATE_LIMIT_ENDED, l, v);
        }
}

static mull__settings settings_of(const consumer *c, const generation *g)
{
    if (!g)
        return mull__default_settings;
    return mull__effective_settings_of(g->table, c->name, c->broker ? "t1" : "t0").settings;
}

mull__settings in_force(const handout *h, const generation *g)
{
    return settings_of(consumer_of(h), g);
}

static void follow(consumer *c)
{
    const generation *g = view_generation(c);
    statement before[LIMITS_MAX];
    int count = c->limit_count;
    if (g == c->limits_of)
        return;
    note(c->process->sim, "process %lld, consumer %lld: its limits are of policy %lld",
         c->process->index, c->queue, g ? (int64_t)g->number : -1, 0);
    memcpy(before, c->limits, sizeof before);
    c->limits_were = c->limits_of;
    c->limits_of = g;
    c->limits_since_ms = c->process->sim->k.now_ms;
    c->limit_count = 0;
    const mull__settings set = settings_of(c, g);
    for (size_t i = 0; i < set.rate_limit.count; i++)
        add(c, (statement){.rate = &set.rate_limit.items[i]}, before, count);
    for (size_t i = 0; i < set.limit.count; i++)
        add(c, (statement){.calls = &set.limit.items[i]}, before, count);
    for (int i = 0; i < count; i++)
        drop(c, &before[i]);
}

void limits_follow(process *p)
{
    for (int queue = 0; queue < QUEUES; queue++)
        follow(&p->consumers[queue]);
}

mull__settings limits_policy(const handout *h)
{
    follow(consumer_of(h));
    return in_force(h, consumer_of(h)->limits_of);
}

mull__settings limits_policy_before(const handout *h)
{
    const consumer *c = consumer_of(h);
    int is_new = c->limits_since_ms == c->process->sim->k.now_ms;
    return in_force(h, is_new ? c->limits_were : c->limits_of);
}

/* ---- May a call begin? ----------------------------------------------------------------------- */

/* handlers is how many may be at work during a ramp. */
static uint32_t handlers(const consumer *c, const limit_value *v)
{
    int64_t passed_ms = now_of(c) - v->ramp_from_ms;
    if (passed_ms >= v->ramp_ms)
        return c->concurrency;
    int64_t allowed = c->concurrency * passed_ms / v->ramp_ms;
    return allowed > 1 ? (uint32_t)allowed : 1;
}

static int is_paced(const statement *l, const limit_value *v, int64_t now_ms)
{
    return now_ms * NS_PER_MS < v->even_ns - early_ns(l);
}

/* take_pace: a call that is late by less than the clock can tell is in time. */
static void take_pace(const statement *l, limit_value *v, int64_t now_ns)
{
    v->even_ns = (v->even_ns > now_ns - NS_PER_MS ? v->even_ns : now_ns) + interval_ns(l);
}

/* is_shut says whether a value lets no call begin now. */
static int is_shut(const consumer *c, const statement *l, const limit_value *v, int unlooked)
{
    if (l->calls)
        return is_paced(l, v, now_of(c));
    uint32_t working = at_work(c, l, v, unlooked);
    if (v->limited)
        return working > 0 || now_of(c) < v->next_ms;
    return working >= handlers(c, v);
}

int limits_shut(const consumer *c)
{
    for (int i = 0; i < c->limit_count; i++) {
        const statement *l = &c->limits[i];
        if (is_whole(l) && l->values && is_shut(c, l, l->values, 0))
            return 1;
    }
    return 0;
}

int limits_hold(const handout *h)
{
    consumer *c = consumer_of(h);
    for (int i = 0; i < c->limit_count; i++) {
        statement *l = &c->limits[i];
        const limit_value *v = is_whole(l) ? NULL : value_of(l, h);
        if (v && is_shut(c, l, v, 1))
            return 1;
    }
    return 0;
}

int limits_probe(const consumer *c)
{
    for (int i = 0; i < c->limit_count; i++)
        if (is_whole(&c->limits[i]) && c->limits[i].values && c->limits[i].values->limited)
            return 1;
    return 0;
}

int limits_paced(const consumer *c)
{
    for (int i = 0; i < c->limit_count; i++)
        if (is_whole(&c->limits[i]) && c->limits[i].calls)
            return 1;
    return 0;
}

uint32_t limits_soon(const consumer *c, uint32_t most)
{
    int64_t until_ms = now_of(c) + SOON_MS;
    for (int i = 0; i < c->limit_count; i++) {
        const statement *l = &c->limits[i];
        if (!l->calls || !is_whole(l))
            continue;
        limit_value ahead = l->values ? *l->values : (limit_value){0};
        uint32_t calls = 0;
        for (; calls < most && !is_paced(l, &ahead, until_ms); calls++)
            take_pace(l, &ahead, now_of(c) * NS_PER_MS);
        most = calls;
    }
    return most;
}

static void probe_begins(const handout *h, const statement *l, limit_value *v, mull_call call)
{
    const sim *s = h->process->sim;
    uint32_t others = at_work(consumer_of(h), l, v, 0);
    if (others > 0)
        WRONG(h, "message %d is called under a limit, beside %u other(s)", h->message->number,
              others);
    if (s->k.now_ms < v->next_ms)
        WRONG(h, "message %d is called under a limit, %d ms early", h->message->number,
              (int)(v->next_ms - s->k.now_ms));
    v->prober = call;
    s->totals->probes++;
}

static void call_begins(const handout *h, const statement *l, limit_value *v, mull_call call)
{
    const consumer *c = consumer_of(h);
    sim *s = c->process->sim;
    if (l->calls) {
        if (is_paced(l, v, s->k.now_ms))
            WRONG(h, "message %d is called faster than its limit allows", h->message->number);
        s->totals->paced++;
        take_pace(l, v, s->k.now_ms * NS_PER_MS);
    } else if (v->limited) {
        probe_begins(h, l, v, call);
    } else if (at_work(c, l, v, 0) >= handlers(c, v)) {
        WRONG(h, "message %d is called, and a limit has just ended", h->message->number);
    } else {
        s->totals->ramped += handlers(c, v) < c->concurrency;
    }
}

void limits_began(const handout *h, mull_call call)
{
    consumer *c = consumer_of(h);
    limits_follow(h->process);
    for (int i = 0; i < c->limit_count; i++) {
        statement *l = &c->limits[i];
        limit_value *v = value_of(l, h);
        if (v)
            call_begins(h, l, v, call);
        if (v && l->calls && memory_is_short(c->process->sim))
            adopt(c, l, v);
    }
}

/* ---- A call ends ----------------------------------------------------------------------------- */

static void note_ending(const handout *h, limit_value *v, int failed)
{
    sim *s = h->process->sim;
    if (v->ending_count == v->ending_room) {
        size_t room = v->ending_room ? 2 * v->ending_room : 16;
        ending *more = keep(s, room * sizeof *more);
        if (v->ending_count > 0)
            memcpy(more, v->endings, v->ending_count * sizeof *more);
        v->endings = more;
        v->ending_room = room;
    }
    v->endings[v->ending_count++] = (ending){s->k.now_ms, mull__hash_text(h->id), failed};
}

/* is_new says whether none of the endings before is a failure of the same message. */
static int is_new(const limit_value *v, size_t first, size_t at)
{
    for (size_t i = first; i < at; i++)
        if (v->endings[i].failed && v->endings[i].message == v->endings[at].message)
            return 0;
    return 1;
}

/* starts_by_row: so many failures since the last success, near each other. */
static int starts_by_row(const limit_value *v, const mull__rate_limit *rate, int64_t now_ms)
{
    int64_t count = 0, messages = 0;
    size_t first = v->ending_count;
    while (
        first > 0 && v->endings[first - 1].failed &&
        (rate->within_ms == MULL__OFF || v->endings[first - 1].at_ms >= now_ms - rate->within_ms))
        first--;
    for (size_t i = first; i < v->ending_count; i++, count++)
        messages += is_new(v, first, i);
    return count >= rate->after && messages >= rate->messages;
}

/* starts_by_part: so large a part of the calls in the window failed, this one too. */
static int starts_by_part(const limit_value *v, const mull__rate_limit *rate, int64_t now_ms)
{
    int64_t calls = 0, failed = 0, messages = 0;
    size_t first = v->ending_count;
    while (first > 0 && v->endings[first - 1].at_ms > now_ms - rate->window_ms)
        first--;
    for (size_t i = first; i < v->ending_count; i++) {
        calls++;
        failed += v->endings[i].failed;
        messages += v->endings[i].failed && is_new(v, first, i);
    }
    return v->endings[v->ending_count - 1].failed && calls >= rate->least &&
           (double)failed / (double)calls >= rate->ratio && messages >= rate->messages;
}

static void wait_for_probe(const handout *h, const statement *l, limit_value *v, int64_t hint_ms)
{
    int64_t now_ms = h->process->sim->k.now_ms;
    int64_t wait_ms = v->wait_ms > hint_ms ? v->wait_ms : hint_ms;
    int64_t from_ms = now_ms + wait_ms, to_ms = from_ms + wait_ms / 4;
    next_probe_at(h, l, v, from_ms > v->next_ms ? from_ms : v->next_ms,
                  to_ms > v->next_ms ? to_ms : v->next_ms);
}

static void start(const handout *h, const statement *l, limit_value *v, int64_t hint_ms)
{
    sim *s = h->process->sim;
    note(s, "a limit starts at consumer %lld, per %lld", h->consumer, per_of(l)->kind, 0, 0);
    s->totals->limits_started++;
    v->limited = 1;
    v->unsure = 0;
    v->ramp_ms = 0;
    v->ending_count = 0;
    v->since_ms = v->next_ms = s->k.now_ms;
    v->wait_ms = l->rate->wait_ms;
    v->successes = 0;
    v->prober = 0;
    expect_event(consumer_of(h), MULL_EVENT_RATE_LIMIT_STARTED, l, v);
    wait_for_probe(h, l, v, hint_ms);
}

static void end(const handout *h, const statement *l, limit_value *v)
{
    sim *s = h->process->sim;
    note(s, "a limit ends at consumer %lld, per %lld", h->consumer, per_of(l)->kind, 0, 0);
    s->totals->limits_ended++;
    v->limited = 0;
    v->ramp_ms = l->rate->ramp_ms;
    v->ramp_from_ms = s->k.now_ms;
    expect_event(consumer_of(h), MULL_EVENT_RATE_LIMIT_ENDED, l, v);
}

/* ended_limited: only a failed probe lengthens the wait; the numbers of the policy in force hold
 * for any. */
static void ended_limited(const handout *h, const statement *l, limit_value *v, int failed,
                          int64_t hint_ms)
{
    const mull__rate_limit *rate = l->rate;
    int probed = v->prober == h->call;
    if (!failed) {
        if (++v->successes >= rate->successes)
            end(h, l, v);
        return;
    }
    v->successes = 0;
    v->prober = probed ? 0 : v->prober;
    v->wait_ms *= probed ? 2 : 1;
    if (v->wait_ms > rate->max_wait_ms)
        v->wait_ms = rate->max_wait_ms;
    if (v->wait_ms < rate->wait_ms)
        v->wait_ms = rate->wait_ms;
    wait_for_probe(h, l, v, hint_ms);
}

/* ended_counting: a success forgets a row, so that it is known again what counts. */
static void ended_counting(const handout *h, const statement *l, limit_value *v, int failed,
                           int64_t hint_ms)
{
    const mull__rate_limit *rate = l->rate;
    int64_t now_ms = h->process->sim->k.now_ms;
    note_ending(h, v, failed);
    int starts = rate->ratio > 0 ? starts_by_part(v, rate, now_ms) : starts_by_row(v, rate, now_ms);
    const mull__limit_state *in = view_state(consumer_of(h), l, v->value);
    int started = in && in->rate.limited;
    if (started != starts && !v->unsure)
        WRONG(h, "a limit of consumer %d has%s started, and should%s", h->consumer,
              started ? "" : "n't", starts ? "" : "n't");
    if (!failed && !(rate->ratio > 0))
        v->unsure = 0;
    if (started)
        start(h, l, v, hint_ms);
}

static void keep_failure(handout *h, const statement *l, const limit_value *v)
{
    if (!h->keeps || h->keeps_until_ms < v->next_ms)
        h->keeps_until_ms = v->next_ms;
    h->keeps_whole = is_whole(l) && (!h->keeps || h->keeps_whole);
    h->keeps = 1;
}

static void ended_in(handout *h, statement *l, limit_value *v, const mull_error *error)
{
    const consumer *c = consumer_of(h);
    int64_t hint_ms = error && l->rate->hint ? mull__hint_ms(l->rate->hint, error) : 0;
    if (memory_is_short(c->process->sim))
        adopt(c, l, v);
    else if (v->limited)
        ended_limited(h, l, v, error != NULL, hint_ms);
    else
        ended_counting(h, l, v, error != NULL, hint_ms);
    if (error && v->limited && l->rate->keep)
        keep_failure(h, l, v);
}

void limits_ended(handout *h, const failing *f)
{
    consumer *c = consumer_of(h);
    error_room room;
    const mull_error *error = f ? work_error(&room, f) : NULL;
    limits_follow(h->process);
    h->keeps = 0;
    for (int i = 0; i < c->limit_count; i++) {
        statement *l = &c->limits[i];
        limit_value *v = l->rate ? value_of(l, h) : NULL;
        if (v && (!error || mull__rate_limit_counts(c->limits_of->table, l->rate, error)))
            ended_in(h, l, v, error);
    }
}

/* ---- What goes back -------------------------------------------------------------------------- */

/* held_until gives the moment before which a value lets no call of a message begin. */
static int64_t held_until(const consumer *c, const statement *l, const limit_value *v)
{
    int64_t now_ms = now_of(c);
    if (l->calls)
        return (v->even_ns - early_ns(l) + NS_PER_MS - 1) / NS_PER_MS;
    return v->limited ? v->next_ms : now_ms + 1;
}

void limits_put_back(const handout *h, int64_t due_ms)
{
    consumer *c = consumer_of(h);
    sim *s = h->process->sim;
    int64_t until_ms = 0, longest_ms = h->reader->can.longest_delay_ms;
    int holds = 0;
    for (int i = 0; i < c->limit_count; i++) {
        statement *l = &c->limits[i];
        const limit_value *v = is_whole(l) ? NULL : value_of(l, h);
        /* A retry that finds no room goes back while a limit is in force, be its probe due or not.
         */
        holds |= v && (is_shut(c, l, v, 1) || (v->limited && h->stage == RETRYING));
        if (v && is_shut(c, l, v, 0) && until_ms < held_until(c, l, v))
            until_ms = held_until(c, l, v);
    }
    if (!holds)
        WRONG(h, "message %d is put back, and none of its values is limited", h->message->number);
    if (longest_ms > 0 && until_ms > s->k.now_ms + longest_ms)
        until_ms = s->k.now_ms + longest_ms;
    if (until_ms > s->k.now_ms && due_ms < WALL_MS + until_ms)
        WRONG(h, "message %d is put back %d ms short", h->message->number,
              (int)(WALL_MS + until_ms - due_ms));
    s->totals->put_back_by_limit++;
    s->totals->retries_put_back += h->stage == RETRYING;
}

/* ---- After a turn ---------------------------------------------------------------------------- */

static void check_value(const consumer *c, const statement *l, limit_value *v, int short_of_memory)
{
    const mull__limit_state *in = view_state(c, l, v->value);
    if (short_of_memory)
        adopt(c, l, v);
    else if (l->rate && v->limited != (in && in->rate.limited))
        violation(c->process->sim, "consumer %d is limited, or isn't, and nobody was told",
                  c->queue);
    if (is_whole(l) && l->rate && now_of(c) - v->ramp_from_ms >= v->ramp_ms)
        v->ramp_ms = 0;
}

/* limits_turned: all that began and ended was told, and the policy in force holds for all. */
void limits_turned(process *p)
{
    const sim *s = p->sim;
    int is_short = memory_is_short(s);
    int was_short = p->unheard_of || s->k.now_ms <= s->counting_allocator.failed_ms + AGAIN_MS;
    limits_follow(p);
    for (int queue = 0; queue < QUEUES; queue++) {
        consumer *c = &p->consumers[queue];
        if (c->place == ABSENT || process_is_stopping(p))
            continue;
        if (c->limits_of != p->generation && !was_short)
            violation(p->sim, "process %d: the limits of consumer %d are of another policy",
                      p->index, queue);
        for (int i = 0; i < c->limit_count; i++)
            for (limit_value *v = c->limits[i].values; v; v = v->next)
                check_value(c, &c->limits[i], v, is_short);
    }
    if (p->expected_count > 0 && !is_short && p->engine && !process_is_stopping(p))
        violation(p->sim, "a limit of consumer %d has started or ended, and nobody was told",
                  p->expected[0].queue);
    p->expected_count = 0;
}
