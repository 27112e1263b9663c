/* policy_lives.h: what the tests of policies without memory share: a policy that has one of
 * everything, loaded, asked and reloaded while the n-th request for memory is refused: once; once
 * more, so that it isn't had after Lua's emergency collection either; and from then on for good.
 *
 * Whatever is refused says MULL_ENOMEM and gives NULL; what was in force stays so and decides on;
 * and nothing is left at the end. */
#ifndef SPEC_POLICY_LIVES_H
#define SPEC_POLICY_LIVES_H

#include "counting_allocator.h"
#include "policy_folder.h"
#include "sample.h"
#include "verdicts.h"

static const long lengths[] = {1, 2, FOR_GOOD};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* ---- Two policies that differ in every verdict ----------------------------------------------- */

/* What differs stands before what is the same. */
static const char *const names[] = {
    "local name, tries = 'a', 3\n",
    "local name, tries = 'b', 7\n",
};

static const char words[] = "local policy = require 'mulligan.policy'\n";

/* What may be a policy of the host's own. */
static const char host_rules[] =
    "local host = policy.host()\n"
    "policy.errors { Deep = 'Gone' }\n"
    "host:max_age('1d')\n"
    "host:default():retry { attempts = tries, delay = '1s', backoff = 'linear', jitter = 'full' }\n"
    "host:unrecoverable('Gone', function(err)\n"
    "    return err:is('Gone') and err.text:rep(300):sub(-1) == '7'\n"
    "end)\n";

static const char rules[] =
    "policy.errors { Child = 'Parent', Table = 'Parent' }\n"
    "local caught = pcall(error, {})\n"
    "print('the policy', name)\n"
    "local bus, lane = policy.bus(), policy.transport('lane')\n"
    "bus:dead_letter_queue('rest-' .. name)\n"
    "bus:max_attempts(1000 + tries)\n"
    "bus:rate_limit { after = tries, wait = '5s' }\n"
    "bus:on('Child', function(err, ctx)\n"
    "    local found = {}\n"
    "    for name in pairs(ctx.message.headers) do found[#found + 1] = name .. err.type end\n"
    "    return not caught and #found == 2 and ('x'):rep(3000) .. err.cause.message == "
    "('x'):rep(3000) .. 'boom'\n"
    "end):retry(tries, '1s')\n"
    "bus:on({ 'Table', 'Other' }, policy.all(\n"
    "    { status = policy.between(500, 599), region = { 'north', 'south' }, text = "
    "policy.contains('a') },\n"
    "    { text = policy.matches('^a%d?'), gone = policy.absent, code = policy.is_not(4) },\n"
    "    policy.ctx { attempt = policy.at_least(1), message = { headers = { tenant = 'acme' } } "
    "}))\n"
    "    :retry { '100ms', '1s', hint = 'retry_after' }\n"
    "    :then_redeliver { attempts = tries, delay = '2m', backoff = 'exponential', factor = 3 }\n"
    "    :then_dead_letter('table-' .. name)\n"
    "bus:on('Mixed', policy.any({ status = 1 }, policy.none({ status = policy.at_most(2) },\n"
    "    function(err) return err.text:find('b+') end))):redeliver(tries):then_discard(name)\n"
    "bus:on('Parent'):dead_letter('unmatched-' .. name)\n"
    "bus:on_cause('Cause', function(err) return err.message:rep(300):sub(-4) == 'boom' end)\n"
    "    :discard('cause-' .. name)\n"
    "bus:unrecoverable('Fatal', function(err) return #err.text > 0 end)\n"
    "lane:include(bus)\n"
    "lane:on('Child', { status = 1 }):discard()\n"
    "lane:max_deliveries(tries)\n"
    "policy.preset.mocha(policy.consumer('Mocha'))\n"
    "policy.preset.nservicebus(policy.consumer('Bus'), { immediate = tries, unrecoverable = { "
    "'Fatal' } })\n"
    "local answering = policy.consumer('Answering')\n"
    "answering:default():discard('by the rule ' .. name)\n"
    "answering:override(function(failure, verdict, config)\n"
    "    return policy.dead_letter(failure.error.type .. verdict.note .. "
    "config.dead_letter_queue)\n"
    "end)\n"
    "policy.consumer('Heard'):notify(function(event)\n"
    "    local found = {}\n"
    "    for key in pairs(event.verdict) do found[#found + 1] = key .. name end\n"
    "    assert(#found > 4 and event.failure.error.cause.type == 'Cause')\n"
    "end)\n";

/* place_kind is where a policy comes from: a text; a file and one beside it; or these and a file of
 * its host's. */
typedef enum place_kind { A_TEXT, A_FILE, WITH_HOST } place_kind;

enum { LONGEST = 4096 };

/* policy_text writes the policy named 'a' or 'b', host_text that of its host. */
static inline void policy_text(char text[LONGEST], char name, place_kind kind)
{
    int length = snprintf(text, LONGEST, "%s%s%s%s%s", names[name == 'b'], words,
                          kind == WITH_HOST ? "" : host_rules, rules,
                          kind != A_TEXT ? "assert(require 'more.rules' == 'required')\n" : "");
    assert_in_range(length, 1, LONGEST - 1);
}

static inline void host_text(char text[LONGEST], char name)
{
    int length = snprintf(text, LONGEST, "%s%s%s", names[name == 'b'], words, host_rules);
    assert_in_range(length, 1, LONGEST - 1);
}

/* ---- Failures -------------------------------------------------------------------------------- */

typedef struct facts {
    const char *type, *consumer, *transport;
} facts;

static const facts all_facts[] = {
    {.type = "Child"},
    {.type = "Table"},
    {.type = "Mixed"},
    {.type = "Fatal"},
    {.type = "Deep"},
    {.type = "Unknown"}, /* but its cause is known */
    {.type = "Child", .transport = "lane"},
    {.type = "Any", .consumer = "Mocha"},
    {.type = "Any", .consumer = "Bus"},
    {.type = "Any", .consumer = "Answering"},
    {.type = "Mixed", .consumer = "Heard"},
};

enum { FACTS = sizeof all_facts / sizeof *all_facts };

/* told counts what a policy said. */
typedef struct told {
    int problems, failed, loaded, refused;
    kept whole[2][FACTS]; /* what the two policies give where there is memory */
} told;

static inline void on_problem(const char *file, int line, const char *text, void *data)
{
    ((told *)data)->problems++;
    print_message("%s:%d: %s\n", file ? file : "-", line, text);
}

static inline void on_log(mull_level level, const char *text, void *data)
{
    (void)data;
    assert_int_equal(level, MULL_INFO);
    assert_memory_equal(text, "the policy ", 11);
}

static inline void on_event(const mull_event *event, void *data)
{
    told *t = data;
    if (event->kind == MULL_EVENT_POLICY_LOADED) {
        t->loaded++;
        return;
    }
    assert_string_equal(event->text, mull_strerror(MULL_ENOMEM));
    if (event->kind == MULL_EVENT_POLICY_REFUSED)
        t->refused++;
    else
        t->failed++;
}

/* ask decides the n-th failure. */
static inline mull_verdict ask(mull_decider *decider, size_t n)
{
    static const mull_header headers[] = {{"tenant", "acme"}, {"region", "north"}};
    static const mull_field fields[] = {
        {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
        {"region", {.kind = MULL_STRING, .as.string = "north"}},
        {"text", {.kind = MULL_STRING, .as.string = "a7"}},
        {"code", {.kind = MULL_NUMBER, .as.number = 5}},
        {"retry_after", {.kind = MULL_INTEGER, .as.integer = 4}},
    };
    mull_error cause = MULL_INIT(mull_error), error = MULL_INIT(mull_error);
    cause.type = "Cause";
    cause.message = "boom";
    error.type = all_facts[n].type;
    error.fields = fields;
    error.field_count = sizeof fields / sizeof *fields;
    error.cause = &cause;
    mull_message message = MULL_INIT(mull_message);
    message.headers = headers;
    message.header_count = 2;
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.message = &message;
    failure.consumer = all_facts[n].consumer;
    failure.transport = all_facts[n].transport;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
    return verdict;
}

/* assert_decides: the decider's next verdicts are wholly those of the policy named. */
static inline void assert_decides(mull_decider *decider, const told *t, char name)
{
    int failed = t->failed;
    for (size_t n = 0; n < FACTS; n++) {
        mull_verdict verdict = ask(decider, n);
        assert_int_equal(differences(&verdict, &t->whole[name == 'b'][n].verdict), 0);
    }
    assert_int_equal(t->failed, failed);
}

/* ---- What is loaded -------------------------------------------------------------------------- */

typedef struct place {
    place_kind kind;
    folder folder;
    char text[LONGEST];
} place;

static inline void put(place *at, char name)
{
    policy_text(at->text, name, at->kind);
    if (at->kind != A_TEXT)
        folder_write(&at->folder, "policy.lua", at->text);
    if (at->kind == WITH_HOST) {
        char text[LONGEST];
        host_text(text, name);
        folder_write(&at->folder, "host.lua", text);
    }
}

static inline int load(mull_policy **policy, const place *from, counting_allocator *p, told *t)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    char host[FOLDER_PATH];
    snprintf(host, sizeof host, "%s/host.lua", from->folder.path);
    options.path = from->kind != A_TEXT ? from->folder.main : NULL;
    options.text = from->kind != A_TEXT ? NULL : from->text;
    options.host_path = from->kind == WITH_HOST ? host : NULL;
    options.problem = on_problem;
    options.log = on_log;
    options.event = on_event;
    options.data = t;
    options.allocator = counting_allocator_ops(p);
    return mull_policy_load(policy, &options);
}

static inline int reload(mull_policy *policy, const place *from)
{
    return mull_policy_reload(policy, from->kind != A_TEXT ? NULL : from->text, 0);
}

/* learn what the policy named decides where there is memory. */
static inline void learn(place *at, told *t, char name)
{
    counting_allocator plenty = {0};
    mull_policy *policy;
    mull_decider *decider;
    put(at, name);
    assert_int_equal(load(&policy, at, &plenty, t), 0);
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    for (size_t n = 0; n < FACTS; n++) {
        mull_verdict verdict = ask(decider, n);
        keep(&t->whole[name == 'b'][n], &verdict);
    }
    assert_int_equal(t->failed + t->problems, 0);
    mull_decider_free(decider);
    mull_policy_free(policy);
}

/* open_place leaves the policy 'a' there. */
static inline void open_place(place *at, told *t, place_kind kind)
{
    *at = (place){.kind = kind};
    *t = (told){0};
    if (kind != A_TEXT) {
        folder_open(&at->folder);
        folder_make(&at->folder, "more");
        folder_write(&at->folder, "more/rules.lua", "return 'required'\n");
    }
    learn(at, t, 'b');
    learn(at, t, 'a');
}

static inline void close_place(place *at)
{
    if (at->kind != A_TEXT)
        folder_close(&at->folder);
}

/* ---- Loading, and a first decider ------------------------------------------------------------ */

/* come_and_go loads, makes a decider, and frees both: 0, or what was refused. */
static inline int come_and_go(const place *from, counting_allocator *p, told *t)
{
    mull_policy *policy = (mull_policy *)t;
    mull_decider *decider = (mull_decider *)t;
    int status = load(&policy, from, p, t);
    if (status != 0) {
        assert_null(policy);
    } else {
        status = mull_decider_new(&decider, policy);
        if (status != 0)
            assert_null(decider);
        else
            mull_decider_free(decider);
    }
    mull_policy_free(policy);
    assert_int_equal(p->out, 0);
    assert_int_equal(t->problems, 0);
    return status;
}

/* load_without_memory refuses some `lives` of all n, for each length. */
static inline void load_without_memory(place_kind kind, long lives)
{
    place from;
    static told t;
    open_place(&from, &t, kind);
    counting_allocator p = {0};
    assert_int_equal(come_and_go(&from, &p, &t), 0);
    long all = p.asked, refused = 0, tried = 0;
    for (size_t i = 0; i < LENGTHS; i++) {
        sample s = sample_of(1 + all / lives);
        for (long at = sample_after(&s, 0); at <= all; at = sample_after(&s, at), tried++) {
            p = (counting_allocator){.fail_at = at, .fail_for = lengths[i]};
            int status = come_and_go(&from, &p, &t);
            if (status != 0)
                assert_int_equal(status, MULL_ENOMEM);
            /* A load asks a little more often, or less, than the one before. */
            if (lengths[i] == FOR_GOOD && p.asked >= at)
                assert_int_equal(status, MULL_ENOMEM);
            refused += status != 0;
        }
    }
    print_message("%ld requests, %ld refused of %ld\n", all, refused, tried);
    assert_true(refused >= tried / 4);
    close_place(&from);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* try_to_decide decides one failure while memory is refused, and gives how many functions found
 * none: at most each once. Where all did their work, the verdict is the one that it ever is. */
static inline int try_to_decide(mull_decider *decider, told *t, counting_allocator *p, size_t n)
{
    const mull_verdict *whole = &t->whole[0][n].verdict;
    t->failed = 0;
    mull_verdict verdict = ask(decider, n);
    p->fail_at = 0;
    assert_string_equal(verdict.generation, whole->generation);
    assert_in_range(t->failed, 0, 2);
    if (!t->failed)
        assert_int_equal(differences(&verdict, whole), 0);
    else if (all_facts[n].consumer)
        assert_true(verdict.action == MULL_DISCARD || verdict.action == MULL_REDELIVER ||
                    verdict.action == MULL_DEAD_LETTER);
    return t->failed;
}

/* decide_without_memory refuses some `lives` of all n, for each failure and length. A failure that
 * meets no function asks for nothing. */
static inline void decide_without_memory(place_kind kind, long lives)
{
    place from;
    static told t;
    open_place(&from, &t, kind);
    counting_allocator p = {0};
    mull_policy *policy;
    mull_decider *decider;
    assert_int_equal(load(&policy, &from, &p, &t), 0);
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    assert_decides(decider, &t, 'a'); /* what is made once is there */
    long requests = 0, tried = 0, failed = 0;
    for (size_t n = 0; n < FACTS; n++) {
        long before = p.asked;
        ask(decider, n);
        long all = p.asked - before;
        requests += all;
        for (size_t i = 0; i < LENGTHS; i++) {
            sample s = sample_of(1 + all / lives);
            for (long at = sample_after(&s, 0); at <= all; at = sample_after(&s, at), tried++) {
                p.fail_for = lengths[i];
                p.fail_at = p.asked + at;
                failed += try_to_decide(decider, &t, &p, n) > 0;
                mull_verdict again = ask(decider, n); /* there is memory again */
                assert_int_equal(differences(&again, &t.whole[0][n].verdict), 0);
            }
        }
    }
    print_message("%ld requests, %ld decisions without memory, %ld of functions\n", requests, tried,
                  failed);
    assert_true(failed >= tried / LENGTHS); /* all those for good, and more */
    assert_decides(decider, &t, 'a');
    mull_decider_free(decider);
    mull_policy_free(policy);
    assert_int_equal(p.out, 0);
    close_place(&from);
}

/* ---- Reloading ------------------------------------------------------------------------------- */

enum { DECIDERS = 2 };

/* try_reload reloads while memory is refused; 1: it was refused, and nothing has changed. */
static inline int try_reload(mull_policy *policy, const place *from, told *t, counting_allocator *p,
                             long at, long length)
{
    char before[33], after[33];
    int loaded = t->loaded, refused = t->refused;
    mull_policy_generation(policy, before);
    p->fail_for = length;
    p->fail_at = p->asked + at;
    int status = reload(policy, from);
    p->fail_at = 0;
    mull_policy_generation(policy, after);
    assert_int_equal(strcmp(before, after) == 0, status != 0);
    assert_int_equal(t->loaded - loaded, status == 0);
    assert_int_equal(t->refused - refused, status != 0);
    if (status != 0)
        assert_int_equal(status, MULL_ENOMEM);
    return status != 0;
}

/* go_on reloads to the policy named, first without memory and then, if need be, with: whatever
 * comes of it, the first decider takes each fresh seat. 1: it was refused at first. */
static inline int go_on(mull_policy *policy, mull_decider *decider, place *from, told *t,
                        counting_allocator *p, char to, long at, long length)
{
    put(from, to);
    int refused = try_reload(policy, from, t, p, at, length);
    assert_decides(decider, t, refused ? (char)('a' + 'b' - to) : to);
    if (refused) {
        assert_int_equal(reload(policy, from), 0);
        assert_decides(decider, t, to);
    }
    return refused;
}

/* reload_without_memory goes back and forth, for some `lives` of all n and each length: one decider
 * takes each fresh seat, the other one none until the end. */
static inline void reload_without_memory(place_kind kind, long lives)
{
    place from;
    static told t;
    open_place(&from, &t, kind);
    counting_allocator p = {0};
    mull_policy *policy;
    mull_decider *deciders[DECIDERS];
    assert_int_equal(load(&policy, &from, &p, &t), 0);
    for (int i = 0; i < DECIDERS; i++)
        assert_int_equal(mull_decider_new(&deciders[i], policy), 0);
    long before = p.asked, refused = 0, tried = 0;
    put(&from, 'b');
    assert_int_equal(try_reload(policy, &from, &t, &p, FOR_GOOD, 1), 0);
    long all = p.asked - before;
    char now = 'b';
    for (size_t i = 0; i < LENGTHS; i++) {
        sample s = sample_of(1 + all / lives);
        for (long at = sample_after(&s, 0); at <= all; at = sample_after(&s, at), tried++) {
            now = now == 'a' ? 'b' : 'a';
            refused += go_on(policy, deciders[0], &from, &t, &p, now, at, lengths[i]);
        }
    }
    assert_decides(deciders[1], &t, now);
    print_message("%ld requests, %ld refused of %ld\n", all, refused, tried);
    assert_true(refused >= tried / 4);
    for (int i = 0; i < DECIDERS; i++)
        mull_decider_free(deciders[i]);
    mull_policy_free(policy);
    assert_int_equal(p.out, 0);
    assert_int_equal(t.problems, 0);
    close_place(&from);
}

#endif
