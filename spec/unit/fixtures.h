/* fixtures.h: what the tests of the core share: short ways to write a plain policy, an error and a
 * failure down, and an allocator that fails on demand. */
#ifndef SPEC_FIXTURES_H
#define SPEC_FIXTURES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "plain.h"

/* ---- Policies -------------------------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Tiers as the defaults of the language have them, without jitter. */
#define RETRY(n)                                                                                   \
    {                                                                                              \
        .on = 1, .attempts = (n), .base_ms = 200, .backoff = MULL__EXPONENTIAL, .factor = 2,       \
        .max_delay_ms = 30000                                                                      \
    }
#define REDELIVER(n)                                                                               \
    {                                                                                              \
        .on = 1, .attempts = (n), .base_ms = 300000, .backoff = MULL__LINEAR,                      \
        .max_delay_ms = 3600000                                                                    \
    }

#define DEAD_LETTER_RULE(name, at)                                                                 \
    {                                                                                              \
        .type = (name), .file = "policy.lua", .line = (at), .end = MULL_DEAD_LETTER                \
    }

/* A test that a field of the error equals the literal pointed to. */
#define EQUALS(field, literal)                                                                     \
    {                                                                                              \
        .subject = MULL__OF_ERROR, .name = (field), .value = {                                     \
            .kind = MULL__ONE_OF,                                                                  \
            .literals = (literal),                                                                 \
            .literal_count = 1                                                                     \
        }                                                                                          \
    }

/* new_table compiles, or fails the test. */
static inline mull__table *new_table(const mull__plain *plain)
{
    static counting_allocator plenty;
    mull_allocator a = counting_allocator_ops(&plenty);
    mull__table *table;
    assert_int_equal(mull__table_new(&table, &a, plain), 0);
    return table;
}

/* ---- Failures -------------------------------------------------------------------------------- */

static inline mull_error error_of(const char *type)
{
    return (mull_error){.size = sizeof(mull_error), .type = type};
}

/* failure_of is a first failure, complete as mull__evaluate wants it. */
static inline mull_failure failure_of(const mull_error *error)
{
    return (mull_failure){
        .size = sizeof(mull_failure),
        .error = error,
        .attempt = 1,
        .calls = 1,
        .deliveries = 1,
        .flags = MULL_HAS_CHANCE,
    };
}

static inline mull_verdict judge_with(const mull__table *table, const mull_failure *failure,
                                      const mull__runner *runner)
{
    uint64_t *seen = malloc(mull__table_scratch_words(table) * sizeof *seen + 1);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    mull__evaluate(table, failure, runner, seen, &verdict);
    free(seen);
    return verdict;
}

/* judge asks a table without functions. */
static inline mull_verdict judge(const mull__table *table, const mull_failure *failure)
{
    return judge_with(table, failure, &(mull__runner){0});
}

#endif
