/* guest.c: policies and their functions as an embedder in C meets them: what JSON and Lua can't
 * send, an allocator that fails, and deciders on several threads. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "counting_allocator.h"
#include "mulligan.h"
#include "sample.h"

/* ---- Loading and deciding -------------------------------------------------------------------- */

static void print_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    print_message("%s:%d: %s\n", file, line, text);
}

static void print_event(const mull_event *event, void *data)
{
    (void)data;
    if (event->kind == MULL_EVENT_MATCHER_FAILED)
        print_message("%s\n", event->text);
}

/* decide_with loads a policy whose rule for "A" has the function body `body`, and says whether it
 * matches an error. */
static int matches(const char *body, const mull_error *error, const mull_message *message)
{
    char text[2048];
    int length = snprintf(text, sizeof text,
                          "local policy = require 'mulligan.policy'\n"
                          "policy.bus():on('A', function(err, ctx) %s end):discard()\n",
                          body);
    assert_in_range(length, 1, sizeof text - 1);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = print_problem;
    options.event = print_event;
    mull_policy *policy;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    mull_decider *decider;
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = error;
    failure.message = message;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
    int matched = verdict.action == MULL_DISCARD;
    mull_decider_free(decider);
    mull_policy_free(policy);
    return matched;
}

static void causes_in_a_circle_are_cut(void **state)
{
    (void)state;
    mull_error a = MULL_INIT(mull_error), b = MULL_INIT(mull_error), c = MULL_INIT(mull_error);
    a.type = "A";
    a.cause = &b;
    b.type = "B";
    b.cause = &c;
    c.type = "C";
    c.cause = &b;
    assert_true(matches("assert(err.cause.type == 'B' and err.cause.cause.type == 'C')"
                        "return err.cause.cause.cause == nil",
                        &a, NULL));
    a.cause = &a;
    assert_true(matches("return err.cause == nil", &a, NULL));
}

static void the_first_of_a_name_counts(void **state)
{
    (void)state;
    const mull_field fields[] = {
        {"code", {.kind = MULL_INTEGER, .as.integer = 1}},
        {"code", {.kind = MULL_INTEGER, .as.integer = 2}},
        {"none", {.kind = MULL_NIL}},
        {"message", {.kind = MULL_STRING, .as.string = "a field"}},
        {"cause", {.kind = MULL_STRING, .as.string = "a field"}},
        {"is", {.kind = MULL_STRING, .as.string = "a field"}},
    };
    const mull_header headers[] = {{"h", "first"}, {"h", "second"}, {"n", NULL}, {"n", "second"}};
    mull_error error = MULL_INIT(mull_error);
    error.type = "A";
    error.fields = fields;
    error.field_count = sizeof fields / sizeof fields[0];
    mull_message message = MULL_INIT(mull_message);
    message.headers = headers;
    message.header_count = sizeof headers / sizeof headers[0];
    message.body_size = 7;
    assert_true(matches("assert(err.code == 1 and err.none == nil and err.message == '')"
                        "assert(err.cause == nil and err:is('A') and not ctx.message.headers.n)"
                        "return ctx.message.headers.h == 'first' and ctx.message.size == 7",
                        &error, &message));
}

static void values_go_16_levels_deep(void **state)
{
    (void)state;
    mull_value nested[20] = {{.kind = MULL_STRING, .as.string = "bottom"}};
    for (size_t i = 1; i < 20; i++)
        nested[i] = (mull_value){.kind = MULL_LIST, .as.items = &nested[i - 1], .count = 1};
    const mull_field fields[] = {{"deep", nested[16]}, {"deeper", nested[17]}};
    mull_error error = MULL_INIT(mull_error);
    error.type = "A";
    error.fields = fields;
    error.field_count = 2;
    const char *dig = "local function dig(v, n) for _ = 1, n do v = v[1] end return v end ";
    char body[512];
    snprintf(body, sizeof body,
             "%s return dig(err.deep, 16) == 'bottom' and type(dig(err.deeper, 15)) == 'table'"
             " and dig(err.deeper, 16) == nil",
             dig);
    assert_true(matches(body, &error, NULL));
}

static void sent_lineages_are_known(void **state)
{
    (void)state;
    const char *const lineage[] = {"Error", "Mid", "A", "Mid"};
    mull_error error = MULL_INIT(mull_error);
    error.type = "A";
    error.lineage = lineage;
    error.lineage_count = 4;
    assert_true(matches("return err:is('A') and err:is('Mid') and err:is('Error')"
                        " and not err:is('B')",
                        &error, NULL));
    error.lineage_count = 0;
    error.type = "Error";
    assert_false(matches("return true", &error, NULL));
}

/* ---- What is no policy ----------------------------------------------------------------------- */

static void options_are_checked(void **state)
{
    (void)state;
    mull_policy *policy = (mull_policy *)&policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    assert_int_equal(mull_policy_load(&policy, &options), MULL_EINVAL);
    assert_null(policy);
    assert_int_equal(mull_policy_load(&policy, NULL), MULL_EINVAL);
    assert_int_equal(mull_policy_load(NULL, &options), MULL_EINVAL);
    options.text = "";
    options.size = 0;
    assert_int_equal(mull_policy_load(&policy, &options), MULL_EINVAL);
}

static void count_problem(const char *file, int line, const char *text, void *data)
{
    assert_string_equal(file, "named.lua");
    assert_int_equal(line, ++*(int *)data);
    assert_non_null(text);
}

static void a_text_may_hold_any_byte(void **state)
{
    (void)state;
    static const char text[] = "require 'mulligan.policy'.bus():x()\n"
                               "local s = '\0'; require 'mulligan.policy'.bus():y()\n";
    int told = 0;
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = "some/folder/named.lua";
    options.text = text;
    options.text_size = sizeof text - 1;
    options.problem = count_problem;
    options.data = &told;
    assert_int_equal(mull_policy_load(&policy, &options), MULL_EPOLICY);
    assert_int_equal(told, 2);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static const char memory_policy[] = "local policy = require 'mulligan.policy'\n"
                                    "policy.errors { A = 'B' }\n"
                                    "local good = pcall(error, {})\n"
                                    "policy.bus():on('A', function(err, ctx)\n"
                                    "    return ('x'):rep(10) .. err.message == 'xxxxxxxxxxboom' "
                                    "and next(ctx.message.headers) == nil\n"
                                    "end):retry(3, '1s'):then_discard('note')\n";

/* live_through loads, decides twice and frees. 0, or what the load or the decider gave. */
static int live_through(counting_allocator *p)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = memory_policy;
    options.allocator = counting_allocator_ops(p);
    mull_policy *policy;
    int status = mull_policy_load(&policy, &options);
    if (status)
        return status;
    mull_decider *decider;
    status = mull_decider_new(&decider, policy);
    if (status == 0) {
        mull_error error = MULL_INIT(mull_error);
        error.type = "A";
        error.message = "boom";
        mull_failure failure = MULL_INIT(mull_failure);
        failure.error = &error;
        mull_verdict verdict = MULL_INIT(mull_verdict);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
            /* A matcher without memory doesn't match; nothing else is lost. */
            int matched = verdict.action == MULL_RETRY && verdict.rule.line == 4;
            assert_true(matched || (p->fail_at && verdict.reason == MULL_REASON_NO_RULE));
        }
    }
    mull_decider_free(decider);
    mull_policy_free(policy);
    return status;
}

/* fail_some lets some allocations fail, one in `step` or so, and those after it for `length`. */
static long fail_some(long step, long length)
{
    counting_allocator p = {0};
    assert_int_equal(live_through(&p), 0);
    long all = p.asked, refused = 0;
    sample s = sample_of(step);
    for (long at = sample_after(&s, 0); at <= all; at = sample_after(&s, at)) {
        p = (counting_allocator){.fail_at = at, .fail_for = length};
        int status = live_through(&p);
        assert_true(status == 0 || status == MULL_ENOMEM);
        assert_int_equal(p.out, 0);
        refused += status != 0;
    }
    print_message("%ld requests, %ld refused\n", all, refused);
    return refused;
}

static void failing_allocations_are_survived(void **state)
{
    (void)state;
    fail_some(20, 1); /* many are Lua's, which collects garbage and tries again */
    assert_true(fail_some(20, 2) > 0);
    assert_true(fail_some(20, 1L << 40) > 0);
}

/* ---- The locale ------------------------------------------------------------------------------ */

static void write_file(char path[64], const char *folder, const char *name, const char *text)
{
    snprintf(path, 64, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* make_locale makes a locale with a decimal comma in a folder of its own, and sets it. */
static int make_locale(char *folder)
{
    char source[64], letters[64], command[256];
    if (!mkdtemp(folder))
        return 0;
    write_file(source, folder, "source",
               "LC_NUMERIC\n"
               "decimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
               "END LC_NUMERIC\n");
    write_file(letters, folder, "letters",
               "<code_set_name> ANSI_X3.4-1968\n<escape_char> /\n"
               "CHARMAP\n<U0000>..<U007F> /x00 ASCII\nEND CHARMAP\n");
    /* It lacks all other categories, about which localedef complains. */
    snprintf(command, sizeof command, "localedef -c -f %s -i %s %s/comma >%s/log 2>&1", letters,
             source, folder, folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "comma") && *localeconv()->decimal_point == ',';
}

static void drop_locale(const char *folder)
{
    char command[64];
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)!system(command);
}

static void keep_half(mull_level level, const char *text, void *data)
{
    char half[8];
    (void)level;
    snprintf(half, sizeof half, "%.1f", 0.5);
    assert_string_equal(half, "0,5");
    snprintf(data, 64, "%s", text);
}

static void the_locale_of_the_embedder_stays_outside(void **state)
{
    (void)state;
    char folder[] = "/tmp/mulligan-locale-XXXXXX", logged[64] = "";
    if (!make_locale(folder)) {
        drop_locale(folder);
        print_message("no locale with a decimal comma can be made here\n");
        skip();
    }
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text =
        "print(1.5, tonumber('2.5'), ('%.2f'):format(0.25), 0.5)\n"
        "local policy = require 'mulligan.policy'\n"
        "policy.bus():on('E' .. 1.5, function() print(3.5) return 1.5 .. '' == '1.5' end)"
        ":discard()\n";
    options.log = keep_half;
    options.data = logged;
    options.problem = print_problem;
    mull_policy *policy;
    mull_decider *decider;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    assert_string_equal(logged, "1.5 2.5 0.25 0.5");
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    mull_error error = MULL_INIT(mull_error);
    error.type = "E1.5";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
    assert_int_equal(verdict.action, MULL_DISCARD);
    assert_string_equal(logged, "3.5");
    mull_decider_free(decider);
    mull_policy_free(policy);
    options.text = "error('no')"; /* a way out that jumps */
    options.problem = NULL;
    assert_int_equal(mull_policy_load(&policy, &options), MULL_EPOLICY);
    keep_half(MULL_INFO, "", logged);
    drop_locale(folder);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, DECISIONS = 300 };

typedef struct shared {
    mull_policy *policy;
    int inside; /* not atomic: the log function is called by one thread at a time */
    long lines;
} shared;

static void log_line(mull_level level, const char *text, void *data)
{
    shared *s = data;
    s->inside++;
    if (level == MULL_INFO && strcmp(text, "asked") == 0 && s->inside == 1)
        s->lines++;
    s->inside--;
}

static void *decide_often(void *data)
{
    shared *s = data;
    mull_decider *decider;
    if (mull_decider_new(&decider, s->policy))
        return NULL;
    mull_error error = MULL_INIT(mull_error);
    error.type = "A";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    intptr_t matched = 0;
    for (int i = 0; i < DECISIONS; i++)
        matched += mull_decide(decider, &failure, &verdict) == 0 && verdict.action == MULL_DISCARD;
    mull_decider_free(decider);
    return (void *)matched;
}

static void functions_run_on_many_threads(void **state)
{
    (void)state;
    shared s = {0};
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = "print('loaded')\n"
                   "require('mulligan.policy').bus()\n"
                   "  :on('A', function() print('asked') return true end):discard()\n";
    options.log = log_line;
    options.data = &s;
    assert_int_equal(mull_policy_load(&s.policy, &options), 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, decide_often, &s), 0);
    for (int i = 0; i < THREADS; i++) {
        void *matched;
        assert_int_equal(pthread_join(threads[i], &matched), 0);
        assert_int_equal((intptr_t)matched, DECISIONS);
    }
    assert_int_equal(s.lines, THREADS * DECISIONS);
    mull_policy_free(s.policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_in_a_circle_are_cut),
        cmocka_unit_test(the_first_of_a_name_counts),
        cmocka_unit_test(values_go_16_levels_deep),
        cmocka_unit_test(sent_lineages_are_known),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_text_may_hold_any_byte),
        cmocka_unit_test(failing_allocations_are_survived),
        cmocka_unit_test(the_locale_of_the_embedder_stays_outside),
        cmocka_unit_test(functions_run_on_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
