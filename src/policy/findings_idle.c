/* findings_idle.c: options of a chain that make no difference. A plain tier has its defaults filled
 * in, so an option counts as named where it isn't what it would be without. */
#include <string.h>

#include "findings.h"

typedef struct defaults {
    int64_t base_ms, max_delay_ms;
    double jitter;
} defaults;

static const defaults of_retry = {200, 30 * 1000, 0.25},
                      of_redeliver = {300 * 1000, 3600 * 1000, 0.25};

static void tell(const mull__finder *f, const mull__rule *rule, const char *word)
{
    mull__finding finding = mull__finding_about(MULL__NO_EFFECT, rule);
    finding.word = word;
    f->tell(f->data, &finding);
}

/* longest_ms is the longest wait of a tier, as if it had no cap. */
static int64_t longest_ms(const mull__plain_tier *tier)
{
    mull__plain_tier uncapped = *tier;
    uncapped.max_delay_ms = MULL__NO_CAP;
    const mull__course course = {&uncapped, &uncapped};
    return mull__longest_wait_ms(&course);
}

static int waits_for_nothing(const mull__plain_tier *tier)
{
    return !tier->hint && longest_ms(tier) == 0;
}

static int names_jitter(const mull__plain_tier *tier, const defaults *d)
{
    return tier->jitter_kind != MULL__JITTER_FRACTION ||
           (tier->jitter != 0 && (tier->delays || tier->jitter != d->jitter));
}

/* caps_nothing: no delay reaches the cap, nor that which would be there without it. A hint may be
 * as long as it likes, a cap of 365 days says that there is to be none, and redeliver() without
 * arguments is a list with the usual cap. */
static int caps_nothing(const mull__plain_tier *tier, const defaults *d)
{
    int64_t cap_ms = tier->max_delay_ms, usual_ms = tier->delays ? INT64_MAX : d->max_delay_ms;
    if (cap_ms == MULL__NO_CAP || cap_ms == d->max_delay_ms || cap_ms == MULL__DELAY_MAX_MS ||
        tier->hint)
        return 0;
    int64_t ms = longest_ms(tier);
    return ms <= cap_ms && ms <= usual_ms;
}

static int grows_nothing(const mull__plain_tier *tier)
{
    return tier->backoff == MULL__EXPONENTIAL && !tier->delays && tier->factor != 2 &&
           (tier->attempts == 1 || tier->base_ms == 0);
}

/* is_cut: the first delay is over the cap already, and each is as long as that. Whoever names a cap
 * alone means the usual delays to be cut. */
static int is_cut(const mull__plain_tier *tier, const defaults *d)
{
    return !tier->delays && tier->base_ms > tier->max_delay_ms && tier->base_ms != d->base_ms;
}

static void tell_cut(const mull__finder *f, const mull__rule *rule, const mull__plain_tier *tier)
{
    mull__finding finding = mull__finding_about(MULL__NO_EFFECT, rule);
    finding.word = "delay";
    finding.number = tier->base_ms;
    finding.limit = tier->max_delay_ms;
    f->tell(f->data, &finding);
}

static void look_at_tier(const mull__finder *f, const mull__rule *rule,
                         const mull__plain_tier *tier, const defaults *d)
{
    if (tier->attempts == 0)
        return;
    if (names_jitter(tier, d) && waits_for_nothing(tier))
        tell(f, rule, "jitter");
    else if (is_cut(tier, d))
        tell_cut(f, rule, tier);
    else if (caps_nothing(tier, d))
        tell(f, rule, "max_delay");
    else if (grows_nothing(tier))
        tell(f, rule, "factor");
}

/* A chain of retry(0) alone is how one says that nothing is to happen, and then what. */
static void look_at_chain(const mull__finder *f, const mull__rule *rule)
{
    if (rule->redeliver.on && rule->redeliver.attempts == 0)
        tell(f, rule, rule->retry.on ? "then_redeliver(0)" : "redeliver(0)");
    else if (rule->retry.on && rule->retry.attempts == 0 && rule->redeliver.on)
        tell(f, rule, "retry(0)");
    look_at_tier(f, rule, &rule->retry, &of_retry);
    look_at_tier(f, rule, &rule->redeliver, &of_redeliver);
}

static int redelivers(const mull__scope *scope)
{
    for (size_t i = 0; scope && i < mull__scope_rules(scope); i++)
        if (mull__rule_at(scope, i)->redeliver.attempts != 0)
            return 1;
    return 0;
}

/* ---- max_age --------------------------------------------------------------------------------- */

static void use_layer(const mull__finder *f, const mull__scope *setter, const char *consumer,
                      const char *transport, int *used, int *needed)
{
    mull__layer room;
    const mull__layer *layer = mull__layer_named(f->table, consumer, transport, &room);
    if (mull__setting_scope(f->table, layer, MULL__MAX_AGE) != setter)
        return;
    *used = 1;
    *needed |= layer->bounds.override > 0 || redelivers(layer->rules);
}

/* nothing_redelivered: wherever the scope's max_age holds, nothing is redelivered. */
static void nothing_redelivered(const mull__finder *f, const mull__scope *setter)
{
    int used = 0, needed = 0;
    for (size_t i = 0; i <= f->table->scope_count && !needed; i++) {
        const mull__scope *near = i ? &f->table->scopes[i - 1] : NULL;
        if (near && near->kind != MULL__CONSUMER)
            continue;
        for (size_t j = 0; j <= f->table->scope_count && !needed; j++) {
            const mull__scope *far = j ? &f->table->scopes[j - 1] : NULL;
            if (!far || far->kind == MULL__TRANSPORT)
                use_layer(f, setter, near ? near->name : NULL, far ? far->name : NULL, &used,
                          &needed);
        }
    }
    if (!used || needed)
        return;
    const mull__plain_place *place = &setter->places[MULL__MAX_AGE];
    mull__finding finding = {.kind = MULL__NOTHING_REDELIVERED,
                             .file = place->file,
                             .line = place->line,
                             .scope = setter->label};
    f->tell(f->data, &finding);
}

static int sets_max_age(const mull__scope *scope)
{
    return (scope->sets & 1u << MULL__MAX_AGE) && scope->layer.bounds.max_age_ms >= 0;
}

void mull__find_idle(const mull__finder *f)
{
    for (size_t i = 0; i < f->table->scope_count; i++) {
        const mull__scope *scope = &f->table->scopes[i];
        for (size_t j = 0; j < mull__scope_rules(scope); j++)
            if (mull__written_in(scope, mull__rule_at(scope, j)))
                look_at_chain(f, mull__rule_at(scope, j));
    }
    for (size_t i = 0; i < f->table->scope_count; i++)
        if (sets_max_age(&f->table->scopes[i]))
            nothing_redelivered(f, &f->table->scopes[i]);
}
