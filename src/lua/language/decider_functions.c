/* decider_functions.c: see decider_functions.h. A state is a mull__sandbox_pair; the host's
 * functions are numbered first, as mull__compile does it. */
#include "decider_functions.h"

#include <string.h>

#include "base/alloc.h"
#include "compile.h"
#include "functions.h"
#include "sandbox_pair.h"

/* check_same compiles once more and compares: only a policy that always gives the same table may
 * have its functions called beside another's. */
static int check_same(const mull__sandbox_pair *pair, const char *digest, mull__report *report)
{
    mull__table *table;
    char again[33];
    int status = mull__compile(&table, pair->host, pair->own, report);
    if (status)
        return status;
    mull__table_digest(table, again);
    mull__table_free(table);
    if (strcmp(again, digest) == 0)
        return MULL_OK;
    mull__report_add(
        pair->own->options.main, 0,
        "the policy gave other rules when it ran once more; it must always give the same", report);
    return MULL_EPOLICY;
}

static int open_functions(mull__sandbox *sandbox, const mull__sandbox *typed_by,
                          mull__report *report)
{
    int status = mull__functions_open(sandbox, typed_by);
    if (status == MULL_EPOLICY)
        mull__report_add(sandbox->options.main, 0, sandbox->vm.message, report);
    return status;
}

static int make(mull__sandbox_pair *pair, mull__policy_texts *texts, mull__source *source,
                const char *digest, mull__report *report)
{
    int status = mull__sandbox_pair_run(pair, texts, source, 1, 1);
    mull__sandbox_pair_tell(pair, status, report);
    if (status == MULL_OK)
        status = check_same(pair, digest, report);
    if (status == MULL_OK && pair->host)
        status = open_functions(pair->host, pair->own, report);
    if (status == MULL_OK)
        status = open_functions(pair->own, NULL, report);
    return status;
}

int mull__decider_functions_new(void *texts, void *source, const char *digest, mull__report *report,
                                void **state)
{
    mull__policy_texts *t = texts;
    mull__sandbox_pair *pair = mull__zalloc(&t->arena.allocator, 1, sizeof *pair);
    *state = NULL;
    if (!pair)
        return MULL_ENOMEM;
    int status = make(pair, t, source, digest, report);
    if (status == MULL_OK)
        *state = pair;
    else
        mull__decider_functions_free(t, pair);
    return status;
}

void mull__decider_functions_free(void *texts, void *state)
{
    const mull__policy_texts *t = texts;
    mull__sandbox_pair_free(state);
    mull__free(&t->arena.allocator, state);
}

/* owner gives the sandbox that has a function, and makes the number that which it has there. */
static mull__sandbox *owner(const void *state, uint32_t *number)
{
    const mull__sandbox_pair *pair = state;
    uint32_t first = pair->host ? pair->host->function_count : 0;
    if (*number < first)
        return pair->host;
    *number -= first;
    return pair->own;
}

int mull__decider_functions_match(void *state, uint32_t number, const mull_failure *failure,
                                  int64_t *steps, char *why, size_t why_size)
{
    mull__sandbox *sandbox = owner(state, &number);
    return mull__functions_match(sandbox, number, failure, steps, why, why_size);
}

int mull__decider_functions_override(void *state, uint32_t number, const mull_failure *failure,
                                     const mull_verdict *verdict, const mull__config *config,
                                     mull__answer *answer, char *why, size_t why_size)
{
    mull__sandbox *sandbox = owner(state, &number);
    return mull__functions_override(sandbox, number, failure, verdict, config, answer, why,
                                    why_size);
}

int mull__decider_functions_notify(void *state, uint32_t number, const mull_event *event,
                                   int64_t *steps, char *why, size_t why_size)
{
    mull__sandbox *sandbox = owner(state, &number);
    return mull__functions_notify(sandbox, number, event, steps, why, why_size);
}
