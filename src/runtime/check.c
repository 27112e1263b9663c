/* check.c: what an engine refuses to work with, because it never could: each finding says which
 * rule or consumer, and why. Start asks it of the policy in force, and a reload, on whatever
 * thread, of one that would take its place. So this reads only what doesn't change while nobody
 * may add or remove a consumer (mull__policy_validated), and writes nothing. */
#include "check.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "engine_state.h"
#include "events.h"
#include "policy/delay.h"
#include "policy/resolve.h"
#include "transport/transports.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* teller is who is told. */
typedef struct teller {
    mull_problem_fn problem;
    void *data;
} teller;

/* refuse tells a finding about `rule` (NULL: about none). Names may be cut anywhere. */
__attribute__((format(printf, 3, 4))) static int refuse(const teller *to, const mull_rule *rule,
                                                        const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mull__utf8_repair(text, strlen(text)); /* where a name was cut */
    if (to->problem)
        to->problem(rule ? rule->file : NULL, rule ? rule->line : 0, text, to->data);
    return MULL_EREFUSED;
}

/* dead_letters_into refuses a queue of dead letters that the consumer itself reads. */
static int dead_letters_into(const teller *to, const mull__worker *c, const char *queue,
                             const mull_rule *rule)
{
    if (strcmp(queue, c->queue) != 0)
        return 0;
    if (!c->name[0])
        return refuse(to, rule,
                      "dead letters of messages that no consumer of the queue '%.200s' takes would "
                      "go to that queue; name another%s: "
                      "policy.transport(\"%.200s\"):dead_letter_queue(...)",
                      queue, rule ? " here" : "", c->transport);
    return refuse(
        to, rule,
        "consumer '%.200s' reads the queue '%.200s', to which its dead letters go; name another%s: "
        "policy.consumer(\"%.200s\"):%s(...)",
        c->name, queue, rule ? ", here or in rules of its own" : "", c->name,
        rule ? "default():dead_letter" : "dead_letter_queue");
}

/* check_abilities refuses a rule whose verdicts this transport would turn into dead letters. */
static int check_abilities(const teller *to, const mull__worker *c, const mull__rule *rule)
{
    const mull_abilities *can = &c->can;
    if (rule->retry.attempts && !can->can_retry)
        return refuse(to, &rule->source,
                      "this rule retries, but transport '%.200s' of consumer '%.200s' can't "
                      "hold a message for a retry; redeliver or dead-letter instead",
                      c->transport, c->name);
    if (rule->redeliver.attempts && !can->can_delay)
        return refuse(to, &rule->source,
                      "this rule redelivers, but transport '%.200s' of consumer '%.200s' has "
                      "no delayed delivery; retry or dead-letter instead",
                      c->transport, c->name);
    return 0;
}

/* check_claim_timeout refuses a rule whose round of retries may outlast a claim that can't be held.
 */
static int check_claim_timeout(const teller *to, const mull__worker *c, const mull__rule *rule)
{
    const mull_abilities *can = &c->can;
    int64_t claim_ms = can->claim_timeout_ms;
    if (claim_ms == 0 || can->can_hold || !rule->retry.attempts)
        return 0;
    int64_t timeout_ms = c->timeout_ms, round_ms = mull__longest_retry_round(&rule->retry);
    int64_t calls = rule->retry.attempts + 1;
    if (timeout_ms != MULL_NEVER && timeout_ms <= (claim_ms - 1) / calls &&
        round_ms <= claim_ms - timeout_ms * calls)
        return 0;
    return refuse(to, &rule->source,
                  "this rule's longest round of retries (delays %lld ms and %lld "
                  "calls of consumer '%.200s') exceeds the acknowledgement timeout of "
                  "transport '%.200s' (%lld ms); retry less, or redeliver",
                  (long long)round_ms, (long long)calls, c->name, c->transport,
                  (long long)claim_ms);
}

/* puts_back says how a consumer's rate_limit or limit puts messages back to a later time; NULL:
 * none does. */
static const char *puts_back(const mull__settings *settings, const mull__source_pos **place)
{
    for (size_t i = 0; i < settings->rate_limit.count; i++) {
        const mull__rate_limit *limit = &settings->rate_limit.items[i];
        *place = &limit->place;
        if (limit->per.kind != MULL__PER_CONSUMER || limit->keep)
            return limit->keep ? "rate_limit with `keep`" : "rate_limit with `per`";
    }
    for (size_t i = 0; i < settings->limit.count; i++) {
        *place = &settings->limit.items[i].place;
        if (settings->limit.items[i].per.kind != MULL__PER_CONSUMER)
            return "limit with `per`";
    }
    return NULL;
}

/* check_limits refuses those that need delayed delivery where there is none. */
static int check_limits(const teller *to, const mull__worker *c, const mull__table *table)
{
    const mull__source_pos *place = NULL;
    const mull__settings settings =
        mull__effective_settings_of(table, c->name, c->transport).settings;
    const char *word = c->can.can_delay ? NULL : puts_back(&settings, &place);
    if (!word)
        return 0;
    return refuse(to, &(mull_rule){.file = place->file, .line = place->line},
                  "%s puts messages back to a later time, but transport '%.200s' of consumer "
                  "'%.200s' has no delayed delivery; take it out, or switch it off there with "
                  "policy.consumer(\"%.200s\"):%s(false)",
                  word, c->transport, c->name, c->name,
                  strncmp(word, "rate", 4) == 0 ? "rate_limit" : "limit");
}

static int check_rule(const teller *to, const mull__worker *c, const mull__rule *rule)
{
    int status = c->name[0] ? check_abilities(to, c, rule) | check_claim_timeout(to, c, rule) : 0;
    if (rule->queue && rule->end == MULL_DEAD_LETTER)
        status |= dead_letters_into(to, c, rule->queue, &rule->source);
    return status;
}

int mull__check_workers(const mull__worker *workers, size_t count, const mull__table *table,
                        mull_problem_fn problem, void *data)
{
    const teller to = {problem, data};
    int status = 0; /* each answer is 0 or MULL_EREFUSED */
    for (const mull__worker *c = workers; c < workers + count; c++) {
        const mull__effective_settings effective =
            mull__effective_settings_of(table, c->name, c->transport);
        size_t rules = effective.rules ? mull__scope_rules(effective.rules) : 0;
        status |= dead_letters_into(&to, c, effective.settings.dead_letter_queue, NULL);
        status |= c->name[0] ? check_limits(&to, c, table) : 0;
        for (size_t i = 0; i < rules; i++)
            status |= check_rule(&to, c, mull__rule_at(effective.rules, i));
    }
    return status;
}

int mull__worker_probe(mull__worker *worker, const char *url, char *why, size_t why_size)
{
    const mull_transport_ops *ops = mull__transport_for(url);
    worker->can = (mull_abilities){.size = sizeof worker->can};
    if (!ops) {
        mull__transport_unknown(url, "", why, why_size);
        return MULL_EINVAL;
    }
    return mull__look(ops, url, worker->queue, &worker->can, why, why_size);
}

/* ---- Of an engine ---------------------------------------------------------------------------- */

mull__worker mull__worker_of(const mull__consumer *c)
{
    return (mull__worker){.name = c->name,
                          .queue = c->queue,
                          .transport = c->port->name,
                          .can = c->floor,
                          .timeout_ms = c->options.timeout_ms};
}

static int check(void *data, const mull__table *table, mull_problem_fn problem, void *problem_data)
{
    mull_engine *engine = data;
    size_t count = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        count++;
    mull__worker *workers = mull__zalloc(&engine->allocator, count, sizeof *workers);
    if (!workers)
        return MULL_ENOMEM;
    count = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        if (!c->never_works)
            workers[count++] = mull__worker_of(c);
    int status = mull__check_workers(workers, count, table, problem, problem_data);
    mull__free(&engine->allocator, workers);
    return status;
}

int mull__check_begin(mull_engine *engine)
{
    engine->validator =
        (mull__reload_validator){.check = check, .told = mull__policy_event_add, .data = engine};
    return mull__policy_add_validator(engine->options.policy, &engine->validator,
                                      engine->options.problem, engine->options.data);
}

void mull__check_end(mull_engine *engine)
{
    mull__policy_remove_validator(engine->options.policy, &engine->validator);
}
