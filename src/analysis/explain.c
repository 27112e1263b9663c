/* explain.c: see explain.h. */
#include "explain.h"

#include "bounds.h"
#include "policy/field_match.h"
#include "policy/resolve.h"

#include <string.h>

/* take gives zeroed memory that lives as long as the explanation. NULL: MULL_ENOMEM. */
static void *take(mull__explanation *out, size_t count, size_t bytes)
{
    void *memory = mull__arena_zalloc(&out->arena, count, bytes);
    if (!memory)
        out->status = MULL_ENOMEM;
    return memory;
}

/* keep copies a text that goes with the call in which it was heard. */
static const char *keep(mull__explanation *out, const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    char *kept = text ? take(out, bytes, 1) : NULL;
    return kept ? memcpy(kept, text, bytes) : NULL;
}

/* hold keeps the words of a verdict that may be an override's. */
static void hold(mull__explanation *out, mull_verdict *verdict)
{
    if (!out->is_overridden)
        return;
    verdict->queue = keep(out, verdict->queue);
    verdict->note = keep(out, verdict->note);
}

/* ---- Candidates ------------------------------------------------------------------------------ */

/* on_tried keeps a candidate; there is room up to the next power of two. */
static void on_tried(void *data, const mull__match_attempt *trial)
{
    mull__explanation *out = data;
    size_t count = out->candidate_count;
    if ((count & (count - 1)) == 0) {
        mull__candidate *grown = take(out, count ? 2 * count : 1, sizeof *grown);
        if (!grown)
            return;
        if (count)
            memcpy(grown, out->candidates, count * sizeof *grown);
        out->candidates = grown;
    }
    mull__candidate *added = &out->candidates[out->candidate_count++];
    *added = (mull__candidate){.trial = *trial, .error = out->failure->error};
    added->trial.why = keep(out, trial->why);
    for (unsigned depth = trial->depth; depth > 0; depth--)
        added->error = added->error->cause;
    mull_value room;
    const mull_value *given =
        trial->test ? mull__attribute_of(trial->test, out->failure, added->error, &room) : NULL;
    if (given)
        added->given = *given;
}

static void on_override_failed(void *data, const mull_failure *failure, const mull_verdict *verdict,
                               const char *why)
{
    mull__explanation *out = data;
    (void)failure;
    (void)verdict;
    out->override_failed = keep(out, why);
}

/* ---- The verdict ----------------------------------------------------------------------------- */

/* decide finds the verdict that the override, which isn't asked, would be told of; then the one
 * that counts. */
static void decide(mull__explanation *out, const mull__table *table, const mull_failure *failure,
                   const mull__runner *asked, uint64_t *seen)
{
    mull__runner runner = {
        .match = asked->match, .state = asked->state, .data = out, .tried = on_tried};
    mull__evaluate(table, failure, &runner, seen, &out->by_rules);
    out->verdict = out->by_rules;
    const mull__settings effective =
        mull__effective_settings_of(table, failure->consumer, failure->transport).settings;
    out->is_overridden = effective.override != MULL__OFF;
    if (!out->is_overridden)
        return;
    runner.tried = NULL;
    runner.override = asked->override;
    runner.override_failed = on_override_failed;
    mull__evaluate(table, failure, &runner, seen, &out->verdict);
    hold(out, &out->verdict);
}

/* ---- Strips ---------------------------------------------------------------------------------- */

/* add_step: behind its first steps a strip keeps up to twice its last ones, in one array. */
static void add_step(mull__explanation *out, mull__timeline_part *strip, const mull__step *step)
{
    enum { FIRST = MULL__TIMELINE_FIRST, LAST = MULL__TIMELINE_LAST };
    if (!strip->first)
        strip->first = take(out, FIRST + 2 * LAST, sizeof *step);
    if (!strip->first)
        return;
    if (strip->kept == FIRST + 2 * LAST) {
        memmove(&strip->first[FIRST], &strip->first[FIRST + LAST], LAST * sizeof *step);
        strip->kept -= LAST;
    }
    strip->first[strip->kept++] = *step;
    strip->count++;
    strip->first_count = strip->kept < FIRST ? strip->kept : FIRST;
    size_t behind = strip->kept - strip->first_count;
    strip->last_count = behind < LAST ? behind : LAST;
    strip->last = &strip->first[strip->kept - strip->last_count];
}

/* ---- Walks ----------------------------------------------------------------------------------- */

/* walk is one message on its way, whose every call fails. */
typedef struct walk {
    mull__explanation *out;
    const mull__table *table;
    const mull__runner *runner;
    uint64_t *seen;
    mull_failure failure; /* as of the call that failed last */
    mull_verdict verdict;
    int64_t at_ms;
    int64_t calls;             /* looked at */
    const struct poll *asking; /* begins anew where the walks part */
    int has_ended;
} walk;

/* poll is the state of a runner that counts what it asks of another's functions, and the tests of
 * all matchers that are tried; a name that an override is given counts as NAME_TESTS. */
typedef struct poll {
    const mull__runner *asked;
    int64_t questions, tests;
    int64_t text; /* what the error's texts make a test of them count for */
} poll;

enum { NAME_TESTS = 4 };

static int ask_match(void *state, uint32_t function, const mull_failure *failure, int64_t *steps,
                     char *why, size_t why_size)
{
    poll *p = state;
    p->questions++;
    return p->asked->match(p->asked->state, function, failure, steps, why, why_size);
}

static int ask_override(void *state, uint32_t function, const mull_failure *failure,
                        const mull_verdict *verdict, const mull__config *config,
                        mull__answer *answer, char *why, size_t why_size)
{
    poll *p = state;
    p->questions++;
    p->tests += NAME_TESTS * (int64_t)config->unrecoverable_count;
    return p->asked->override(p->asked->state, function, failure, verdict, config, answer, why,
                              why_size);
}

/* ---- What trials take ------------------------------------------------------------------------ */

/* So much of what else takes time counts as one test. */
enum { LITERALS = 4, STEPS = 4, TEXT_BYTES = 256 };

static int64_t text_of(const mull_error *error)
{
    size_t bytes = strlen(error->message ? error->message : "");
    bytes += strlen(error->stack ? error->stack : "");
    for (const mull_field *field = error->fields; field < mull__fields_end(error); field++)
        if (field->value.kind == MULL_STRING)
            bytes += strlen(field->value.as.string);
    return (int64_t)(bytes / TEXT_BYTES);
}

static int64_t tests_in(const mull__matcher *matcher, int64_t text)
{
    int64_t tests = 1 + (int64_t)matcher->test_count;
    for (size_t i = 0; i < matcher->test_count; i++) {
        const mull__condition *value = &matcher->tests[i].value;
        while (value->kind == MULL__NOT)
            value = value->inner;
        if (value->kind == MULL__CONTAINS || value->kind == MULL__MATCHES)
            tests += text;
        tests += (int64_t)value->literal_count / LITERALS;
    }
    for (size_t i = 0; i < matcher->part_count; i++)
        tests += tests_in(&matcher->parts[i], text);
    return tests;
}

static void count_tests(void *data, const mull__match_attempt *trial)
{
    poll *p = data;
    p->tests += tests_in(trial->matcher, p->text) + trial->steps / STEPS;
}

/* ---- Steps of a walk ------------------------------------------------------------------------- */

static void judge(walk *w)
{
    mull__evaluate(w->table, &w->failure, w->runner, w->seen, &w->verdict);
    w->calls++;
    w->has_ended = w->verdict.action != MULL_RETRY && w->verdict.action != MULL_REDELIVER;
    if (w->has_ended)
        hold(w->out, &w->verdict);
}

/* go_on comes to the next call. A redelivery is a copy that nobody was handed before. */
static void go_on(walk *w)
{
    mull_failure *failure = &w->failure;
    int is_retry = w->verdict.action == MULL_RETRY;
    w->at_ms = mull__later(w->at_ms, w->verdict.delay_ms);
    failure->age_ms = mull__later(failure->age_ms, w->verdict.delay_ms);
    failure->calls = mull__later(failure->calls, 1);
    failure->attempt = is_retry ? mull__later(failure->attempt, 1) : 1;
    failure->redeliveries = mull__later(failure->redeliveries, !is_retry);
    failure->deliveries = is_retry ? failure->deliveries : 1;
    judge(w);
}

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* alike: the two differ in nothing but their delays. Rules are the table's. */
static int alike(const mull_verdict *a, const mull_verdict *b)
{
    return a->action == b->action && a->reason == b->reason && a->tier == b->tier &&
           a->fallback == b->fallback && a->step == b->step && a->of == b->of &&
           a->rule.file == b->rule.file && a->rule.line == b->rule.line &&
           a->rule.scope == b->rule.scope && a->rule.type == b->rule.type &&
           same_text(a->queue, b->queue) && same_text(a->note, b->note);
}

/* is_over: it has ended, or is cut. */
static int is_over(const walk *w)
{
    return w->has_ended || w->calls >= MULL__CALLS_MAX ||
           w->asking->questions >= MULL__FUNCTION_CALLS_MAX ||
           w->asking->tests >= MULL__TESTS_MAX || w->out->status != MULL_OK;
}

/* go_together walks while both decide alike, which may be one and the same; 0: they have parted. */
static int go_together(walk *low, walk *high, mull__timeline_part *strip)
{
    while (alike(&low->verdict, &high->verdict)) {
        add_step(low->out, strip,
                 &(mull__step){
                     .at_ms = {low->at_ms, high->at_ms},
                     .attempt = low->failure.attempt,
                     .redeliveries = low->failure.redeliveries,
                     .calls = low->failure.calls,
                     .delay_ms = {low->verdict.delay_ms, high->verdict.delay_ms},
                     .verdict = low->verdict,
                 });
        if (is_over(low)) {
            low->out->is_cut |= !low->has_ended;
            return 1;
        }
        go_on(low);
        if (high != low)
            go_on(high);
    }
    return 0;
}

static void walk_to_the_end(mull__explanation *out, const mull__table *table,
                            const mull_failure *failure, const mull__runner *asked, uint64_t *seen)
{
    poll asking = {.asked = asked, .text = text_of(failure->error)};
    const mull__runner runner = {.match = ask_match,
                                 .override = asked->override ? ask_override : NULL,
                                 .state = &asking,
                                 .tried = count_tests,
                                 .data = &asking};
    walk chain_set[MULL__ENDS], *low = &chain_set[MULL__LOW], *high = &chain_set[MULL__HIGH];
    for (int end = 0; end < MULL__ENDS; end++) {
        walk *w = &chain_set[end];
        *w = (walk){out, table, &runner, seen, *failure, .asking = &asking};
        w->failure.flags |= end == MULL__LOW ? MULL__JITTER_LOW : MULL__JITTER_HIGH;
        judge(w);
    }
    if (go_together(low, high, &out->both))
        return;
    for (int end = 0; end < MULL__ENDS; end++) {
        asking.questions = asking.tests = 0;
        go_together(&chain_set[end], &chain_set[end], &out->alone[end]);
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

int mull__explain(mull__explanation *out, const mull_allocator *allocator, const mull__table *table,
                  const mull_failure *failure, const mull__runner *runner, uint64_t *seen)
{
    *out = (mull__explanation){.arena.allocator = *allocator, .failure = failure};
    decide(out, table, failure, runner, seen);
    if (out->status == MULL_OK)
        walk_to_the_end(out, table, failure, runner, seen);
    return out->status;
}

void mull__explanation_drop(mull__explanation *explanation)
{
    mull__arena_free(&explanation->arena);
}
