/* types.c: see types.h. */
#include "types.h"

#include <string.h>

#include "base/given.h"

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
    const mull__name wanted = mull__name_of(name);
    uint32_t number = mull__names_find(&table->type_names, &wanted);
    if (number == MULL__NONE) {
        number = (uint32_t)table->type_count++;
        table->types[number] = (mull__type){
            .name = name,
            .number = number,
            .parent = MULL__ERROR_TYPE,
        };
        mull__names_add(&table->type_names, &wanted, number);
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

/* last_sent is the type whose declared parents go on where the sent names end. It need not be the
 * last that the table knows: an unknown one in its place has no parents. */
static uint32_t last_sent(const mull__table *table, const mull_error *error)
{
    for (size_t i = sent_count(error); i-- > 0;) {
        const char *name = sent(error, i);
        if (names_type(name) && !repeats(error, i))
            return find(table, name);
    }
    return MULL__NONE;
}

/* see marks a type and is true the first time. */
static int see(uint64_t *seen, uint32_t type)
{
    uint64_t bit = UINT64_C(1) << (type % 64);
    int first = !(seen[type / 64] & bit);
    seen[type / 64] |= bit;
    return first;
}

const mull__lineage *mull__lineage_sent(const mull__table *table, const mull_error *error,
                                        uint64_t *scratch, mull__lineage *room)
{
    uint64_t *seen = scratch + table->type_count;
    size_t count = 0;
    mull__mark mark = table->types[MULL__ERROR_TYPE].mark;
    memset(seen, 0, bit_words(table) * sizeof *seen);
    see(seen, MULL__ERROR_TYPE);
    for (size_t i = 0; i < sent_count(error); i++) {
        const char *name = sent(error, i);
        uint32_t type = names_type(name) ? find(table, name) : MULL__NONE;
        if (type != MULL__NONE && see(seen, type))
            scratch[count++] = type;
    }
    uint32_t type = last_sent(table, error);
    if (type != MULL__NONE)
        while ((type = table->types[type].parent) != MULL__ERROR_TYPE)
            if (see(seen, type))
                scratch[count++] = type;
    for (size_t i = 0; i < count; i++)
        if (table->types[scratch[i]].mark == MULL__UNRECOVERABLE)
            mark = MULL__UNRECOVERABLE;
    *room = (mull__lineage){scratch, count, mark};
    return room;
}

const mull__lineage *mull__lineage_climbed(const mull__table *table, const mull__type *type,
                                           uint64_t *scratch, mull__lineage *room)
{
    const mull__mark mark = type->mark; /* has regard to all above it */
    size_t count = 0;
    for (; type != &table->types[MULL__ERROR_TYPE]; type = &table->types[type->parent])
        scratch[count++] = type->number;
    *room = (mull__lineage){scratch, count, mark};
    return room;
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
static int is_first(const mull__type *type, const mull__scope *scope)
{
    return type->mark == MULL__RECOVERABLE &&
           (type->number != MULL__ERROR_TYPE || scope->cause_rules.count == 0);
}

void mull__types_ready(mull__table *table)
{
    mark_types(table);
    for (size_t i = 0; i < table->type_count; i++) {
        mull__type *type = &table->types[i];
        int none = i == MULL__ERROR_TYPE;
        type->climbs = type->parent != MULL__ERROR_TYPE;
        type->lineage = (mull__lineage){none ? NULL : &type->number, !none, type->mark};
    }
    for (size_t i = 0; i < table->scope_count; i++) {
        const mull__rules *rules = &table->scopes[i].rules;
        for (mull__rule *rule = rules->items; rule < rules->items + rules->count; rule++)
            if (!is_first(&table->types[rule->type], &table->scopes[i]))
                rule->brief_retries = rule->brief_redeliveries = 0;
    }
}
