/* subsumption.c: see subsumption.h. */
#include "subsumption.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "satisfiability.h"

typedef struct mull__cover_entry {
    uint32_t rule, next; /* MULL__NONE: the last */
} entry;

typedef struct mull__cover_place {
    uint64_t key;
    uint32_t first, last; /* of its entries; MULL__NONE: a free place */
} place;

/* ---- Keys ------------------------------------------------------------------------------------ */

/* What a key says of a fact: how it is tested, which for some has the value in it. */
typedef enum aspect {
    ANY,       /* a text, a value or a list that takes more than a key to compare */
    RANGE,     /* a range of numbers */
    PRESENT,   /* it is there */
    LITERAL,   /* it has one value */
    VALUE,     /* the very same test */
    UNMATCHED, /* there is no matcher */
    WHOLE      /* the very same matcher, which isn't of tests */
} aspect;

/* Texts are gone over to the end, and so cost effort. Where all are hashed but once nobody counts
 * it. */
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
    uint64_t words[2] = {MULL_NUMBER, 0};
    double number = literal->kind == MULL_NUMBER ? literal->as.number : 0;
    if (literal->kind == MULL_STRING) {
        words[0] = MULL_STRING;
        words[1] = hash_of_text(literal->as.string, effort);
    } else if (literal->kind == MULL_INTEGER) {
        words[1] = (uint64_t)literal->as.integer;
    } else if (literal->kind == MULL_BOOLEAN) {
        words[0] = MULL_BOOLEAN;
        words[1] = literal->as.boolean != 0;
    } else if (number >= -0x1p63 && number < 0x1p63 && number == (double)(int64_t)number) {
        words[1] = (uint64_t)(int64_t)number;
    } else {
        memcpy(&words[1], &number, sizeof number);
    }
    return mull__hash_words(words, 2);
}

static uint64_t hash_of_value(const mull__plain_value *value, int64_t *effort)
{
    uint64_t hash = 0;
    for (; value; value = value->kind == MULL__NOT ? value->inner : NULL) {
        const uint64_t words[] = {hash, value->kind, hash_of_literal(&value->low, effort),
                                  hash_of_literal(&value->high, effort),
                                  hash_of_text(value->text, effort)};
        hash = mull__hash_words(words, 5);
        for (size_t i = 0; i < value->literal_count; i++) {
            const uint64_t pair[] = {hash, hash_of_literal(&value->literals[i], effort)};
            hash = mull__hash_words(pair, 2);
        }
    }
    return hash;
}

static uint64_t hash_of_matcher(const mull__plain_matcher *matcher, int64_t *effort)
{
    const uint64_t words[] = {matcher->kind, matcher->test_count, matcher->part_count,
                              matcher->function};
    uint64_t hash = mull__hash_words(words, 4);
    for (size_t i = 0; i < matcher->test_count; i++) {
        const mull__plain_test *test = &matcher->tests[i];
        const uint64_t more[] = {hash, test->subject, hash_of_text(test->name, effort),
                                 hash_of_value(&test->value, effort)};
        hash = mull__hash_words(more, 4);
    }
    for (size_t i = 0; i < matcher->part_count; i++) {
        const uint64_t more[] = {hash, hash_of_matcher(&matcher->parts[i], effort)};
        hash = mull__hash_words(more, 2);
    }
    return hash;
}

/* subject is what a key is about: a fact, or all of an error where there is no test. */
typedef struct subject {
    uint64_t type, of, name;
} subject;

static subject subject_of(uint32_t type, const mull__plain_test *test, int64_t *effort)
{
    return (subject){type, test->subject, hash_of_text(test->name, effort)};
}

static uint64_t key_of(const subject *about, aspect as, uint64_t value)
{
    const uint64_t words[] = {about->type, about->of, about->name, as, value};
    return mull__hash_words(words, 5);
}

/* A rule is kept by each of the literals of a list up to so many. */
enum { MOST_LITERALS = 16 };

/* keys_of gives what a rule is kept by, for one of its tests; or, where it is `asked` for, all that
 * the test implies: what a rule that covers it may be kept by. */
static size_t keys_of(uint64_t keys[MOST_LITERALS], uint32_t type, const mull__plain_test *test,
                      int asked, int64_t *effort)
{
    const mull__plain_value *value = &test->value;
    const subject about = subject_of(type, test, effort);
    size_t count = 0, literals = value->literal_count, most = asked ? 1 : MOST_LITERALS;
    switch (value->kind) {
    case MULL__BETWEEN:
        keys[count++] = key_of(&about, RANGE, 0);
        return count;
    case MULL__PRESENT:
        keys[count++] = key_of(&about, PRESENT, 0);
        return count;
    case MULL__ONE_OF:
        for (size_t i = 0; i < literals && i < most && (asked || literals <= most); i++)
            keys[count++] = key_of(&about, LITERAL, hash_of_literal(&value->literals[i], effort));
        if (asked || literals > most)
            keys[count++] = key_of(&about, ANY, 0);
        if (!asked)
            return count;
        keys[count++] = key_of(&about, RANGE, 0);
        keys[count++] = key_of(&about, PRESENT, 0);
        return count;
    case MULL__CONTAINS:
    case MULL__NOT:
        if (!asked)
            keys[count++] = key_of(&about, ANY, 0);
        break;
    case MULL__MATCHES:
    case MULL__ABSENT:
        break;
    }
    keys[count++] = key_of(&about, VALUE, hash_of_value(value, effort));
    return count;
}

static size_t kept_by(uint64_t keys[MOST_LITERALS], uint32_t type, const mull__plain_test *test)
{
    int64_t uncounted = 0;
    return keys_of(keys, type, test, 0, &uncounted);
}

static int is_of_tests(const mull__plain_matcher *matcher)
{
    return matcher->kind == MULL__MATCH_TESTS && matcher->test_count > 0;
}

static uint64_t key_of_whole(uint32_t type, const mull__plain_matcher *matcher, int64_t *effort)
{
    const subject about = {.type = type};
    if (matcher->kind == MULL__MATCH_ALWAYS || matcher->kind == MULL__MATCH_TESTS)
        return key_of(&about, UNMATCHED, 0);
    return key_of(&about, WHOLE, hash_of_matcher(matcher, effort));
}

/* keys_of_rule gives what a rule is kept by. */
static size_t keys_of_rule(uint64_t keys[MOST_LITERALS], const mull__cover *cover, size_t index)
{
    const mull__rule *rule = &cover->rules->items[index];
    if (is_of_tests(&rule->matcher))
        return kept_by(keys, rule->type, &rule->matcher.tests[cover->chosen[index]]);
    int64_t uncounted = 0;
    keys[0] = key_of_whole(rule->type, &rule->matcher, &uncounted);
    return 1;
}

/* ---- By which test --------------------------------------------------------------------------- */

/* A tally is how many tests have a key, roughly: two keys may share one. Of FEW rules it is all the
 * same which tests they are kept by. */
enum { TALLIES = 1 << 14, FEW = 16 };

static uint32_t *tally_of(uint32_t *tallies, uint64_t key)
{
    return &tallies[key >> 50];
}

static void count_tests(uint32_t *tallies, const mull__rule *rule)
{
    uint64_t keys[MOST_LITERALS];
    for (size_t i = 0; i < rule->matcher.test_count; i++)
        for (size_t count = kept_by(keys, rule->type, &rule->matcher.tests[i]); count-- > 0;)
            ++*tally_of(tallies, keys[count]);
}

/* crowd is how many rules may be met by one key of a test. */
static uint32_t crowd(uint32_t *tallies, uint32_t type, const mull__plain_test *test)
{
    uint64_t keys[MOST_LITERALS];
    uint32_t most = 0;
    for (size_t count = kept_by(keys, type, test); count-- > 0;) {
        uint32_t tally = *tally_of(tallies, keys[count]);
        most = tally > most ? tally : most;
    }
    return most;
}

static uint32_t choose(uint32_t *tallies, const mull__rule *rule)
{
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < rule->matcher.test_count && rule->matcher.test_count > 1; i++) {
        uint32_t tally = crowd(tallies, rule->type, &rule->matcher.tests[i]);
        if (tally < least) {
            least = tally;
            best = i;
        }
    }
    return best;
}

static int choose_tests(mull__cover *cover)
{
    const mull__rules *rules = cover->rules;
    uint32_t *tallies = mull__zalloc(cover->allocator, TALLIES, sizeof *tallies);
    if (!tallies)
        return MULL_ENOMEM;
    for (size_t i = 0; i < rules->count; i++)
        count_tests(tallies, &rules->items[i]);
    for (size_t i = 0; i < rules->count; i++)
        cover->chosen[i] = choose(tallies, &rules->items[i]);
    mull__free(cover->allocator, tallies);
    return MULL_OK;
}

/* ---- Rules by key ---------------------------------------------------------------------------- */

/* place_of is a key's, or a free one. */
static place *place_of(const mull__cover *cover, uint64_t key)
{
    uint64_t at = key & cover->mask;
    while (cover->places[at].first != MULL__NONE && cover->places[at].key != key)
        at = (at + 1) & cover->mask;
    return &cover->places[at];
}

static int take_memory(mull__cover *cover)
{
    size_t entries = 0, places = 2;
    uint64_t keys[MOST_LITERALS];
    for (size_t i = 0; i < cover->rules->count; i++)
        entries += keys_of_rule(keys, cover, i);
    while (places < 2 * entries)
        places *= 2;
    cover->entries = mull__zalloc(cover->allocator, entries, sizeof *cover->entries);
    cover->places = mull__zalloc(cover->allocator, places, sizeof *cover->places);
    if (!cover->entries || !cover->places)
        return MULL_ENOMEM;
    cover->mask = places - 1;
    for (size_t i = 0; i < places; i++)
        cover->places[i].first = MULL__NONE;
    return MULL_OK;
}

int mull__cover_init(mull__cover *cover, const mull__rules *rules, const mull_allocator *allocator)
{
    *cover = (mull__cover){.rules = rules, .allocator = allocator};
    if (rules->count == 0)
        return MULL_OK;
    cover->chosen = mull__zalloc(allocator, rules->count, sizeof *cover->chosen);
    if (!cover->chosen || (rules->count > FEW && choose_tests(cover)) || take_memory(cover)) {
        mull__cover_free(cover);
        return MULL_ENOMEM;
    }
    return MULL_OK;
}

void mull__cover_free(mull__cover *cover)
{
    mull__free(cover->allocator, cover->chosen);
    mull__free(cover->allocator, cover->entries);
    mull__free(cover->allocator, cover->places);
    *cover = (mull__cover){.rules = NULL};
}

void mull__cover_add(mull__cover *cover, size_t index)
{
    uint64_t keys[MOST_LITERALS];
    size_t count = keys_of_rule(keys, cover, index);
    for (size_t i = 0; i < count; i++) {
        place *at = place_of(cover, keys[i]);
        uint32_t added = (uint32_t)cover->entry_count++;
        cover->entries[added] = (entry){(uint32_t)index, MULL__NONE};
        if (at->first == MULL__NONE)
            *at = (place){keys[i], added, added};
        else
            cover->entries[at->last].next = added;
        at->last = added;
    }
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* search is for the first rule that covers a matcher. */
typedef struct search {
    const mull__cover *cover;
    uint32_t type;
    const mull__plain_matcher *matcher;
    int64_t *effort;
    uint32_t found; /* an index; MULL__NONE so far */
} search;

static void look_by(search *s, uint64_t key)
{
    const mull__rule *items = s->cover->rules->items;
    uint32_t at = place_of(s->cover, key)->first;
    for (; at != MULL__NONE && *s->effort > 0; at = s->cover->entries[at].next) {
        uint32_t rule = s->cover->entries[at].rule;
        if (rule >= s->found)
            return;
        *s->effort -= 5;
        if (items[rule].type == s->type &&
            mull__covers(&items[rule].matcher, s->matcher, s->effort)) {
            s->found = rule;
            return;
        }
    }
}

static void look_by_tests(search *s)
{
    uint64_t keys[MOST_LITERALS];
    for (size_t i = 0; i < s->matcher->test_count; i++) {
        size_t count = keys_of(keys, s->type, &s->matcher->tests[i], 1, s->effort);
        while (count-- > 0)
            look_by(s, keys[count]);
    }
}

const mull__rule *mull__cover_find(const mull__cover *cover, uint32_t type,
                                   const mull__plain_matcher *matcher, int64_t *effort)
{
    search s = {cover, type, matcher, effort, MULL__NONE};
    if (cover->entry_count == 0)
        return NULL;
    look_by(&s, key_of(&(subject){.type = type}, UNMATCHED, 0));
    if (is_of_tests(matcher))
        look_by_tests(&s);
    else
        look_by(&s, key_of_whole(type, matcher, effort));
    return s.found != MULL__NONE && *effort > 0 ? &cover->rules->items[s.found] : NULL;
}
