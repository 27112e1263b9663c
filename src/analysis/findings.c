/* findings.c: findings about rules and scopes, and the order of all; see findings.h. */
#include "findings.h"

#include <string.h>

#include "base/alloc.h"
#include "lint.h"
#include "policy/resolve.h"
#include "satisfiability.h"

/* ---- Rules ----------------------------------------------------------------------------------- */

static void hidden(mull__finder *f, const mull__lint_item *item)
{
    const mull__rule *by = item->fate->hidden_by;
    int plainly = by && by->matcher.kind == MULL__MATCH_ALWAYS;
    if (by && plainly == (f->kind == MULL__HIDDEN))
        mull__found(f, item->rule, (mull__finding){.other = by->source});
}

/* holds_everywhere: declarations of all four scopes add up, wherever a rule is in force. */
static int holds_everywhere(const mull__rule *declaration)
{
    return strcmp(declaration->source.scope, "bus") == 0 ||
           strcmp(declaration->source.scope, "host") == 0;
}

static void unrecoverable_before(mull__finder *f, const mull__lint_item *item)
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
        mull__found(f, item->rule, finding); /* else others may hold where it is included */
}

static void never_passes(mull__finder *f, const mull__lint_item *item)
{
    if (item->fate->never_passes)
        mull__found(f, item->rule, (mull__finding){0});
}

static void declaration_never_passes(mull__finder *f, const mull__lint_item *item)
{
    const mull__rule *declaration = item->rule;
    if (mull__never_passes(&declaration->matcher, &f->effort))
        mull__found(f, declaration, (mull__finding){0});
    if (!mull__can_go_on(f, 0))
        mull__stop(f, "never", declaration->source.file, declaration->source.line);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

/* replaced: what an own rule put in the place of an included one is what including is for. */
static void replaced(mull__finder *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    for (size_t i = 0; i < scope->replaced_count; i++) {
        const mull__plain_replaced *r = &scope->replaced[i];
        if (strcmp(r->scope, scope->label) == 0)
            mull__found(f, NULL,
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

/* no_default: a scope without one that includes what it stands before keeps nothing away. */
static void no_default(mull__finder *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope, *far = behind(f->table, scope);
    const mull__rule *rule = mull__first_written_in(scope, scope);
    if (far && rule && !mull__has_default(scope) && !mull__first_written_in(far, scope))
        mull__found(f, rule, (mull__finding){.other.scope = far->label});
}

/* name_in gives what follows the kind in the label of a scope with a name; NULL: it is of another
 * kind. */
static const char *name_in(const char *label, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(label, kind, length) == 0 && label[length] == ':' ? label + length + 1 : NULL;
}

static const mull__scope *scope_labelled(const mull__table *table, const char *label)
{
    const char *consumer = name_in(label, "consumer"), *transport = name_in(label, "transport");
    const mull__layer layer = mull__layer_named(table, consumer, transport);
    return consumer                    ? layer.consumer
           : transport                 ? layer.transport
           : strcmp(label, "bus") == 0 ? table->bus
                                       : table->host;
}

static void nothing_included(mull__finder *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    for (size_t i = 0; i < scope->include_count; i++) {
        const mull__plain_include *include = &scope->includes[i];
        const mull__scope *other = scope_labelled(f->table, include->scope);
        if (!other || mull__scope_rules(other) == 0)
            mull__found(f, NULL,
                        (mull__finding){.file = include->file,
                                        .line = include->line,
                                        .scope = scope->label,
                                        .other.scope = include->scope});
    }
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
    {MULL__MISSPELT, MULL__ONCE, mull__find_misspelt},
    {MULL__TOO_LATE, MULL__SCOPES, mull__find_limits},
    {MULL__NEVER_PASSES, MULL__OWN_RULES, never_passes},
    {MULL__NEVER_PASSES, MULL__DECLARATIONS, declaration_never_passes},
    {MULL__NO_EFFECT, MULL__OWN_RULES, mull__find_no_effect},
    {MULL__NOTHING_REDELIVERED, MULL__SCOPES, mull__find_nothing_redelivered},
    {MULL__NOTHING_INCLUDED, MULL__SCOPES, nothing_included},
    {MULL__DEAD_LETTERS_READ, MULL__ONCE, mull__find_in_use},
};

/* What may be spent on all searches together, besides that for the rules' fates. */
enum { EFFORT = 300000000 };

int mull__findings(const mull__fates *fates, const mull__users *users,
                   const mull_allocator *allocator,
                   void (*tell)(void *data, const mull__finding *finding), void *data)
{
    const mull__rule *unknown = fates->stopped;
    mull__finder f = {.table = fates->table,
                      .fates = fates,
                      .users = users,
                      .allocator = allocator,
                      .tell = tell,
                      .data = data,
                      .effort = EFFORT};
    if (fates->table->rule_count == 0) {
        mull__found(&f, NULL, (mull__finding){.kind = MULL__NO_RULES});
        return MULL_OK;
    }
    mull__keep_included(&f);
    for (size_t i = 0; i < sizeof searches / sizeof *searches && f.status == MULL_OK; i++) {
        f.kind = searches[i].kind;
        mull__search(&f, searches[i].at, searches[i].look);
    }
    if (unknown && f.status == MULL_OK)
        mull__stop(&f, "never", unknown->source.file, unknown->source.line);
    mull__free(allocator, f.included);
    return f.status;
}
