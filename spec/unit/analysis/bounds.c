/* bounds.c: the bounds of walks hold, and are the least that do. Beside them stands a
 * search: it asks mull__evaluate about every failure that a message of a small policy can come to,
 * and keeps every age, to the millisecond, in which it can. Larger policies are walked at random.
 *
 * MULL_BOUNDS says how many policies are tried, MULL_SEED which. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/bounds_paths.h"
#include "base/rand.h"
#include "fixtures.h"

/* ---- Policies -------------------------------------------------------------------------------- */

enum { MOST_COURSES = 4, MOST_DELAYS = 4 };

/* sketch is a policy of a few chains, each a rule for a type of its own: T0, T1, ... */
typedef struct sketch {
    mull__plain_rule rules[MOST_COURSES];
    int64_t delays[2 * MOST_COURSES][MOST_DELAYS];
    size_t count;
    mull__plain_settings settings;
    int64_t handler_ms;
} sketch;

static const char *const type_names[MOST_COURSES] = {"T0", "T1", "T2", "T3"};

static mull__rand chance;

static int64_t below(int64_t n)
{
    return (int64_t)(mull__rand_next(&chance) % (uint64_t)n);
}

/* scale is how large the numbers of a policy are. */
typedef struct scale {
    int64_t attempts, delay_ms, age_ms, calls, handler_ms;
    int decorrelated;
} scale;

static const scale small = {
    .attempts = 3, .delay_ms = 12, .age_ms = 60, .calls = 14, .handler_ms = 9};

static mull__tier_config random_tier(const scale *s, int64_t *delays, int redeliver)
{
    mull__tier_config tier = {.on = 1, .attempts = below(s->attempts + 1), .factor = 1};
    tier.backoff = (mull__backoff)below(3);
    tier.base_ms = below(s->delay_ms + 1);
    if (tier.backoff == MULL__EXPONENTIAL)
        tier.factor = 1 + (double)below(5) / 4;
    tier.max_delay_ms = below(3) == 0 ? below(2 * s->delay_ms) : 2 * s->delay_ms;
    tier.jitter = (double)below(3) / 4;
    tier.jitter_kind = below(5) == 0 ? MULL__JITTER_FULL : MULL__JITTER_FRACTION;
    if (s->decorrelated && below(4) == 0)
        tier.jitter_kind = MULL__JITTER_DECORRELATED;
    if (below(4) == 0 && tier.jitter_kind != MULL__JITTER_DECORRELATED) {
        tier.delays = delays;
        tier.delay_count = 1 + (size_t)below(MOST_DELAYS);
        tier.attempts = (int64_t)tier.delay_count;
        for (size_t i = 0; i < tier.delay_count; i++)
            delays[i] = below(s->delay_ms + 1);
        if (below(2))
            tier.max_delay_ms = MULL__NO_CAP;
    } else if (redeliver && below(6) == 0) {
        tier.attempts = MULL_UNLIMITED;
    }
    return tier;
}

/* random_sketch sets max_age or deadline wherever something is unlimited, as the language asks for.
 */
static void random_sketch(sketch *k, const scale *s)
{
    *k = (sketch){.count = 1 + (size_t)below(MOST_COURSES),
                  .handler_ms = below(3) * below(s->handler_ms + 1)};
    int unlimited = 0;
    for (size_t i = 0; i < k->count; i++) {
        mull__plain_rule *rule = &k->rules[i];
        *rule = (mull__plain_rule)DEAD_LETTER_RULE(type_names[i], (int)i + 1);
        if (below(4) > 0)
            rule->retry = random_tier(s, k->delays[2 * i], 0);
        if (below(4) > 0)
            rule->redeliver = random_tier(s, k->delays[2 * i + 1], 1);
        unlimited |= rule->redeliver.attempts == MULL_UNLIMITED;
    }
    if (below(3) == 0)
        k->settings.max_attempts = 1 + below(s->calls);
    if (below(3) == 0) {
        k->settings.has_deadline = 1;
        k->settings.deadline_ms = below(s->age_ms + 1);
    }
    if ((unlimited && !k->settings.has_deadline) || below(3) == 0) {
        k->settings.has_max_age = 1;
        k->settings.max_age_ms = below(s->age_ms + 1);
    }
}

static mull__table *table_of(const sketch *k)
{
    mull__plain_scope bus = {
        .kind = MULL__BUS, .rules = k->rules, .rule_count = k->count, .settings = k->settings};
    return new_table(&(mull__plain){.scopes = &bus, .scope_count = 1});
}

static void show_tier(const char *name, const mull__tier_config *t)
{
    print_message("  %s: attempts %" PRId64 ", base %" PRId64
                  ", backoff %d, factor %g, cap %" PRId64 ", jitter %g, kind %d, delays",
                  name, t->attempts, t->base_ms, (int)t->backoff, t->factor, t->max_delay_ms,
                  t->jitter, (int)t->jitter_kind);
    for (size_t i = 0; i < t->delay_count; i++)
        print_message(" %" PRId64, t->delays[i]);
    print_message("\n");
}

static int64_t max_age_of(const sketch *k)
{
    return k->settings.has_max_age ? k->settings.max_age_ms : MULL__OFF;
}

static int64_t deadline_of(const sketch *k)
{
    return k->settings.has_deadline ? k->settings.deadline_ms : MULL__OFF;
}

static void show(const sketch *k)
{
    print_message("max_attempts %" PRId64 ", max_age %" PRId64 ", deadline %" PRId64
                  ", a call takes up to %" PRId64 "\n",
                  k->settings.max_attempts, max_age_of(k), deadline_of(k), k->handler_ms);
    for (size_t i = 0; i < k->count; i++) {
        print_message(" %s\n", type_names[i]);
        show_tier("retry", &k->rules[i].retry);
        show_tier("redeliver", &k->rules[i].redeliver);
    }
}

/* ---- Their bounds ---------------------------------------------------------------------------- */

static mull__chain_set walks_of(const sketch *k, mull__chain chains[MOST_COURSES])
{
    static int64_t effort;
    effort = INT64_MAX;
    for (size_t i = 0; i < k->count; i++)
        chains[i] = (mull__chain){&k->rules[i].retry, &k->rules[i].redeliver};
    return (mull__chain_set){
        .chains = chains,
        .count = k->count,
        .max_attempts = k->settings.max_attempts ? k->settings.max_attempts : MULL__OFF,
        .max_age_ms = max_age_of(k),
        .deadline_ms = deadline_of(k),
        .handler_ms = k->handler_ms,
        .effort = &effort,
    };
}

static mull__range extent_of(const sketch *k)
{
    mull__chain chains[MOST_COURSES];
    mull__chain_set chain_set = walks_of(k, chains);
    static counting_allocator plenty;
    mull_allocator a = counting_allocator_ops(&plenty);
    mull__range range;
    assert_int_equal(mull__range_of_paths(&range, &chain_set, &a), MULL_OK);
    assert_int_equal(atomic_load(&plenty.out), 0);
    range.last_call_ms = mull__last_call_ms(&chain_set, &range);
    return range;
}

static mull__range extent_of_first(const sketch *k)
{
    mull__chain chains[MOST_COURSES];
    mull__chain_set chain_set = walks_of(k, chains);
    chain_set.count = 1;
    mull__range range = mull__range_of_chain(&chain_set);
    range.last_call_ms = mull__last_call_ms(&chain_set, &range);
    return range;
}

static void show_extent(const char *name, mull__range e)
{
    print_message("%s: calls %" PRId64 ", shortest %" PRId64 ", longest %" PRId64
                  ", last call %" PRId64 "%s\n",
                  name, e.calls, e.shortest_ms, e.longest_ms, e.last_call_ms,
                  e.rough ? ", rough" : "");
}

static int same_extent(mull__range a, mull__range b)
{
    return a.calls == b.calls && a.shortest_ms == b.shortest_ms && a.longest_ms == b.longest_ms &&
           (a.last_call_ms == b.last_call_ms || a.longest_ms == MULL__FOREVER);
}

/* ---- The search ------------------------------------------------------------------------------ */

enum {
    AGES = 1024, /* beyond these no small policy comes */
    WORDS = AGES / 64,
    ATTEMPTS = MOST_DELAYS + 2, /* one more than the most retries, and attempts count from 1 */
    ROUNDS = 160,               /* with this many, one that gets no older never ends */
    CALLS = ROUNDS * ATTEMPTS
};

typedef struct bits {
    uint64_t word[WORDS];
} bits;

/* effective settings is every age, as a bit, by the number of calls and the attempt: of one round.
 */
typedef struct effective {
    bits at[CALLS][ATTEMPTS];
    int low, high; /* no others have calls */
} effective;

typedef struct search {
    const sketch *sketch;
    mull__table *table;
    effective *now, *next;
    mull__range range;
    int round;
    int last_begin; /* of a call */
} search;

static int any(const bits *b)
{
    uint64_t all = 0;
    for (size_t i = 0; i < WORDS; i++)
        all |= b->word[i];
    return all != 0;
}

static int has(const bits *b, int age)
{
    return b->word[age / 64] >> (age % 64) & 1;
}

/* later is each age that much later. */
static bits later(const bits *b, int64_t ms)
{
    bits moved = {0};
    int words = (int)ms / 64, bit = (int)ms % 64;
    for (int i = 0; i < WORDS; i++) {
        uint64_t low = i >= words ? b->word[i - words] : 0;
        uint64_t below_low = i > words ? b->word[i - words - 1] : 0;
        moved.word[i] = low << bit | (bit ? below_low >> (64 - bit) : 0);
    }
    return moved;
}

static void add(bits *to, const bits *more)
{
    for (int i = 0; i < WORDS; i++)
        to->word[i] |= more->word[i];
    assert_int_equal(to->word[WORDS - 1], 0); /* there is room for all ages */
}

/* older is the ages beyond one. */
static bits older(const bits *b, int64_t age)
{
    bits some = *b;
    for (int64_t i = 0; i < WORDS && i <= age / 64; i++)
        some.word[i] &= i < age / 64 || age % 64 == 63 ? 0 : UINT64_MAX << (age % 64 + 1);
    return some;
}

static int youngest(const bits *b)
{
    int age = 0;
    while (b->word[age / 64] == 0)
        age += 64;
    while (!has(b, age))
        age++;
    return age;
}

static int oldest(const bits *b)
{
    int age = AGES - 1;
    while (b->word[age / 64] == 0)
        age -= 64;
    while (!has(b, age))
        age--;
    return age;
}

static mull_verdict ask(const search *s, size_t type, int64_t attempt, int64_t calls,
                        int64_t age_ms, uint32_t flags)
{
    mull_error error = error_of(type_names[type]);
    mull_failure failure = failure_of(&error);
    failure.attempt = attempt;
    failure.redeliveries = s->round;
    failure.calls = calls;
    failure.age_ms = age_ms;
    failure.flags |= flags;
    return judge(s->table, &failure);
}

static void note_ends(search *s, int calls, const bits *ages)
{
    mull__range *e = &s->range;
    e->calls = calls > e->calls ? calls : e->calls;
    e->shortest_ms = youngest(ages) < e->shortest_ms ? youngest(ages) : e->shortest_ms;
    e->longest_ms = oldest(ages) > e->longest_ms ? oldest(ages) : e->longest_ms;
}

/* widen adds to each age those up to so much later. */
static void widen(bits *ages, int64_t left)
{
    for (int64_t wide = 1; left > 0; wide *= 2) {
        int64_t by = wide < left ? wide : left;
        bits more = later(ages, by);
        add(ages, &more);
        left -= by;
    }
}

/* move puts messages to where a verdict sends them, at each age that they may then have. */
static void move(search *s, const mull_verdict *low, const mull_verdict *high, int attempt,
                 int calls, const bits *ages)
{
    assert_int_equal(low->action, high->action);
    assert_true(calls + 1 < CALLS);
    int retry = low->action == MULL_RETRY;
    effective *to = retry ? s->now : s->next;
    to->high = calls + 1 > to->high ? calls + 1 : to->high;
    to->low = calls + 1 < to->low ? calls + 1 : to->low;
    bits then = later(ages, low->delay_ms);
    widen(&then, high->delay_ms - low->delay_ms);
    s->last_begin = oldest(&then) > s->last_begin ? oldest(&then) : s->last_begin;
    widen(&then, s->sketch->handler_ms);
    add(&to->at[calls + 1][retry ? attempt + 1 : 1], &then);
}

/* try_type takes the ages, all of them over max_age or none, in which this failure, of this type,
 * may be. What a deadline makes of it depends on the age: they are halved until all are decided
 * alike. At a single age it may end what has the longest delay alone. */
static void try_type(search *s, size_t type, int attempt, int calls, const bits *ages)
{
    if (!any(ages))
        return;
    int young = youngest(ages), old = oldest(ages);
    mull_verdict low = ask(s, type, attempt, calls, young, MULL__JITTER_LOW);
    mull_verdict high = ask(s, type, attempt, calls, old, MULL__JITTER_HIGH);
    int ends = high.action == MULL_DEAD_LETTER, goes_on = low.action != MULL_DEAD_LETTER;
    if (ends && goes_on && young < old) {
        bits second = older(ages, young + (old - young) / 2), first = *ages;
        for (int i = 0; i < WORDS; i++)
            first.word[i] &= ~second.word[i];
        try_type(s, type, attempt, calls, &first);
        try_type(s, type, attempt, calls, &second);
        return;
    }
    if (ends)
        note_ends(s, calls, ages);
    if (ends && goes_on) {
        high = low;
        high.delay_ms = s->sketch->settings.deadline_ms - old;
    }
    if (goes_on)
        move(s, &low, &high, attempt, calls, ages);
}

static void try_types(search *s, int attempt, int calls, const bits *ages)
{
    const mull__plain_settings *settings = &s->sketch->settings;
    bits old = older(ages, settings->has_max_age ? settings->max_age_ms : AGES), young = *ages;
    for (int i = 0; i < WORDS; i++)
        young.word[i] &= ~old.word[i];
    for (size_t type = 0; type < s->sketch->count; type++) {
        try_type(s, type, attempt, calls, &young);
        try_type(s, type, attempt, calls, &old);
    }
}

static void search_round(search *s)
{
    for (int calls = s->now->low; calls <= s->now->high; calls++)
        for (int attempt = 1; attempt < ATTEMPTS; attempt++) {
            bits ages = s->now->at[calls][attempt];
            if (!any(&ages))
                continue;
            try_types(s, attempt, calls, &ages);
            s->now->at[calls][attempt] = (bits){0};
        }
    s->now->high = 0;
    s->now->low = CALLS;
}

/* search_all gives what mull__range_of_paths should. */
static mull__range search_all(const sketch *k)
{
    static effective layers[2];
    memset(layers, 0, sizeof layers);
    search s = {.sketch = k, .table = table_of(k), .now = &layers[0], .next = &layers[1]};
    s.range = (mull__range){.shortest_ms = MULL__FOREVER};
    s.now->at[1][1].word[0] = 1;
    s.now->low = s.now->high = 1;
    s.next->low = CALLS;
    for (; s.now->high > 0 && s.round < ROUNDS - 1; s.round++) {
        search_round(&s);
        effective *was = s.now;
        s.now = s.next;
        s.next = was;
    }
    if (s.now->high > 0)
        s.range.calls = MULL__FOREVER;
    if (s.range.shortest_ms == MULL__FOREVER)
        s.range.longest_ms = MULL__FOREVER;
    mull__table_free(s.table);
    s.range.last_call_ms = s.last_begin;
    return s.range;
}

static long policies(long fallback)
{
    const char *given = getenv("MULL_BOUNDS");
    return given ? atol(given) : fallback;
}

static void they_are_what_a_search_finds(void **state)
{
    (void)state;
    long rough = 0, count = policies(1500);
    for (long i = 0; i < count; i++) {
        sketch k;
        random_sketch(&k, &small);
        mull__range found = search_all(&k), said = extent_of(&k);
        rough += said.rough;
        if (same_extent(found, said))
            continue;
        show(&k);
        show_extent("found", found);
        show_extent("said", said);
        fail_msg("policy %ld of seed %" PRIu64, i, chance.state);
    }
    print_message("%ld policies, %ld with rough bounds\n", count, rough);
}

/* add_twin makes the first chain the only one, and one that does the same the second: it differs
 * in what a list, or a backoff that isn't exponential, makes nothing of. A line has no deadline. */
static void add_twin(sketch *k)
{
    if (k->settings.has_deadline) {
        k->settings.max_age_ms = k->settings.deadline_ms;
        k->settings.has_max_age = 1;
        k->settings.has_deadline = 0;
    }
    k->count = 2;
    k->rules[1] = k->rules[0];
    k->rules[1].type = type_names[1];
    if (k->rules[1].retry.delays)
        k->rules[1].retry.base_ms++;
    else if (k->rules[1].retry.backoff != MULL__EXPONENTIAL)
        k->rules[1].retry.factor++;
    else if (k->rules[1].redeliver.delays)
        k->rules[1].redeliver.base_ms++;
    else if (k->rules[1].redeliver.backoff != MULL__EXPONENTIAL)
        k->rules[1].redeliver.factor++;
}

static void of_one_course_the_walks_are_a_line(void **state)
{
    (void)state;
    static const scale scales[] = {
        {.attempts = 3, .delay_ms = 12, .age_ms = 60, .calls = 14, .handler_ms = 9},
        {.attempts = 40,
         .delay_ms = 300,
         .age_ms = 20000,
         .calls = 500,
         .handler_ms = 200,
         .decorrelated = 1},
        {.attempts = 1000,
         .delay_ms = 60000,
         .age_ms = 90000000,
         .calls = 9000,
         .handler_ms = 30000},
    };
    for (long i = 0; i < policies(500); i++) {
        sketch k;
        random_sketch(&k, &scales[i % 100 < 60 ? 0 : i % 100 < 98 ? 1 : 2]);
        add_twin(&k);
        mull__range line = extent_of_first(&k), chain_set = extent_of(&k);
        if (same_extent(line, chain_set) || chain_set.rough)
            continue;
        show(&k);
        show_extent("a line", line);
        show_extent("walks", chain_set);
        fail_msg("policy %ld", i);
    }
}

/* ---- Walks at random ------------------------------------------------------------------------- */

/* walk takes one message to its end, every failure of whatever type. */
static void walk(const sketch *k, mull__table *table, mull__range bounds)
{
    search s = {.sketch = k, .table = table};
    int64_t attempt = 1, calls = 1, age_ms = 0, begun_ms = 0;
    uint32_t flags = below(3) == 0 ? MULL__JITTER_LOW : below(2) ? MULL__JITTER_HIGH : 0;
    size_t favourite = (size_t)below((int64_t)k->count);
    for (; calls < 20000; calls++) {
        size_t type = below(4) ? favourite : (size_t)below((int64_t)k->count);
        mull_verdict verdict = ask(&s, type, attempt, calls, age_ms, flags);
        if (verdict.action == MULL_DEAD_LETTER)
            break;
        begun_ms = age_ms + verdict.delay_ms;
        age_ms = begun_ms + (below(3) ? below(2) * k->handler_ms : below(k->handler_ms + 1));
        attempt = verdict.action == MULL_RETRY ? attempt + 1 : 1;
        s.round += verdict.action == MULL_REDELIVER;
    }
    if (calls <= bounds.calls && begun_ms <= bounds.last_call_ms &&
        (calls == 20000 || (age_ms >= bounds.shortest_ms && age_ms <= bounds.longest_ms)))
        return;
    show(k);
    show_extent("bounds", bounds);
    fail_msg("a walk has %" PRId64 " calls, the last after %" PRId64 " ms, and ends after %" PRId64
             " ms",
             calls, begun_ms, age_ms);
}

static void walk_policies(const scale *s, long count)
{
    for (long i = 0; i < count; i++) {
        sketch k;
        random_sketch(&k, s);
        mull__table *table = table_of(&k);
        mull__range bounds = extent_of(&k);
        for (int j = 0; j < 5; j++)
            walk(&k, table, bounds);
        mull__table_free(table);
    }
}

static void no_walk_exceeds_them(void **state)
{
    (void)state;
    static const scale large = {.attempts = 12,
                                .delay_ms = 5000,
                                .age_ms = 400000,
                                .calls = 150,
                                .handler_ms = 3000,
                                .decorrelated = 1};
    walk_policies(&large, policies(10000));
}

/* Of some of these it would take too long to find the least bounds. */
static void nor_where_they_are_rough(void **state)
{
    (void)state;
    static const scale huge = {.attempts = 1000,
                               .delay_ms = 2000,
                               .age_ms = 40000000,
                               .calls = 40000,
                               .handler_ms = 100,
                               .decorrelated = 1};
    walk_policies(&huge, policies(10000) / 500);
}

/* ---- Sets of ages ---------------------------------------------------------------------------- */

static void gaps_stay_open(void **state)
{
    (void)state;
    mull__ms_range room[3];
    mull__interval_set ages = {.at = room, .room = COUNT(room)};
    mull__interval_set_add(&ages, (mull__ms_range){0, 1});
    mull__interval_set_add(&ages, (mull__ms_range){3, 5});
    assert_int_equal(ages.count, 2);
    mull__interval_set_add(&ages, (mull__ms_range){6, 6}); /* follows without a gap */
    assert_int_equal(ages.count, 2);
    mull__interval_set_add(&ages, (mull__ms_range){100, 200});
    assert_int_equal(ages.count, 3);
    assert_false(ages.rough);
    mull__interval_set_add(&ages, (mull__ms_range){1000, 1001}); /* the least gap goes */
    assert_true(ages.rough);
    assert_int_equal(ages.count, 3);
    assert_int_equal(room[0].high_ms, 6);
    mull__interval_set_add(&ages, (mull__ms_range){7, 999});
    assert_int_equal(ages.count, 1);
    assert_int_equal(room[0].low_ms, 0);
    assert_int_equal(room[0].high_ms, 1001);
}

static void an_override_leaves_max_attempts_and_deadline(void **state)
{
    (void)state;
    mull__chain_set chain_set = {
        .max_attempts = MULL__OFF, .max_age_ms = 1, .deadline_ms = MULL__OFF, .handler_ms = 10};
    mull__range none = mull__range_overridden(&chain_set);
    assert_true(none.calls == MULL__FOREVER && none.longest_ms == MULL__FOREVER);
    chain_set.deadline_ms = 100;
    mull__range late = mull__range_overridden(&chain_set);
    assert_true(late.calls == MULL__FOREVER && late.longest_ms == 110);
    assert_int_equal(mull__last_call_ms(&chain_set, &late), 100);
    chain_set.deadline_ms = INT64_C(4) * MULL__DELAY_MAX_MS;
    chain_set.max_attempts = 3;
    mull__range three = mull__range_overridden(&chain_set);
    assert_int_equal(three.calls, 3);
    assert_int_equal(three.shortest_ms, 0);
    assert_int_equal(three.longest_ms, 2 * (MULL__DELAY_MAX_MS + 10));
    /* Jitter takes a delay of a chain beyond the longest one that an override can name. */
    const int64_t year_ms = MULL__DELAY_MAX_MS;
    const mull__tier_config tier = {.on = 1,
                                    .attempts = 1,
                                    .delays = &year_ms,
                                    .delay_count = 1,
                                    .max_delay_ms = MULL__NO_CAP,
                                    .jitter = 0.5};
    const mull__tier_config off = {.on = 0};
    const mull__chain chain = {&tier, &off};
    chain_set.chains = &chain;
    chain_set.count = 1;
    three = mull__range_overridden(&chain_set);
    assert_int_equal(three.longest_ms, 2 * (year_ms + year_ms / 2 + 10));
}

static void no_memory_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        sketch k;
        mull__chain chains[MOST_COURSES];
        random_sketch(&k, &small);
        mull__chain_set chain_set = walks_of(&k, chains);
        int status = MULL_ENOMEM;
        for (long fail_at = 1; status == MULL_ENOMEM; fail_at++) {
            counting_allocator p = {.fail_at = fail_at, .fail_for = FOR_GOOD};
            mull_allocator a = counting_allocator_ops(&p);
            mull__range range;
            status = mull__range_of_paths(&range, &chain_set, &a);
            assert_int_equal(atomic_load(&p.out), 0);
            assert_true(status == MULL_ENOMEM || atomic_load(&p.asked) < fail_at);
        }
        assert_int_equal(status, MULL_OK);
    }
}

static void seed_chance(void)
{
    const char *given = getenv("MULL_SEED");
    mull__rand_init(&chance, given ? strtoull(given, NULL, 0) : 0);
    printf("MULL_SEED=%" PRIu64 "\n", chance.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_stay_open),
        cmocka_unit_test(an_override_leaves_max_attempts_and_deadline),
        cmocka_unit_test(no_memory_is_told),
        cmocka_unit_test(they_are_what_a_search_finds),
        cmocka_unit_test(of_one_course_the_walks_are_a_line),
        cmocka_unit_test(no_walk_exceeds_them),
        cmocka_unit_test(nor_where_they_are_rough),
    };
    seed_chance();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
