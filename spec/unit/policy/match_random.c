/* match_random.c: random matchers of every form, evaluated in C and by a naive reading of
 * the language's tables, Lua's own patterns among it. MULL_MATCHERS says how many. */
#include <lauxlib.h>
#include <lualib.h>

#include "probe.h"
#include "sample.h"

/* ---- At random, beside a naive reading ------------------------------------------------------- */

enum { DEPTH = 3, PARTS_MAX = 3, TESTS_MAX = 3, LITERALS_MAX = 3, MATCHERS = 20000 };

/* Few names and few values, so that they often meet. */
static const char *const names[] = {"a", "b", "message", "type", "cause", "stack"};
static const char *const ctx_names[] = {"attempt", "redeliveries", "deliveries", "calls",
                                        "age_ms",  "consumer",     "transport"};
static const char *const message_names[] = {"id", "type", "key", "size"};
static const char *const header_names[] = {"tenant", "Tenant", "region"};
static const char *const strings[] = {"", "a", "ab", "aab", "Any", "Payments", "503", "a.b", "%"};
static const char *const patterns[] = {"a", "^a", "b$", "%d+", "^$", "a.b", "[^a]", "(a)%1", "%%"};
static const mull_value numbers[] = {
    INTEGER(0),         INTEGER(1),         INTEGER(503),   INTEGER((INT64_C(1) << 53) + 1),
    INTEGER(INT64_MAX), INTEGER(INT64_MIN), NUMBER(503),    NUMBER(0.5),
    NUMBER(-0.5),       NUMBER(0x1p53),     NUMBER(0x1p63), NUMBER(-0x1p63),
};

/* nursery is where a random matcher lives. */
typedef struct nursery {
    sample chance;
    mull__matcher matchers[64];
    mull__field_test tests[64];
    mull__condition values[64];
    mull_value literals[256];
    size_t matcher_count, test_count, value_count, literal_count;
} nursery;

static size_t pick(nursery *n, size_t count)
{
    return (size_t)(sample_random(&n->chance) % count);
}

#define ONE_OF(n, list) ((list)[pick(n, COUNT(list))])

/* random_number is often one of the first three, which counters have too. */
static mull_value random_number(nursery *n)
{
    return pick(n, 2) ? numbers[pick(n, 3)] : ONE_OF(n, numbers);
}

static mull_value random_scalar(nursery *n)
{
    switch (pick(n, 5)) {
    case 0:
        return (mull_value)BOOLEAN((int)pick(n, 2));
    case 1:
    case 2:
        return (mull_value)STRING(ONE_OF(n, strings));
    default:
        return random_number(n);
    }
}

static mull__condition random_value(nursery *n, int depth)
{
    mull__condition value = {.kind = (mull__value_kind)pick(n, MULL__NOT + 1u)};
    mull_value low = random_number(n), high = random_number(n);
    switch (value.kind) {
    case MULL__ONE_OF:
        value.literals = &n->literals[n->literal_count];
        value.literal_count = 1 + pick(n, LITERALS_MAX);
        for (size_t i = 0; i < value.literal_count; i++)
            n->literals[n->literal_count++] = random_scalar(n);
        break;
    case MULL__BETWEEN:
        if (pick(n, 3) > 0)
            value.low = low;
        if (value.low.kind == MULL_NIL || pick(n, 2))
            value.high = high;
        break;
    case MULL__CONTAINS:
        value.text = ONE_OF(n, strings);
        break;
    case MULL__MATCHES:
        value.text = ONE_OF(n, patterns);
        break;
    case MULL__NOT:
        if (depth == 0)
            return (mull__condition){.kind = MULL__PRESENT};
        value.inner = &n->values[n->value_count++];
        n->values[n->value_count - 1] = random_value(n, depth - 1);
        break;
    case MULL__PRESENT:
    case MULL__ABSENT:
        break;
    }
    return value;
}

static mull__field_test random_test(nursery *n)
{
    mull__field_test test = {.subject = (mull__subject)pick(n, MULL__OF_HEADER + 1u)};
    switch (test.subject) {
    case MULL__OF_ERROR:
        test.name = ONE_OF(n, names);
        break;
    case MULL__OF_CTX:
        test.name = ONE_OF(n, ctx_names);
        break;
    case MULL__OF_MESSAGE:
        test.name = ONE_OF(n, message_names);
        break;
    case MULL__OF_HEADER:
        test.name = ONE_OF(n, header_names);
        break;
    }
    test.value = random_value(n, DEPTH);
    return test;
}

static mull__matcher random_matcher(nursery *n, int depth)
{
    size_t kind = pick(n, depth == 0 ? 8 : 14), count = 1 + pick(n, PARTS_MAX);
    if (kind < 3)
        return (mull__matcher)FUNCTION((uint32_t)kind);
    if (kind < 8) {
        mull__field_test *tests = &n->tests[n->test_count];
        n->test_count += count;
        for (size_t i = 0; i < count; i++)
            tests[i] = random_test(n);
        return (mull__matcher){MULL__MATCH_TESTS, .tests = tests, .test_count = count};
    }
    mull__matcher *parts = &n->matchers[n->matcher_count];
    n->matcher_count += count;
    for (size_t i = 0; i < count; i++)
        parts[i] = random_matcher(n, depth - 1);
    return (mull__matcher){(mull__matcher_kind)(MULL__MATCH_ALL + kind % 3), .parts = parts,
                           .part_count = count};
}

/* naive is what a slow reader needs. */
typedef struct naive {
    lua_State *lua; /* whose patterns are meant */
    const mull_failure *failure;
    probe said;                             /* functions are called as they are for the table */
    unsigned seen[MULL__NOT + 1][2];        /* tests by the kind of their value: lost, passed */
    unsigned ends[MULL__MATCH_NONE + 1][3]; /* matchers by kind: lost, passed, raised */
} naive;

static mull_value naive_text(const char *text)
{
    return text ? (mull_value)STRING(text) : (mull_value)NOTHING;
}

static mull_value naive_field(const mull_error *error, const char *name)
{
    if (strcmp(name, "type") == 0)
        return naive_text(error->type);
    if (strcmp(name, "message") == 0)
        return naive_text(error->message ? error->message : "");
    if (strcmp(name, "stack") == 0)
        return naive_text(error->stack ? error->stack : "");
    for (size_t i = 0; i < error->field_count && strcmp(name, "cause") != 0; i++)
        if (strcmp(error->fields[i].name, name) == 0)
            return error->fields[i].value;
    return (mull_value)NOTHING;
}

static mull_value naive_ctx(const mull_failure *f, const char *name)
{
    if (strcmp(name, "consumer") == 0 || strcmp(name, "transport") == 0)
        return naive_text(*name == 'c' ? f->consumer : f->transport);
    const int64_t values[] = {f->attempt, f->redeliveries, f->deliveries, f->calls, f->age_ms};
    for (size_t i = 0; i < COUNT(values); i++)
        if (strcmp(ctx_names[i], name) == 0)
            return (mull_value)INTEGER(values[i]);
    fail();
    return (mull_value)NOTHING;
}

static mull_value naive_message(const mull_message *m, const char *name)
{
    if (strcmp(name, "size") == 0)
        return (mull_value)INTEGER(m ? (int64_t)m->body_size : 0);
    if (!m)
        return (mull_value)NOTHING;
    return naive_text(strcmp(name, "id") == 0    ? m->id
                      : strcmp(name, "key") == 0 ? m->key
                                                 : m->type);
}

static mull_value naive_fact(const mull_failure *f, const mull__field_test *test)
{
    switch (test->subject) {
    case MULL__OF_ERROR:
        return naive_field(f->error, test->name);
    case MULL__OF_CTX:
        return naive_ctx(f, test->name);
    case MULL__OF_MESSAGE:
        return naive_message(f->message, test->name);
    case MULL__OF_HEADER:
        break;
    }
    for (size_t i = 0; f->message && i < f->message->header_count; i++)
        if (strcmp(f->message->headers[i].name, test->name) == 0)
            return naive_text(f->message->headers[i].value);
    return (mull_value)NOTHING;
}

/* real: a long double has 64 bits for the digits here, enough for every integer. */
static long double real(mull_value value)
{
    return value.kind == MULL_INTEGER ? (long double)value.as.integer
                                      : (long double)value.as.number;
}

static int is_number(mull_value value)
{
    return value.kind == MULL_INTEGER || value.kind == MULL_NUMBER;
}

static int naive_equals(mull_value a, mull_value b)
{
    if (is_number(a) && is_number(b))
        return real(a) == real(b);
    if (a.kind == MULL_STRING && b.kind == MULL_STRING)
        return strcmp(a.as.string, b.as.string) == 0;
    return a.kind == MULL_BOOLEAN && b.kind == MULL_BOOLEAN && a.as.boolean == b.as.boolean;
}

static int naive_find(lua_State *L, const char *text, const char *pattern, int plain)
{
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "find");
    lua_pushstring(L, text);
    lua_pushstring(L, pattern);
    lua_pushinteger(L, 1);
    lua_pushboolean(L, plain);
    lua_call(L, 4, 1);
    int found = !lua_isnil(L, -1);
    lua_settop(L, 0);
    return found;
}

static int naive_value(naive *n, const mull__condition *wanted, mull_value given)
{
    int there = given.kind != MULL_NIL && given.kind != MULL_LIST && given.kind != MULL_MAP;
    switch (wanted->kind) {
    case MULL__ONE_OF:
        for (size_t i = 0; i < wanted->literal_count; i++)
            if (naive_equals(wanted->literals[i], given))
                return 1;
        return 0;
    case MULL__BETWEEN:
        return is_number(given) && real(given) == real(given) &&
               (wanted->low.kind == MULL_NIL || real(wanted->low) <= real(given)) &&
               (wanted->high.kind == MULL_NIL || real(given) <= real(wanted->high));
    case MULL__CONTAINS:
    case MULL__MATCHES:
        return given.kind == MULL_STRING &&
               naive_find(n->lua, given.as.string, wanted->text, wanted->kind == MULL__CONTAINS);
    case MULL__PRESENT:
        return there;
    case MULL__ABSENT:
        return !there;
    case MULL__NOT:
        return !naive_value(n, wanted->inner, given);
    }
    return 0;
}

static int naive_matcher(naive *n, const mull__matcher *m);

/* naive_parts: -1 where one raised before it was clear. */
static int naive_parts(naive *n, const mull__matcher *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        int answer = naive_matcher(n, &m->parts[i]);
        if (answer < 0)
            return -1;
        if (m->kind == MULL__MATCH_ALL && !answer)
            return 0;
        if (m->kind == MULL__MATCH_ANY && answer)
            return 1;
        if (m->kind == MULL__MATCH_NONE && answer)
            return 0;
    }
    return m->kind != MULL__MATCH_ANY;
}

static int naive_tests(naive *n, const mull__matcher *m)
{
    for (size_t i = 0; i < m->test_count; i++) {
        int answer = naive_value(n, &m->tests[i].value, naive_fact(n->failure, &m->tests[i]));
        n->seen[m->tests[i].value.kind][answer]++;
        if (!answer)
            return 0;
    }
    return 1;
}

static int naive_matcher(naive *n, const mull__matcher *m)
{
    int answer = 1;
    if (m->kind == MULL__MATCH_TESTS) {
        answer = naive_tests(n, m);
    } else if (m->kind == MULL__MATCH_FUNCTION) {
        probe_say(&n->said, "f%u:%s", m->function, n->failure->error->type);
        answer = m->function == FUNCTION_RAISES ? -1 : m->function == FUNCTION_YES;
    } else {
        answer = naive_parts(n, m);
    }
    n->ends[m->kind][answer < 0 ? 2 : answer]++;
    return answer;
}

/* random_failure fills in what is there already: an error with two fields, and a message. */
static void random_failure(nursery *n, mull_failure *failure, mull_error *error, mull_field *fields,
                           mull_message *message, mull_header *carried)
{
    static const char *const types[] = {"Any", "a", "503"};
    *error = error_of(ONE_OF(n, types));
    error->message = pick(n, 3) ? ONE_OF(n, strings) : NULL;
    error->fields = fields;
    error->field_count = pick(n, 3);
    for (size_t i = 0; i < error->field_count; i++)
        fields[i] = (mull_field){ONE_OF(n, names),
                                 pick(n, 5) ? random_scalar(n) : (mull_value){.kind = MULL_LIST}};
    *message = MULL_INIT(mull_message);
    message->id = pick(n, 2) ? ONE_OF(n, strings) : NULL;
    message->body_size = pick(n, 2);
    message->headers = carried;
    message->header_count = pick(n, 3);
    for (size_t i = 0; i < message->header_count; i++)
        carried[i] = (mull_header){ONE_OF(n, header_names), ONE_OF(n, strings)};
    *failure = failure_of(error);
    failure->message = pick(n, 3) ? message : NULL;
    failure->attempt = numbers[1 + pick(n, 2)].as.integer;
    failure->redeliveries = numbers[pick(n, 3)].as.integer;
    failure->calls = numbers[pick(n, 3)].as.integer;
    failure->age_ms = pick(n, 2) ? 503 : INT64_MAX;
    failure->consumer = pick(n, 2) ? "Payments" : NULL;
    failure->transport = pick(n, 2) ? "a" : NULL;
}

static void compare_one(nursery *n, naive *reader)
{
    mull_failure failure;
    mull_error error;
    mull_field fields[2];
    mull_message message;
    mull_header carried[2];
    n->matcher_count = n->test_count = n->value_count = n->literal_count = 0;
    const mull__matcher matcher = random_matcher(n, DEPTH);
    random_failure(n, &failure, &error, fields, &message, carried);
    probe p = {0};
    int answer = probe_passes(&p, &matcher, &failure);
    reader->failure = &failure;
    reader->said.length = 0;
    reader->said.said[0] = '\0';
    int expected = naive_matcher(reader, &matcher);
    if (expected < 0)
        probe_say(&reader->said, "x7");
    assert_int_equal(answer, expected > 0);
    assert_string_equal(p.said, reader->said.said);
}

static void random_matchers_are_as_the_language_says(void **state)
{
    (void)state;
    static naive reader;
    static nursery n;
    const char *given = getenv("MULL_MATCHERS");
    const long count = given ? atol(given) : MATCHERS, least = count / 1000;
    n.chance = sample_of(1);
    reader.lua = luaL_newstate();
    luaL_openlibs(reader.lua);
    for (long i = 0; i < count; i++)
        compare_one(&n, &reader);
    for (int kind = 0; kind <= MULL__NOT; kind++) {
        print_message("values of kind %d: %u lost, %u passed\n", kind, reader.seen[kind][0],
                      reader.seen[kind][1]);
        assert_true(reader.seen[kind][0] > least && reader.seen[kind][1] > least);
    }
    for (int kind = MULL__MATCH_TESTS; kind <= MULL__MATCH_NONE; kind++) {
        const unsigned *ends = reader.ends[kind];
        print_message("matchers of kind %d: %u lost, %u passed, %u raised\n", kind, ends[0],
                      ends[1], ends[2]);
        assert_true(ends[0] > least && ends[1] > least);
        assert_true(ends[2] > least || kind == MULL__MATCH_TESTS);
    }
    lua_close(reader.lua);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_matchers_are_as_the_language_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
