/* lint_service.c: what of a policy doesn't fit the consumers that it is for. */
#include <string.h>

#include "lint.h"
#include "policy/resolve.h"

/* ---- Scopes ---------------------------------------------------------------------------------- */

static int is_there(const mull__users *users, const mull__scope *scope)
{
    for (size_t i = 0; i < users->count && scope->kind == MULL__CONSUMER; i++)
        if (strcmp(users->items[i].consumer, scope->name) == 0)
            return 1;
    for (size_t i = 0; i < users->transport_count && scope->kind == MULL__TRANSPORT; i++)
        if (strcmp(users->transports[i], scope->name) == 0)
            return 1;
    return 0;
}

/* place_of is where a scope is first heard of, as far as it is kept. */
static mull__plain_place place_of(const mull__scope *scope)
{
    const mull__rule *rule = mull__first_written_in(scope, scope);
    for (int i = 0; i < MULL__SETTINGS && !rule; i++)
        if (scope->places[i].file)
            return scope->places[i];
    if (!rule && scope->unrecoverable.count > 0)
        rule = &scope->unrecoverable.items[0];
    if (rule)
        return (mull__plain_place){rule->source.file, rule->source.line};
    if (scope->include_count > 0)
        return (mull__plain_place){scope->includes[0].file, scope->includes[0].line};
    return (mull__plain_place){NULL, 0};
}

static void not_there(mull__finder *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    if (!scope->name || is_there(f->users, scope))
        return;
    mull__plain_place place = place_of(scope);
    mull__found(f, NULL,
                (mull__finding){.kind = MULL__NOT_THERE,
                                .file = place.file,
                                .line = place.line,
                                .scope = scope->label,
                                .word = scope->name});
}

void mull__find_not_there(const mull__table *table, const mull__users *users,
                          void (*tell)(void *data, const mull__finding *finding), void *data)
{
    mull__finder f = {.table = table, .users = users, .tell = tell, .data = data};
    mull__search(&f, MULL__SCOPES, not_there);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* dead_letters_read: one that reads the queue that its own go to is refused by `run`. */
static void dead_letters_read(const mull__finder *f, const mull__user *user)
{
    for (size_t i = 0; i < f->users->count; i++) {
        const mull__user *source = &f->users->items[i];
        const mull__settings in_force =
            mull__layer_named(f->table, source->consumer, source->transport).bounds;
        if (source == user || strcmp(source->transport, user->transport) != 0 ||
            strcmp(in_force.dead_letter_queue, user->queue) != 0)
            continue;
        mull__found(f, NULL,
                    (mull__finding){.word = user->consumer,
                                    .other = {.scope = source->consumer, .type = user->queue}});
        return;
    }
}

static int told_before(const mull__finder *f, const mull__user *user, const mull__scope *scope)
{
    for (const mull__user *u = f->users->items; u < user; u++) {
        if (strcmp(u->transport, user->transport) == 0 &&
            mull__layer_named(f->table, u->consumer, u->transport).rules == scope)
            return 1;
    }
    return 0;
}

static void long_delays(const mull__finder *f, const mull__user *user)
{
    const mull__scope *scope = mull__layer_named(f->table, user->consumer, user->transport).rules;
    if (user->longest_delay_ms == 0 || !scope || told_before(f, user, scope))
        return;
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        int64_t ms = mull__longest_step_ms(&rule->redeliver);
        if (ms > user->longest_delay_ms)
            mull__found(f, rule,
                        (mull__finding){.kind = MULL__LONG_DELAY,
                                        .word = user->transport,
                                        .number = ms,
                                        .limit = user->longest_delay_ms});
    }
}

void mull__find_in_use(mull__finder *f, const mull__lint_item *item)
{
    (void)item;
    for (size_t i = 0; i < f->users->count; i++)
        dead_letters_read(f, &f->users->items[i]);
    for (size_t i = 0; i < f->users->count; i++)
        long_delays(f, &f->users->items[i]);
    if (f->users->count > 0)
        mull__search(f, MULL__SCOPES, not_there);
}
