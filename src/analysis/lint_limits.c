/* lint_limits.c: rules of which max_age, deadline or max_attempts lets less through than they say,
 * whatever other rules do. */
#include "base/alloc.h"
#include "lint_internal.h"

static int is_over(int64_t ms, int64_t bound_ms)
{
    return bound_ms != MULL__OFF && ms > bound_ms;
}

/* late_redelivery is the first that can't come, and the limit that it comes after; number 0 where
 * there is none or it isn't certain. max_age is held against its failure, a deadline against its
 * due time. */
static mull__finding late_redelivery(const mull__rule *rule, const mull__effective_limits *mix,
                                     const mull__earliest_times *soonest)
{
    mull__finding late = {.kind = MULL__TOO_LATE};
    if ((mix->max_age_ms == MULL__OFF && mix->deadline_ms == MULL__OFF) || !soonest->round_ms)
        return late;
    int64_t retries_ms = soonest->attempt_ms[rule->retry.attempts + 1];
    for (int64_t done = 0; done < rule->redeliver.attempts; done++) {
        int64_t failed_ms = mull__later(soonest->round_ms[done], retries_ms);
        int64_t wait_ms = mull__tier_ms_range(&rule->redeliver, done + 1).low_ms;
        int is_old = is_over(failed_ms, mix->max_age_ms);
        if (!is_old && !is_over(mull__later(failed_ms, wait_ms), mix->deadline_ms))
            continue;
        late.number = done + 1;
        late.limit = is_old ? mix->max_age_ms : mix->deadline_ms;
        late.word = is_old ? "max_age" : "deadline";
        break;
    }
    return late;
}

/* calls_alone is how many calls a rule asks for; 0: without end. */
static int64_t calls_alone(const mull__rule *rule)
{
    int64_t redeliveries = rule->redeliver.attempts;
    return redeliveries == MULL_UNLIMITED ? 0 : (rule->retry.attempts + 1) * (redeliveries + 1);
}

/* nothing_is_lost: no rule can lose anything with some settings, so not with all of them. */
static int nothing_is_lost(const mull__effective_limit_list *mixes)
{
    for (size_t i = 0; i < mixes->count; i++) {
        const mull__effective_limits *mix = &mixes->items[i];
        if (mix->overridden || (mix->max_age_ms == MULL__OFF && mix->deadline_ms == MULL__OFF &&
                                mix->max_attempts == MULL__OFF))
            return 1;
    }
    return mixes->count == 0;
}

/* tell_lost tells what is lost of a rule with each of the settings that its scope is used with: the
 * first redelivery that can't come, and calls. */
static void tell_lost(const mull__lint_context *f, const mull__rule *rule,
                      const mull__effective_limit_list *mixes, const mull__earliest_times *soonest)
{
    mull__finding late = {.kind = MULL__TOO_LATE}, cut = {.kind = MULL__TOO_MANY_CALLS};
    size_t late_count = 0, cut_count = 0;
    cut.number = calls_alone(rule);
    for (size_t i = 0; i < mixes->count; i++) {
        const mull__effective_limits *mix = &mixes->items[i];
        const mull__finding here = late_redelivery(rule, mix, &soonest[i]);
        int is_cut = mix->max_attempts != MULL__OFF && cut.number > mix->max_attempts;
        late_count += here.number > 0;
        if (here.number > late.number || (here.number == late.number && here.limit > late.limit))
            late = here;
        cut_count += (size_t)is_cut;
        cut.limit = mull__greater(cut.limit, mix->max_attempts);
    }
    if ((late_count < mixes->count && cut_count < mixes->count) || mull__is_included(f, rule))
        return;
    if (late_count == mixes->count)
        mull__lint_report(f, rule, late);
    if (cut_count == mixes->count)
        mull__lint_report(f, rule, cut);
}

static int find_in(mull__lint_context *f, const mull__scope *scope,
                   const mull__effective_limit_list *mixes)
{
    size_t rules = mull__scope_rules(scope);
    const mull__fate *fates = mull__fates_in(f->fates, scope);
    mull__earliest_times *soonest = mull__zalloc(f->allocator, mixes->count, sizeof *soonest);
    mull__chain *chains = mull__zalloc(f->allocator, rules, sizeof *chains);
    int status = soonest && chains ? MULL_OK : MULL_ENOMEM;
    size_t count = chains ? mull__chains_of(chains, f->fates, scope) : 0;
    for (size_t i = 0; i < mixes->count && count && status == MULL_OK; i++) {
        mull__chain_set chain_set =
            mull__chain_set_of(scope, &mixes->items[i], chains, count, &f->effort);
        status = mull__earliest_times_of(&soonest[i], &chain_set, f->allocator);
    }
    for (size_t i = 0; i < rules && status == MULL_OK; i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (fates[i].may_decide && mull__written_in(scope, rule))
            tell_lost(f, rule, mixes, soonest);
    }
    for (size_t i = 0; soonest && i < mixes->count; i++)
        mull__free(f->allocator, soonest[i].round_ms);
    mull__free(f->allocator, soonest);
    mull__free(f->allocator, chains);
    return status;
}

void mull__lint_limits(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *scope = item->scope;
    if (mull__scope_rules(scope) == 0)
        return;
    const mull_rule *first = &mull__rule_at(scope, 0)->source;
    mull__effective_limit_list mixes;
    f->status =
        mull__effective_limits_of(&mixes, f->table, scope, f->users, &f->effort, f->allocator);
    if (f->status == MULL_OK && !nothing_is_lost(&mixes))
        f->status = find_in(f, scope, &mixes);
    mull__effective_limits_free(&mixes);
    if (f->effort <= 0)
        mull__stop(f, "limits", first->file, first->line);
}
