/* sqlite_memory.c: an engine on sqlite:FILE whose n-th request for memory is refused, once
 * or for good until it is had again, or never is: requests of ours and of SQLite's, on whichever
 * thread; of the policy's, too, while it is reloaded and its functions are called. What was
 * published comes to exactly one end, and nothing is left in memory or in the file. The clocks are
 * the real ones, since what failed is tried again in real time. */
#include "sample.h"
#include "sqlite_allocator.h"
#include "workload.h"

#include <unistd.h>
#include <uv.h>

static char path[64], url[80];

static const char policy_text[] =
    "local policy = require 'mulligan.policy'\n"
    "policy.bus():on('Passing'):retry(3, '1ms')\n"
    "policy.bus():on('Slow'):redeliver(1, '1ms')\n"
    "policy.bus():on('Dropped'):discard()\n"
    "policy.bus():on('HandlerTimeoutError'):retry(100, '1ms', 'constant')"
    ":then_redeliver(100, '1ms')\n"
    "policy.consumer('Dead'):dead_letter_queue('nowhere')\n";

/* The same, by functions. */
static const char functions_text[] =
    "local policy = require 'mulligan.policy'\n"
    "local function known(err, ctx) return err.text .. ctx.message.key == 'valuekey' end\n"
    "policy.bus():on('Passing', known):retry(3, '1ms')\n"
    "policy.bus():on('Slow', known):redeliver(1, '1ms')\n"
    "policy.bus():on('Dropped', known):discard()\n"
    "policy.bus():on('HandlerTimeoutError'):retry(100, '1ms', 'constant')"
    ":then_redeliver(100, '1ms')\n"
    "policy.consumer('Dead'):dead_letter_queue('nowhere')\n"
    "policy.bus():notify(function(event) assert(event.name .. event.generation ~= '') end)\n";

/* ---- Whose memory ---------------------------------------------------------------------------- */

static counting_allocator ours;

/* ---- A life ---------------------------------------------------------------------------------- */

/* end is how a life ends: with memory again, or without by a stop and a close, or a close alone. */
typedef enum end { HEALED, STOPPED, CLOSED } end;

enum { TICK_MS = 5, SHORT_TICKS = 4, RELOAD_TICK = 3 };

typedef struct life {
    workload book;
    uv_loop_t loop;
    uv_timer_t tick;
    counting_allocator *short_of;
    end how;
    int ticks; /* since memory ran out */
    mull_policy *policy;
    int all_ticks; /* at one of them the policy is reloaded, if it has functions */
} life;

static long asked_at_first; /* requests until the engine of the last life was set up */

static int has_functions; /* the policy, in the test at hand */

/* reload takes other bytes of the same policy. */
static void reload(life *l)
{
    static char text[sizeof functions_text + 1];
    snprintf(text, sizeof text, "\n%s", functions_text);
    int status = mull_policy_reload(l->policy, text, 0);
    assert_true(status == 0 || status == MULL_ENOMEM);
}

/* on_tick: handlers go on with what they could not do before; and what memory does meanwhile. */
static void on_tick(uv_timer_t *timer)
{
    life *l = timer->data;
    counting_allocator *p = l->short_of;
    if (!l->book.closed) {
        workload_go_on(&l->book);
        if (++l->all_ticks == RELOAD_TICK && has_functions)
            reload(l);
    }
    if (p->fail_for != FOR_GOOD || !p->fail_at || p->asked < p->fail_at)
        return;
    if (++l->ticks != SHORT_TICKS)
        return;
    if (l->how == HEALED)
        p->fail_at = 0;
    else if (l->how == STOPPED)
        mull_stop(l->book.engine);
    else
        mull_engine_close(l->book.engine, workload_on_closed, &l->book);
}

static void remove_file(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char name[96];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        remove(name);
    }
}

static void assert_file_is_empty(void)
{
    sqlite3 *db;
    sqlite3_stmt *row;
    sqlites.fail_at = 0;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT (SELECT count(*) FROM messages) + "
                                        "(SELECT count(*) FROM bodies)",
                                        -1, &row, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(row, 0), 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
}

/* load_policy, with memory enough; then what is to be refused is. */
static void load_policy(life *l)
{
    long at = l->short_of->fail_at;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = has_functions ? functions_text : policy_text;
    options.problem = test_engine_problem;
    options.allocator = counting_allocator_ops(&ours);
    l->short_of->fail_at = 0;
    assert_int_equal(mull_policy_load(&l->policy, &options), 0);
    l->short_of->asked = 0;
    l->short_of->fail_at = at;
}

static int set_up(life *l)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->policy;
    options.loop = &l->loop;
    options.grace_ms = 1;
    options.allocator = counting_allocator_ops(&ours);
    return workload_set_up(&l->book, &options, url, 20);
}

static void live(life *l)
{
    int plenty = l->short_of->fail_at == 0;
    workload_publish_most(&l->book);
    assert_int_equal(mull_stop_when_empty(l->book.engine), 0);
    while (!l->book.stopped && !l->book.closed)
        uv_run(&l->loop, UV_RUN_ONCE);
    if (plenty)
        workload_assert_planned(&l->book);
    if (l->how == HEALED)
        workload_assert_ended(&l->book);
}

/* close_all closes the engine, where a tick hasn't, and the loop. */
static void close_all(life *l)
{
    if (l->book.engine && !l->book.closed)
        mull_engine_close(l->book.engine, workload_on_closed, &l->book);
    while (l->book.engine && !l->book.closed)
        uv_run(&l->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&l->tick, NULL);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&l->loop), 0);
}

/* live_through runs an engine's whole life. 0: it could not be set up. */
static int live_through(counting_allocator *short_of, end how)
{
    static life l;
    l = (life){.short_of = short_of, .how = how};
    workload_open(&l.book);
    remove_file();
    assert_int_equal(uv_loop_init(&l.loop), 0);
    assert_int_equal(uv_timer_init(&l.loop, &l.tick), 0);
    l.tick.data = &l;
    load_policy(&l);
    int made = set_up(&l);
    asked_at_first = short_of->asked;
    if (made) {
        uv_timer_start(&l.tick, on_tick, TICK_MS, TICK_MS);
        live(&l);
    }
    close_all(&l);
    mull_policy_free(l.policy);
    workload_assert_once(&l.book);
    assert_int_equal(ours.out, 0);
    if (made && how == HEALED)
        assert_file_is_empty();
    return made;
}

/* ---- Many lives ------------------------------------------------------------------------------ */

/* trial is what fails, for how long, and how that is to end. */
typedef struct trial {
    counting_allocator *short_of;
    long length;
    end how;
} trial;

/* fail_some refuses the n-th request for some `lives` of n. How many engines could be set up. */
static int fail_some(const trial *t, long first, long last, long lives)
{
    int tried = 0, made = 0;
    sample s = sample_of(1 + (last - first) / lives);
    for (long at = sample_after(&s, first - 1); at <= last; at = sample_after(&s, at), tried++) {
        *t->short_of = (counting_allocator){.fail_at = at, .fail_for = t->length};
        made += live_through(t->short_of, t->how);
    }
    *t->short_of = (counting_allocator){0};
    print_message("requests %ld to %ld: %d lives, %d set up\n", first, last, tried, made);
    return made;
}

static void try(counting_allocator *short_of, long length, end how, long lives)
{
    trial t = {short_of, length, how};
    *short_of = (counting_allocator){0};
    assert_true(live_through(short_of, HEALED));
    long first = asked_at_first, last = short_of->asked;
    fail_some(&t, 1, first, lives / 4 + 1);
    assert_true(fail_some(&t, first + 1, last, lives) > 0);
    remove_file();
}

#define FAILS(name, short_of, length, how, lives)                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        has_functions = 0;                                                                         \
        try(short_of, length, how, lives);                                                         \
    }

FAILS(the_nth_of_ours_fails, &ours, 1, HEALED, 20)
FAILS(ours_are_had_again_at_last, &ours, FOR_GOOD, HEALED, 6)
FAILS(without_any_a_stop_ends, &ours, FOR_GOOD, STOPPED, 3)
FAILS(without_any_a_close_ends, &ours, FOR_GOOD, CLOSED, 5)
FAILS(the_nth_of_sqlites_fails, &sqlites, 1, HEALED, 20)
FAILS(sqlites_are_had_again_at_last, &sqlites, FOR_GOOD, HEALED, 6)
FAILS(without_sqlites_a_stop_ends, &sqlites, FOR_GOOD, STOPPED, 5)
FAILS(without_sqlites_a_close_ends, &sqlites, FOR_GOOD, CLOSED, 5)

static void with_functions_the_nth_of_ours_fails(void **state)
{
    (void)state;
    has_functions = 1;
    try(&ours, 2, HEALED, 8);
}

static void with_functions_ours_are_had_again_at_last(void **state)
{
    (void)state;
    has_functions = 1;
    try(&ours, FOR_GOOD, HEALED, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_of_ours_fails),
        cmocka_unit_test(ours_are_had_again_at_last),
        cmocka_unit_test(without_any_a_stop_ends),
        cmocka_unit_test(without_any_a_close_ends),
        cmocka_unit_test(the_nth_of_sqlites_fails),
        cmocka_unit_test(sqlites_are_had_again_at_last),
        cmocka_unit_test(without_sqlites_a_stop_ends),
        cmocka_unit_test(without_sqlites_a_close_ends),
        cmocka_unit_test(with_functions_the_nth_of_ours_fails),
        cmocka_unit_test(with_functions_ours_are_had_again_at_last),
    };
    sqlite_take_over();
    snprintf(path, sizeof path, "/tmp/mulligan-memory-%ld.db", (long)getpid());
    snprintf(url, sizeof url, "sqlite:%s", path);
    if (!getenv("MULL_EVERY"))
        alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
