/* policy_memory.c: policies whose n-th request for memory is refused, for every n. See
 * policy_lives.h. The blocks of a state of Lua are requested by the chunk here;
 * internal_policy_memory.c refuses each of them. */
#include "policy_lives.h"

#include <limits.h>

/* Memory isn't shared among threads here: under ThreadSanitizer, some n will do. */
#if defined(__SANITIZE_THREAD__)
enum { LIVES = 12 };
#else
enum { LIVES = INT_MAX };
#endif

static void a_text_is_loaded(void **state)
{
    (void)state;
    load_without_memory(0, LIVES);
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    load_without_memory(1, LIVES);
}

/* picky refuses requests of one size. */
typedef struct picky {
    purse purse;
    size_t size;
} picky;

static void *picky_resize(void *pointer, size_t bytes, void *data)
{
    picky *p = data;
    return bytes == p->size ? NULL : purse_resize(pointer, bytes, &p->purse);
}

/* What reading a file asks for: its path, and room for its text, a NUL and a byte more. */
static void a_file_without_memory_is_no_mistake(void **state)
{
    (void)state;
    place from;
    static told t;
    open_place(&from, &t, 1);
    const size_t sizes[] = {strlen(from.folder.path) + sizeof "/more/rules.lua",
                            strlen(from.text) + 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        picky p = {.size = sizes[i]};
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.path = from.folder.main;
        options.problem = on_problem;
        options.data = &t;
        options.allocator = (mull_allocator){picky_resize, &p};
        mull_policy *policy;
        assert_int_equal(mull_policy_load(&policy, &options), MULL_ENOMEM);
        assert_int_equal(p.purse.out, 0);
    }
    assert_int_equal(t.problems, 0);
    close_place(&from);
}

static void a_matcher_without_memory_is_skipped(void **state)
{
    (void)state;
    decide_without_memory(LIVES);
}

static void a_text_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(0, LIVES);
}

static void a_file_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(1, LIVES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_loaded),
        cmocka_unit_test(a_file_is_loaded),
        cmocka_unit_test(a_file_without_memory_is_no_mistake),
        cmocka_unit_test(a_matcher_without_memory_is_skipped),
        cmocka_unit_test(a_text_is_reloaded),
        cmocka_unit_test(a_file_is_reloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
