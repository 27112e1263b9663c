/* policy_memory.c: policies whose n-th request for memory is refused: once; once more, so that it
 * isn't had after Lua's emergency collection either; and from then on for good. Whatever is refused
 * says MULL_ENOMEM, what was in force stays so, and nothing is left at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mulligan.h"
#include "purse.h"

static const long lengths[] = {1, 2, FOR_GOOD};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* ---- Two policies that differ in every verdict ----------------------------------------------- */

/* policy_text writes the policy named 'a' or 'b'. With `rules` it requires that file. */
static void policy_text(char text[1024], char name, int rules)
{
    snprintf(
        text, 1024,
        "local policy = require 'mulligan.policy'\n"
        "%s"
        "policy.errors { Child = 'Parent' }\n"
        "local caught = pcall(error, {})\n"
        "policy.bus():on('Child', function(err, ctx)\n"
        "    local found = {}\n"
        "    for name in pairs(ctx.message.headers) do found[#found + 1] = name .. err.type end\n"
        "    return not caught and #found == 2 and ('x'):rep(3000) .. err.cause.message == "
        "('x'):rep(3000) .. 'boom'\n"
        "end):%s\n"
        "policy.bus():on('Parent'):dead_letter('unmatched-%c')\n",
        rules ? "assert(require 'more.rules' == 'required')\n" : "",
        name == 'a' ? "retry(3, '1s')" : "redeliver(7, '2m')", name);
}

typedef struct told {
    int problems, matcher_failed;
} told;

static void on_problem(const char *file, int line, const char *text, void *data)
{
    ((told *)data)->problems++;
    print_message("%s:%d: %s\n", file ? file : "-", line, text);
}

static void on_event(const mull_event *event, void *data)
{
    if (event->kind != MULL_EVENT_MATCHER_FAILED)
        return;
    ((told *)data)->matcher_failed++;
    assert_string_equal(event->text, mull_strerror(MULL_ENOMEM));
    assert_string_equal(event->rule->type, "Child");
}

static mull_verdict decide(mull_decider *decider)
{
    static const mull_header headers[] = {{"tenant", "acme"}, {"region", "north"}};
    mull_error cause = MULL_INIT(mull_error), error = MULL_INIT(mull_error);
    cause.type = "Cause";
    cause.message = "boom";
    error.type = "Child";
    error.cause = &cause;
    mull_message message = MULL_INIT(mull_message);
    message.headers = headers;
    message.header_count = 2;
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.message = &message;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
    return verdict;
}

/* assert_decides: the decider's next verdict is wholly of the policy named. */
static void assert_decides(mull_decider *decider, char name)
{
    mull_verdict v = decide(decider);
    assert_int_equal(v.action, name == 'a' ? MULL_RETRY : MULL_REDELIVER);
    assert_int_equal(v.of, name == 'a' ? 3 : 7);
}

/* ---- What is loaded -------------------------------------------------------------------------- */

/* place is where a policy comes from: a text, or a file and one beside it. */
typedef struct place {
    int is_file;
    char folder[32], path[64], more[64], rules[80];
    char text[1024];
} place;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void put(place *at, char name)
{
    policy_text(at->text, name, at->is_file);
    if (at->is_file)
        write_file(at->path, at->text);
}

static void open_place(place *at, int is_file)
{
    *at = (place){.is_file = is_file};
    if (is_file) {
        strcpy(at->folder, "/tmp/mulligan-XXXXXX");
        assert_non_null(mkdtemp(at->folder));
        snprintf(at->path, sizeof at->path, "%s/policy.lua", at->folder);
        snprintf(at->more, sizeof at->more, "%s/more", at->folder);
        snprintf(at->rules, sizeof at->rules, "%s/rules.lua", at->more);
        assert_int_equal(mkdir(at->more, 0700), 0);
        write_file(at->rules, "return 'required'\n");
    }
    put(at, 'a');
}

static void close_place(const place *at)
{
    if (!at->is_file)
        return;
    remove(at->path);
    remove(at->rules);
    remove(at->more);
    assert_int_equal(remove(at->folder), 0);
}

static int load(mull_policy **policy, const place *from, purse *p, told *t)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = from->is_file ? from->path : NULL;
    options.text = from->is_file ? NULL : from->text;
    options.problem = on_problem;
    options.event = on_event;
    options.data = t;
    options.allocator = purse_allocator(p);
    return mull_policy_load(policy, &options);
}

static int reload(mull_policy *policy, const place *from)
{
    return mull_policy_reload(policy, from->is_file ? NULL : from->text, 0);
}

/* ---- Loading, and a first decider ------------------------------------------------------------ */

/* come_and_go loads, makes a decider, and frees both: 0, or what was refused. */
static int come_and_go(const place *from, purse *p)
{
    told t = {0};
    mull_policy *policy;
    mull_decider *decider;
    int status = load(&policy, from, p, &t);
    if (status != 0) {
        assert_null(policy);
    } else {
        status = mull_decider_new(&decider, policy);
        if (status != 0)
            assert_null(decider);
        mull_decider_free(decider);
    }
    mull_policy_free(policy);
    assert_int_equal(p->out, 0);
    assert_int_equal(t.problems, 0);
    return status;
}

static void load_without_memory(int is_file)
{
    place from;
    open_place(&from, is_file);
    purse p = {0};
    assert_int_equal(come_and_go(&from, &p), 0);
    long all = p.asked, refused = 0, tried = 0;
    for (size_t i = 0; i < LENGTHS; i++)
        for (long at = 1; at <= all; at++) {
            p = (purse){.fail_at = at, .fail_for = lengths[i]};
            int status = come_and_go(&from, &p);
            if (status != 0)
                assert_int_equal(status, MULL_ENOMEM);
            refused += status != 0;
            tried++;
        }
    print_message("%ld requests, %ld refused of %ld\n", all, refused, tried);
    assert_true(refused > tried / 3);
    close_place(&from);
}

static void a_text_is_loaded(void **state)
{
    (void)state;
    load_without_memory(0);
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    load_without_memory(1);
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
    open_place(&from, 1);
    told t = {0};
    const size_t sizes[] = {strlen(from.folder) + sizeof "/more/rules.lua", strlen(from.text) + 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        picky p = {.size = sizes[i]};
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.path = from.path;
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

/* ---- Deciding -------------------------------------------------------------------------------- */

static void a_matcher_without_memory_is_skipped(void **state)
{
    (void)state;
    place from;
    open_place(&from, 0);
    purse p = {0};
    told t = {0};
    mull_policy *policy;
    mull_decider *decider;
    assert_int_equal(load(&policy, &from, &p, &t), 0);
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    long before = p.asked;
    assert_decides(decider, 'a');
    long all = p.asked - before, skipped = 0;
    for (size_t i = 0; i < LENGTHS; i++)
        for (long at = 1; at <= all; at++) {
            t.matcher_failed = 0;
            p.fail_for = lengths[i];
            p.fail_at = p.asked + at;
            mull_verdict v = decide(decider);
            p.fail_at = 0;
            assert_in_range(t.matcher_failed, 0, 1);
            if (t.matcher_failed)
                assert_string_equal(v.queue, "unmatched-a");
            else
                assert_int_equal(v.action, MULL_RETRY);
            skipped += t.matcher_failed;
            assert_decides(decider, 'a'); /* once there is memory again */
        }
    print_message("%ld requests, %ld times skipped\n", all, skipped);
    assert_true(skipped >= all); /* all those for good, and more */
    mull_decider_free(decider);
    mull_policy_free(policy);
    assert_int_equal(p.out, 0);
}

/* ---- Reloading ------------------------------------------------------------------------------- */

enum { DECIDERS = 2 };

/* try_reload reloads while memory is refused; 1: it was refused, and nothing has changed. */
static int try_reload(mull_policy *policy, const place *from, purse *p, long at, long length)
{
    char before[33], after[33];
    mull_policy_generation(policy, before);
    p->fail_for = length;
    p->fail_at = p->asked + at;
    int status = reload(policy, from);
    p->fail_at = 0;
    mull_policy_generation(policy, after);
    if (status == 0)
        assert_string_not_equal(before, after);
    else
        assert_string_equal(before, after);
    if (status != 0)
        assert_int_equal(status, MULL_ENOMEM);
    return status != 0;
}

/* reload_without_memory goes back and forth: one decider takes each fresh seat, the other one none
 * until the end. */
static void reload_without_memory(int is_file)
{
    place from;
    open_place(&from, is_file);
    purse p = {0};
    told t = {0};
    mull_policy *policy;
    mull_decider *deciders[DECIDERS];
    assert_int_equal(load(&policy, &from, &p, &t), 0);
    for (int i = 0; i < DECIDERS; i++)
        assert_int_equal(mull_decider_new(&deciders[i], policy), 0);
    put(&from, 'b');
    long before = p.asked, refused = 0, tried = 0;
    assert_int_equal(try_reload(policy, &from, &p, FOR_GOOD, 1), 0);
    long all = p.asked - before;
    char now = 'b';
    for (size_t i = 0; i < LENGTHS; i++)
        for (long at = 1; at <= all; at++) {
            char next = now == 'a' ? 'b' : 'a';
            put(&from, next);
            int failed = try_reload(policy, &from, &p, at, lengths[i]);
            assert_decides(deciders[0], failed ? now : next);
            if (failed)
                assert_int_equal(reload(policy, &from), 0);
            now = next;
            assert_decides(deciders[0], now);
            refused += failed;
            tried++;
        }
    assert_decides(deciders[1], now);
    print_message("%ld requests, %ld refused of %ld\n", all, refused, tried);
    assert_true(refused > tried / 3);
    for (int i = 0; i < DECIDERS; i++)
        mull_decider_free(deciders[i]);
    mull_policy_free(policy);
    assert_int_equal(p.out, 0);
    assert_int_equal(t.problems, 0);
    close_place(&from);
}

static void a_text_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(0);
}

static void a_file_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(1);
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
