/* findings_limits.c: rules of which max_age or max_attempts lets less through than they say,
 * whatever other rules do. */
#include <string.h>

#include "base/alloc.h"
#include "findings.h"

/* shortfall is what is lost of a rule: 0 where nothing is, or not for certain. */
typedef struct shortfall {
    int64_t redelivery; /* the first that can't come; 0: none */
    int64_t max_age_ms; /* the longest of those that it is too late for */
    int64_t calls, max_attempts;
} shortfall;

/* outlook is what a scope's walks come to with one mix of settings. */
typedef struct outlook {
    mull__soonest soonest;
    const mull__mix *mix;
} outlook;

static int64_t late_redelivery(const outlook *o, const mull__rule *rule)
{
    int64_t retries = rule->retry.attempts;
    if (o->mix->max_age_ms == MULL__OFF || o->mix->overridden)
        return 0;
    for (int64_t done = 0; done < rule->redeliver.attempts; done++)
        if (mull__later(o->soonest.round_ms[done], o->soonest.attempt_ms[retries + 1]) >
            o->mix->max_age_ms)
            return done + 1;
    return 0;
}

/* calls_alone is how many calls a rule asks for; 0: without end. */
static int64_t calls_alone(const mull__rule *rule)
{
    int64_t redeliveries = rule->redeliver.attempts;
    return redeliveries == MULL_UNLIMITED ? 0 : (rule->retry.attempts + 1) * (redeliveries + 1);
}

/* look adds one mix to what is known of a rule; only what is lost with each of them counts. */
static void look(shortfall *s, const outlook *o, const mull__rule *rule, int first)
{
    int64_t redelivery = late_redelivery(o, rule), most = o->mix->max_attempts;
    if (first || (redelivery && s->redelivery)) {
        s->redelivery = redelivery > s->redelivery ? redelivery : s->redelivery;
        s->max_age_ms = o->mix->max_age_ms > s->max_age_ms ? o->mix->max_age_ms : s->max_age_ms;
    } else {
        s->redelivery = 0;
    }
    int too_many = most != MULL__OFF && !o->mix->overridden && calls_alone(rule) > most;
    if (too_many && (first || s->calls)) {
        s->calls = calls_alone(rule);
        s->max_attempts = most > s->max_attempts ? most : s->max_attempts;
    } else {
        s->calls = 0;
    }
}

/* look_at_scope fills in what each of a scope's rules loses. */
static int look_at_scope(const mull__finder *f, const mull__scope *scope, shortfall *lost,
                         mull__course *courses)
{
    mull__mixes mixes;
    int status = mull__mixes_of(&mixes, f->table, scope, f->users, f->allocator);
    size_t count = mull__courses_of(courses, f->table, scope);
    for (size_t i = 0; i < mixes.count && count && status == MULL_OK; i++) {
        mull__walks walks = mull__walks_of(scope, &mixes.items[i], courses, count);
        outlook o = {.mix = &mixes.items[i]};
        status = mull__soonest_of(&o.soonest, &walks, f->allocator);
        for (size_t j = 0; j < mull__scope_rules(scope) && status == MULL_OK; j++)
            if (mull__may_decide(f->table, scope, mull__rule_at(scope, j)))
                look(&lost[j], &o, mull__rule_at(scope, j), i == 0);
        mull__soonest_free(&o.soonest, f->allocator);
    }
    mull__mixes_free(&mixes);
    return status;
}

static void tell(const mull__finder *f, mull__finding_kind kind, const mull__rule *rule,
                 int64_t number, int64_t limit)
{
    mull__finding finding = mull__finding_about(kind, rule);
    finding.number = number;
    finding.limit = limit;
    f->tell(f->data, &finding);
}

static int find_in(const mull__finder *f, const mull__scope *scope)
{
    size_t count = mull__scope_rules(scope);
    shortfall *lost = mull__zalloc(f->allocator, count, sizeof *lost);
    mull__course *courses = mull__zalloc(f->allocator, count, sizeof *courses);
    int status = lost && courses ? look_at_scope(f, scope, lost, courses) : MULL_ENOMEM;
    for (size_t i = 0; i < count && status == MULL_OK; i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (!mull__written_in(scope, rule) || (!lost[i].redelivery && !lost[i].calls) ||
            mull__is_included(f, scope, rule))
            continue;
        if (lost[i].redelivery)
            tell(f, MULL__TOO_LATE, rule, lost[i].redelivery, lost[i].max_age_ms);
        if (lost[i].calls)
            tell(f, MULL__TOO_MANY_CALLS, rule, lost[i].calls, lost[i].max_attempts);
    }
    mull__free(f->allocator, lost);
    mull__free(f->allocator, courses);
    return status;
}

int mull__find_limits(const mull__finder *f)
{
    int status = MULL_OK;
    for (size_t i = 0; i < f->table->scope_count && status == MULL_OK; i++)
        if (mull__scope_rules(&f->table->scopes[i]) > 0)
            status = find_in(f, &f->table->scopes[i]);
    return status;
}
