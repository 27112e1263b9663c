/* usage.c: see usage.h. */
#include "usage.h"

#include <string.h>

#include "base/alloc.h"
#include "never.h"

/* ---- Settings -------------------------------------------------------------------------------- */

static int same_mix(const mull__mix *a, const mull__mix *b)
{
    return a->max_age_ms == b->max_age_ms && a->max_attempts == b->max_attempts &&
           a->handler_ms == b->handler_ms && a->overridden == b->overridden &&
           a->unrecoverable == b->unrecoverable;
}

static int add_mix(mull__mixes *mixes, mull__mix mix)
{
    for (size_t i = 0; i < mixes->count; i++)
        if (same_mix(&mixes->items[i], &mix))
            return MULL_OK;
    if (mixes->count == mixes->room) {
        size_t room = 2 * mixes->room + 4;
        mull__mix *grown = mull__grow(mixes->allocator, mixes->items, room, sizeof *grown);
        if (!grown)
            return MULL_ENOMEM;
        mixes->items = grown;
        mixes->room = room;
    }
    mixes->items[mixes->count++] = mix;
    return MULL_OK;
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
    mull__layer room;
    const mull__layer *layer = mull__layer_named(table, user->consumer, user->transport, &room);
    if (layer->rules != scope)
        return MULL_OK;
    mull__mix mix = {
        .max_age_ms = layer->bounds.max_age_ms,
        .max_attempts = layer->bounds.max_attempts,
        .handler_ms = user->handler_ms,
        .overridden = layer->bounds.override > 0,
        .unrecoverable = declares(table, layer),
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

/* add_consumer adds what may hold for a consumer, on any transport. */
static int add_consumer(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                        mull__user user)
{
    int status = add_layer(mixes, table, scope, &user);
    for (size_t i = 0; i < table->scope_count && status == MULL_OK; i++) {
        if (!may_be_under(scope, &table->scopes[i], MULL__TRANSPORT))
            continue;
        user.transport = table->scopes[i].name;
        status = add_layer(mixes, table, scope, &user);
    }
    return status;
}

/* add_any adds what may hold for any consumer on any transport: for those without a scope too. */
static int add_any(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                   int64_t handler_ms)
{
    int status = add_consumer(mixes, table, scope, (mull__user){.handler_ms = handler_ms});
    for (size_t i = 0; i < table->scope_count && status == MULL_OK; i++)
        if (may_be_under(scope, &table->scopes[i], MULL__CONSUMER))
            status = add_consumer(
                mixes, table, scope,
                (mull__user){.consumer = table->scopes[i].name, .handler_ms = handler_ms});
    return status;
}

int mull__mixes_of(mull__mixes *mixes, const mull__table *table, const mull__scope *scope,
                   const mull__users *users, const mull_allocator *allocator)
{
    *mixes = (mull__mixes){.allocator = allocator};
    for (size_t i = 0; i < users->count; i++)
        if (add_layer(mixes, table, scope, &users->items[i]))
            return MULL_ENOMEM;
    return mixes->count ? MULL_OK : add_any(mixes, table, scope, users->handler_ms);
}

void mull__mixes_free(mull__mixes *mixes)
{
    mull__free(mixes->allocator, mixes->items);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

const mull__rule *mull__rule_at(const mull__scope *scope, size_t index)
{
    const mull__rules *rules = &scope->rules;
    return index < rules->count ? &rules->items[index]
                                : &scope->cause_rules.items[index - rules->count];
}

int mull__written_in(const mull__scope *scope, const mull__rule *rule)
{
    return strcmp(scope->label, rule->source.scope) == 0;
}

int mull__is_cause_rule(const mull__scope *scope, const mull__rule *rule)
{
    const mull__rules *causes = &scope->cause_rules;
    return causes->count && rule >= causes->items && rule < causes->items + causes->count;
}

const mull__rule *mull__hidden_by(const mull__scope *scope, const mull__rule *rule)
{
    const mull__rules *rules =
        mull__is_cause_rule(scope, rule) ? &scope->cause_rules : &scope->rules;
    const mull__rule *before = mull__first_rule(rules, rule->type);
    for (; before && before != rule; before = mull__next_rule(rules, before))
        if (mull__covers(&before->matcher, &rule->matcher))
            return before;
    return NULL;
}

/* declaration is the scope's own one for a type that passes wherever a matcher does. */
static const mull__rule *declaration(const mull__scope *scope, uint32_t type,
                                     const mull__plain_matcher *matcher)
{
    const mull__rule *found = scope ? mull__first_rule(&scope->unrecoverable, type) : NULL;
    while (found && !mull__covers(&found->matcher, matcher))
        found = mull__next_rule(&scope->unrecoverable, found);
    return found;
}

const mull__rule *mull__taken_by(const mull__table *table, const mull__scope *scope,
                                 const mull__rule *rule, int declared)
{
    static const mull__plain_matcher always = {.kind = MULL__MATCH_ALWAYS};
    const mull__scope *const scopes[] = {scope, table->bus, table->host};
    const mull__plain_matcher *matcher = &rule->matcher;
    if (mull__is_cause_rule(scope, rule)) { /* only the error itself counts, whatever its cause */
        matcher = &always;
        declared = -1;
    }
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        const mull__rule *found = declaration(scopes[i], MULL__ERROR_TYPE, matcher);
        uint32_t type = rule->type;
        while (!found && declared >= 0 && type != MULL__ERROR_TYPE) {
            found = declaration(scopes[i], type, matcher);
            type = declared ? table->types[type].parent : MULL__ERROR_TYPE;
        }
        if (found)
            return found;
    }
    return NULL;
}

int mull__has_default(const mull__scope *scope)
{
    const mull__rule *rule = mull__first_rule(&scope->rules, MULL__ERROR_TYPE);
    while (rule && rule->matcher.kind != MULL__MATCH_ALWAYS)
        rule = mull__next_rule(&scope->rules, rule);
    return rule != NULL;
}

/* ---- Extents --------------------------------------------------------------------------------- */

int mull__may_decide(const mull__table *table, const mull__scope *scope, const mull__rule *rule)
{
    return !mull__hidden_by(scope, rule) && !mull__taken_by(table, scope, rule, 0) &&
           !mull__never_passes(&rule->matcher);
}

size_t mull__courses_of(mull__course *courses, const mull__table *table, const mull__scope *scope)
{
    size_t count = 0;
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (mull__may_decide(table, scope, rule))
            courses[count++] = (mull__course){&rule->retry, &rule->redeliver};
    }
    return count;
}

mull__walks mull__walks_of(const mull__scope *scope, const mull__mix *mix,
                           const mull__course *courses, size_t count)
{
    int unreadable = !mull__first_rule(&scope->rules, MULL__UNREADABLE_TYPE);
    return (mull__walks){
        .courses = courses,
        .count = count,
        .may_end_at_once = unreadable || mix->unrecoverable || !mull__has_default(scope),
        .max_attempts = mix->max_attempts,
        .max_age_ms = mix->max_age_ms,
        .handler_ms = mix->handler_ms,
    };
}

static void widen(mull__extent *all, mull__extent one)
{
    all->calls = one.calls > all->calls ? one.calls : all->calls;
    all->shortest_ms = one.shortest_ms < all->shortest_ms ? one.shortest_ms : all->shortest_ms;
    all->longest_ms = one.longest_ms > all->longest_ms ? one.longest_ms : all->longest_ms;
    all->rough |= one.rough;
}

int mull__extent_of_scope(mull__extent *extent, const mull__table *table, const mull__scope *scope,
                          const mull__mixes *mixes)
{
    *extent = (mull__extent){0, MULL__FOREVER, 0, 0};
    mull__course *courses =
        mull__zalloc(mixes->allocator, mull__scope_rules(scope), sizeof *courses);
    if (!courses)
        return MULL_ENOMEM;
    size_t count = mull__courses_of(courses, table, scope);
    int status = MULL_OK;
    for (size_t i = 0; i < mixes->count && status == MULL_OK; i++) {
        mull__walks walks = mull__walks_of(scope, &mixes->items[i], courses, count);
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

mull__extent mull__extent_of_rule(const mull__rule *rule, const mull__mixes *mixes)
{
    const mull__course course = {&rule->retry, &rule->redeliver};
    mull__extent extent = {0, MULL__FOREVER, 0, 0};
    for (size_t i = 0; i < mixes->count; i++) {
        const mull__mix *mix = &mixes->items[i];
        mull__walks walks = {.courses = &course,
                             .count = 1,
                             .max_attempts = mix->max_attempts,
                             .max_age_ms = mix->max_age_ms,
                             .handler_ms = mix->handler_ms};
        widen(&extent, mix->overridden ? mull__extent_overridden(&walks)
                                       : mull__extent_of_course(&course, &walks));
    }
    return extent;
}
