/* policies.c: a policy is a number: its text names it, its rules are drawn from it. The guest that
 * compiles it stands in for the language, so that no Lua runs; its functions are C. Number 0 is a
 * policy that every engine takes. */
#include "sim.h"

#include "../unit/plain.h"
#include "base/alloc.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RULES_MAX = 5, SCOPES_MAX = 5, FIELDS = 3, STATEMENTS_MAX = 2 };

const char *const type_names[] = {"Type0",
                                  "Type1",
                                  "Type2",
                                  "Type3",
                                  "Type4",
                                  "Type5",
                                  "HandlerCrashError",
                                  "HandlerTimeoutError",
                                  "MessageDeserializationError",
                                  "Error"};

static const char *const rule_types[] = {"Type0",
                                         "Type1",
                                         "Type2",
                                         "Type3",
                                         "Type4",
                                         "Type5",
                                         "Error",
                                         "Error",
                                         "HandlerCrashError",
                                         "HandlerTimeoutError",
                                         "MessageDeserializationError"};

/* ---- Drawing one ----------------------------------------------------------------------------- */

/* sketch is a plain policy with room for what it points to. */
typedef struct sketch {
    mull__rand chance;
    mull__plain plain;
    mull__plain_scope scopes[SCOPES_MAX];
    mull__plain_rule rules[SCOPES_MAX][RULES_MAX];
    mull__field_test tests[SCOPES_MAX][RULES_MAX];
    mull_value codes[SCOPES_MAX][RULES_MAX]; /* their literals */
    int64_t delays[SCOPES_MAX][RULES_MAX][2][3];
    mull__rate_limit rate_limits[SCOPES_MAX][STATEMENTS_MAX];
    mull__call_limit call_limits[SCOPES_MAX][STATEMENTS_MAX];
    int unlimited;
} sketch;

static uint64_t pick(sketch *k, uint64_t choices)
{
    return mull__rand_next(&k->chance) % choices;
}

static int64_t pick_delay(sketch *k)
{
    static const int64_t delays_ms[] = {0, 0, 1, 7, 50, 200, 1000, 5000, 20000, 60000};
    return delays_ms[pick(k, 10)];
}

static mull__tier_config draw_tier(sketch *k, int64_t delays[3], int redeliver)
{
    static const double jitters[] = {0, 0, 0.25, 0.5, 1};
    mull__tier_config tier = {.on = 1, .factor = 2, .max_delay_ms = MULL__NO_CAP};
    tier.jitter = jitters[pick(k, 5)];
    if (pick(k, 3) == 0)
        tier.max_delay_ms = 500 + (int64_t)pick(k, 60000);
    if (pick(k, 3) == 0) {
        tier.delays = delays;
        tier.delay_count = 1 + pick(k, 3);
        tier.attempts = (int64_t)tier.delay_count;
        for (size_t i = 0; i < tier.delay_count; i++)
            delays[i] = pick_delay(k);
        return tier;
    }
    tier.attempts = (int64_t)pick(k, 5);
    tier.base_ms = pick_delay(k);
    tier.backoff = (mull__backoff)pick(k, 3);
    if (redeliver && pick(k, 8) == 0) {
        k->unlimited = 1;
        tier.attempts = MULL_UNLIMITED;
        tier.base_ms = 700 + (int64_t)pick(k, 9000);
        tier.max_delay_ms = 20000;
        tier.jitter = 0.25;
    }
    return tier;
}

static void draw_matcher(sketch *k, mull__plain_rule *rule, mull__field_test *test,
                         mull_value *code)
{
    switch (pick(k, 5)) {
    case 0:
        *code = (mull_value){.kind = MULL_INTEGER, .as.integer = (int64_t)pick(k, 3)};
        *test = (mull__field_test){
            .subject = MULL__OF_ERROR,
            .name = "code",
            .value = {.kind = MULL__ONE_OF, .literals = code, .literal_count = 1},
        };
        rule->matcher = (mull__matcher){MULL__MATCH_TESTS, .tests = test, .test_count = 1};
        break;
    case 1:
        rule->matcher =
            (mull__matcher){MULL__MATCH_FUNCTION, .function = k->plain.function_count++};
        break;
    default:
        break;
    }
}

static void draw_rule(sketch *k, int scope, int index)
{
    static const char *const queues[] = {NULL, NULL, "error", "parked", "late"};
    mull__plain_rule *rule = &k->rules[scope][index];
    *rule = (mull__plain_rule){.type = rule_types[pick(k, 11)],
                               .file = "policy.lua",
                               .line = 1 + scope * 10 + index,
                               .end = MULL_DEAD_LETTER};
    draw_matcher(k, rule, &k->tests[scope][index], &k->codes[scope][index]);
    uint64_t chain = pick(k, 10);
    if (chain >= 2 && chain != 4)
        rule->redeliver = draw_tier(k, k->delays[scope][index][1], 1);
    if (chain >= 4)
        rule->retry = draw_tier(k, k->delays[scope][index][0], 0);
    if (pick(k, 4) == 0) {
        rule->end = MULL_DISCARD;
        rule->note = pick(k, 2) ? "not needed" : NULL;
    } else {
        rule->queue = queues[pick(k, 5)];
    }
}

static void draw_settings(sketch *k, mull__plain_settings *settings)
{
    static const char *const queues[] = {NULL, NULL, "parked", "late", ""};
    settings->dead_letter_queue = queues[pick(k, 5)];
    if (pick(k, 4) == 0) {
        settings->has_max_age = 1;
        settings->max_age_ms = (int64_t)pick(k, 4) * 5000;
    }
    if (pick(k, 4) == 0)
        settings->max_attempts = 1 + (int64_t)pick(k, 6);
    if (pick(k, 3) == 0)
        settings->max_deliveries = 1 + (int64_t)pick(k, 4);
    else if (pick(k, 8) == 0)
        settings->max_deliveries = MULL__OFF;
}

static void draw_scope(sketch *k, mull__scope_kind kind, const char *name)
{
    int index = (int)k->plain.scope_count++;
    int rules = (int)pick(k, RULES_MAX + 1);
    for (int i = 0; i < rules; i++)
        draw_rule(k, index, i);
    if (rules > 0 && pick(k, 3))
        k->rules[index][rules - 1].type = "Error";
    k->scopes[index] = (mull__plain_scope){
        .kind = kind, .name = name, .rules = k->rules[index], .rule_count = (size_t)rules};
    draw_settings(k, &k->scopes[index].settings);
}

/* set_notifies: every other scope has a notify, or says that there is none. */
static void set_notifies(sketch *k, uint64_t number)
{
    for (size_t i = 0; i < k->plain.scope_count; i++)
        if ((number >> i) % 2)
            k->scopes[i].settings.notify =
                (number >> i) % 8 == 7 ? MULL__OFF : (int64_t)++k->plain.function_count;
}

/* set_overrides: some scopes have an override, or say that there is none. */
static void set_overrides(sketch *k, uint64_t number)
{
    for (size_t i = 0; i < k->plain.scope_count; i++) {
        const uint64_t words[] = {number, i};
        uint64_t fate = mull__hash_words(words, sizeof words / sizeof *words) % 8;
        if (fate < 3)
            k->scopes[i].settings.override =
                fate == 0 ? MULL__OFF : (int64_t)++k->plain.function_count;
    }
}

static const mull__per pers[] = {{MULL__PER_CONSUMER, NULL},
                                 {MULL__PER_CONSUMER, NULL},
                                 {MULL__PER_KEY, NULL},
                                 {MULL__PER_TYPE, NULL},
                                 {MULL__PER_HEADER, "x-tenant"}};

/* draw_types names some of the types that count, or that don't. */
static void draw_types(sketch *k, mull__rate_limit *rate)
{
    static const char *names[] = {"Type0", "Type3", "HandlerTimeoutError", "Type1"};
    uint64_t first = pick(k, 3), fate = pick(k, 5);
    const mull__type_list some = {.names = &names[first], .count = 1 + pick(k, 2)};
    if (fate == 0)
        rate->only = some;
    else if (fate == 1)
        rate->except = some;
}

static mull__rate_limit draw_rate_limit(sketch *k)
{
    static const int64_t waits_ms[] = {20, 100, 700, 2500}, longer[] = {1, 1, 3, 8};
    static const int64_t within_ms[] = {MULL__OFF, MULL__OFF, MULL__OFF, 50, 500, 3000};
    static const int64_t ramps_ms[] = {0, 0, 0, 500, 3000, 15000};
    static const int64_t windows_ms[] = {300, 1000, 1900};
    static const double ratios[] = {0.3, 0.5, 1};
    mull__rate_limit rate = {.per = pers[pick(k, 5)], .after = 1 + (int64_t)pick(k, 4)};
    rate.messages = pick(k, 4) ? 1 : 2;
    rate.within_ms = within_ms[pick(k, 6)];
    if (pick(k, 4) == 0) {
        rate.after = rate.within_ms = MULL__OFF;
        rate.ratio = ratios[pick(k, 3)];
        rate.window_ms = windows_ms[pick(k, 3)];
        rate.least = 1 + (int64_t)pick(k, 4);
    }
    draw_types(k, &rate);
    rate.wait_ms = waits_ms[pick(k, 4)];
    rate.max_wait_ms = rate.wait_ms * longer[pick(k, 4)];
    rate.hint = pick(k, 5) ? NULL : "code";
    rate.successes = pick(k, 2) ? 1 : 1 + (int64_t)pick(k, 3);
    rate.keep = pick(k, 2) != 0;
    rate.ramp_ms = ramps_ms[pick(k, 6)];
    return rate;
}

static mull__call_limit draw_call_limit(sketch *k)
{
    static const int64_t counts[] = {2, 20, 5000, 30, 240},
                         units_ms[] = {1000, 1000, 1000, 60000, 3600000};
    uint64_t at = pick(k, 5);
    return (mull__call_limit){.per = pers[pick(k, 5)],
                              .count = counts[at],
                              .unit_ms = units_ms[at],
                              .burst = pick(k, 2) ? 1 : 1 + (int64_t)pick(k, 5)};
}

/* statements is how many a scope has, 0: it says that there are none; -1: it says nothing. */
static int statements(sketch *k, uint64_t some_of, uint64_t of)
{
    uint64_t fate = pick(k, of);
    return fate >= some_of + 1 ? -1 : fate == 0 ? 0 : 1 + (int)pick(k, STATEMENTS_MAX);
}

static void draw_limits(sketch *k, size_t scope)
{
    mull__plain_settings *settings = &k->scopes[scope].settings;
    int rates = statements(k, 4, 8), calls = statements(k, 2, 8);
    mull__rate_limit *rate = k->rate_limits[scope];
    mull__call_limit *call = k->call_limits[scope];
    for (int i = 0; i < STATEMENTS_MAX; i++) {
        rate[i] = draw_rate_limit(k);
        call[i] = draw_call_limit(k);
        rate[i].place = call[i].place = (mull__source_pos){"policy.lua", 100 + (int)scope};
    }
    if (rates == 2 && rate[0].per.kind == rate[1].per.kind)
        rates = 1; /* a later one of the same `per` replaces */
    if (calls == 2 && call[0].per.kind == call[1].per.kind)
        calls = 1;
    settings->rate_limits_set = rates >= 0;
    settings->limits_set = calls >= 0;
    settings->rate_limit = (mull__setting_rate_limits){rate, rates > 0 ? (size_t)rates : 0};
    settings->limit = (mull__setting_call_limits){call, calls > 0 ? (size_t)calls : 0};
}

static void draw_deadline(sketch *k, mull__plain_settings *settings)
{
    static const int64_t deadlines_ms[] = {MULL__OFF, 0, 300, 2000, 10000, 60000};
    settings->has_deadline = pick(k, 4) == 0;
    settings->deadline_ms = settings->has_deadline ? deadlines_ms[pick(k, 6)] : 0;
}

/* set_limits: some policies have none at all. */
static void set_limits(sketch *k, uint64_t number)
{
    const uint64_t words[] = {number, 1};
    mull__rand_init(&k->chance, mull__hash_words(words, 2) | 1);
    if (pick(k, 3) == 0)
        return;
    for (size_t i = 0; i < k->plain.scope_count; i++) {
        draw_limits(k, i);
        draw_deadline(k, &k->scopes[i].settings);
    }
}

static const mull__type_parent parents[] = {
    {"Type1", "Type0"}, {"Type2", "Type1"}, {"Type4", "Type3"}, {"HandlerTimeoutError", "Type3"}};

static void sketch_rules(sketch *k, uint64_t number)
{
    static const char *const consumers[] = {"c0", "c1", "c2", "c3"};
    memset(k, 0, sizeof *k);
    mull__rand_init(&k->chance, number * 2 + 1);
    k->plain.scopes = k->scopes;
    if (number == 0)
        return;
    k->plain.parents = parents;
    k->plain.parent_count = pick(k, 5);
    if (pick(k, 2))
        draw_scope(k, MULL__CONSUMER, consumers[pick(k, 4)]);
    if (pick(k, 3) == 0)
        draw_scope(k, MULL__TRANSPORT, pick(k, 2) ? "t1" : "t0");
    if (pick(k, 4))
        draw_scope(k, MULL__BUS, NULL);
    if (pick(k, 3) == 0 || k->unlimited)
        draw_scope(k, MULL__HOST, NULL);
    set_notifies(k, number);
    set_overrides(k, number);
    if (!k->unlimited)
        return;
    /* The language asks for a bound where redeliveries have no other. */
    for (size_t i = 0; i < k->plain.scope_count; i++)
        k->scopes[i].settings.has_max_age = 0;
    mull__plain_settings *host = &k->scopes[k->plain.scope_count - 1].settings;
    host->has_max_age = 1;
    host->max_age_ms = (int64_t)pick(k, 30000);
}

static void sketch_policy(sketch *k, uint64_t number)
{
    sketch_rules(k, number);
    set_limits(k, number);
}

/* ---- The guest ------------------------------------------------------------------------------- */

void policy_text(char text[40], uint64_t number, int broken)
{
    snprintf(text, 40, "%s%" PRIu64, broken ? "!" : "", number);
}

static void name_of(uint64_t number, char name[33])
{
    const uint64_t words[] = {number};
    snprintf(name, 33, "%016" PRIx64 "%016" PRIx64, mull__hash_words(words, 1), number);
}

typedef struct source {
    uint64_t number;
} source;

/* state is what functions are called in. What an override says stands in it until the next call. */
typedef struct state {
    uint64_t number;
    char words[WORDS];
} state;

static int compile(const mull_allocator *allocator, uint64_t number, mull__table **table)
{
    sketch k;
    sketch_policy(&k, number);
    return mull__table_new(table, allocator, &k.plain);
}

static int guest_compile(void *data, mull__load *load)
{
    sim *s = data;
    char number[40] = "";
    memcpy(number, load->text, load->text_size < 39 ? load->text_size : 39);
    if (number[0] == '!')
        return MULL_EPOLICY;
    mull_allocator allocator = counting_allocator_ops(&s->counting_allocator);
    source *made = mull__alloc(&allocator, sizeof *made);
    if (!made)
        return MULL_ENOMEM;
    made->number = strtoull(number, NULL, 10);
    load->source = made;
    name_of(made->number, load->name);
    int status = compile(&allocator, made->number, &load->table);
    if (status != 0)
        mull__free(&allocator, made);
    return status;
}

static void guest_source_free(void *data, void *kept)
{
    mull_allocator allocator = counting_allocator_ops(&((sim *)data)->counting_allocator);
    mull__free(&allocator, kept);
}

/* A state is of one generation, and says so when its functions are asked. */
static int guest_state_new(void *data, void *kept, const char *digest, mull__report *report,
                           void **made)
{
    (void)digest, (void)report;
    mull_allocator allocator = counting_allocator_ops(&((sim *)data)->counting_allocator);
    state *fresh = mull__alloc(&allocator, sizeof *fresh);
    if (!fresh)
        return MULL_ENOMEM;
    *fresh = (state){.number = ((source *)kept)->number};
    *made = fresh;
    return 0;
}

static void guest_state_free(void *data, void *kept)
{
    guest_source_free(data, kept);
}

/* guest_match passes, fails or raises by what the failure is, and by whose function it is. */
static int guest_match(void *data, uint32_t function, const mull_failure *failure, int64_t *steps,
                       char *why, size_t why_size)
{
    state *at = data;
    (void)steps;
    memset(at->words, 0, sizeof at->words);
    const uint64_t words[] = {at->number, function, mull__hash_text(failure->error->type),
                              (uint64_t)failure->attempt, (uint64_t)failure->redeliveries};
    uint64_t fate = mull__hash_words(words, sizeof words / sizeof *words) % 8;
    if (fate == 0) {
        snprintf(why, why_size, "as the seed wants it");
        return MULL_EPOLICY;
    }
    return fate % 2 != 0;
}

/* An override lets a message be called again so often; from then on it answers for its end. */
enum { OVERRIDDEN_CALLS = 12 };

static mull__answer answer_for(const state *at, uint64_t fate, int64_t calls)
{
    static const int64_t delays_ms[] = {0, 3, 400, 30000};
    static const mull_action actions[] = {MULL_RETRY, MULL_REDELIVER, MULL_DEAD_LETTER,
                                          MULL_DISCARD};
    mull__answer answer = {.given = 1,
                           .action = actions[fate % 4 | (calls < OVERRIDDEN_CALLS ? 0 : 2)]};
    const char *words = fate / 4 % 4 ? at->words : NULL;
    answer.delay_ms = answer.action < MULL_DEAD_LETTER ? delays_ms[fate / 16 % 4] : 0;
    answer.queue = answer.action == MULL_DEAD_LETTER ? words : NULL;
    answer.note = answer.action == MULL_DISCARD ? words : NULL;
    return answer;
}

/* guest_override raises, says nothing, or answers, by what the failure is; sometimes with the queue
 * that the message came from, which can't be obeyed. */
static int guest_override(void *data, uint32_t function, const mull_failure *failure,
                          const mull_verdict *verdict, const mull__config *config,
                          mull__answer *answer, char *why, size_t why_size)
{
    static const char *const queues[] = {"error", "parked", "late"};
    state *at = data;
    memset(at->words, 0, sizeof at->words);
    const uint64_t words[] = {at->number,
                              function,
                              mull__hash_text(failure->error->type),
                              (uint64_t)failure->calls,
                              (uint64_t)verdict->action,
                              mull__hash_text(config->dead_letter_queue)};
    uint64_t fate = mull__hash_words(words, sizeof words / sizeof *words);
    uint64_t kind = fate >> 32 & 7;
    if (kind == 0) {
        snprintf(why, why_size, "as the seed wants it");
        return MULL_EPOLICY;
    }
    if (kind < 4)
        return 0;
    snprintf(at->words, sizeof at->words, "%s",
             fate >> 40 & 7 ? queues[fate >> 48 & 1 ? 2 : fate >> 49 & 1]
                            : failure->message->queue);
    *answer = answer_for(at, fate, failure->calls);
    return 0;
}

/* guest_notify fails by what it is told of. */
static int guest_notify(void *data, uint32_t function, const mull_event *heard, int64_t *steps,
                        char *why, size_t why_size)
{
    state *at = data;
    (void)steps;
    memset(at->words, 0, sizeof at->words);
    uint64_t number = at->number;
    if (!heard->failure)
        return 0;
    const uint64_t words[] = {number, function, (uint64_t)heard->failure->calls};
    int fails = mull__hash_words(words, sizeof words / sizeof *words) % 8 == 0;
    if (fails)
        snprintf(why, why_size, "as the seed wants it");
    model_heard(number, heard, fails);
    return fails ? MULL_EPOLICY : 0;
}

static void guest_data_free(void *data)
{
    (void)data;
}

const mull__language_ops sim_guest = {
    .compile = guest_compile,
    .source_free = guest_source_free,
    .state_new = guest_state_new,
    .state_free = guest_state_free,
    .match = guest_match,
    .override = guest_override,
    .notify = guest_notify,
    .data_free = guest_data_free,
};

/* ---- The model's own ------------------------------------------------------------------------- */

const generation *generation_of(sim *s, uint64_t number)
{
    for (mull__link *at = mull__list_first(&s->generations); at;
         at = mull__list_after(&s->generations, at))
        if (MULL__ENTRY(at, generation, link)->number == number)
            return MULL__ENTRY(at, generation, link);
    generation *g = keep(s, sizeof *g);
    mull_allocator allocator = counting_allocator_ops(&s->table_allocator);
    g->number = number;
    if (compile(&allocator, number, &g->table) != 0)
        violation(s, "there is no table");
    name_of(number, g->name);
    mull__list_push(&s->generations, &g->link);
    return g;
}

void generations_free(sim *s)
{
    for (mull__link *at; (at = mull__list_pop(&s->generations));)
        mull__table_free(MULL__ENTRY(at, generation, link)->table);
}

static void count_matcher(void *data, const mull_failure *failure, const mull_rule *rule,
                          const char *why)
{
    (void)failure, (void)rule, (void)why;
    ((judgement *)data)->matchers_failed++;
}

static void count_override(void *data, const mull_failure *failure, const mull_verdict *verdict,
                           const char *why)
{
    (void)failure, (void)verdict, (void)why;
    ((judgement *)data)->override_failed = 1;
}

void generation_judge(const generation *g, const mull_failure *failure, judgement *made)
{
    uint64_t seen[64];
    state own = {.number = g->number};
    mull__runner runner = {.match = guest_match,
                           .override = guest_override,
                           .state = &own,
                           .failed = count_matcher,
                           .override_failed = count_override,
                           .data = made};
    if (mull__table_scratch_words(g->table) > sizeof seen / sizeof *seen)
        abort();
    memset(made, 0, sizeof *made);
    mull_verdict *verdict = &made->verdict;
    verdict->size = sizeof *verdict;
    mull__evaluate(g->table, failure, &runner, seen, verdict);
    verdict->generation = g->name;
    memcpy(made->words, own.words, sizeof own.words);
    if (verdict->queue == own.words)
        verdict->queue = made->words;
    if (verdict->note == own.words)
        verdict->note = made->words;
}
