/* findings_in_use.c: what of a policy doesn't fit the consumers that it is for. */
#include <string.h>

#include "findings.h"

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
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (mull__written_in(scope, rule))
            return (mull__plain_place){rule->source.file, rule->source.line};
    }
    for (int i = 0; i < MULL__SETTINGS; i++)
        if (scope->places[i].file)
            return scope->places[i];
    if (scope->unrecoverable.count > 0)
        return (mull__plain_place){scope->unrecoverable.items[0].source.file,
                                   scope->unrecoverable.items[0].source.line};
    if (scope->include_count > 0)
        return (mull__plain_place){scope->includes[0].file, scope->includes[0].line};
    return (mull__plain_place){NULL, 0};
}

static void not_there(const mull__finder *f, const mull__scope *scope)
{
    mull__plain_place place = place_of(scope);
    mull__finding finding = {.kind = MULL__NOT_THERE,
                             .file = place.file,
                             .line = place.line,
                             .scope = scope->label,
                             .word = scope->name};
    if (scope->name && !is_there(f->users, scope))
        f->tell(f->data, &finding);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* dead_letters_read: one that reads the queue that its own go to is refused by `run`. */
static void dead_letters_read(const mull__finder *f, const mull__user *user)
{
    for (size_t i = 0; i < f->users->count; i++) {
        const mull__user *source = &f->users->items[i];
        mull__in_force in_force;
        mull__table_in_force(f->table, source->consumer, source->transport, &in_force);
        if (source == user || strcmp(source->transport, user->transport) != 0 ||
            strcmp(in_force.dead_letter_queue, user->queue) != 0)
            continue;
        mull__finding finding = {.kind = MULL__DEAD_LETTERS_READ,
                                 .word = user->consumer,
                                 .other = {.scope = source->consumer, .type = user->queue}};
        f->tell(f->data, &finding);
        return;
    }
}

static int told_before(const mull__finder *f, const mull__user *user, const mull__scope *scope)
{
    for (const mull__user *u = f->users->items; u < user; u++) {
        mull__layer room;
        if (strcmp(u->transport, user->transport) == 0 &&
            mull__layer_named(f->table, u->consumer, u->transport, &room)->rules == scope)
            return 1;
    }
    return 0;
}

static void long_delays(const mull__finder *f, const mull__user *user)
{
    mull__layer room;
    const mull__layer *layer = mull__layer_named(f->table, user->consumer, user->transport, &room);
    if (user->longest_delay_ms == 0 || !layer->rules || told_before(f, user, layer->rules))
        return;
    static const mull__plain_tier off;
    for (size_t i = 0; i < mull__scope_rules(layer->rules); i++) {
        const mull__rule *rule = mull__rule_at(layer->rules, i);
        int64_t ms = mull__longest_wait_ms(&(mull__course){&off, &rule->redeliver});
        if (ms <= user->longest_delay_ms)
            continue;
        mull__finding finding = mull__finding_about(MULL__LONG_DELAY, rule);
        finding.word = user->transport;
        finding.number = ms;
        finding.limit = user->longest_delay_ms;
        f->tell(f->data, &finding);
    }
}

void mull__find_in_use(const mull__finder *f)
{
    for (size_t i = 0; i < f->users->count; i++)
        dead_letters_read(f, &f->users->items[i]);
    for (size_t i = 0; i < f->users->count; i++)
        long_delays(f, &f->users->items[i]);
    for (size_t i = 0; i < f->table->scope_count; i++)
        not_there(f, &f->table->scopes[i]);
}
