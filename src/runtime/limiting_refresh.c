/* limiting_refresh.c: a consumer's limits follow the policy in force. A statement with the `per` of
 * one that was in force goes on with what that knows; what the policy has no more ends. */
#include "base/alloc.h"
#include "limit_events.h"
#include "limiting.h"
#include "policy/resolve.h"
#include "timers.h"

#include <string.h>

static int same_per(const mull__per *a, const mull__per *b)
{
    return a->kind == b->kind && (a->kind != MULL__PER_HEADER || strcmp(a->header, b->header) == 0);
}

/* limit_like finds the statement that another one takes the place of; NULL: there is none. */
static mull__limit *limit_like(const mull__limits *limits, const mull__limit *other)
{
    for (size_t i = 0; limits && i < limits->count; i++)
        if (!limits->items[i]->rate == !other->rate &&
            same_per(mull__limit_per(limits->items[i]), mull__limit_per(other)))
            return limits->items[i];
    return NULL;
}

static void limit_free(const mull_allocator *allocator, mull__limit *limit)
{
    if (!limit)
        return;
    mull__limit_state_free(allocator, limit->whole);
    mull__values_free(&limit->values, allocator);
    mull__free(allocator, limit);
}

static mull__limit *limit_new(const mull_allocator *allocator, const mull__limit *like)
{
    mull__limit *made = mull__zalloc(allocator, 1, sizeof *made);
    if (!made)
        return NULL;
    made->rate = like->rate;
    made->calls = like->calls;
    mull__values_init(&made->values);
    if (mull__limit_per(made)->kind == MULL__PER_CONSUMER)
        made->whole = mull__limit_state_new(allocator, "");
    if (mull__limit_per(made)->kind != MULL__PER_CONSUMER || made->whole)
        return made;
    limit_free(allocator, made);
    return NULL;
}

/* statement gives the one at a place: first those of `rate_limit`, then those of `limit`. */
static mull__limit statement(const mull__settings *settings, size_t at)
{
    if (at < settings->rate_limit.count)
        return (mull__limit){.rate = &settings->rate_limit.items[at]};
    return (mull__limit){.calls = &settings->limit.items[at - settings->rate_limit.count]};
}

/* limits_new makes those of some settings: a statement that was in force, with its states, is the
 * same one. NULL: there is no memory, and the old ones are as they were. */
static mull__limits *limits_new(const mull__consumer *c, const mull__settings *settings)
{
    const mull_allocator *allocator = &c->engine->allocator;
    size_t count = settings->rate_limit.count + settings->limit.count;
    mull__limits *made = mull__zalloc(allocator, 1, sizeof *made + count * sizeof made->items[0]);
    if (made)
        made->rates = settings->rate_limit.count;
    for (size_t i = 0; made && i < count; i++) {
        const mull__limit like = statement(settings, i);
        mull__limit *old = limit_like(c->limits, &like);
        made->items[i] = old ? old : limit_new(allocator, &like);
        if (made->items[i]) {
            made->count++;
            continue;
        }
        while (made->count-- > 0)
            if (!limit_like(c->limits, made->items[made->count]))
                limit_free(allocator, made->items[made->count]);
        mull__free(allocator, made);
        made = NULL;
    }
    return made;
}

static void end_state(mull__consumer *c, const mull__limit *limit, mull__limit_state *state,
                      const char *why)
{
    mull__rate_end(&state->rate, limit->rate, mull__engine_now(c->engine));
    mull__limit_ended(c, limit->rate, state, why);
}

/* end_limit ends a statement that holds no more. */
static void end_limit(mull__consumer *c, mull__limit *limit, const char *why)
{
    if (limit->rate && limit->whole && limit->whole->rate.limited)
        end_state(c, limit, limit->whole, why);
    for (mull__link *link = mull__list_first(&limit->values.limited); link;
         link = mull__list_after(&limit->values.limited, link))
        end_state(c, limit, MULL__ENTRY(link, mull__limit_state, link), why);
    limit_free(&c->engine->allocator, limit);
}

/* count_anew: failures in a row are no part of all calls, nor the other way round. */
static void count_anew(mull__limit *limit)
{
    mull__list *list = &limit->values.counted;
    if (limit->whole)
        mull__rate_free(&limit->whole->rate);
    for (mull__link *link = mull__list_first(list); link; link = mull__list_after(list, link))
        mull__rate_free(&MULL__ENTRY(link, mull__limit_state, link)->rate);
}

/* renew_paces: what an earlier rate put off begins by the new one. */
static void renew_paces(mull__limit *limit, int64_t now_ms)
{
    mull__list *list = &limit->values.counted;
    if (limit->whole)
        mull__pace_renew(&limit->whole->pace, limit->calls, now_ms);
    for (mull__link *link = mull__list_first(list); link; link = mull__list_after(list, link)) {
        mull__limit_state *state = MULL__ENTRY(link, mull__limit_state, link);
        mull__pace_renew(&state->pace, limit->calls, now_ms);
        state->last_ms = 0;
    }
}

/* put_pace puts a statement of `limit` where calls look for it. */
static void put_pace(mull__limits *limits, mull__limit *limit, int64_t now_ms)
{
    int64_t step_ns = mull__pace_step(limit->calls), early_ns = mull__pace_early(limit->calls);
    if (step_ns != limit->step_ns || early_ns != limit->early_ns)
        renew_paces(limit, now_ms);
    limit->step_ns = step_ns;
    limit->early_ns = early_ns;
    limit->next = NULL;
    if (limit->whole) {
        limits->pace = limit;
    } else {
        limit->next = limits->value_paces;
        limits->value_paces = limit;
    }
}

static void replace(mull__consumer *c, mull__limits *made, const mull__settings *settings)
{
    mull__limits *old = c->limits;
    for (size_t i = 0; old && i < old->count; i++)
        if (!limit_like(made, old->items[i]))
            end_limit(c, old->items[i], "the policy has it no more");
    for (size_t i = 0; i < made->count; i++) {
        const mull__limit now = statement(settings, i);
        if (now.rate && (now.rate->ratio > 0) != (made->items[i]->rate->ratio > 0))
            count_anew(made->items[i]);
        made->items[i]->rate = now.rate;
        made->items[i]->calls = now.calls;
        if (now.calls)
            put_pace(made, made->items[i], mull__engine_now(c->engine));
    }
    mull__limits_look(made);
    mull__free(&c->engine->allocator, old);
    c->limits = made;
    if (made->count == 0) {
        mull__free(&c->engine->allocator, made);
        c->limits = NULL;
    }
}

/* take gives a consumer what a generation says of it. */
static int take(mull__consumer *c, mull__generation *generation)
{
    const mull__settings settings =
        mull__effective_settings_of(mull__generation_table(generation), c->name, c->port->name)
            .settings;
    mull__limits *made = limits_new(c, &settings);
    if (!made)
        return MULL_ENOMEM;
    replace(c, made, &settings);
    mull__limits_look_again(c, NULL, "");
    c->max_attempts = settings.max_attempts;
    c->deadline_ms = settings.deadline_ms;
    c->may_refuse = c->limits || c->max_attempts != MULL__OFF || c->deadline_ms != MULL__OFF;
    if (c->generation)
        mull__generation_unref(c->generation);
    c->generation = mull__generation_ref(generation);
    return 0;
}

static void on_again(void *data)
{
    mull__engine_mark_posted(data);
}

void mull__limits_refresh(mull_engine *engine)
{
    mull__generation *current = mull__decider_refresh(engine->decider);
    if (engine->limits_of == current && !engine->limits_stale)
        return;
    engine->limits_of = current; /* kept by each consumer that goes by it */
    engine->limits_stale = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        if (c->generation != current && !c->is_reader)
            engine->limits_stale |= take(c, current) != 0;
    if (engine->limits_stale)
        mull__timer_set(engine, &engine->limits_timer, MULL__AGAIN_MS, on_again, engine);
}

void mull__limits_end(mull__consumer *c)
{
    for (size_t i = 0; c->limits && i < c->limits->count; i++)
        end_limit(c, c->limits->items[i], "its consumer is removed");
    mull__free(&c->engine->allocator, c->limits);
    c->limits = NULL;
}

void mull__limits_free(mull__consumer *c)
{
    for (size_t i = 0; c->limits && i < c->limits->count; i++)
        limit_free(&c->engine->allocator, c->limits->items[i]);
    mull__free(&c->engine->allocator, c->limits);
    c->limits = NULL;
    mull__engine_cancel(c->engine, &c->limits_timer);
    if (c->generation)
        mull__generation_unref(c->generation);
    c->generation = NULL;
}
