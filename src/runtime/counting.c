/* counting.c: what an engine counts of its messages, for mull_engine_snapshot.
 *
 * A message whose handler succeeds costs a few increments and two readings of a clock, one of which
 * its timeout takes anyway. Only the first verdict by a rule takes memory; where there is none, the
 * rule is counted from a later verdict on. */
#include "counting.h"

#include "base/hash.h"
#include "base/utf8.h"

#include <string.h>

enum { RULES_MAX = 10000 };

/* bucket_of gives i for the times from above 4^(i-1) ms to 4^i ms. */
static unsigned bucket_of(int64_t ms)
{
    if (ms <= 1)
        return 0;
    unsigned power = (unsigned)(63 - __builtin_clzll((unsigned long long)ms - 1)) / 2 + 1;
    return power < MULL_TIME_BUCKETS ? power : MULL_TIME_BUCKETS - 1;
}

void mull__count_call(mull__delivery *d)
{
    d->consumer->tally.times[bucket_of(d->ended_ms - d->called_ms)]++;
}

void mull__copy_cut(char *to, size_t room, const char *text)
{
    enum { CHARACTER_MAX = 4 };
    size_t length = strnlen(text, room);
    if (length == room)
        for (int i = 1; i <= CHARACTER_MAX && (text[--length] & 0xC0) == 0x80; i++)
            continue;
    memcpy(to, text, length);
    to[length] = '\0';
    mull__utf8_repair(to, length);
}

void mull__count_failure(const mull__delivery *d)
{
    mull__tally *tally = &d->consumer->tally;
    mull__copy_cut(tally->error_type, sizeof tally->error_type, d->error->type);
    mull__copy_cut(tally->error_text, sizeof tally->error_text,
                   d->error->message ? d->error->message : "");
    tally->error_ms = d->failed_at_ms;
}

/* ---- By rules -------------------------------------------------------------------------------- */

/* tally_of finds a rule's, or makes it. NULL: there is no memory, or there are too many. */
static mull__rule_tally *tally_of(mull_engine *engine, const mull_rule *rule)
{
    mull__rule_tallies *rules = &engine->rules;
    size_t room = sizeof rules->buckets / sizeof *rules->buckets;
    mull__rule_tally **bucket =
        &rules->buckets[(mull__hash_text(rule->file) + (uint64_t)rule->line) % room];
    for (mull__rule_tally *tally = *bucket; tally; tally = tally->next)
        if (tally->line == rule->line && strcmp(tally->file, rule->file) == 0)
            return tally;
    size_t size = strlen(rule->file) + 1;
    mull__rule_tally *made =
        rules->count < RULES_MAX ? mull__alloc(&engine->allocator, sizeof *made + size) : NULL;
    if (!made)
        return NULL;
    *made = (mull__rule_tally){.next = *bucket, .line = rule->line};
    memcpy(made->file, rule->file, size);
    *bucket = made;
    rules->count++;
    return made;
}

void mull__rule_tallies_free(mull_engine *engine)
{
    mull__rule_tally **end = (&engine->rules.buckets)[1];
    for (mull__rule_tally **bucket = engine->rules.buckets; bucket < end; bucket++)
        while (*bucket) {
            mull__rule_tally *first = *bucket;
            *bucket = first->next;
            mull__free(&engine->allocator, first);
        }
}

void mull__count_verdict(mull__delivery *d)
{
    const mull_verdict *verdict = &d->verdict;
    mull_counts *counts = &d->engine->counts;
    uint64_t *const of_engine[] = {[MULL_RETRY] = &counts->retried,
                                   [MULL_REDELIVER] = &counts->redelivered,
                                   [MULL_DEAD_LETTER] = &counts->dead_lettered,
                                   [MULL_DISCARD] = &counts->discarded};
    mull__rule_tally *rule = verdict->rule.file ? tally_of(d->engine, &verdict->rule) : NULL;
    (*of_engine[verdict->action])++;
    d->consumer->tally.verdicts[verdict->action]++;
    if (verdict->action == MULL_DEAD_LETTER || verdict->action == MULL_DISCARD)
        d->consumer->tally.reasons[verdict->reason]++;
    if (rule)
        rule->verdicts[verdict->action]++;
}
