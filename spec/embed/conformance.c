/* conformance.c: the suite that is installed (spec/transport/conformance.c), run against what
 * conforms, and against what memory: does wrong where its URL asks for that, which it must find. */
#include "mulligan/conformance.h"
#include "board/board.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
/* cmocka.h wants the four above before it. */
#include <cmocka.h>

/* run is one of the suite. */
typedef struct run {
    mull_conformance_options options;
    const char *url;
    const char *folder; /* of the database, which each case makes anew; NULL: there is none */
    const char *cases;  /* only those count as failed that begin so; NULL: all */
    board *board;
    mull_port *port; /* of the board */
    int passed, failed, skipped, quiet, is_cut;
} run;

static run *running; /* the board's one wire */

static void remove_database(const run *r)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char path[256];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s/db%s", r->folder, ends[i]);
        unlink(path);
    }
}

static int fresh(void *data, char *url, size_t size)
{
    run *r = data;
    if (r->folder) {
        remove_database(r);
        snprintf(url, size, "sqlite:%s/db", r->folder);
    } else {
        snprintf(url, size, "%s", r->url);
    }
    board_free(r->board);
    r->board = board_new();
    r->is_cut = 0;
    r->options.ops_data = r->board;
    return r->board ? 0 : MULL_ENOMEM;
}

static void report(void *data, const char *name, mull_conformance_end end, const char *text)
{
    run *r = data;
    int counts = !r->cases || strncmp(name, r->cases, strlen(r->cases)) == 0;
    r->passed += end == MULL_CONFORMANCE_PASSED;
    r->skipped += end == MULL_CONFORMANCE_SKIPPED;
    r->failed += end == MULL_CONFORMANCE_FAILED && counts;
    if (end == MULL_CONFORMANCE_FAILED && !r->quiet)
        print_message("# %s: %s: %s\n", r->url ? r->url : "sqlite:", name, text);
}

static run run_of(const char *url)
{
    run r = {.options = MULL_INIT(mull_conformance_options), .url = url};
    r.options.fresh = fresh;
    r.options.report = report;
    return r;
}

static int conformance(run *r)
{
    r->options.data = r;
    running = r;
    int failed = mull_conformance(&r->options);
    board_free(r->board);
    r->board = NULL;
    return failed;
}

/* ---- What conforms --------------------------------------------------------------------------- */

static void memory_conforms(void **state)
{
    static const char *const urls[] = {
        "memory:",
        "memory:?claim_timeout=30s",
        "memory:?claim_timeout=30s&hold=no",
        "memory:?claim_timeout=30s&note=no&deliveries=no",
        "memory:?claim_timeout=30s&deliveries=handouts",
        "memory:?retry=no&delay=no",
        "memory:?longest_delay=15m",
        "memory:?delay_step=1s",
        "memory:?depth=rough",
        "memory:?depth=none",
        "memory:?connect=5s",
        "memory:?settle=halfway",
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        run r = run_of(urls[i]);
        r.options.forgets = 1;
        assert_int_equal(conformance(&r), 0);
        assert_true(r.passed >= 18);
    }
}

static void what_goes_to_the_tail_may_say_so(void **state)
{
    (void)state;
    run r = run_of("memory:?tail=yes");
    r.options.forgets = r.options.tail = 1;
    assert_int_equal(conformance(&r), 0);
}

static void lose_database(void *data)
{
    remove_database(data);
}

static void sqlite_conforms(void **state)
{
    char folder[] = "/tmp/mulligan-conformance-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    run r = run_of(NULL);
    r.folder = folder;
    r.options.uncounts = 1;
    r.options.break_down = lose_database;
    int failed = conformance(&r);
    remove_database(&r);
    rmdir(folder);
    assert_int_equal(failed, 0);
    assert_true(r.passed >= 24);
}

/* ---- The board, on a wire that can be cut ---------------------------------------------------- */

static int wire_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    running->port = port;
    return board_transport.open(self, port, url, why, why_size);
}

static int wire_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    return running->is_cut ? MULL_EDOWN : board_transport.publish(self, outgoing, ticket);
}

static void cut(void *data)
{
    run *r = data;
    r->is_cut = 1;
    mull_port_state(r->port, MULL_DOWN, "it is cut");
}

static void come_back(void *data)
{
    run *r = data;
    r->is_cut = 0;
    mull_port_state(r->port, MULL_UP, NULL);
}

static void a_board_conforms(void **state)
{
    mull_transport_ops ops = board_transport;
    (void)state;
    ops.open = wire_open;
    ops.publish = wire_publish;
    run r = run_of("board:");
    r.options.ops = &ops;
    r.options.cut = cut;
    r.options.come_back = come_back;
    assert_int_equal(conformance(&r), 0);
    assert_true(r.passed >= 23);
}

/* ---- What doesn't ---------------------------------------------------------------------------- */

static void what_misbehaves_is_found(void **state)
{
    static const struct {
        const char *url, *cases;
    } wrong[] = {
        {"memory:?tail=yes", "settle: given back, it has its old place"},
        {"memory:?settle=refused", "settle: a dead letter"},
        {"memory:?settle=refused", "settle: what is sent"},
        {"memory:?answers=none", "publish: a message keeps"},
        {"memory:?answers=none", "answer: "},
        {"memory:?answers=twice", "answer: "},
        {"memory:?answers=late", "answer: "},
        {"memory:?refuse=conformance", "look: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        run r = run_of(wrong[i].url);
        r.options.forgets = r.quiet = 1;
        r.cases = wrong[i].cases;
        assert_true(conformance(&r) > 0);
        assert_int_equal(r.failed, 1);
    }
}

/* lying_look promises what it hasn't got. */
static int lying_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                      size_t why_size)
{
    int status = board_transport.look(url, queue, floor, why, why_size);
    floor->can_note = 1;
    floor->delay_step_ms = 0;
    return status;
}

/* early_publish forgets the delay. */
static int early_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    mull_outgoing early = *outgoing;
    early.due_ms = 0;
    return board_transport.publish(self, &early, ticket);
}

static void a_broken_promise_is_found(void **state)
{
    mull_transport_ops ops = board_transport;
    (void)state;
    ops.look = lying_look;
    ops.publish = early_publish;
    run r = run_of("board:");
    r.options.ops = &ops;
    r.quiet = 1;
    r.cases = "settle: a note";
    assert_true(conformance(&r) > 1);
    assert_int_equal(r.failed, 1);
    r.cases = "delay: what is put off";
    r.failed = 0;
    conformance(&r);
    assert_int_equal(r.failed, 1);
}

static void wrong_use_is_answered(void **state)
{
    (void)state;
    run r = run_of("memory:");
    assert_int_equal(mull_conformance(NULL), MULL_EINVAL);
    r.options.report = NULL;
    assert_int_equal(mull_conformance(&r.options), MULL_EINVAL);
    r.options.report = report;
    r.options.size = 0;
    assert_int_equal(mull_conformance(&r.options), MULL_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_conforms),
        cmocka_unit_test(what_goes_to_the_tail_may_say_so),
        cmocka_unit_test(sqlite_conforms),
        cmocka_unit_test(a_board_conforms),
        cmocka_unit_test(what_misbehaves_is_found),
        cmocka_unit_test(a_broken_promise_is_found),
        cmocka_unit_test(wrong_use_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
