/* lint_limits.c: rules of which max_age or max_attempts lets less through than they say,
 * whatever other rules do. */
#include "base/alloc.h"
#include "lint.h"

/* shortfall is what is lost of a rule with some of the settings that its scope is used with; only
 * what is lost with each of them is told. */
typedef struct shortfall {
    size_t late, cut;   /* with so many of them: a redelivery, calls */
    int64_t redelivery; /* the first that can't come */
    int64_t max_age_ms; /* the longest of those that it is too late for */
    int64_t max_attempts;
} shortfall;

/* late_redelivery is the first that can't come, 0 where there is none or it isn't certain. */
static int64_t late_redelivery(const mull__rule *rule, const mull__mix *mix,
                               const mull__soonest *soonest)
{
    if (mix->max_age_ms == MULL__OFF || mix->overridden || !soonest->round_ms)
        return 0;
    int64_t retries_ms = soonest->attempt_ms[rule->retry.attempts + 1];
    for (int64_t done = 0; done < rule->redeliver.attempts; done++)
        if (mull__later(soonest->round_ms[done], retries_ms) > mix->max_age_ms)
            return done + 1;
    return 0;
}

/* calls_alone is how many calls a rule asks for; 0: without end. */
static int64_t calls_alone(const mull__rule *rule)
{
    int64_t redeliveries = rule->redeliver.attempts;
    return redeliveries == MULL_UNLIMITED ? 0 : (rule->retry.attempts + 1) * (redeliveries + 1);
}

/* look_with adds what is lost of a rule with some settings. */
static void look_with(shortfall *lost, const mull__rule *rule, const mull__mix *mix,
                      const mull__soonest *soonest)
{
    int64_t redelivery = late_redelivery(rule, mix, soonest);
    if (redelivery) {
        lost->late++;
        lost->redelivery = mull__greater(lost->redelivery, redelivery);
        lost->max_age_ms = mull__greater(lost->max_age_ms, mix->max_age_ms);
    }
    if (mix->max_attempts != MULL__OFF && !mix->overridden &&
        calls_alone(rule) > mix->max_attempts) {
        lost->cut++;
        lost->max_attempts = mull__greater(lost->max_attempts, mix->max_attempts);
    }
}

/* nothing_is_lost: no rule can lose anything with some settings, so not with all of them. */
static int nothing_is_lost(const mull__mixes *mixes)
{
    for (size_t i = 0; i < mixes->count; i++) {
        const mull__mix *mix = &mixes->items[i];
        if (mix->overridden || (mix->max_age_ms == MULL__OFF && mix->max_attempts == MULL__OFF))
            return 1;
    }
    return mixes->count == 0;
}

/* look_at_scope fills in what each of a scope's rules loses. */
static int look_at_scope(mull__finder *f, const mull__scope *scope, const mull__mixes *mixes,
                         shortfall *lost, mull__course *courses)
{
    const mull__fate *fates = mull__fates_in(f->fates, scope);
    size_t count = mull__courses_of(courses, f->fates, scope);
    int status = MULL_OK;
    for (size_t i = 0; i < mixes->count && count && status == MULL_OK; i++) {
        const mull__mix *mix = &mixes->items[i];
        mull__walks walks = mull__walks_of(scope, mix, courses, count, &f->effort);
        mull__soonest soonest;
        status = mull__soonest_of(&soonest, &walks, f->allocator);
        for (size_t j = 0; j < mull__scope_rules(scope) && status == MULL_OK; j++)
            if (fates[j].may_decide)
                look_with(&lost[j], mull__rule_at(scope, j), mix, &soonest);
        mull__soonest_free(&soonest, f->allocator);
    }
    return status;
}

static void tell_lost(const mull__finder *f, const mull__rule *rule, const shortfall *lost,
                      size_t mixes)
{
    if (lost->late == mixes)
        mull__found(f, rule,
                    (mull__finding){.kind = MULL__TOO_LATE,
                                    .number = lost->redelivery,
                                    .limit = lost->max_age_ms});
    if (lost->cut == mixes)
        mull__found(f, rule,
                    (mull__finding){.kind = MULL__TOO_MANY_CALLS,
                                    .number = calls_alone(rule),
                                    .limit = lost->max_attempts});
}

static int find_in(mull__finder *f, const mull__scope *scope, const mull__mixes *mixes)
{
    size_t count = mull__scope_rules(scope);
    shortfall *lost = mull__zalloc(f->allocator, count, sizeof *lost);
    mull__course *courses = mull__zalloc(f->allocator, count, sizeof *courses);
    int status = lost && courses ? look_at_scope(f, scope, mixes, lost, courses) : MULL_ENOMEM;
    for (size_t i = 0; i < count && status == MULL_OK; i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if ((lost[i].late || lost[i].cut) && mull__written_in(scope, rule) &&
            !mull__is_included(f, rule))
            tell_lost(f, rule, &lost[i], mixes->count);
    }
    mull__free(f->allocator, lost);
    mull__free(f->allocator, courses);
    return status;
}

void mull__find_limits(mull__finder *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    if (mull__scope_rules(scope) == 0)
        return;
    const mull_rule *first = &mull__rule_at(scope, 0)->source;
    mull__mixes mixes;
    f->status = mull__mixes_of(&mixes, f->table, scope, f->users, &f->effort, f->allocator);
    if (f->status == MULL_OK && !nothing_is_lost(&mixes))
        f->status = find_in(f, scope, &mixes);
    mull__mixes_free(&mixes);
    if (!mull__can_go_on(f, 0))
        mull__stop(f, "limits", first->file, first->line);
}
