/* lint_unused.c: options of a chain that make no difference. A plain tier has its defaults filled
 * in, so an option counts as named where it isn't what it would be without. */
#include "lint_internal.h"
#include "policy/resolve.h"

typedef struct defaults {
    int64_t base_ms, max_delay_ms;
    double jitter;
} defaults;

static const defaults of_retry = {200, 30 * 1000, 0.25},
                      of_redeliver = {300 * 1000, 3600 * 1000, 0.25};

/* longest_ms is the longest wait of a tier, as if it had no cap. */
static int64_t longest_ms(const mull__tier_config *tier)
{
    mull__tier_config uncapped = *tier;
    uncapped.max_delay_ms = MULL__NO_CAP;
    return mull__longest_step_ms(&uncapped);
}

static int waits_for_nothing(const mull__tier_config *tier)
{
    return !tier->hint && longest_ms(tier) == 0;
}

static int names_jitter(const mull__tier_config *tier, const defaults *d)
{
    return tier->jitter_kind != MULL__JITTER_FRACTION ||
           (tier->jitter != 0 && (tier->delays || tier->jitter != d->jitter));
}

/* caps_nothing: no delay reaches the cap, nor that which would be there without it. A hint may be
 * as long as it likes, a cap of 365 days says that there is to be none, and redeliver() without
 * arguments is a list with the usual cap. */
static int caps_nothing(const mull__tier_config *tier, const defaults *d)
{
    int64_t cap_ms = tier->max_delay_ms, usual_ms = tier->delays ? INT64_MAX : d->max_delay_ms;
    if (cap_ms == MULL__NO_CAP || cap_ms == d->max_delay_ms || cap_ms == MULL__DELAY_MAX_MS ||
        tier->hint)
        return 0;
    return longest_ms(tier) <= mull__smaller(cap_ms, usual_ms);
}

static int grows_nothing(const mull__tier_config *tier)
{
    return tier->backoff == MULL__EXPONENTIAL && !tier->delays && tier->factor != 2 &&
           (tier->attempts == 1 || tier->base_ms == 0);
}

/* is_cut: the first delay is over the cap already, and each is as long as that. Whoever names a cap
 * alone means the usual delays to be cut. */
static int is_cut(const mull__tier_config *tier, const defaults *d)
{
    return !tier->delays && tier->base_ms > tier->max_delay_ms && tier->base_ms != d->base_ms;
}

static void look_at_tier(const mull__lint_context *f, const mull__rule *rule,
                         const mull__tier_config *tier, const defaults *d)
{
    mull__finding finding = {.word = NULL};
    if (tier->attempts == 0)
        return;
    if (names_jitter(tier, d) && waits_for_nothing(tier))
        finding.word = "jitter";
    else if (is_cut(tier, d))
        finding =
            (mull__finding){.word = "delay", .number = tier->base_ms, .limit = tier->max_delay_ms};
    else if (caps_nothing(tier, d))
        finding.word = "max_delay";
    else if (grows_nothing(tier))
        finding.word = "factor";
    if (finding.word)
        mull__lint_report(f, rule, finding);
}

/* A chain of retry(0) alone is how one says that nothing is to happen, and then what. */
void mull__lint_no_effect(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__rule *rule = item->rule;
    const mull__tier_config *retry = &rule->retry, *redeliver = &rule->redeliver;
    const char *word = NULL;
    if (redeliver->on && redeliver->attempts == 0)
        word = retry->on ? "then_redeliver(0)" : "redeliver(0)";
    else if (retry->on && retry->attempts == 0 && redeliver->on)
        word = "retry(0)";
    if (word)
        mull__lint_report(f, rule, (mull__finding){.word = word});
    look_at_tier(f, rule, retry, &of_retry);
    look_at_tier(f, rule, redeliver, &of_redeliver);
}

/* ---- max_age --------------------------------------------------------------------------------- */

/* reach is what the max_age of a scope comes to, over all that it may hold for. */
typedef struct reach {
    mull__lint_context *finder;
    const mull__scope *setter;
    int used;
} reach;

/* needs_age: a redelivery, or whatever an override answers, may come in a effective settings where
 * the setter's max_age holds. */
static int needs_age(void *data, const mull__effective_settings *effective)
{
    enum { RULE_NS = 2 };
    reach *r = data;
    const mull__scope *scope = effective->rules;
    int needed = effective->settings.override > 0;
    if (mull__scope_that_sets(r->finder->table, effective, MULL__MAX_AGE) != r->setter)
        return 0;
    r->used = 1;
    for (size_t i = 0; scope && !needed && i < mull__scope_rules(scope); i++) {
        r->finder->effort -= RULE_NS;
        needed = mull__rule_at(scope, i)->redeliver.attempts != 0;
    }
    return needed;
}

/* mull__lint_nothing_redelivered: wherever the scope's max_age holds, nothing is redelivered. */
void mull__lint_nothing_redelivered(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *setter = item->scope;
    const mull__source_pos *place = &setter->places[MULL__MAX_AGE];
    reach r = {.finder = f, .setter = setter};
    const mull__layer_visitor all = {
        .table = f->table, .scope = setter, .effort = &f->effort, .look = needs_age, .data = &r};
    if (!mull__is_set(&setter->settings, MULL__MAX_AGE) || setter->settings.max_age_ms < 0)
        return;
    int needed = mull__each_layer(&all);
    if (!needed && f->effort <= 0)
        mull__stop(f, "max_age", place->file, place->line);
    else if (!needed && r.used)
        mull__lint_report(
            f, NULL,
            (mull__finding){.file = place->file, .line = place->line, .scope = setter->label});
}
