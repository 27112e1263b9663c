/* types.c: see types.h. */
#include "types.h"

#include <string.h>

#include "base/given.h"
#include "fact.h"
#include "resolve.h"

/* The scratch of a lineage: one word for each type found, then one bit for each type seen. */

static size_t bit_words(const mull__table *table)
{
    return (table->type_count + 63) / 64;
}

size_t mull__lineage_words(const mull__table *table)
{
    return table->type_count + bit_words(table);
}

static uint32_t find(const mull__table *table, const char *name)
{
    uint64_t hash;
    return mull__names_look_up(&table->type_names, name, &hash);
}

uint32_t mull__types_add(mull__table *table, const char *name)
{
    uint32_t number = find(table, name);
    if (number == MULL__NONE) {
        number = (uint32_t)table->type_count++;
        table->types[number] = (mull__type){.name = name, .parent = MULL__ERROR_TYPE};
        mull__names_add(&table->type_names, name, number);
    }
    return number;
}

/* sent_count is how many names a failure gives its error. Beyond LINEAGE_MAX they aren't looked at:
 * no class is that deep, and the time for each grows with those before it. */
enum { LINEAGE_MAX = 256 };

static size_t sent_count(const mull_error *error)
{
    size_t count = mull__lineage_count(error);
    return 1 + (count < LINEAGE_MAX ? count : LINEAGE_MAX);
}

/* sent is the `index`-th name that a failure gives its error: the type, then the sent lineage. */
static const char *sent(const mull_error *error, size_t index)
{
    return index == 0 ? error->type : error->lineage[index - 1];
}

/* names_type is false for what counts as not sent: Error, which is the end of every lineage, and
 * holes. */
static int names_type(const char *name)
{
    return name && *name && strcmp(name, "Error") != 0;
}

static int repeats(const mull_error *error, size_t index)
{
    const char *name = sent(error, index);
    for (size_t i = 0; i < index; i++) {
        const char *earlier = sent(error, i);
        if (earlier && strcmp(earlier, name) == 0)
            return 1;
    }
    return 0;
}

/* see marks a type and is true the first time. */
static int see(uint64_t *seen, uint32_t type)
{
    uint64_t bit = UINT64_C(1) << (type % 64);
    int first = !(seen[type / 64] & bit);
    seen[type / 64] |= bit;
    return first;
}

mull__lineage mull__lineage_of_type(const mull__table *table, uint32_t type, uint64_t *scratch)
{
    const mull__mark mark = table->types[type].mark; /* has regard to all above it */
    size_t count = 0;
    for (; type != MULL__ERROR_TYPE; type = table->types[type].parent)
        scratch[count++] = type;
    return (mull__lineage){scratch, count, mark};
}

mull__lineage mull__lineage_sent(const mull__table *table, const mull_error *error,
                                 uint64_t *scratch)
{
    uint64_t *seen = scratch + table->type_count;
    size_t count = 0;
    mull__mark mark = table->types[MULL__ERROR_TYPE].mark;
    memset(seen, 0, bit_words(table) * sizeof *seen);
    see(seen, MULL__ERROR_TYPE);
    /* Its declared parents go on where the sent names end: none, where the table doesn't know it.
     */
    uint32_t last = MULL__NONE;
    for (size_t i = 0; i < sent_count(error); i++) {
        const char *name = sent(error, i);
        if (!names_type(name) || repeats(error, i))
            continue;
        last = find(table, name);
        if (last != MULL__NONE && see(seen, last))
            scratch[count++] = last;
    }
    if (last != MULL__NONE)
        while ((last = table->types[last].parent) != MULL__ERROR_TYPE)
            if (see(seen, last))
                scratch[count++] = last;
    for (size_t i = 0; i < count; i++)
        if (table->types[scratch[i]].mark == MULL__UNRECOVERABLE)
            mark = MULL__UNRECOVERABLE;
    return (mull__lineage){scratch, count, mark};
}

/* ---- Unrecoverable types --------------------------------------------------------------------- */

size_t mull__unrecoverable_names(const mull__table *table, const mull__layer *layer,
                                 uint64_t *scratch)
{
    const char **names = (const char **)(void *)scratch;
    uint64_t *seen = scratch + table->type_count;
    size_t count = 0;
    memset(seen, 0, bit_words(table) * sizeof *seen);
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        for (size_t i = 0; scope && i < scope->unrecoverable.count; i++) {
            uint32_t type = scope->unrecoverable.items[i].type;
            if (see(seen, type))
                names[count++] = table->types[type].name;
        }
    }
    if (mull__built_in_holds(layer) && see(seen, MULL__UNREADABLE_TYPE))
        names[count++] = table->types[MULL__UNREADABLE_TYPE].name;
    return count;
}

/* ---- Once all types are there ---------------------------------------------------------------- */

/* mark_declared marks the types that some scope declares unrecoverable, and the built-in one. */
static void mark_declared(mull__table *table)
{
    table->types[MULL__UNREADABLE_TYPE].mark = MULL__UNRECOVERABLE;
    for (size_t i = 0; i < table->scope_count; i++) {
        const mull__rules *declared = &table->scopes[i].unrecoverable;
        for (size_t j = 0; j < declared->count; j++)
            table->types[declared->items[j].type].mark = MULL__UNRECOVERABLE;
    }
}

/* mark_types gives each type the mark of the nearest of its ancestors that has one; once a way up
 * was gone, all of it has marks. */
static void mark_types(mull__table *table)
{
    mull__type *types = table->types;
    mark_declared(table);
    if (types[MULL__ERROR_TYPE].mark == MULL__UNMARKED)
        types[MULL__ERROR_TYPE].mark = MULL__RECOVERABLE;
    for (uint32_t i = 0; i < table->type_count; i++) {
        uint32_t marked = i;
        while (types[marked].mark == MULL__UNMARKED)
            marked = types[marked].parent;
        for (uint32_t up = i; up != marked; up = types[up].parent)
            types[up].mark = types[marked].mark;
    }
}

/* is_first: an error that comes to the rules for a type, up its lineage, has met nothing else. */
static int is_first(const mull__table *table, const mull__scope *scope, uint32_t type)
{
    return table->types[type].mark == MULL__RECOVERABLE &&
           (type != MULL__ERROR_TYPE || scope->cause_rules.count == 0);
}

static int is_equality(const mull__plain_test *test)
{
    return test->fact == MULL__ERROR_FIELD && test->value.kind == MULL__ONE_OF &&
           test->value.literal_count == 1;
}

/* fast_by says how the fast path may follow a rule with a matcher. */
static mull__fast fast_by(const mull__plain_matcher *matcher)
{
    if (matcher->kind == MULL__MATCH_ALWAYS)
        return MULL__FAST;
    if (matcher->kind != MULL__MATCH_TESTS)
        return MULL__NOT_FAST;
    for (size_t i = 0; i < matcher->test_count; i++)
        if (!is_equality(&matcher->tests[i]))
            return MULL__NOT_FAST;
    return MULL__FAST_IF_EQUAL;
}

/* groups_ready copies what the fast path reads of the first rules. */
static void groups_ready(const mull__rules *rules)
{
    for (uint32_t i = 0; i <= rules->group_mask; i++) {
        mull__group *group = &rules->groups[i];
        if (!group->first || group->first->fast != MULL__FAST)
            continue;
        group->fast_retries = group->first->retry.lot_count;
        group->lots = group->first->retry.lots;
        group->source = group->first->source;
    }
}

static void rules_ready(const mull__table *table, const mull__scope *scope)
{
    for (size_t i = 0; i < scope->rules.count; i++) {
        mull__rule *rule = &scope->rules.items[i];
        rule->fast = is_first(table, scope, rule->type) ? fast_by(&rule->matcher) : MULL__NOT_FAST;
    }
    groups_ready(&scope->rules);
}

void mull__types_ready(mull__table *table)
{
    mark_types(table);
    for (size_t i = 0; i < table->scope_count; i++)
        rules_ready(table, &table->scopes[i]);
}
