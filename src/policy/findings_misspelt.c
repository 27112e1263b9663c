/* findings_misspelt.c: types that look like another one that the policy knows better: it declares
 * it, or uses it more often. */
#include <string.h>

#include "base/alloc.h"
#include "findings.h"

enum { LONGEST = 60 };

/* usage of a type in the statements of a policy. */
typedef struct usage {
    size_t uses;
    const mull__rule *first;
    int known; /* declared, or built in */
} usage;

static void use(usage *usages, const mull__scope *scope, const mull__rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        const mull__rule *rule = &rules->items[i];
        if (!mull__written_in(scope, rule))
            continue;
        usage *u = &usages[rule->type];
        u->uses++;
        if (!u->first)
            u->first = rule;
    }
}

static void know(usage *usages, const mull__table *table)
{
    static const char *const built_in[] = {"HandlerTimeoutError", "HandlerCrashError"};
    for (size_t i = 0; i < table->type_count; i++) {
        usages[i].known = i < table->declared_types;
        for (size_t j = 0; j < sizeof built_in / sizeof *built_in; j++)
            usages[i].known |= strcmp(table->types[i].name, built_in[j]) == 0;
    }
}

/* ---- Likeness -------------------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static int differs_in_case_only(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* telling is the part of a name that tells it from others. */
static size_t telling(const char *name)
{
    static const char *const endings[] = {"Error", "Exception", "Failure"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t end = strlen(endings[i]);
        if (length > end && strcmp(name + length - end, endings[i]) == 0)
            return length - end;
    }
    return length;
}

/* is_slip: one letter more or less, another one, or two that changed places. Digits and capitals
 * are how names are told apart, so that only small letters count as slips. */
static int is_slip(const char *a, const char *b)
{
    size_t at = 0, m = strlen(a), n = strlen(b);
    if (m < n)
        return is_slip(b, a);
    while (a[at] == b[at])
        at++;
    if (m == n + 1)
        return is_lower(a[at]) && strcmp(a + at + 1, b + at) == 0;
    if (m != n)
        return 0;
    if (is_lower(a[at]) && is_lower(b[at]) && strcmp(a + at + 1, b + at + 1) == 0)
        return 1;
    return is_lower(a[at]) && is_lower(b[at]) && a[at] == b[at + 1] && a[at + 1] == b[at] &&
           strcmp(a + at + 2, b + at + 2) == 0;
}

static int looks_like(const char *a, const char *b)
{
    enum { SHORTEST = 6 }; /* of which one letter says little */
    if (strlen(a) > LONGEST || strlen(b) > LONGEST)
        return 0;
    return differs_in_case_only(a, b) ||
           (telling(a) >= SHORTEST && telling(b) >= SHORTEST && is_slip(a, b));
}

/* ---- All types ------------------------------------------------------------------------------- */

static void look(const mull__finder *f, const usage *usages, size_t type)
{
    const mull__type *types = f->table->types;
    const usage *it = &usages[type];
    if (it->known || it->uses == 0)
        return;
    for (size_t i = 0; i < f->table->type_count; i++) {
        int better = usages[i].known || (it->uses == 1 && usages[i].uses > 1);
        if (i == type || !better || !looks_like(types[type].name, types[i].name))
            continue;
        mull__finding finding = mull__finding_about(MULL__MISSPELT, it->first);
        finding.other.type = types[i].name;
        f->tell(f->data, &finding);
        return;
    }
}

int mull__find_misspelt(const mull__finder *f)
{
    usage *usages = mull__zalloc(f->allocator, f->table->type_count, sizeof *usages);
    if (!usages)
        return MULL_ENOMEM;
    know(usages, f->table);
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        use(usages, scope, &scope->rules);
        use(usages, scope, &scope->cause_rules);
        use(usages, scope, &scope->unrecoverable);
    }
    for (size_t i = 0; i < f->table->type_count; i++)
        look(f, usages, i);
    mull__free(f->allocator, usages);
    return MULL_OK;
}
