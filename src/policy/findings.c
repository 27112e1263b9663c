/* findings.c: findings about rules and scopes, and the order of all; see findings.h. */
#include "findings.h"

#include <string.h>

#include "never.h"

mull__finding mull__finding_about(mull__finding_kind kind, const mull__rule *rule)
{
    return (mull__finding){.kind = kind,
                           .file = rule->source.file,
                           .line = rule->source.line,
                           .scope = rule->source.scope,
                           .type = rule->source.type};
}

static void tell(const mull__finder *f, const mull__finding *finding)
{
    f->tell(f->data, finding);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* An included rule that the including scope leaves no room for is what including is for: only a
 * scope's own rules are looked at. */
static void each_own_rule(const mull__finder *f,
                          void (*look)(const mull__finder *, const mull__scope *,
                                       const mull__rule *))
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        for (size_t j = 0; j < mull__scope_rules(scope); j++)
            if (mull__written_in(scope, mull__rule_at(scope, j)))
                look(f, scope, mull__rule_at(scope, j));
    }
}

static int same_source(const mull_rule *a, const mull_rule *b)
{
    return a->line == b->line && strcmp(a->type, b->type) == 0 && strcmp(a->file, b->file) == 0 &&
           strcmp(a->scope, b->scope) == 0;
}

int mull__is_included(const mull__finder *f, const mull__scope *home, const mull__rule *rule)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        if (scope == home || scope->include_count == 0)
            continue;
        for (size_t j = 0; j < mull__scope_rules(scope); j++)
            if (same_source(&mull__rule_at(scope, j)->source, &rule->source))
                return 1;
    }
    return 0;
}

static void hidden(const mull__finder *f, const mull__scope *scope, const mull__rule *rule,
                   mull__finding_kind kind)
{
    const mull__rule *by = mull__hidden_by(scope, rule);
    int plainly = by && by->matcher.kind == MULL__MATCH_ALWAYS;
    if (!by || plainly != (kind == MULL__HIDDEN))
        return;
    mull__finding finding = mull__finding_about(kind, rule);
    finding.other = by->source;
    tell(f, &finding);
}

static void hidden_plainly(const mull__finder *f, const mull__scope *scope, const mull__rule *rule)
{
    hidden(f, scope, rule, MULL__HIDDEN);
}

static void hidden_by_equal(const mull__finder *f, const mull__scope *scope, const mull__rule *rule)
{
    hidden(f, scope, rule, MULL__HIDDEN_BY_EQUAL);
}

/* descends: a type has an ancestor that was declared. */
static int descends(const mull__table *table, uint32_t type, uint32_t ancestor)
{
    while (type != MULL__ERROR_TYPE && type != ancestor)
        type = table->types[type].parent;
    return type == ancestor;
}

/* holds_everywhere: declarations of all four scopes add up, wherever a rule is in force. */
static int holds_everywhere(const mull__rule *declaration)
{
    return strcmp(declaration->source.scope, "bus") == 0 ||
           strcmp(declaration->source.scope, "host") == 0;
}

static void unrecoverable_before(const mull__finder *f, const mull__scope *scope,
                                 const mull__rule *rule)
{
    const mull__rule *by = mull__taken_by(f->table, scope, rule, 1);
    mull__finding finding = mull__finding_about(MULL__UNRECOVERABLE_BEFORE, rule);
    int built_in = !mull__first_rule(&scope->rules, MULL__UNREADABLE_TYPE) &&
                   !mull__is_cause_rule(scope, rule) &&
                   descends(f->table, rule->type, MULL__UNREADABLE_TYPE);
    finding.word = by && by->matcher.kind != MULL__MATCH_ALWAYS ? "matcher" : NULL;
    if (by)
        finding.other = by->source;
    else if (built_in)
        finding.other.type = f->table->types[MULL__UNREADABLE_TYPE].name;
    else
        return;
    if ((by && holds_everywhere(by)) || !mull__is_included(f, scope, rule))
        tell(f, &finding); /* else others may hold where it is included */
}

static void never_passes(const mull__finder *f, const mull__scope *scope, const mull__rule *rule)
{
    (void)scope;
    if (!mull__never_passes(&rule->matcher))
        return;
    mull__finding finding = mull__finding_about(MULL__NEVER_PASSES, rule);
    tell(f, &finding);
}

static void declarations_never_pass(const mull__finder *f)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        for (size_t j = 0; j < scope->unrecoverable.count; j++)
            never_passes(f, scope, &scope->unrecoverable.items[j]);
    }
}

/* replaced: what an own rule put in the place of an included one is what including is for. */
static void replaced(const mull__finder *f)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        for (size_t j = 0; j < scope->replaced_count; j++) {
            const mull__plain_replaced *r = &scope->replaced[j];
            if (strcmp(r->scope, scope->label) != 0)
                continue;
            mull__finding finding = {.kind = MULL__REPLACED,
                                     .file = r->file,
                                     .line = r->line,
                                     .scope = scope->label,
                                     .type = r->type,
                                     .other = {r->by_file, r->by_line, scope->label, r->type}};
            tell(f, &finding);
        }
    }
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static int includes_rules_of(const mull__scope *scope, const mull__scope *other)
{
    for (size_t i = 0; i < mull__scope_rules(scope); i++)
        if (mull__written_in(other, mull__rule_at(scope, i)))
            return 1;
    return 0;
}

static int has_own_rules(const mull__scope *scope)
{
    for (size_t i = 0; i < mull__scope_rules(scope); i++)
        if (mull__written_in(scope, mull__rule_at(scope, i)))
            return 1;
    return 0;
}

static const mull__rule *first_own(const mull__scope *scope)
{
    size_t i = 0;
    while (!mull__written_in(scope, mull__rule_at(scope, i)))
        i++;
    return mull__rule_at(scope, i);
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

/* no_default: a scope without one that includes what it stands before keeps nothing away. */
static void no_default(const mull__finder *f)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        const mull__scope *far = behind(f->table, scope);
        if (!far || !has_own_rules(scope) || mull__has_default(scope) ||
            includes_rules_of(scope, far))
            continue;
        mull__finding finding = mull__finding_about(MULL__NO_DEFAULT, first_own(scope));
        finding.other.scope = far->label;
        tell(f, &finding);
    }
}

static const mull__scope *scope_labelled(const mull__table *table, const char *label)
{
    for (size_t i = 0; i < table->scope_count; i++)
        if (strcmp(table->scopes[i].label, label) == 0)
            return &table->scopes[i];
    return NULL;
}

static void nothing_included(const mull__finder *f)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        for (size_t j = 0; j < scope->include_count; j++) {
            const mull__plain_include *include = &scope->includes[j];
            const mull__scope *other = scope_labelled(f->table, include->scope);
            if (other && mull__scope_rules(other) > 0)
                continue;
            mull__finding finding = {.kind = MULL__NOTHING_INCLUDED,
                                     .file = include->file,
                                     .line = include->line,
                                     .scope = scope->label,
                                     .other.scope = include->scope};
            tell(f, &finding);
        }
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

int mull__findings(const mull__table *table, const mull__users *users,
                   const mull_allocator *allocator,
                   void (*tell_one)(void *data, const mull__finding *finding), void *data)
{
    const mull__finder f = {table, users, allocator, tell_one, data};
    if (table->rule_count == 0) {
        tell(&f, &(mull__finding){.kind = MULL__NO_RULES});
        return MULL_OK;
    }
    each_own_rule(&f, hidden_plainly);
    each_own_rule(&f, hidden_by_equal);
    each_own_rule(&f, unrecoverable_before);
    replaced(&f);
    no_default(&f);
    int status = mull__find_misspelt(&f);
    if (status == MULL_OK)
        status = mull__find_limits(&f);
    each_own_rule(&f, never_passes);
    declarations_never_pass(&f);
    mull__find_idle(&f);
    nothing_included(&f);
    if (users->count > 0)
        mull__find_in_use(&f);
    return status;
}
