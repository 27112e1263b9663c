/* internal_pool.c: the memory of a Lua state: blocks of all sizes keep what is in them and lie
 * apart, freed ones are had again, the limit holds, a block shrinks though there is no memory, and
 * nothing is left at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lua/pool.h"
#include "purse.h"
#include "sample.h"

enum { MOST = 1024 * 1024, BLOCKS = 64, LARGEST = 4 * MULL__POOL_SMALL, STEPS = 20000 };

typedef struct block {
    unsigned char *bytes;
    size_t size;
    unsigned char mark;
} block;

static mull__pool pool_of(purse *p)
{
    return (mull__pool){.allocator = purse_allocator(p), .most = MOST};
}

static void check(const block *b)
{
    for (size_t i = 0; i < b->size; i++)
        assert_int_equal(b->bytes[i], b->mark);
}

static void blocks_keep_what_is_in_them(void **state)
{
    (void)state;
    purse p = {0};
    mull__pool pool = pool_of(&p);
    block blocks[BLOCKS] = {{0}};
    sample s = sample_of(1);
    for (int step = 0; step < STEPS; step++) {
        block *b = &blocks[sample_random(&s) % BLOCKS];
        size_t wanted = sample_random(&s) % 3 ? sample_random(&s) % LARGEST : 0;
        size_t kept = b->size < wanted ? b->size : wanted;
        check(b);
        b->bytes = mull__pool_resize(&pool, b->bytes, b->size, wanted);
        assert_int_equal(b->bytes == NULL, wanted == 0);
        check(&(block){b->bytes, kept, b->mark});
        b->size = wanted;
        b->mark = (unsigned char)step;
        if (wanted > 0)
            memset(b->bytes, b->mark, wanted);
    }
    for (int i = 0; i < BLOCKS; i++)
        check(&blocks[i]);
    mull__pool_drop(&pool);
    assert_int_equal(p.out, 0);
}

static void freed_blocks_are_had_again(void **state)
{
    (void)state;
    purse p = {0};
    mull__pool pool = pool_of(&p);
    for (size_t size = 1; size <= MULL__POOL_SMALL; size++) {
        void *first = mull__pool_resize(&pool, NULL, 0, size);
        mull__pool_resize(&pool, first, size, 0);
        assert_ptr_equal(mull__pool_resize(&pool, NULL, 0, size), first);
        void *moved = mull__pool_resize(&pool, first, size, LARGEST);
        assert_ptr_equal(mull__pool_resize(&pool, NULL, 0, size), first);
        mull__pool_resize(&pool, moved, LARGEST, 0);
        mull__pool_resize(&pool, first, size, 0);
    }
    assert_int_equal(p.out, 1);
    mull__pool_drop(&pool);
    assert_int_equal(p.out, 0);
}

/* Beyond their limit small blocks are made apart, and freed for others as large ones are. */
static void chunks_have_a_limit(void **state)
{
    (void)state;
    purse p = {0};
    mull__pool pool = pool_of(&p);
    size_t had = 0;
    void *last = NULL;
    while (!pool.has_apart && had <= 2 * MOST) {
        last = mull__pool_resize(&pool, NULL, 0, MULL__POOL_SMALL);
        assert_non_null(last);
        had += MULL__POOL_SMALL;
    }
    assert_in_range(had, MOST * 9 / 10, MOST + MULL__POOL_SMALL);
    assert_true(pool.in_chunks <= MOST);
    long out = p.out;
    assert_null(mull__pool_resize(&pool, last, MULL__POOL_SMALL, 0));
    assert_int_equal(p.out, out - 1);
    assert_non_null(mull__pool_resize(&pool, NULL, 0, MULL__POOL_SMALL + 1));
    mull__pool_drop(&pool);
    assert_int_equal(p.out, 0);
}

static void a_block_shrinks_without_memory(void **state)
{
    (void)state;
    purse p = {0};
    mull__pool pool = pool_of(&p);
    char *bytes = mull__pool_resize(&pool, NULL, 0, LARGEST);
    memset(bytes, 'x', LARGEST);
    p.fail_at = p.asked + 1;
    p.fail_for = FOR_GOOD;
    assert_null(mull__pool_resize(&pool, bytes, LARGEST, 2 * LARGEST));
    bytes = mull__pool_resize(&pool, bytes, LARGEST, LARGEST / 2);
    assert_non_null(bytes);
    bytes = mull__pool_resize(&pool, bytes, LARGEST / 2, 16);
    assert_non_null(bytes);
    assert_memory_equal(bytes, "xxxxxxxxxxxxxxxx", 16);
    mull__pool_resize(&pool, bytes, 16, 0);
    assert_ptr_equal(mull__pool_resize(&pool, NULL, 0, 16), bytes);
    mull__pool_drop(&pool);
    assert_int_equal(p.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_keep_what_is_in_them),
        cmocka_unit_test(freed_blocks_are_had_again),
        cmocka_unit_test(chunks_have_a_limit),
        cmocka_unit_test(a_block_shrinks_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
