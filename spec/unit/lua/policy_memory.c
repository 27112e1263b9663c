/* policy_memory.c: as policy_memory.c, but what is refused is what the C library
 * allocates, of which its allocator isn't told. */
#include "policy_lives.h"

#include <errno.h>
#include <locale.h>

static counting_allocator libcs;

/* What the objects ask of it comes here, by the linker's --wrap. */
locale_t __real_newlocale(int mask, const char *name, locale_t base);
locale_t __wrap_newlocale(int mask, const char *name, locale_t base);

locale_t __wrap_newlocale(int mask, const char *name, locale_t base)
{
    if (!counting_allocator_refuses(&libcs))
        return __real_newlocale(mask, name, base);
    errno = ENOMEM;
    return (locale_t)0;
}

static void the_c_library_has_none(void **state)
{
    (void)state;
    place from;
    static told t;
    open_place(&from, &t, WITH_HOST);
    counting_allocator p = {0};
    libcs = (counting_allocator){0};
    assert_int_equal(come_and_go(&from, &p, &t), 0);
    long all = libcs.asked;
    assert_true(all >= 4); /* two states, and two for the host */
    for (long at = 1; at <= all; at++) {
        libcs = (counting_allocator){.fail_at = at};
        assert_int_equal(come_and_go(&from, &p, &t), MULL_ENOMEM);
    }
    libcs = (counting_allocator){0};
    close_place(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_c_library_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
