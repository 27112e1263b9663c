/* scope_usage.c: see scope_usage.h. */
#include "scope_usage.h"

#include <string.h>

#include "base/alloc.h"
#include "policy/resolve.h"

/* ---- Settings -------------------------------------------------------------------------------- */

static int same_mix(const mull__mix *a, const mull__mix *b)
{
    return a->max_age_ms == b->max_age_ms && a->max_attempts == b->max_attempts &&
           a->handler_ms == b->handler_ms && a->overridden == b->overridden &&
           a->unrecoverable == b->unrecoverable;
}

/* More settings than so many aren't told apart. */
enum { MOST_MIXES = 100 };

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* looser and tighter are of two limits. */
static int64_t looser(int64_t a, int64_t b)
{
    return a == MULL__OFF || b == MULL__OFF ? MULL__OFF : greater(a, b);
}

static int64_t tighter(int64_t a, int64_t b)
{
    return a == MULL__OFF ? b : b == MULL__OFF ? a : smaller(a, b);
}

static mull__mix mixed(const mull__mix *a, const mull__mix *b, int64_t (*limit)(int64_t, int64_t),
                       int64_t (*time)(int64_t, int64_t))
{
    return (mull__mix){
        .max_age_ms = limit(a->max_age_ms, b->max_age_ms),
        .max_attempts = limit(a->max_attempts, b->max_attempts),
        .handler_ms = time(a->handler_ms, b->handler_ms),
        .overridden = a->overridden || b->overridden,
        .unrecoverable = a->unrecoverable || b->unrecoverable,
    };
}

/* take_in widens the two that stand for all. */
static void take_in(mull__mixes *mixes, const mull__mix *mix)
{
    mixes->items[0] = mixed(&mixes->items[0], mix, looser, greater);
    mixes->items[1] = mixed(&mixes->items[1], mix, tighter, smaller);
}

static void merge(mull__mixes *mixes)
{
    size_t count = mixes->count;
    mull__mix first = mixes->items[0], second = mixes->items[1];
    mixes->items[1] = first;
    take_in(mixes, &second);
    for (size_t i = 2; i < count; i++)
        take_in(mixes, &mixes->items[i]);
    mixes->count = 2;
    mixes->rough = 1;
}

static int add_mix(mull__mixes *mixes, mull__mix mix)
{
    for (size_t i = 0; i < mixes->count; i++)
        if (same_mix(&mixes->items[i], &mix))
            return MULL_OK;
    if (mixes->rough) {
        take_in(mixes, &mix);
        return MULL_OK;
    }
    if (mixes->count == mixes->room) {
        size_t room = 2 * mixes->room + 4;
        mull__mix *grown = mull__grow(mixes->allocator, mixes->items, room, sizeof *grown);
        if (!grown)
            return MULL_ENOMEM;
        mixes->items = grown;
        mixes->room = room;
    }
    mixes->items[mixes->count++] = mix;
    if (mixes->count > MOST_MIXES)
        merge(mixes);
    return MULL_OK;
}

/* add_all adds whatever there may be, where to look for it would take too long. */
static int add_all(mull__mixes *mixes, int64_t handler_ms)
{
    const mull__mix loosest = {MULL__OFF, MULL__OFF, handler_ms, 1, 1};
    const mull__mix tightest = {0, 1, handler_ms, 1, 1};
    int status = add_mix(mixes, loosest);
    if (status == MULL_OK)
        status = add_mix(mixes, tightest);
    mixes->rough = 1;
    return status;
}

static int declares(const mull__table *table, const mull__layer *layer)
{
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        if (scope && scope->unrecoverable.count > 0)
            return 1;
    }
    return 0;
}

/* add_layer adds what holds for a consumer on a transport, if the scope's rules do. */
static int add_layer(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                     const mull__user *user)
{
    const mull__layer layer = mull__layer_named(table, user->consumer, user->transport);
    if (layer.rules != scope)
        return MULL_OK;
    mull__mix mix = {
        .max_age_ms = layer.bounds.max_age_ms,
        .max_attempts = layer.bounds.max_attempts,
        .handler_ms = user->handler_ms,
        .overridden = layer.bounds.override > 0,
        .unrecoverable = declares(table, &layer),
    };
    return add_mix(mixes, mix);
}

/* may_be_under: a layer in which the scope's rules are in force may be made of `other` too. */
static int may_be_under(const mull__scope *scope, const mull__scope *other, mull__scope_kind kind)
{
    if (other->kind != kind)
        return 0;
    return other == scope || (other->kind != scope->kind &&
                              (mull__scope_rules(other) == 0 || other->kind > scope->kind));
}

enum { LOOK_NS = 1, LAYER_NS = 100 };

/* named is how many scopes have to be gone through to find those of a kind that has names. */
static size_t named(const mull__table *table, mull__scope_kind kind)
{
    size_t transports = table->transport_count;
    size_t others = transports + (table->bus != NULL) + (table->host != NULL);
    size_t count = kind == MULL__TRANSPORT ? transports : table->scope_count - others;
    return count > 0 ? table->scope_count : 0;
}

/* add_consumer adds what may hold for a consumer, on any transport. */
static int add_consumer(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                        mull__user user, int64_t *effort)
{
    size_t count = named(table, MULL__TRANSPORT);
    if (scope->kind == MULL__TRANSPORT) {
        user.transport = scope->name;
        count = 0;
    }
    int status = add_layer(mixes, table, scope, &user);
    *effort -= LAYER_NS;
    for (size_t i = 0; i < count && status == MULL_OK && *effort > 0; i++) {
        *effort -= LOOK_NS;
        if (!may_be_under(scope, &table->scopes[i], MULL__TRANSPORT))
            continue;
        *effort -= LAYER_NS;
        user.transport = table->scopes[i].name;
        status = add_layer(mixes, table, scope, &user);
    }
    return status;
}

/* add_any adds what may hold for any consumer on any transport: for those without a scope too. */
static int add_any(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                   int64_t handler_ms, int64_t *effort)
{
    mull__user user = {.handler_ms = handler_ms};
    if (scope->kind == MULL__CONSUMER) {
        user.consumer = scope->name;
        return add_consumer(mixes, table, scope, user, effort);
    }
    int status = add_consumer(mixes, table, scope, user, effort);
    size_t count = named(table, MULL__CONSUMER);
    for (size_t i = 0; i < count && status == MULL_OK && *effort > 0; i++) {
        *effort -= LOOK_NS;
        if (!may_be_under(scope, &table->scopes[i], MULL__CONSUMER))
            continue;
        user.consumer = table->scopes[i].name;
        status = add_consumer(mixes, table, scope, user, effort);
    }
    return status;
}

/* may_use: a known consumer may have a scope's rules in force, by its names. */
static int may_use(const mull__user *user, const mull__scope *scope)
{
    if (scope->kind == MULL__CONSUMER)
        return strcmp(user->consumer, scope->name) == 0;
    return scope->kind != MULL__TRANSPORT || strcmp(user->transport, scope->name) == 0;
}

int mull__mixes_of(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                   const mull__users *users, int64_t *effort, const mull_allocator *allocator)
{
    *mixes = (mull__mixes){.allocator = allocator};
    for (size_t i = 0; i < users->count; i++)
        if (may_use(&users->items[i], scope) && add_layer(mixes, table, scope, &users->items[i]))
            return MULL_ENOMEM;
    if (mixes->count > 0)
        return MULL_OK;
    int status = add_any(mixes, table, scope, users->handler_ms, effort);
    if (status == MULL_OK && *effort <= 0)
        status = add_all(mixes, users->handler_ms);
    return status;
}

void mull__mixes_free(mull__mixes *mixes)
{
    mull__free(mixes->allocator, mixes->items);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

int mull__written_in(const mull__scope *scope, const mull__rule *rule)
{
    return scope->label == rule->source.scope || strcmp(scope->label, rule->source.scope) == 0;
}

int mull__is_cause_rule(const mull__scope *scope, const mull__rule *rule)
{
    const mull__rules *causes = &scope->cause_rules;
    return causes->count && rule >= causes->items && rule < causes->items + causes->count;
}

int mull__has_default(const mull__scope *scope)
{
    const mull__rule *rule = mull__first_rule(&scope->rules, MULL__ERROR_TYPE);
    while (rule && rule->matcher.kind != MULL__MATCH_ALWAYS)
        rule = mull__next_rule(&scope->rules, rule);
    return rule != NULL;
}

/* ---- Extents --------------------------------------------------------------------------------- */

size_t mull__courses_of(mull__course *courses, const mull__fates *fates, const mull__scope *scope)
{
    const mull__fate *fate = mull__fates_in(fates, scope);
    size_t count = 0;
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (fate[i].may_decide)
            courses[count++] = (mull__course){&rule->retry, &rule->redeliver};
    }
    return count;
}

mull__walks mull__walks_of(const mull__scope *scope, const mull__mix *mix,
                           const mull__course *courses, size_t count, int64_t *effort)
{
    int unreadable = !mull__first_rule(&scope->rules, MULL__UNREADABLE_TYPE);
    return (mull__walks){
        .courses = courses,
        .count = count,
        .may_end_at_once = unreadable || mix->unrecoverable || !mull__has_default(scope),
        .max_attempts = mix->max_attempts,
        .max_age_ms = mix->max_age_ms,
        .handler_ms = mix->handler_ms,
        .effort = effort,
    };
}

static void widen(mull__extent *all, mull__extent one)
{
    all->calls = one.calls > all->calls ? one.calls : all->calls;
    all->shortest_ms = one.shortest_ms < all->shortest_ms ? one.shortest_ms : all->shortest_ms;
    all->longest_ms = one.longest_ms > all->longest_ms ? one.longest_ms : all->longest_ms;
    all->rough |= one.rough;
}

int mull__extent_of_scope(mull__extent *extent, const mull__fates *fates, const mull__scope *scope,
                          const mull__mixes *mixes, int64_t *effort)
{
    int rough = mixes->rough || !mull__are_all_known(fates, scope);
    *extent = (mull__extent){0, MULL__FOREVER, 0, rough};
    mull__course *courses =
        mull__zalloc(mixes->allocator, mull__scope_rules(scope), sizeof *courses);
    if (!courses)
        return MULL_ENOMEM;
    size_t count = mull__courses_of(courses, fates, scope);
    int status = MULL_OK;
    for (size_t i = 0; i < mixes->count && status == MULL_OK; i++) {
        mull__walks walks = mull__walks_of(scope, &mixes->items[i], courses, count, effort);
        mull__extent one;
        if (mixes->items[i].overridden)
            one = mull__extent_overridden(&walks);
        else
            status = mull__extent_of_walks(&one, &walks, mixes->allocator);
        if (status == MULL_OK)
            widen(extent, one);
    }
    mull__free(mixes->allocator, courses);
    return status;
}

void mull__extent_of_rule(mull__extent *extent, const mull__rule *rule, const mull__rule *before,
                          const mull__mixes *mixes, int64_t *effort)
{
    const mull__course course = {&rule->retry, &rule->redeliver};
    if (before && mull__same_course(&course, &(mull__course){&before->retry, &before->redeliver}))
        return;
    *extent = (mull__extent){0, MULL__FOREVER, 0, mixes->rough};
    for (size_t i = 0; i < mixes->count; i++) {
        const mull__mix *mix = &mixes->items[i];
        mull__walks walks = {.courses = &course,
                             .count = 1,
                             .max_attempts = mix->max_attempts,
                             .max_age_ms = mix->max_age_ms,
                             .handler_ms = mix->handler_ms,
                             .effort = effort};
        widen(extent, mix->overridden ? mull__extent_overridden(&walks)
                                      : mull__extent_of_course(&course, &walks));
    }
}
