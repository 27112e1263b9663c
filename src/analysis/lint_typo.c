/* lint_typo.c: types that look like another one that the policy knows better: it declares
 * it, or uses it more often. */
#include <string.h>

#include "base/alloc.h"
#include "lint_internal.h"
#include "policy/resolve.h"

enum { LONGEST = 60 };

/* usage of a type in the statements of a policy. */
typedef struct usage {
    size_t uses;
    const mull__rule *first;
    int known; /* declared, or built in */
} usage;

static void use(mull__lint_context *f, const mull__lint_item *item)
{
    usage *u = &((usage *)f->search)[item->rule->type];
    u->uses++;
    if (!u->first)
        u->first = item->rule;
}

static void know(usage *usages, const mull__table *table)
{
    usages[mull__type_number(table, "HandlerTimeoutError")].known = 1;
    usages[mull__type_number(table, "HandlerCrashError")].known = 1;
    usages[mull__type_number(table, "NoConsumerError")].known = 1;
    for (size_t i = 0; i < table->declared_types; i++)
        usages[i].known = 1;
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

static int is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static int differs_in_case_only(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* telling is how long the part of a name is that tells it from others. */
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

/* is_letter: a letter of a name that may be a slip. Digits and capitals are how names are told
 * apart; where one of them is known, only a capital that ends what tells them apart is: TypeA. */
static int is_letter(const char *name, const char *at, int known)
{
    return is_lower(*at) || (known && is_capital(*at) && (size_t)(at - name) + 1 != telling(name));
}

/* is_slip: one letter more or less, another one, or two that changed places. */
static int is_slip(const char *one, const char *other, int known)
{
    const char *a = one, *b = other;
    size_t m = strlen(a), n = strlen(b);
    for (; *a && *a == *b; a++, b++, m--)
        n--;
    for (; m > 0 && n > 0 && a[m - 1] == b[n - 1]; m--)
        n--;
    if (m + n == 1)
        return m ? is_letter(one, a, known) : is_letter(other, b, known);
    int swapped = m == 2 && n == 2 && a[0] == b[1] && a[1] == b[0];
    return ((m == 1 && n == 1) || swapped) && is_letter(one, a, known) &&
           is_letter(other, b, known);
}

/* looks_like: of shorter names one letter says little. */
static int looks_like(const char *a, const char *b, int known)
{
    enum { SHORTEST = 6, SHORTEST_KNOWN = 3 };
    size_t shortest = known ? SHORTEST_KNOWN : SHORTEST;
    return differs_in_case_only(a, b) ||
           (telling(a) >= shortest && telling(b) >= shortest && is_slip(a, b, known));
}

/* ---- All types ------------------------------------------------------------------------------- */

/* letters_of has a bit for each letter of a name, the same for small and capital ones, so that
 * names that look alike differ in two bits at most. */
static uint64_t letters_of(const char *name)
{
    uint64_t letters = 0;
    for (; *name; name++)
        letters |= UINT64_C(1) << ((unsigned char)*name % 32);
    return letters;
}

/* model is a type that another one may be meant to be. */
typedef struct model {
    uint64_t letters;
    uint32_t type;
    int known;
} model;

static size_t find_models(model *models, const mull__table *table, const usage *usages)
{
    size_t count = 0;
    for (uint32_t i = 0; i < table->type_count; i++)
        if ((usages[i].known || usages[i].uses > 1) && strlen(table->types[i].name) <= LONGEST)
            models[count++] = (model){letters_of(table->types[i].name), i, usages[i].known};
    return count;
}

static int differs_in_few(uint64_t a, uint64_t b)
{
    uint64_t bits = a ^ b;
    bits &= bits - 1;
    return (bits & (bits - 1)) == 0;
}

/* look ends as soon as the search is stopped. */
static void look(mull__lint_context *f, const usage *it, const char *name, const model *models,
                 size_t count)
{
    enum { MODEL_NS = 2, NAME_NS = 100 };
    uint64_t letters = letters_of(name);
    for (size_t i = 0; i < count; i++) {
        const char *other = f->table->types[models[i].type].name;
        int better = other != name && (models[i].known || it->uses == 1);
        int alike = better && differs_in_few(letters, models[i].letters);
        if (!mull__budget_take(&f->effort, alike ? NAME_NS : MODEL_NS)) {
            mull__stop(f, "misspelt", it->first->source.file, it->first->source.line);
            return;
        }
        if (alike && looks_like(name, other, models[i].known)) {
            mull__lint_report(f, it->first, (mull__finding){.other.type = other});
            return;
        }
    }
}

void mull__lint_typo(mull__lint_context *f, const mull__lint_item *item)
{
    size_t types = f->table->type_count;
    usage *usages = mull__zalloc(f->allocator, types, sizeof *usages);
    model *models = mull__zalloc(f->allocator, types, sizeof *models);
    (void)item;
    f->status = usages && models ? MULL_OK : MULL_ENOMEM;
    if (f->status == MULL_OK) {
        know(usages, f->table);
        f->search = usages;
        mull__lint_each(f, MULL__OWN_RULES | MULL__DECLARATIONS, use);
        size_t count = find_models(models, f->table, usages);
        for (size_t i = 0; i < types && !f->stopped; i++) {
            const char *name = f->table->types[i].name;
            if (!usages[i].known && usages[i].uses > 0 && strlen(name) <= LONGEST)
                look(f, &usages[i], name, models, count);
        }
    }
    mull__free(f->allocator, models);
    mull__free(f->allocator, usages);
}
