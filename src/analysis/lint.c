/* lint.c: searches for findings about rules, scopes and consumers, and the order of all. */
#include "lint.h"

#include <string.h>

#include "lint_internal.h"
#include "policy/resolve.h"
#include "satisfiability.h"

/* ---- Searching ------------------------------------------------------------------------------- */

static int goes_on(const mull__lint_context *f)
{
    return !f->stopped && f->status == MULL_OK;
}

static void search_own_rules(mull__lint_context *f, mull__lint *look, const mull__scope *scope)
{
    const mull__fate *fates = mull__fates_in(f->fates, scope);
    for (size_t i = 0; i < mull__scope_rules(scope) && goes_on(f); i++)
        if (mull__written_in(scope, mull__rule_at(scope, i)))
            look(f, &(mull__lint_item){scope, mull__rule_at(scope, i), &fates[i]});
}

void mull__lint_each(mull__lint_context *f, unsigned at, mull__lint *look)
{
    f->stopped = 0;
    if (at == MULL__ONCE)
        look(f, &(mull__lint_item){NULL, NULL, NULL});
    for (size_t i = 0; i < f->table->scope_count && goes_on(f); i++) {
        const mull__scope *scope = &f->table->scopes[i];
        const mull__rules *declared = &scope->unrecoverable;
        if (at & MULL__SCOPES)
            look(f, &(mull__lint_item){scope, NULL, NULL});
        if (at & MULL__OWN_RULES)
            search_own_rules(f, look, scope);
        for (size_t j = 0; at & MULL__DECLARATIONS && j < declared->count && goes_on(f); j++)
            look(f, &(mull__lint_item){scope, &declared->items[j], NULL});
    }
}

void mull__lint_report(const mull__lint_context *f, const mull__rule *rule, mull__finding finding)
{
    if (!finding.kind)
        finding.kind = f->kind;
    if (rule) {
        finding.file = rule->source.file;
        finding.line = rule->source.line;
        finding.scope = rule->source.scope;
        finding.type = rule->source.type;
    }
    f->tell(f->data, &finding);
}

void mull__stop(mull__lint_context *f, const char *word, const char *file, int line)
{
    f->stopped = 1;
    mull__lint_report(
        f, NULL, (mull__finding){.kind = MULL__STOPPED, .file = file, .line = line, .word = word});
}

static int is_among(const mull__rules *rules, const mull__rule *rule)
{
    const mull__rule *other = mull__first_rule(rules, rule->type);
    while (other && (other->source.line != rule->source.line ||
                     strcmp(other->source.file, rule->source.file) != 0 ||
                     strcmp(other->source.scope, rule->source.scope) != 0))
        other = mull__next_rule(rules, other);
    return other != NULL;
}

int mull__is_included(const mull__lint_context *f, const mull__rule *rule)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        if (scope->include_count > 0 && !mull__written_in(scope, rule) &&
            (is_among(&scope->rules, rule) || is_among(&scope->cause_rules, rule)))
            return 1;
    }
    return 0;
}

/* first_written_in is the first of a scope's rules that was written in `writer`; NULL. */
static const mull__rule *first_written_in(const mull__scope *writer, const mull__scope *scope)
{
    for (size_t i = 0; i < mull__scope_rules(scope); i++)
        if (mull__written_in(writer, mull__rule_at(scope, i)))
            return mull__rule_at(scope, i);
    return NULL;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void hidden(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__rule *by = item->fate->hidden_by;
    if (by && (by->matcher.kind == MULL__MATCH_ALWAYS) == (f->kind == MULL__HIDDEN))
        mull__lint_report(f, item->rule, (mull__finding){.other = by->source});
}

/* holds_everywhere: declarations of all four scopes add up, wherever a rule is in force. */
static int holds_everywhere(const mull__rule *declaration)
{
    return strcmp(declaration->source.scope, "bus") == 0 ||
           strcmp(declaration->source.scope, "host") == 0;
}

static void unrecoverable_before(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__rule *by = item->fate->taken_by;
    mull__finding finding = {.other.type = f->table->types[MULL__UNREADABLE_TYPE].name};
    if (by)
        finding.other = by->source;
    else if (!item->fate->is_unreadable ||
             mull__first_rule(&item->scope->rules, MULL__UNREADABLE_TYPE))
        return;
    if (by && by->matcher.kind != MULL__MATCH_ALWAYS)
        finding.word = "matcher";
    if ((by && holds_everywhere(by)) || !mull__is_included(f, item->rule))
        mull__lint_report(f, item->rule, finding); /* else others may hold where it is included */
}

static void never_passes(mull__lint_context *f, const mull__lint_item *item)
{
    if (item->fate->never_passes)
        mull__lint_report(f, item->rule, (mull__finding){0});
}

static void declaration_never_passes(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__rule *declaration = item->rule;
    if (mull__never_passes(&declaration->matcher, &f->effort))
        mull__lint_report(f, declaration, (mull__finding){0});
    if (f->effort <= 0)
        mull__stop(f, "never", declaration->source.file, declaration->source.line);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

/* replaced: what an own rule put in the place of an included one is what including is for. */
static void replaced(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    for (size_t i = 0; i < scope->replaced_count; i++) {
        const mull__replaced_rule *r = &scope->replaced[i];
        if (strcmp(r->scope, scope->label) == 0)
            mull__lint_report(
                f, NULL,
                (mull__finding){.file = r->file,
                                .line = r->line,
                                .scope = scope->label,
                                .type = r->type,
                                .other = {r->by_file, r->by_line, scope->label, r->type}});
    }
}

/* behind is the scope whose rules would be in force without those of `scope`, wherever it is; NULL:
 * none. Which transport a consumer is on isn't known. */
static const mull__scope *behind(const mull__table *table, const mull__scope *scope)
{
    const mull__scope *far = table->host;
    if (scope->name && table->bus && mull__scope_rules(table->bus) > 0)
        far = table->bus;
    return far && far != scope && mull__scope_rules(far) > 0 ? far : NULL;
}

/* is_overridden: an override is in force for those whom a scope names. */
static int is_overridden(const mull__table *table, const mull__scope *scope)
{
    const char *consumer = scope->kind == MULL__CONSUMER ? scope->name : NULL;
    const char *transport = scope->kind == MULL__TRANSPORT ? scope->name : NULL;
    return mull__effective_settings_of(table, consumer, transport).settings.override != MULL__OFF;
}

/* no_default: a scope without one that includes what it stands before keeps nothing away. */
static void no_default(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope, *far = behind(f->table, scope);
    const mull__rule *rule = first_written_in(scope, scope);
    const char *word = is_overridden(f->table, scope) ? "override" : NULL;
    int can_include = far != f->table->host || !f->table->has_host_policy;
    if (far && rule && !mull__has_default(scope) && !first_written_in(far, scope))
        mull__lint_report(
            f, rule,
            (mull__finding){.word = word, .number = can_include, .other.scope = far->label});
}

static const mull__scope *scope_labelled(const mull__table *table, const char *label)
{
    for (size_t i = 0; i < table->scope_count; i++)
        if (strcmp(table->scopes[i].label, label) == 0)
            return &table->scopes[i];
    return NULL;
}

static void nothing_included(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    for (size_t i = 0; i < scope->include_count; i++) {
        const mull_rule *include = &scope->includes[i];
        const mull__scope *other = scope_labelled(f->table, include->scope);
        if (!other || mull__scope_rules(other) == 0)
            mull__lint_report(f, NULL,
                              (mull__finding){.file = include->file,
                                              .line = include->line,
                                              .scope = scope->label,
                                              .other.scope = include->scope});
    }
}

/* ---- Names in use --------------------------------------------------------------------------- */

static int is_there(const mull__scope_users *users, const mull__scope *scope)
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
static mull__source_pos place_of(const mull__scope *scope)
{
    const mull__rule *rule = first_written_in(scope, scope);
    for (int i = 0; i < MULL__SETTINGS && !rule; i++)
        if (scope->places[i].file)
            return scope->places[i];
    if (!rule && scope->unrecoverable.count > 0)
        rule = &scope->unrecoverable.items[0];
    if (rule)
        return (mull__source_pos){rule->source.file, rule->source.line};
    if (scope->include_count > 0)
        return (mull__source_pos){scope->includes[0].file, scope->includes[0].line};
    return (mull__source_pos){NULL, 0};
}

static void not_there(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    if (!scope->name || is_there(f->users, scope))
        return;
    mull__source_pos place = place_of(scope);
    mull__lint_report(f, NULL,
                      (mull__finding){.kind = MULL__NOT_IN_SERVICE,
                                      .file = place.file,
                                      .line = place.line,
                                      .scope = scope->label,
                                      .word = scope->name});
}

void mull__lint_not_there(const mull__table *table, const mull__scope_users *users,
                          void (*tell)(void *data, const mull__finding *finding), void *data)
{
    mull__lint_context f = {.table = table, .users = users, .tell = tell, .data = data};
    mull__lint_each(&f, MULL__SCOPES, not_there);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* dead_letters_read: one that reads the queue that its own go to is refused by `run`. */
static void dead_letters_read(const mull__lint_context *f, const mull__scope_user *user)
{
    for (size_t i = 0; i < f->users->count; i++) {
        const mull__scope_user *source = &f->users->items[i];
        const mull__settings effective =
            mull__effective_settings_of(f->table, source->consumer, source->transport).settings;
        if (source == user || strcmp(source->transport, user->transport) != 0 ||
            strcmp(effective.dead_letter_queue, user->queue) != 0)
            continue;
        mull__lint_report(
            f, NULL,
            (mull__finding){.word = user->consumer,
                            .other = {.scope = source->consumer, .type = user->queue}});
        return;
    }
}

static int told_before(const mull__lint_context *f, const mull__scope_user *user,
                       const mull__scope *scope)
{
    for (const mull__scope_user *u = f->users->items; u < user; u++) {
        if (strcmp(u->transport, user->transport) == 0 &&
            mull__effective_settings_of(f->table, u->consumer, u->transport).rules == scope)
            return 1;
    }
    return 0;
}

static void long_delays(const mull__lint_context *f, const mull__scope_user *user)
{
    const mull__scope *scope =
        mull__effective_settings_of(f->table, user->consumer, user->transport).rules;
    if (user->longest_delay_ms == 0 || !scope || told_before(f, user, scope))
        return;
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        int64_t ms = mull__longest_step_ms(&rule->redeliver);
        if (ms > user->longest_delay_ms)
            mull__lint_report(f, rule,
                              (mull__finding){.kind = MULL__LONG_DELAY,
                                              .word = user->transport,
                                              .number = ms,
                                              .limit = user->longest_delay_ms});
    }
}

static void in_use(mull__lint_context *f, const mull__lint_item *item)
{
    (void)item;
    for (size_t i = 0; i < f->users->count; i++)
        dead_letters_read(f, &f->users->items[i]);
    for (size_t i = 0; i < f->users->count; i++)
        long_delays(f, &f->users->items[i]);
    if (f->users->count > 0)
        mull__lint_each(f, MULL__SCOPES, not_there);
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* Each search, in the order in which findings are told. */
static const struct {
    mull__finding_kind kind;
    unsigned at;
    mull__lint *look;
} searches[] = {
    {MULL__HIDDEN, MULL__OWN_RULES, hidden},
    {MULL__HIDDEN_BY_EQUAL, MULL__OWN_RULES, hidden},
    {MULL__UNRECOVERABLE_BEFORE, MULL__OWN_RULES, unrecoverable_before},
    {MULL__REPLACED, MULL__SCOPES, replaced},
    {MULL__NO_DEFAULT, MULL__SCOPES, no_default},
    {MULL__MISSPELT, MULL__ONCE, mull__lint_typo},
    {MULL__TOO_LATE, MULL__SCOPES, mull__lint_limits},
    {MULL__NEVER_PASSES, MULL__OWN_RULES, never_passes},
    {MULL__NEVER_PASSES, MULL__DECLARATIONS, declaration_never_passes},
    {MULL__NO_EFFECT, MULL__OWN_RULES, mull__lint_no_effect},
    {MULL__NOTHING_REDELIVERED, MULL__SCOPES, mull__lint_nothing_redelivered},
    {MULL__NOTHING_INCLUDED, MULL__SCOPES, nothing_included},
    {MULL__DEAD_LETTERS_READ, MULL__ONCE, in_use},
    {MULL__COMPARES_TEXT, MULL__OWN_RULES | MULL__DECLARATIONS, mull__lint_comparison},
    {MULL__ENDLESS_OVERRIDE, MULL__SCOPES, mull__lint_endless_override},
};

/* no_rules: all that is left to look at are overrides. */
static void no_rules(mull__lint_context *f)
{
    mull__finding finding = {.kind = MULL__NO_RULES};
    for (size_t i = 0; i < f->table->scope_count; i++)
        if (is_overridden(f->table, &f->table->scopes[i]))
            finding.word = "override";
    mull__lint_report(f, NULL, finding);
    f->kind = MULL__ENDLESS_OVERRIDE;
    mull__lint_each(f, MULL__SCOPES, mull__lint_endless_override);
}

/* What may be spent on all searches together, besides that for the rules' fates. */
enum { EFFORT = 300000000 };

int mull__lint_run(const mull__fates *fates, const mull__scope_users *users,
                   const mull_allocator *allocator,
                   void (*tell)(void *data, const mull__finding *finding), void *data)
{
    mull__lint_context f = {.table = fates->table,
                            .fates = fates,
                            .users = users,
                            .allocator = allocator,
                            .tell = tell,
                            .data = data,
                            .effort = EFFORT};
    if (fates->table->rule_count == 0) {
        no_rules(&f);
        return f.status;
    }
    for (size_t i = 0; i < sizeof searches / sizeof *searches && f.status == MULL_OK; i++) {
        f.kind = searches[i].kind;
        mull__lint_each(&f, searches[i].at, searches[i].look);
    }
    if (fates->stopped && f.status == MULL_OK)
        mull__stop(&f, "never", fates->stopped->source.file, fates->stopped->source.line);
    return f.status;
}
