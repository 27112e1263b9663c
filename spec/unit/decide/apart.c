/* apart.c: whatever the allocator, no cache line in which one decider writes has anything
 * in it that another thread's has: these lines lie within the decider's own blocks. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decide/policy.h"
#include "policy/table.h"

/* Each block has its size before it. */
enum { HEAD = alignof(max_align_t) };

static void *resize(void *pointer, size_t bytes, void *data)
{
    (void)data;
    char *head = pointer ? (char *)pointer - HEAD : NULL;
    if (bytes == 0) {
        free(head);
        return NULL;
    }
    head = realloc(head, bytes + HEAD);
    if (!head)
        return NULL;
    *(size_t *)(void *)head = bytes;
    return head + HEAD;
}

static size_t size_of(const void *block)
{
    return *(const size_t *)(const void *)((const char *)block - HEAD);
}

/* check_within: the lines of `size` bytes at `written` lie within the block, wherever a line
 * begins. */
static void check_within(const void *block, const void *written, size_t size)
{
    size_t before = (size_t)((const char *)written - (const char *)block);
    assert_true(before >= MULL__CACHE_LINE - 1);
    assert_true(size_of(block) >= before + size + MULL__CACHE_LINE - 1);
}

static void check_apart(const mull_decider *decider)
{
    const mull__decider_state *decider_state = decider->decider_state;
    check_within(decider, &decider->deciding, sizeof decider->deciding);
    check_within(decider_state, decider_state->seen,
                 mull__table_scratch_words(decider_state->table) * sizeof *decider_state->seen);
}

static void what_deciders_write_lies_apart(void **state)
{
    (void)state;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = "require('mulligan.policy').bus():on('Fails'):retry()";
    options.allocator = (mull_allocator){.resize = resize};
    mull_policy *policy;
    mull_decider *decider;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    check_apart(decider);
    mull_decider_free(decider);
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_deciders_write_lies_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
