/* process.c: programs that run beside a loop: whenever they are ended, and wherever memory fails,
 * no descriptor, process or byte is left. */
#include "handler/process.h"

#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#include "fixtures.h"

static counting_allocator memory;
static mull_allocator allocator;
static uv_loop_t loop;

/* one is a process of the tests, and what became of it. */
typedef struct one {
    mull__process *process;
    mull__process_result result;
    char output[64];
    int has_ended;
    struct crowd *crowd;
} one;

static void on_ended(void *data);

static mull__process_options options_of(one *o, const char *const *words)
{
    static const char *const none[] = {NULL};
    return (mull__process_options){.loop = &loop,
                                   .allocator = &allocator,
                                   .words = words,
                                   .variables = none,
                                   .input = "",
                                   .output_most = 1024,
                                   .timeout_ms = MULL_NEVER,
                                   .ended = on_ended,
                                   .data = o};
}

static void take_result(one *o)
{
    mull__process_result_of(o->process, &o->result);
    size_t size = o->result.output_size;
    size = size < sizeof o->output ? size : sizeof o->output - 1;
    memcpy(o->output, o->result.output, size);
    o->output[size] = '\0';
    o->has_ended = 1;
    mull__process_free(o->process);
}

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int set_up(void **state)
{
    (void)state;
    memory = (counting_allocator){0};
    allocator = counting_allocator_ops(&memory);
    assert_int_equal(uv_loop_init(&loop), 0);
    return 0;
}

/* tear_down: a loop with a handle that is still open can't be closed. */
static int tear_down(void **state)
{
    (void)state;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(memory.out, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return 0;
}

/* ---- One ------------------------------------------------------------------------------------- */

static void on_ended(void *data)
{
    take_result(data);
}

static one run_one(mull__process_options options, one *o)
{
    options.data = o;
    assert_int_equal(mull__process_start(&o->process, &options), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(o->has_ended);
    return *o;
}

static void gives_what_it_wrote(void **state)
{
    (void)state;
    one o = {0};
    const char *const words[] = {"cat", NULL};
    mull__process_options options = options_of(&o, words);
    options.input = "some bytes";
    options.input_size = 4;
    run_one(options, &o);
    assert_string_equal(o.output, "some");
    assert_int_equal(o.result.status, 0);
}

static void is_killed_where_it_ignores_term(void **state)
{
    (void)state;
    one o = {0};
    const char *const words[] = {
        "sh", "-c", "trap 'echo asked' TERM; echo there; while :; do sleep 1000; done", NULL};
    mull__process_options options = options_of(&o, words);
    options.timeout_ms = 100;
    int64_t before = (int64_t)uv_hrtime();
    run_one(options, &o);
    assert_true((int64_t)uv_hrtime() - before >= (100 + MULL__KILL_MS) * INT64_C(1000000));
    assert_int_equal(o.result.signal, SIGKILL);
    assert_true(o.result.timed_out);
    assert_string_equal(o.output, "there\nasked\n");
}

static void frees_itself_where_nobody_waits(void **state)
{
    (void)state;
    one o = {0};
    const char *const words[] = {"sh", "-c", "trap '' TERM; sleep 1000 & wait; wait", NULL};
    mull__process_options options = options_of(&o, words);
    assert_int_equal(mull__process_start(&o.process, &options), 0);
    mull__process_free(o.process);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(o.has_ended);
}

static void says_why_it_cannot_start(void **state)
{
    (void)state;
    one o = {0};
    const char *const words[] = {"/no/such/program", NULL}, *const folder[] = {"/tmp", NULL};
    mull__process_options options = options_of(&o, words);
    assert_int_equal(mull__process_start(&o.process, &options), UV_ENOENT);
    options.words = folder;
    assert_int_equal(mull__process_start(&o.process, &options), UV_EACCES);
}

/* ---- Many ------------------------------------------------------------------------------------ */

enum { MANY = 1000, AT_ONCE = 32 };

typedef struct crowd {
    one ones[AT_ONCE];
    int started, ended;
    uint64_t random;
    uv_timer_t timer;
} crowd;

static unsigned chance(crowd *c, unsigned below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(c->random >> 33) % below;
}

static void start_one(crowd *c, one *o);

static void on_one_ended(void *data)
{
    one *o = data;
    take_result(o);
    o->process = NULL;
    o->crowd->ended++;
    start_one(o->crowd, o);
}

static void start_one(crowd *c, one *o)
{
    static const char *const quick[] = {"echo", "done", NULL}, *const slow[] = {"sh", "-c",
                                                                                "sleep 1000 & wait",
                                                                                NULL};
    if (c->started == MANY)
        return;
    c->started++;
    *o = (one){.crowd = c};
    mull__process_options options = options_of(o, chance(c, 2) ? quick : slow);
    options.ended = on_one_ended;
    options.timeout_ms = 1 + (int64_t)chance(c, 200);
    assert_int_equal(mull__process_start(&o->process, &options), 0);
}

/* on_tick ends one of them, whichever it is, and whatever it does just now. */
static void on_tick(uv_timer_t *timer)
{
    crowd *c = timer->data;
    one *o = &c->ones[chance(c, AT_ONCE)];
    if (o->process)
        mull__process_stop(o->process);
    if (c->ended == MANY)
        uv_close((uv_handle_t *)timer, NULL);
}

static void leaves_nothing_behind(void **state)
{
    (void)state;
    int before = descriptors();
    crowd c = {.random = 17};
    uv_timer_init(&loop, &c.timer);
    c.timer.data = &c;
    uv_timer_start(&c.timer, on_tick, 2, 2);
    for (int i = 0; i < AT_ONCE; i++)
        start_one(&c, &c.ones[i]);
    int during = descriptors();
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(c.ended, MANY);
    assert_true(during >= before + 2 * AT_ONCE);
    /* libuv keeps a pipe of its own for signals. */
    assert_true(descriptors() <= before + 2);
    assert_int_equal(memory.out, 0);
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    const char *const words[] = {"sh", "-c",
                                 "head -c 20000 /dev/zero; head -c 300000 /dev/zero >&2", NULL};
    int failed = 0;
    long nth = 0;
    do {
        one o = {0};
        mull__process_options options = options_of(&o, words);
        options.output_most = 1024 * 1024;
        memory.asked = 0;
        memory.fail_at = ++nth;
        memory.fail_for = FOR_GOOD;
        int status = mull__process_start(&o.process, &options);
        if (status != 0)
            assert_int_equal(status, UV_ENOMEM);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(o.has_ended, status == 0);
        failed += status != 0 || o.result.failed == MULL_ENOMEM;
        assert_int_equal(memory.out, 0);
        memory.fail_at = 0;
    } while (memory.asked >= nth);
    assert_int_equal(failed, nth - 1);
    assert_true(failed > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_what_it_wrote, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_killed_where_it_ignores_term, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frees_itself_where_nobody_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(says_why_it_cannot_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_nothing_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_a_lack_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
