/* reload_cost.c: what a reload costs a decider: in its next call one exchange, and no
 * memory, nor a lock, that the call after that doesn't take; where functions match, too. */
#include <stdatomic.h>
#include <stdint.h>

static long exchanges;

static uintptr_t counted_exchange(atomic_uintptr_t *slot, uintptr_t decider_state,
                                  memory_order order)
{
    exchanges++;
    return atomic_exchange_explicit(slot, decider_state, order);
}

/* entering is what a build with checks does at the door of each call. */
static inline int entering(atomic_int *entered, int value, memory_order order)
{
    return atomic_exchange_explicit(entered, value, order);
}

/* This decider takes the place of the one among the objects, which isn't linked. */
#undef atomic_exchange_explicit
#define atomic_exchange_explicit(object, value, order)                                             \
    _Generic((object), atomic_uintptr_t *                                                          \
             : counted_exchange, atomic_int *                                                      \
             : entering)(object, value, order)
#include "decide/decider.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "counting_allocator.h"

/* ---- What is counted ------------------------------------------------------------------------- */

static long mallocs, locks;

/* What the objects call comes here, by the linker's --wrap. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *pointer, size_t bytes);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *pointer, size_t bytes);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

void *__wrap_malloc(size_t bytes)
{
    mallocs++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    mallocs++;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *pointer, size_t bytes)
{
    mallocs++;
    return __real_realloc(pointer, bytes);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    locks++;
    return __real_pthread_mutex_lock(lock);
}

/* cost is what one decision took. */
typedef struct cost {
    long exchanges, asked, mallocs, locks;
} cost;

/* ---- A policy, and those who decide by it ---------------------------------------------------- */

static const char *const texts[] = {
    "local bus = require('mulligan.policy').bus()\n"
    "bus:on('Table', { status = 503 }):retry(3, '1s')\n"
    "bus:on('Short', function(err, ctx)\n"
    "    return err.status == 503 and ctx.attempt == 1 and err:is 'Error'\n"
    "end):retry(3, '1s')\n"
    "bus:on('Long', function(err, ctx)\n"
    "    local headers = ctx.message.headers\n"
    "    return err.cause.type == 'Cause' and headers.tenant .. err.cause.message ~= ''\n"
    "end):retry(3, '1s')\n",
    "local host = require('mulligan.policy').host()\n"
    "host:on('Table', { status = 503 }):redeliver(3, '1s')\n"
    "host:on('Short', function(err, ctx)\n"
    "    return err.status == 503 and ctx.attempt == 1 and err.type == 'Short' and err.message\n"
    "end):redeliver(3, '1s')\n"
    "host:on('Long', function(err, ctx)\n"
    "    local list, map = err.list, err.map\n"
    "    return err.cause.message .. ctx.message.headers.tenant ~= '' and #list == map.key\n"
    "end):redeliver(3, '1s')\n",
};

/* Of the types, one meets a matcher that is compiled to C, one a function that needs no memory, and
 * one a function that makes strings and tables. */
static const char *const types[] = {"Table", "Short", "Long"};

enum { TYPES = sizeof types / sizeof *types, LONG_ONE = 2, OTHERS = 3, ROUNDS = 20 };

typedef struct stage {
    counting_allocator counting_allocator;
    mull_policy *policy;
    mull_decider *decider, *others[OTHERS];
    int second; /* which text is in force */
    int serial; /* of the last decision */
} stage;

static void stage_open(stage *s)
{
    *s = (stage){0};
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = texts[0];
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    assert_int_equal(mull_policy_load(&s->policy, &options), 0);
    assert_int_equal(mull_decider_new(&s->decider, s->policy), 0);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(mull_decider_new(&s->others[i], s->policy), 0);
}

static void stage_close(stage *s)
{
    for (int i = 0; i < OTHERS; i++)
        mull_decider_free(s->others[i]);
    mull_decider_free(s->decider);
    mull_policy_free(s->policy);
    assert_int_equal(s->counting_allocator.out, 0);
}

static void reload(stage *s)
{
    s->second = !s->second;
    assert_int_equal(mull_policy_reload(s->policy, texts[s->second], 0), 0);
}

/* measure gives what a decision takes. */
static cost measure(stage *s, const mull_failure *failure)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    cost before = {exchanges, s->counting_allocator.asked, mallocs, locks};
    assert_int_equal(mull_decide(s->decider, failure, &verdict), 0);
    cost after = {exchanges, s->counting_allocator.asked, mallocs, locks};
    assert_int_equal(verdict.action, s->second ? MULL_REDELIVER : MULL_RETRY);
    return (cost){after.exchanges - before.exchanges, after.asked - before.asked,
                  after.mallocs - before.mallocs, after.locks - before.locks};
}

/* decide_once decides on a failure with texts that no other has: one that a state knows already, it
 * needn't make again, whatever was reloaded. */
static cost decide_once(stage *s, const char *type)
{
    char text[2][16];
    for (int i = 0; i < 2; i++)
        snprintf(text[i], sizeof text[i], "%d-%d", i, s->serial);
    s->serial++;
    const mull_value one = {.kind = MULL_INTEGER, .as.integer = 1};
    const mull_field key = {"key", one};
    const mull_field fields[] = {{"status", {.kind = MULL_INTEGER, .as.integer = 503}},
                                 {"list", {.kind = MULL_LIST, .as.items = &one, .count = 1}},
                                 {"map", {.kind = MULL_MAP, .as.fields = &key, .count = 1}}};
    const mull_header header = {"tenant", text[0]};
    const mull_error cause = {.size = sizeof cause, .type = "Cause", .message = text[1]};
    const mull_error error = {.size = sizeof error,
                              .type = type,
                              .fields = fields,
                              .field_count = sizeof fields / sizeof *fields,
                              .cause = &cause};
    const mull_message message = {
        .size = sizeof message, .id = "id", .headers = &header, .header_count = 1};
    const mull_failure failure = {.size = sizeof failure, .error = &error, .message = &message};
    return measure(s, &failure);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* after_a_reload: the first decision makes one exchange; in all else it is as those that follow. */
static void after_a_reload(stage *s, int type)
{
    cost first = decide_once(s, types[type]);
    assert_int_equal(first.exchanges, 1);
    for (int i = 0; i < 3; i++) {
        cost next = decide_once(s, types[type]);
        assert_int_equal(next.exchanges, 0);
        assert_int_equal(next.asked, first.asked);
        assert_int_equal(next.mallocs, first.mallocs);
        assert_int_equal(next.locks, first.locks);
    }
    assert_int_equal(first.mallocs, first.asked); /* all are the allocator's */
    assert_int_equal(first.locks, 0);
    assert_int_equal(first.asked > 0, type == LONG_ONE);
}

static void a_reload_costs_one_exchange(void **state)
{
    (void)state;
    stage s;
    stage_open(&s);
    for (int round = 0; round < ROUNDS; round++)
        for (int type = 0; type < TYPES; type++) {
            reload(&s);
            after_a_reload(&s, type);
        }
    stage_close(&s);
}

/* However many reloads there were since its last call, it takes the decider state of the last one.
 */
static void many_reloads_cost_one_exchange(void **state)
{
    (void)state;
    stage s;
    stage_open(&s);
    for (int type = 0; type < TYPES; type++) {
        for (int i = 0; i < 4 + type; i++)
            reload(&s);
        after_a_reload(&s, type);
    }
    stage_close(&s);
}

/* What changes nothing costs nothing. */
static void a_reload_of_the_same_costs_nothing(void **state)
{
    (void)state;
    stage s;
    stage_open(&s);
    decide_once(&s, "Table");
    assert_int_equal(mull_policy_reload(s.policy, texts[0], 0), 1);
    assert_int_equal(mull_policy_reload(s.policy, "mistaken(", 0), MULL_EPOLICY);
    assert_int_equal(decide_once(&s, "Table").exchanges, 0);
    stage_close(&s);
}

/* The counters count. */
static void what_is_counted_is_seen(void **state)
{
    (void)state;
    stage s;
    cost before = {exchanges, 0, mallocs, locks};
    stage_open(&s);
    assert_true(s.counting_allocator.asked > 1000 && locks > before.locks);
    stage_close(&s);
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = texts[0];
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    mull_policy_free(policy);
    assert_true(mallocs > before.mallocs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_counted_is_seen),
        cmocka_unit_test(a_reload_costs_one_exchange),
        cmocka_unit_test(many_reloads_cost_one_exchange),
        cmocka_unit_test(a_reload_of_the_same_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
