/* reachability.c: see reachability.h. */
#include "reachability.h"

#include "base/alloc.h"
#include "satisfiability.h"
#include "subsumption.h"

/* What may be spent on all rules together, in nanoseconds, roughly. */
enum { EFFORT = 300000000 };

/* A rule is looked at beside those of its scope and the declarations of three scopes: OWN is its
 * scope's, the others hold wherever it is in force. */
enum { OWN, OF_BUS, OF_HOST, DECLARERS };

typedef struct seeker {
    mull__fates *fates;
    mull__cover rules, cause_rules; /* of the scope, as far as they were looked at */
    mull__cover declared[DECLARERS];
    int64_t effort;
} seeker;

/* ---- Declarations ---------------------------------------------------------------------------- */

/* declare makes the declarations of a scope, which may be NULL, found. */
static int declare(mull__cover *declared, const mull__scope *scope, const mull_allocator *allocator)
{
    static const mull__rules none;
    const mull__rules *rules = scope ? &scope->unrecoverable : &none;
    int status = mull__cover_init(declared, rules, allocator);
    for (size_t i = 0; i < rules->count && status == MULL_OK; i++)
        mull__cover_add(declared, i);
    return status;
}

/* is_declared: a type or something that it descends from may be, in some scope. */
static int is_declared(const seeker *s, uint32_t type)
{
    return s->fates->table->types[type].mark == MULL__UNRECOVERABLE;
}

/* of_ancestors is a declaration for one of a type's ancestors, Error left out. */
static const mull__rule *of_ancestors(seeker *s, const mull__cover *declared, uint32_t type,
                                      const mull__plain_matcher *matcher)
{
    const mull__type *types = s->fates->table->types;
    const mull__rule *found = NULL;
    while (!found && s->effort > 0 && type != MULL__ERROR_TYPE &&
           (type = types[type].parent) != MULL__ERROR_TYPE && is_declared(s, type)) {
        s->effort -= 10;
        found = mull__cover_find(declared, type, matcher, &s->effort);
    }
    return found;
}

static int is_unreadable(seeker *s, uint32_t type)
{
    while (type != MULL__UNREADABLE_TYPE && type != MULL__ERROR_TYPE && is_declared(s, type) &&
           s->effort > 0) {
        s->effort -= 3;
        type = s->fates->table->types[type].parent;
    }
    return type == MULL__UNREADABLE_TYPE;
}

/* find_taker: of a cause rule only the error itself counts, whatever its cause. */
static void find_taker(seeker *s, const mull__rule *rule, int is_cause, mull__fate *fate)
{
    static const mull__plain_matcher always = {.kind = MULL__MATCH_ALWAYS};
    const mull__plain_matcher *matcher = is_cause ? &always : &rule->matcher;
    if (!is_declared(s, rule->type))
        return;
    fate->is_unreadable = !is_cause && is_unreadable(s, rule->type);
    for (int i = 0; i < DECLARERS; i++) {
        const mull__cover *declared = &s->declared[i];
        const mull__rule *found = mull__cover_find(declared, MULL__ERROR_TYPE, matcher, &s->effort);
        if (!found && !is_cause)
            found = mull__cover_find(declared, rule->type, matcher, &s->effort);
        if (found)
            fate->may_decide = 0;
        else if (!is_cause && !fate->taken_by)
            found = of_ancestors(s, declared, rule->type, matcher);
        if (!fate->taken_by)
            fate->taken_by = found;
    }
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void look_at(seeker *s, mull__cover *before, size_t index, int is_cause, mull__fate *fate)
{
    const mull__rule *rule = &before->rules->items[index];
    *fate = (mull__fate){.may_decide = 1};
    if (s->fates->stopped)
        return;
    fate->hidden_by = mull__cover_find(before, rule->type, &rule->matcher, &s->effort);
    mull__cover_add(before, index);
    find_taker(s, rule, is_cause, fate);
    fate->never_passes = mull__never_passes(&rule->matcher, &s->effort);
    if (fate->hidden_by || fate->never_passes)
        fate->may_decide = 0;
    if (s->effort > 0)
        return;
    *fate = (mull__fate){.may_decide = 1};
    s->fates->stopped = rule;
}

static int look_at_scope(seeker *s, const mull__scope *scope, mull__fate *fates)
{
    const mull_allocator *a = s->fates->allocator;
    int status = declare(&s->declared[OWN], scope, a);
    if (status == MULL_OK)
        status = mull__cover_init(&s->rules, &scope->rules, a);
    if (status == MULL_OK)
        status = mull__cover_init(&s->cause_rules, &scope->cause_rules, a);
    for (size_t i = 0; i < scope->rules.count && status == MULL_OK; i++)
        look_at(s, &s->rules, i, 0, fates++);
    for (size_t i = 0; i < scope->cause_rules.count && status == MULL_OK; i++)
        look_at(s, &s->cause_rules, i, 1, fates++);
    mull__cover_free(&s->declared[OWN]);
    mull__cover_free(&s->rules);
    mull__cover_free(&s->cause_rules);
    return status;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int is_asked_for(const mull__fates *fates, const mull__scope *scope)
{
    return !fates->only || fates->only == scope;
}

static int take_memory(mull__fates *fates)
{
    const mull__table *table = fates->table;
    size_t count = 0;
    fates->first = mull__zalloc(fates->allocator, table->scope_count, sizeof *fates->first);
    if (!fates->first)
        return MULL_ENOMEM;
    for (size_t i = 0; i < table->scope_count; i++) {
        fates->first[i] = count;
        if (is_asked_for(fates, &table->scopes[i]))
            count += mull__scope_rules(&table->scopes[i]);
    }
    fates->items = mull__zalloc(fates->allocator, count, sizeof *fates->items);
    return fates->items ? MULL_OK : MULL_ENOMEM;
}

int mull__fates_of(mull__fates *fates, const mull__table *table, const mull__scope *only,
                   const mull_allocator *allocator)
{
    *fates = (mull__fates){.table = table, .allocator = allocator, .only = only};
    seeker s = {.fates = fates, .effort = EFFORT};
    int status = take_memory(fates);
    if (status == MULL_OK)
        status = declare(&s.declared[OF_BUS], table->bus, allocator);
    if (status == MULL_OK)
        status = declare(&s.declared[OF_HOST], table->host, allocator);
    for (size_t i = 0; i < table->scope_count && status == MULL_OK; i++) {
        if (is_asked_for(fates, &table->scopes[i]))
            status = look_at_scope(&s, &table->scopes[i], &fates->items[fates->first[i]]);
        if (s.effort > 0)
            fates->known = i + 1;
    }
    mull__cover_free(&s.declared[OF_BUS]);
    mull__cover_free(&s.declared[OF_HOST]);
    return status;
}

void mull__fates_free(mull__fates *fates)
{
    mull__free(fates->allocator, fates->items);
    mull__free(fates->allocator, fates->first);
    *fates = (mull__fates){.table = NULL};
}

const mull__fate *mull__fates_in(const mull__fates *fates, const mull__scope *scope)
{
    return &fates->items[fates->first[scope - fates->table->scopes]];
}

int mull__are_all_known(const mull__fates *fates, const mull__scope *scope)
{
    return (size_t)(scope - fates->table->scopes) < fates->known;
}
