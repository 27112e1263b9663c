/* explain.c: see explain.h. */
#include "explain.h"

#include "base/alloc.h"
#include "fact.h"
#include "shape.h"

#include <string.h>

/* ---- Candidates ------------------------------------------------------------------------------ */

/* hearing is what the runner's data is while the failure's own verdict is looked for. */
typedef struct hearing {
    mull__explanation *out;
    const mull_failure *failure;
} hearing;

static const mull_error *error_at(const mull_failure *failure, unsigned depth)
{
    const mull_error *error = failure->error;
    while (depth-- > 0)
        error = error->cause;
    return error;
}

/* look_up finds what the test at which a candidate lost had looked at. */
static void look_up(mull__candidate *candidate, const mull_failure *failure)
{
    if (!candidate->trial.test)
        return;
    mull_value room;
    const mull_value *given =
        mull__fact_of(candidate->trial.test, failure, candidate->error, &room);
    if (given)
        candidate->given = *given;
    candidate->is_given = given != NULL;
}

static mull__candidate *add_candidate(mull__explanation *out)
{
    if (out->candidate_count == out->candidate_room) {
        size_t room = out->candidate_room * 2 + 16;
        mull__candidate *grown =
            mull__grow(&out->allocator, out->candidates, room, sizeof *out->candidates);
        if (!grown) {
            out->status = MULL_ENOMEM;
            return NULL;
        }
        out->candidates = grown;
        out->candidate_room = room;
    }
    mull__candidate *added = &out->candidates[out->candidate_count++];
    *added = (mull__candidate){.is_given = 0};
    return added;
}

/* keep copies a text that goes with the call in which it was heard. */
static char *keep(mull__explanation *out, const char *text)
{
    char *kept = mull__strdup(&out->allocator, text);
    if (text && !kept)
        out->status = MULL_ENOMEM;
    return kept;
}

/* hold keeps the words of a verdict that may be an override's. */
static void hold(mull__explanation *out, mull_verdict *verdict, mull__words *words)
{
    if (!out->is_overridden)
        return;
    words->queue = keep(out, verdict->queue);
    words->note = keep(out, verdict->note);
    verdict->queue = words->queue;
    verdict->note = words->note;
}

static void on_tried(void *data, const mull__trial *trial)
{
    hearing *h = data;
    mull__candidate *candidate = add_candidate(h->out);
    if (!candidate)
        return;
    candidate->trial = *trial;
    candidate->why = keep(h->out, trial->why);
    candidate->trial.why = candidate->why;
    candidate->error = error_at(h->failure, trial->depth);
    look_up(candidate, h->failure);
}

static void on_override_failed(void *data, const mull_failure *failure, const mull_verdict *verdict,
                               const char *why)
{
    hearing *h = data;
    (void)failure;
    (void)verdict;
    h->out->override_failed = keep(h->out, why);
}

/* ---- The verdict ----------------------------------------------------------------------------- */

/* decide finds the verdict that the override, which isn't asked, would be told of; then the one
 * that counts. */
static void decide(mull__explanation *out, const mull__table *table, const mull_failure *failure,
                   const mull__runner *asked, uint64_t *seen)
{
    hearing h = {out, failure};
    mull__runner runner = {
        .match = asked->match, .state = asked->state, .data = &h, .tried = on_tried};
    mull__judge(table, failure, &runner, seen, &out->by_rules);
    out->verdict = out->by_rules;
    mull__in_force in_force;
    mull__table_in_force(table, failure->consumer, failure->transport, &in_force);
    out->is_overridden = in_force.override != MULL__OFF;
    if (!out->is_overridden)
        return;
    runner.tried = NULL;
    runner.override = asked->override;
    runner.override_failed = on_override_failed;
    mull__judge(table, failure, &runner, seen, &out->verdict);
    hold(out, &out->verdict, &out->words);
}

/* ---- Strips ---------------------------------------------------------------------------------- */

static mull__step *grown(mull__explanation *out, mull__step *steps, size_t count)
{
    if (count & (count - 1)) /* there is room up to the next power of two */
        return steps;
    mull__step *more = mull__grow(&out->allocator, steps, count ? count * 2 : 1, sizeof *steps);
    if (!more)
        out->status = MULL_ENOMEM;
    return more;
}

/* add_step: the end is a ring, which mend_strip puts in order. */
static void add_step(mull__explanation *out, mull__strip *strip, const mull__step *step)
{
    int at_first = strip->first_count < MULL__STRIP_FIRST;
    mull__step **steps = at_first ? &strip->first : &strip->last;
    size_t *count = at_first ? &strip->first_count : &strip->last_count;
    size_t at = *count;
    if (!at_first && *count == MULL__STRIP_LAST) {
        at = (size_t)((strip->count - MULL__STRIP_FIRST) % MULL__STRIP_LAST);
    } else {
        mull__step *more = grown(out, *steps, *count);
        if (!more)
            return;
        *steps = more;
        ++*count;
    }
    (*steps)[at] = *step;
    strip->count++;
}

static void reverse(mull__step *steps, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        mull__step step = steps[i];
        steps[i] = steps[count - 1 - i];
        steps[count - 1 - i] = step;
    }
}

static void mend_strip(mull__strip *strip)
{
    if (strip->last_count < MULL__STRIP_LAST)
        return;
    size_t oldest = (size_t)((strip->count - MULL__STRIP_FIRST) % MULL__STRIP_LAST);
    reverse(strip->last, oldest);
    reverse(strip->last + oldest, MULL__STRIP_LAST - oldest);
    reverse(strip->last, MULL__STRIP_LAST);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

/* walk is one message on its way, whose every call fails. */
typedef struct walk {
    mull__explanation *out;
    mull__words *words; /* of its end */
    const mull__table *table;
    const mull__runner *runner;
    uint64_t *seen;
    mull_failure failure; /* as of the call that failed last */
    mull_verdict verdict;
    int64_t at_ms;
    int64_t calls;            /* looked at */
    const int64_t *questions; /* asked of functions, anew where the walks part */
    int has_ended;
} walk;

/* poll is the state of a runner that counts what it asks of another's functions. */
typedef struct poll {
    const mull__runner *asked;
    int64_t questions;
} poll;

static int ask_match(void *state, uint32_t function, const mull_failure *failure, char *why,
                     size_t why_size)
{
    poll *p = state;
    p->questions++;
    return p->asked->match(p->asked->state, function, failure, why, why_size);
}

static int ask_override(void *state, uint32_t function, const mull_failure *failure,
                        const mull_verdict *verdict, const mull__config *config,
                        mull__answer *answer, char *why, size_t why_size)
{
    poll *p = state;
    p->questions++;
    return p->asked->override(p->asked->state, function, failure, verdict, config, answer, why,
                              why_size);
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void judge(walk *w)
{
    mull__judge(w->table, &w->failure, w->runner, w->seen, &w->verdict);
    w->calls++;
    w->has_ended = w->verdict.action != MULL_RETRY && w->verdict.action != MULL_REDELIVER;
    if (w->has_ended)
        hold(w->out, &w->verdict, w->words);
}

/* go_on comes to the next call. A redelivery is a copy that nobody was handed before. */
static void go_on(walk *w)
{
    mull_failure *failure = &w->failure;
    int is_retry = w->verdict.action == MULL_RETRY;
    w->at_ms = sum(w->at_ms, w->verdict.delay_ms);
    failure->age_ms = sum(failure->age_ms, w->verdict.delay_ms);
    failure->calls = sum(failure->calls, 1);
    failure->attempt = is_retry ? sum(failure->attempt, 1) : 1;
    failure->redeliveries = sum(failure->redeliveries, !is_retry);
    failure->deliveries = is_retry ? failure->deliveries : 1;
    judge(w);
}

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int same_rule(const mull_rule *a, const mull_rule *b)
{
    return same_text(a->file, b->file) && a->line == b->line && same_text(a->scope, b->scope) &&
           same_text(a->type, b->type);
}

/* alike: the two differ in nothing but their delays. */
static int alike(const mull_verdict *a, const mull_verdict *b)
{
    return a->action == b->action && a->reason == b->reason && a->tier == b->tier &&
           a->fallback == b->fallback && a->step == b->step && a->of == b->of &&
           same_rule(&a->rule, &b->rule) && same_text(a->queue, b->queue) &&
           same_text(a->note, b->note);
}

static mull__step step_of(const walk *low, const walk *high)
{
    return (mull__step){
        .at_ms = {low->at_ms, high->at_ms},
        .attempt = low->failure.attempt,
        .redeliveries = low->failure.redeliveries,
        .calls = low->failure.calls,
        .delay_ms = {low->verdict.delay_ms, high->verdict.delay_ms},
        .verdict = low->verdict,
    };
}

/* is_over: it has ended, or is cut. */
static int is_over(const walk *w)
{
    return w->has_ended || w->calls >= MULL__CALLS_MAX || *w->questions >= MULL__QUESTIONS_MAX ||
           w->out->status != MULL_OK;
}

static void go_on_alone(walk *w, mull__strip *strip)
{
    for (;;) {
        mull__step step = step_of(w, w);
        add_step(w->out, strip, &step);
        if (is_over(w))
            break;
        go_on(w);
    }
    w->out->is_cut |= !w->has_ended;
}

/* go_together walks while both decide alike; 0: they have parted. */
static int go_together(walk *low, walk *high)
{
    mull__explanation *out = low->out;
    while (alike(&low->verdict, &high->verdict)) {
        mull__step step = step_of(low, high);
        add_step(out, &out->both, &step);
        if (is_over(low)) {
            out->is_cut |= !low->has_ended;
            return 1;
        }
        go_on(low);
        go_on(high);
    }
    return 0;
}

static void walk_to_the_end(mull__explanation *out, const mull__table *table,
                            const mull_failure *failure, const mull__runner *asked, uint64_t *seen)
{
    poll asking = {.asked = asked};
    const mull__runner runner = {
        .match = ask_match, .override = asked->override ? ask_override : NULL, .state = &asking};
    walk walks[MULL__ENDS];
    for (int end = 0; end < MULL__ENDS; end++) {
        walk *w = &walks[end];
        *w = (walk){.out = out, .words = &out->ends[end], .table = table, .runner = &runner};
        w->seen = seen;
        w->questions = &asking.questions;
        w->failure = *failure;
        w->failure.flags |= end == MULL__LOW ? MULL__JITTER_LOW : MULL__JITTER_HIGH;
        judge(w);
    }
    if (!go_together(&walks[MULL__LOW], &walks[MULL__HIGH]))
        for (int end = 0; end < MULL__ENDS; end++) {
            asking.questions = 0;
            go_on_alone(&walks[end], &out->alone[end]);
        }
    mend_strip(&out->both);
    mend_strip(&out->alone[MULL__LOW]);
    mend_strip(&out->alone[MULL__HIGH]);
}

/* ---- All of it ------------------------------------------------------------------------------- */

int mull__explain(mull__explanation *out, const mull_allocator *allocator, const mull__table *table,
                  const mull_failure *failure, const mull__runner *runner, uint64_t *seen)
{
    *out = (mull__explanation){.allocator = *allocator};
    decide(out, table, failure, runner, seen);
    if (out->status == MULL_OK)
        walk_to_the_end(out, table, failure, runner, seen);
    return out->status;
}

static void free_words(const mull__explanation *explanation, const mull__words *words)
{
    mull__free(&explanation->allocator, words->queue);
    mull__free(&explanation->allocator, words->note);
}

static void free_strip(const mull__explanation *explanation, const mull__strip *strip)
{
    mull__free(&explanation->allocator, strip->first);
    mull__free(&explanation->allocator, strip->last);
}

void mull__explanation_drop(mull__explanation *explanation)
{
    const mull_allocator *a = &explanation->allocator;
    for (size_t i = 0; i < explanation->candidate_count; i++)
        mull__free(a, explanation->candidates[i].why);
    mull__free(a, explanation->candidates);
    mull__free(a, explanation->override_failed);
    free_words(explanation, &explanation->words);
    free_strip(explanation, &explanation->both);
    for (int end = 0; end < MULL__ENDS; end++) {
        free_words(explanation, &explanation->ends[end]);
        free_strip(explanation, &explanation->alone[end]);
    }
}
