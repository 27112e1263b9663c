/* policy_memory.c: policies whose n-th request for memory is refused. See policy_lives.h. Each
 * block of a state of Lua is a request. There are thousands of them, so some are tried, by chance;
 * all with MULL_EVERY=1. */
#include "policy_lives.h"

enum { LIVES = 40 / SLOWNESS, RELOADS = 20 / SLOWNESS };

static void a_text_is_loaded(void **state)
{
    (void)state;
    load_without_memory(A_TEXT, LIVES);
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    load_without_memory(A_FILE, LIVES);
}

static void a_host_policy_is_loaded(void **state)
{
    (void)state;
    load_without_memory(WITH_HOST, LIVES);
}

/* picky refuses requests of one size. */
typedef struct picky {
    counting_allocator counting_allocator;
    size_t size;
} picky;

static void *picky_resize(void *pointer, size_t bytes, void *data)
{
    picky *p = data;
    return bytes == p->size ? NULL
                            : counting_allocator_resize(pointer, bytes, &p->counting_allocator);
}

/* What reading a file asks for, in blocks of an arena (src/base/arena.c), each with its header: a
 * block for its path, and one for a large text with a NUL and a byte more. */
enum { HEADER = 4 * sizeof(size_t), TEXT = 100000 };

static void a_file_without_memory_is_no_mistake(void **state)
{
    (void)state;
    place from;
    static told t;
    static char text[TEXT + 1];
    open_place(&from, &t, A_FILE);
    memset(text, '-', TEXT); /* a comment */
    folder_write(&from.folder, "policy.lua", text);
    const size_t sizes[] = {2048 + HEADER, (TEXT + 2 + 15) / 16 * 16 + HEADER};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        picky p = {.size = sizes[i]};
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.path = from.folder.main;
        options.problem = on_problem;
        options.data = &t;
        options.allocator = (mull_allocator){picky_resize, &p};
        mull_policy *policy;
        assert_int_equal(mull_policy_load(&policy, &options), MULL_ENOMEM);
        assert_int_equal(p.counting_allocator.out, 0);
    }
    assert_int_equal(t.problems, 0);
    close_place(&from);
}

static void a_matcher_without_memory_is_skipped(void **state)
{
    (void)state;
    decide_without_memory(A_TEXT, LIVES);
    decide_without_memory(WITH_HOST, LIVES);
}

static void a_text_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(A_TEXT, RELOADS);
}

static void a_file_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(A_FILE, RELOADS);
}

static void a_host_policy_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(WITH_HOST, RELOADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_loaded),
        cmocka_unit_test(a_file_is_loaded),
        cmocka_unit_test(a_host_policy_is_loaded),
        cmocka_unit_test(a_file_without_memory_is_no_mistake),
        cmocka_unit_test(a_matcher_without_memory_is_skipped),
        cmocka_unit_test(a_text_is_reloaded),
        cmocka_unit_test(a_file_is_reloaded),
        cmocka_unit_test(a_host_policy_is_reloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
