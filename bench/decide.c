/* decide.c: what one decision costs, through mull_decide, by a policy of 100 rules in 10 scopes.
 *
 *   decide                    ns and instructions a decision of each case; then what others take
 *                             for the same decision
 *   decide CASE id|chance N   decides N times, for callgrind, which counts instructions
 *   decide many               by ids, with ever more types, each with a rule
 *   decide many TYPES N       decides N times so, for callgrind
 *   decide beside OTHER [ROUNDS [CASE]]
 *                             CPU time in turns with the decide of another build; ends in 1 where a
 *                             case takes more than 1.05 times as much
 *
 * Each case comes in two variants: with the chance given, as engines give it, or taken from the
 * message's id. bench/README.md has the commands, and what came out. */
#include "kit/beside.h"
#include "kit/compare.h"
#include "kit/count.h"
#include "kit/many.h"
#include "kit/ours.h"
#include "mulligan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONSUMERS = 4, TRANSPORTS = 4, SCOPE_RULES = 10 };

static void die(const char *what)
{
    fprintf(stderr, "bench/decide: %s\n", what);
    exit(2);
}

/* ---- The policy ------------------------------------------------------------------------------ */

/* Names are of 10 to 20 bytes, as people's are. */
static const char *const kinds[SCOPE_RULES] = {
    "TimeoutError",    "DeadlockDetected",   "ConnectReset", "HttpServerErr",
    "ValidationError", "DuplicateMessage",   "QuotaExceeds", "PaymentDeclined",
    "SchemaMismatch",  "ConnectionTimedOut",
};

typedef struct text {
    char bytes[32768];
    size_t length;
} text;

static void add(text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    t->length +=
        (size_t)vsnprintf(t->bytes + t->length, sizeof t->bytes - t->length, format, arguments);
    va_end(arguments);
    if (t->length >= sizeof t->bytes)
        die("the policy is too long");
}

/* add_rules: ten rules, three of which have matchers, in the scope named last. */
static void add_rules(text *t, int number)
{
    for (int i = 0; i < SCOPE_RULES; i++) {
        add(t, "scope:on('%s%02d'", kinds[i], number);
        if (i == 3)
            add(t, ", { status = 503, transient = true }");
        if (i == 7)
            add(t, ", { status = 503, region = 'eu-west-1' }");
        if (i == 6)
            add(t, ", function(err) return err.status == 429 and err.region == 'eu-west-1' end");
        add(t, "):retry(3, '200ms'):then_redeliver()\n");
    }
}

static mull_decider *new_decider(mull_policy **policy)
{
    static text t;
    int number = 0;
    add(&t, "local policy = require 'mulligan.policy'\nlocal scope = policy.host()\n");
    add_rules(&t, number++);
    add(&t, "scope = policy.bus()\n");
    add_rules(&t, number++);
    for (int i = 0; i < TRANSPORTS; i++) {
        add(&t, "scope = policy.transport('warehouse-%02d')\n", number);
        add_rules(&t, number++);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        add(&t, "scope = policy.consumer('PaymentHandler%02d')\n", number);
        add_rules(&t, number++);
    }
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = t.bytes;
    mull_decider *decider = NULL;
    if (mull_policy_load(policy, &options) != 0 || mull_decider_new(&decider, *policy) != 0)
        die("no policy");
    if (mull_policy_rules(*policy) != (size_t)(2 + TRANSPORTS + CONSUMERS) * SCOPE_RULES)
        die("not the rules that were meant");
    return decider;
}

/* ---- The cases ------------------------------------------------------------------------------- */

static const mull_field fields[] = {
    {"attempted_at", {.kind = MULL_STRING, .as.string = "2031-05-06T07:08:09Z"}},
    {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
    {"transient", {.kind = MULL_BOOLEAN, .as.boolean = 1}},
};
static const mull_field text_fields[] = {
    {"attempted_at", {.kind = MULL_STRING, .as.string = "2031-05-06T07:08:09Z"}},
    {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
    {"region", {.kind = MULL_STRING, .as.string = "eu-west-1"}},
};
static const mull_field other_fields[] = {
    {"attempted_at", {.kind = MULL_STRING, .as.string = "2031-05-06T07:08:09Z"}},
    {"status", {.kind = MULL_INTEGER, .as.integer = 429}},
    {"region", {.kind = MULL_STRING, .as.string = "eu-west-1"}},
};

/* Types have 14 or 15 bytes, but "type 20" 20 and "text" 17, which are dearer to look up; "fields"
 * has a number and a boolean to compare, "text" a number and a string. Those by ids are of the same
 * consumer and transport as "names"; "ids" has neither error nor message, "ids, all" has both. */
typedef struct bench_case {
    const char *name, *type, *consumer, *transport, *scope;
    const mull_field *fields;
    enum { BY_NAMES, BY_IDS, BY_IDS_ALONE } by;
} bench_case;

#define CONSUMER  "PaymentHandler07"
#define TRANSPORT "warehouse-03"
#define SCOPE     "consumer:" CONSUMER

static const bench_case cases[] = {
    {"ids", "ConnectReset07", CONSUMER, TRANSPORT, SCOPE, NULL, BY_IDS_ALONE},
    {"ids, all", "ConnectReset07", CONSUMER, TRANSPORT, SCOPE, NULL, BY_IDS},
    {"ids, text", "PaymentDeclined07", CONSUMER, TRANSPORT, SCOPE, text_fields, BY_IDS},
    {"type", "ConnectReset01", NULL, NULL, "bus", NULL, BY_NAMES},
    {"type 20", "ConnectionTimedOut01", NULL, NULL, "bus", NULL, BY_NAMES},
    {"names", "ConnectReset07", CONSUMER, TRANSPORT, SCOPE, NULL, BY_NAMES},
    {"fields", "HttpServerErr01", NULL, NULL, "bus", fields, BY_NAMES},
    {"text", "PaymentDeclined01", NULL, NULL, "bus", text_fields, BY_NAMES},
    {"function", "QuotaExceeds01", NULL, NULL, "bus", other_fields, BY_NAMES},
};
enum { CASES = sizeof cases / sizeof *cases };

/* facts is a failure with what it points to. */
typedef struct facts {
    mull_error error;
    mull_message message;
    mull_failure failure;
} facts;

/* by_ids puts ids in the place of names; what names there still are is wrong. */
static void by_ids(facts *f, mull_policy *policy, const bench_case *c)
{
    if (mull_type_intern(&f->failure.type, policy, c->type) != 0 ||
        mull_site_intern(&f->failure.site, policy, c->consumer, c->transport) != 0)
        die("no ids");
    f->error.type = f->failure.consumer = f->failure.transport = "not looked at";
    if (c->by == BY_IDS_ALONE)
        f->failure.error = NULL;
    if (c->by == BY_IDS_ALONE && f->failure.flags & MULL_HAS_CHANCE)
        f->failure.message = NULL;
}

static void facts_init(facts *f, mull_policy *policy, const bench_case *c, int by_id)
{
    memset(f, 0, sizeof *f);
    f->error = MULL_INIT(mull_error);
    f->error.type = c->type;
    f->error.message = "connection reset by peer";
    f->error.fields = c->fields;
    f->error.field_count = c->fields ? 3 : 0;
    f->message = MULL_INIT(mull_message);
    f->message.id = "01J9ZQ4T7X8M2V5K3B6N0C1D2E";
    f->message.type = "OrderPlaced";
    f->failure = (mull_failure){.size = sizeof f->failure,
                                .error = &f->error,
                                .message = &f->message,
                                .consumer = c->consumer,
                                .transport = c->transport,
                                .attempt = 1,
                                .calls = 1,
                                .deliveries = 1,
                                .chance = 0x9e3779b97f4a7c15u,
                                .flags = by_id ? 0 : MULL_HAS_CHANCE};
    if (c->by != BY_NAMES)
        by_ids(f, policy, c);
}

/* check that a case is what it says: a retry by the scope's rule for the type. */
static void check(mull_decider *decider, const facts *f, const bench_case *c)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    if (mull_decide(decider, &f->failure, &verdict) != 0 || verdict.action != MULL_RETRY ||
        strcmp(verdict.rule.type, c->type) != 0 || strcmp(verdict.rule.scope, c->scope) != 0)
        die("not the verdict that was meant");
}

/* ---- What is printed ------------------------------------------------------------------------- */

/* count_instructions runs this program for one case; below 0: they can't be counted. */
static double count_instructions(const char *program, const char *name, const char *chance)
{
    enum { COUNT = 20000 };
    char count[16];
    snprintf(count, sizeof count, "%d", COUNT);
    const char *const argv[] = {program, name, chance, count, NULL};
    return bench_count("mull_decide", argv) / COUNT;
}

static void print_variant(mull_policy *policy, mull_decider *decider, const char *program,
                          const bench_case *c, int by_id)
{
    facts f;
    facts_init(&f, policy, c, by_id);
    check(decider, &f, c);
    printf(" %12.1f", bench_decide_ns(decider, &f.failure, BENCH_MOST_BATCHES));
    double instructions = count_instructions(program, c->name, by_id ? "id" : "chance");
    if (instructions < 0)
        printf(" %12s", "-");
    else
        printf(" %12.0f", instructions);
}

static void print_cases(mull_policy *policy, mull_decider *decider, const char *program)
{
    printf("%-10s %25s %25s\n", "", "chance from the id", "chance given");
    printf("%-10s %12s %12s %12s %12s\n", "", "ns", "instructions", "ns", "instructions");
    for (int i = 0; i < CASES; i++) {
        printf("%-10s", cases[i].name);
        print_variant(policy, decider, program, &cases[i], 1);
        print_variant(policy, decider, program, &cases[i], 0);
        printf("\n");
        fflush(stdout);
    }
}

static const bench_case *find_case(const char *name)
{
    for (int i = 0; i < CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    die("no such case");
    return NULL;
}

static void compare(mull_policy *policy, mull_decider *decider)
{
    facts names, ids;
    facts_init(&names, policy, find_case("type"), 0);
    facts_init(&ids, policy, find_case("ids"), 0);
    const bench_way ways[] = {{"by names", &names.failure}, {"by ids", &ids.failure}};
    if (bench_compare(decider, ways, sizeof ways / sizeof *ways) != 0)
        die("no comparison");
}

/* ---- Beside another build -------------------------------------------------------------------- */

/* is_slower prints a case's ratio. A function's call is worth ten others. */
static int is_slower(const char *program, const char *other, const char *name, int rounds)
{
    const long count = strcmp(name, "function") == 0 ? 500000 : 5000000;
    double ratio = bench_beside(program, other, name, count, rounds);
    if (ratio < 0)
        die("one of the two failed");
    int is = ratio > 1.05;
    printf("%-10s %6.3f%s\n", name, ratio, is ? "  too much" : "");
    fflush(stdout);
    return is;
}

/* beside gives how many cases are slower than the other build's; `only` one case, unless NULL. */
static int beside(const char *program, const char *other, int rounds, const char *only)
{
    if (rounds < 1 || rounds > BENCH_MOST_ROUNDS)
        die("not so many rounds");
    int slower = 0;
    printf("%-10s %6s\n", "", "times");
    for (int i = 0; i < CASES; i++)
        if (!only || strcmp(only, cases[i].name) == 0)
            slower += is_slower(program, other, cases[i].name, rounds);
    return slower;
}

/* ---- What is asked for ----------------------------------------------------------------------- */

/* decide_case is what callgrind looks at. */
static void decide_case(mull_policy *policy, mull_decider *decider, const char *name, int by_id,
                        long count)
{
    facts f;
    facts_init(&f, policy, find_case(name), by_id);
    printf("%lld\n", (long long)bench_decide_often(decider, &f.failure, count));
}

int main(int argc, char **argv)
{
    enum { ROUNDS = 31 };
    if (argc > 2 && argc < 6 && strcmp(argv[1], "beside") == 0)
        return beside(argv[0], argv[2], argc > 3 ? atoi(argv[3]) : ROUNDS,
                      argc > 4 ? argv[4] : NULL) > 0;
    if (argc == 2 && strcmp(argv[1], "many") == 0)
        return bench_many(argv[0]) != 0;
    if (argc == 4 && strcmp(argv[1], "many") == 0)
        return bench_many_once(atoi(argv[2]), atol(argv[3])) != 0;
    mull_policy *policy;
    mull_decider *decider = new_decider(&policy);
    if (argc == 4) {
        decide_case(policy, decider, argv[1], strcmp(argv[2], "id") == 0, atol(argv[3]));
    } else if (argc == 1) {
        print_cases(policy, decider, argv[0]);
        printf("\n");
        compare(policy, decider);
    } else {
        die("usage: decide [CASE id|chance COUNT | many [TYPES COUNT] | beside OTHER [ROUNDS "
            "[CASE]]]");
    }
    mull_decider_free(decider);
    mull_policy_free(policy);
    return 0;
}
