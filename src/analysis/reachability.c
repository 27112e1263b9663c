/* reachability.c: which rules can never decide. The rules for a type are kept by keys, so that
 * those that pass wherever a matcher does are found without looking at all of them.
 *
 *   key ──> its rules, in order          a rule is kept by one of its tests: by the one whose keys
 *   "A" status 503 ──> 3, 17             the fewest rules have so far
 *   "A" code "c1"  ──> 4
 *
 * A rule that covers a matcher asks for the same as one of the matcher's tests, or for something
 * that this test implies: it is looked up by all that the tests imply. */
#include "reachability.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "satisfiability.h"

/* What may be spent on all rules together, in nanoseconds, roughly. */
enum { EFFORT = 300000000 };

/* A rule is looked at beside those of its scope and the declarations of three scopes: OWN is its
 * scope's, the others hold wherever it is in force. */
enum { OWN, OF_BUS, OF_HOST, DECLARERS };

/* bucket has the rules of some keys, those of others among them. */
typedef struct bucket {
    uint32_t first, last; /* entries; MULL__NONE: there are none */
    uint32_t count;
} bucket;

typedef struct entry {
    uint32_t rule, next; /* MULL__NONE: the last */
} entry;

/* cover is the rules of a list that were added so far, by key. */
typedef struct cover {
    const mull__rules *rules;
    const mull_allocator *allocator;
    bucket *buckets;
    uint64_t mask;
    entry *entries;
    uint32_t entry_count;
} cover;

typedef struct reach_search {
    mull__fates *fates;
    cover declared[DECLARERS];
    int64_t effort;
} reach_search;

/* ---- Keys ------------------------------------------------------------------------------------ */

/* A rule is kept by each of the literals of a list up to so many. */
enum { MOST_KEYS = 16 };

/* What a key says of a fact: one value that it has; the very same test; or anything else, such as
 * a range. WHOLE is of all of a matcher without tests. */
typedef enum aspect { LITERAL, SAME_TEST, ANY, WHOLE } aspect;

/* Texts are read to their ends, which costs effort. */
static uint64_t hash_of_text(const char *text, int64_t *effort)
{
    if (!text)
        return 0;
    size_t length = strlen(text);
    *effort -= 5 + (int64_t)(length / 8);
    return mull__hash(text, length);
}

/* hash_of_literal is the same for literals that are equal: 503 and 503.0 are. */
static uint64_t hash_of_literal(const mull_value *literal, int64_t *effort)
{
    uint64_t bits;
    double number = literal->kind == MULL_INTEGER  ? (double)literal->as.integer
                    : literal->kind == MULL_NUMBER ? literal->as.number + 0.0 /* -0.0 is 0 */
                                                   : 0;
    if (literal->kind == MULL_STRING)
        return hash_of_text(literal->as.string, effort);
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t hash_of_value(const mull__condition *value, int64_t *effort)
{
    uint64_t hash = 0;
    for (; value; value = value->kind == MULL__NOT ? value->inner : NULL) {
        const uint64_t words[] = {hash, value->kind, hash_of_literal(&value->low, effort),
                                  hash_of_literal(&value->high, effort),
                                  hash_of_text(value->text, effort)};
        hash = mull__hash_words(words, 5);
        for (size_t i = 0; i < value->literal_count; i++)
            hash = mull__mix_word(hash ^ hash_of_literal(&value->literals[i], effort));
    }
    return hash;
}

static uint64_t hash_of_matcher(const mull__matcher *matcher, int64_t *effort)
{
    uint64_t hash = mull__mix_word(matcher->kind + ((uint64_t)matcher->function << 32));
    for (size_t i = 0; i < matcher->test_count; i++) {
        const mull__field_test *test = &matcher->tests[i];
        const uint64_t words[] = {hash, test->subject, hash_of_text(test->name, effort),
                                  hash_of_value(&test->value, effort)};
        hash = mull__hash_words(words, 4);
    }
    for (size_t i = 0; i < matcher->part_count; i++)
        hash = mull__mix_word(hash ^ hash_of_matcher(&matcher->parts[i], effort));
    return hash;
}

static uint64_t key_of(uint64_t about, aspect as, uint64_t value)
{
    const uint64_t words[] = {about, as, value};
    return mull__hash_words(words, 3);
}

/* keys_of_test gives what a rule is kept by, for one of its tests; or, where it is `asked` for,
 * what a rule that covers the test may be kept by. */
static size_t keys_of_test(uint64_t keys[MOST_KEYS], uint32_t type, const mull__field_test *test,
                           int asked, int64_t *effort)
{
    const mull__condition *value = &test->value;
    const uint64_t words[] = {type, test->subject, hash_of_text(test->name, effort)};
    uint64_t about = mull__hash_words(words, 3);
    size_t count = 0, literals = value->literal_count;
    if (asked && literals > 1)
        literals = 1;
    for (size_t i = 0; i < literals && literals <= MOST_KEYS; i++)
        keys[count++] = key_of(about, LITERAL, hash_of_literal(&value->literals[i], effort));
    int is_list = value->kind == MULL__ONE_OF;
    int is_wide = value->kind == MULL__BETWEEN || value->kind == MULL__PRESENT;
    int covers_lists = value->kind == MULL__CONTAINS || value->kind == MULL__NOT;
    if (is_wide || (is_list && (asked || count == 0)) || (covers_lists && !asked))
        keys[count++] = key_of(about, ANY, 0);
    if (!is_wide && !is_list)
        keys[count++] = key_of(about, SAME_TEST, hash_of_value(value, effort));
    return count;
}

/* key_of_whole is of a matcher that isn't of tests. */
static uint64_t key_of_whole(uint32_t type, const mull__matcher *matcher, int64_t *effort)
{
    int is_open = matcher->kind == MULL__MATCH_ALWAYS || matcher->kind == MULL__MATCH_TESTS;
    return key_of(type, WHOLE, is_open ? 0 : hash_of_matcher(matcher, effort));
}

/* ---- Rules by key ---------------------------------------------------------------------------- */

static bucket *bucket_of(const cover *c, uint64_t key)
{
    return &c->buckets[key & c->mask];
}

static void cover_free(cover *c)
{
    mull__free(c->allocator, c->buckets);
    mull__free(c->allocator, c->entries);
    *c = (cover){.rules = NULL};
}

/* cover_init is for rules none of which is added yet; to be given back by cover_free in any case.
 * MULL_ENOMEM. */
static int cover_init(cover *c, const mull__rules *rules, const mull_allocator *allocator)
{
    size_t count = 2;
    while (count < 2 * rules->count)
        count *= 2;
    *c = (cover){.rules = rules, .allocator = allocator, .mask = count - 1};
    if (rules->count == 0)
        return MULL_OK;
    c->buckets = mull__zalloc(allocator, count, sizeof *c->buckets);
    c->entries = mull__zalloc(allocator, rules->count, MOST_KEYS * sizeof *c->entries);
    if (!c->buckets || !c->entries)
        return MULL_ENOMEM;
    for (size_t i = 0; i < count; i++)
        c->buckets[i].first = MULL__NONE;
    return MULL_OK;
}

/* best_keys gives what a rule is kept by. */
static size_t best_keys(uint64_t best[MOST_KEYS], const cover *c, const mull__rule *rule)
{
    const mull__field_test *tests = rule->matcher.tests, *chosen = tests;
    int64_t uncounted = 0;
    uint32_t least = UINT32_MAX;
    if (rule->matcher.test_count == 0) {
        best[0] = key_of_whole(rule->type, &rule->matcher, &uncounted);
        return 1;
    }
    for (size_t i = 0; i < rule->matcher.test_count && least > 0; i++) {
        keys_of_test(best, rule->type, &tests[i], 0, &uncounted);
        uint32_t rules = bucket_of(c, best[0])->count;
        chosen = rules < least ? &tests[i] : chosen;
        least = rules < least ? rules : least;
    }
    return keys_of_test(best, rule->type, chosen, 0, &uncounted);
}

/* cover_add takes in a rule by its index; in their order, each once. */
static void cover_add(cover *c, size_t index)
{
    uint64_t keys[MOST_KEYS];
    size_t count = best_keys(keys, c, &c->rules->items[index]);
    while (count-- > 0) {
        bucket *b = bucket_of(c, keys[count]);
        uint32_t added = c->entry_count++;
        c->entries[added] = (entry){(uint32_t)index, MULL__NONE};
        if (b->first == MULL__NONE)
            b->first = added;
        else
            c->entries[b->last].next = added;
        b->last = added;
        b->count++;
    }
}

/* look_by gives the first rule that covers a matcher, as mull__covers says, by one key of it; those
 * behind `found` aren't looked at. */
static uint32_t look_by(const cover *c, uint64_t key, uint32_t type, const mull__matcher *matcher,
                        uint32_t found, int64_t *effort)
{
    const mull__rule *items = c->rules->items;
    uint32_t at = bucket_of(c, key)->first;
    for (; at != MULL__NONE && *effort > 0; at = c->entries[at].next) {
        uint32_t rule = c->entries[at].rule;
        if (rule >= found)
            break;
        *effort -= 5;
        if (items[rule].type == type && mull__covers(&items[rule].matcher, matcher, effort))
            return rule;
    }
    return found;
}

/* cover_find is the first of the rules added that covers a matcher; NULL: none, or it isn't
 * certain. */
static const mull__rule *cover_find(const cover *c, uint32_t type, const mull__matcher *matcher,
                                    int64_t *effort)
{
    static const mull__matcher always = {.kind = MULL__MATCH_ALWAYS};
    uint64_t keys[MOST_KEYS];
    if (c->entry_count == 0)
        return NULL;
    uint32_t found =
        look_by(c, key_of_whole(type, &always, effort), type, matcher, MULL__NONE, effort);
    if (matcher->test_count == 0)
        found = look_by(c, key_of_whole(type, matcher, effort), type, matcher, found, effort);
    for (size_t i = 0; i < matcher->test_count; i++) {
        size_t count = keys_of_test(keys, type, &matcher->tests[i], 1, effort);
        while (count-- > 0)
            found = look_by(c, keys[count], type, matcher, found, effort);
    }
    return found != MULL__NONE && *effort > 0 ? &c->rules->items[found] : NULL;
}

/* ---- Declarations ---------------------------------------------------------------------------- */

/* declare makes the declarations of a scope, which may be NULL, found. */
static int declare(cover *declared, const mull__scope *scope, const mull_allocator *allocator)
{
    static const mull__rules none;
    const mull__rules *rules = scope ? &scope->unrecoverable : &none;
    int status = cover_init(declared, rules, allocator);
    for (size_t i = 0; i < rules->count && status == MULL_OK; i++)
        cover_add(declared, i);
    return status;
}

/* is_declared: a type or something that it descends from may be, in some scope. */
static int is_declared(const reach_search *s, uint32_t type)
{
    return s->fates->table->types[type].unrecoverable;
}

/* of_ancestors is a declaration for one of a type's ancestors, Error left out. */
static const mull__rule *of_ancestors(reach_search *s, const cover *declared, uint32_t type,
                                      const mull__matcher *matcher)
{
    const mull__type *types = s->fates->table->types;
    const mull__rule *found = NULL;
    while (!found && s->effort > 0 && type != MULL__ERROR_TYPE &&
           (type = types[type].parent) != MULL__ERROR_TYPE && is_declared(s, type)) {
        s->effort -= 10;
        found = cover_find(declared, type, matcher, &s->effort);
    }
    return found;
}

static int is_unreadable(reach_search *s, uint32_t type)
{
    while (type != MULL__UNREADABLE_TYPE && type != MULL__ERROR_TYPE && is_declared(s, type) &&
           s->effort > 0) {
        s->effort -= 3;
        type = s->fates->table->types[type].parent;
    }
    return type == MULL__UNREADABLE_TYPE;
}

/* find_taker: of a cause rule only the error itself counts, whatever its cause. */
static void find_taker(reach_search *s, const mull__rule *rule, int is_cause, mull__fate *fate)
{
    static const mull__matcher always = {.kind = MULL__MATCH_ALWAYS};
    const mull__matcher *matcher = is_cause ? &always : &rule->matcher;
    if (!is_declared(s, rule->type))
        return;
    fate->is_unreadable = !is_cause && is_unreadable(s, rule->type);
    for (int i = 0; i < DECLARERS; i++) {
        const cover *declared = &s->declared[i];
        const mull__rule *found = cover_find(declared, MULL__ERROR_TYPE, matcher, &s->effort);
        if (!found && !is_cause)
            found = cover_find(declared, rule->type, matcher, &s->effort);
        if (found)
            fate->may_decide = 0;
        else if (!is_cause && !fate->taken_by)
            found = of_ancestors(s, declared, rule->type, matcher);
        if (!fate->taken_by)
            fate->taken_by = found;
    }
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void look_at(reach_search *s, cover *before, const mull__rule *rule, int is_cause,
                    mull__fate *fate)
{
    mull__fate found = {.may_decide = 1};
    *fate = found;
    if (s->fates->stopped)
        return;
    found.hidden_by = cover_find(before, rule->type, &rule->matcher, &s->effort);
    find_taker(s, rule, is_cause, &found);
    found.never_passes = mull__never_passes(&rule->matcher, &s->effort);
    if (found.hidden_by || found.never_passes)
        found.may_decide = 0;
    if (s->effort > 0)
        *fate = found;
    else
        s->fates->stopped = rule;
}

static int look_at_rules(reach_search *s, const mull__rules *rules, int is_cause, mull__fate *fates)
{
    cover before;
    int status = cover_init(&before, rules, s->fates->allocator);
    for (size_t i = 0; i < rules->count && status == MULL_OK; i++) {
        look_at(s, &before, &rules->items[i], is_cause, &fates[i]);
        cover_add(&before, i);
    }
    cover_free(&before);
    return status;
}

static int look_at_scope(reach_search *s, const mull__scope *scope, mull__fate *fates)
{
    int status = declare(&s->declared[OWN], scope, s->fates->allocator);
    if (status == MULL_OK)
        status = look_at_rules(s, &scope->rules, 0, fates);
    if (status == MULL_OK)
        status = look_at_rules(s, &scope->cause_rules, 1, fates + scope->rules.count);
    cover_free(&s->declared[OWN]);
    return status;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int take_memory(mull__fates *fates)
{
    const mull__table *table = fates->table;
    size_t count = 0;
    fates->items = mull__zalloc(fates->allocator, table->rule_count, sizeof *fates->items);
    fates->first = mull__zalloc(fates->allocator, table->scope_count, sizeof *fates->first);
    if (!fates->items || !fates->first)
        return MULL_ENOMEM;
    for (size_t i = 0; i < table->scope_count; i++) {
        fates->first[i] = count;
        count += mull__scope_rules(&table->scopes[i]);
    }
    return MULL_OK;
}

int mull__fates_of(mull__fates *fates, const mull__table *table, const mull__scope *only,
                   const mull_allocator *allocator)
{
    *fates = (mull__fates){.table = table, .allocator = allocator};
    reach_search s = {.fates = fates, .effort = EFFORT};
    int status = take_memory(fates);
    if (status == MULL_OK)
        status = declare(&s.declared[OF_BUS], table->bus, allocator);
    if (status == MULL_OK)
        status = declare(&s.declared[OF_HOST], table->host, allocator);
    for (size_t i = 0; i < table->scope_count && status == MULL_OK; i++)
        if (!only || only == &table->scopes[i])
            status = look_at_scope(&s, &table->scopes[i], &fates->items[fates->first[i]]);
    cover_free(&s.declared[OF_BUS]);
    cover_free(&s.declared[OF_HOST]);
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
