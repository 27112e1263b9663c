/* log_words.c: what became of a failure, as a line of the log says it in words; see callbacks.h.
 * There is a line for each dead letter, so it is written without a table of its event. */
#include "callbacks.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the error's type and message that are shown. */
enum { LONGEST = 500 };

static void add(luaL_Buffer *to, const char *text)
{
    luaL_addlstring(to, text, strlen(text));
}

static void add_number(luaL_Buffer *to, int64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        digits[--at] = '-';
    luaL_addlstring(to, digits + at, sizeof digits - at);
}

static void add_count(luaL_Buffer *to, int64_t count, const char *one, const char *many)
{
    add_number(to, count);
    add(to, count == 1 ? one : many);
}

/* cut_from cuts what begins at `start` to LONGEST, without half a character at its end. */
static void cut_from(luaL_Buffer *to, size_t start)
{
    if (luaL_bufflen(to) - start <= LONGEST)
        return;
    const char *text = luaL_buffaddr(to) + start;
    size_t length = LONGEST;
    while (length > LONGEST - 3 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    luaL_buffsub(to, luaL_bufflen(to) - start - length);
    add(to, "...");
}

static void add_error(luaL_Buffer *to, const mull_error *error)
{
    const char *message = error->message ? error->message : "";
    size_t start = luaL_bufflen(to);
    luaL_addlstring(to, error->type, strnlen(error->type, LONGEST + 1));
    if (*message) {
        add(to, ": ");
        luaL_addlstring(to, message, strnlen(message, LONGEST + 1));
    }
    cut_from(to, start);
}

/* add_attempts: a retry is one of as many as the rule allows; an override says of none how many
 * follow; anything else ends the round of attempts. */
static void add_attempts(luaL_Buffer *to, int64_t attempt, const mull_verdict *verdict)
{
    int is_retry = verdict->action == MULL_RETRY, is_counted = verdict->of > 0;
    add(to, "attempt ");
    add_number(to, attempt);
    if (is_retry && !is_counted)
        return;
    int64_t of = is_retry ? (int64_t)verdict->of + 1 : attempt;
    add(to, " of ");
    add_number(to, of > attempt ? of : attempt);
}

/* add_begin says when what follows begins: "in 1m30s". */
static void add_begin(luaL_Buffer *to, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    add(to, ms > 0 ? "in " : "at once");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms < units[i].ms)
            continue;
        add_number(to, ms / units[i].ms);
        add(to, units[i].name);
        ms %= units[i].ms;
    }
}

static void add_redelivery(luaL_Buffer *to, const mull_verdict *verdict)
{
    add(to, "redelivery ");
    add_number(to, verdict->step);
    if (verdict->reason != MULL_REASON_OVERRIDE) {
        add(to, " of ");
        if (verdict->of > 0)
            add_number(to, verdict->of);
        else
            add(to, "unlimited");
    }
    add(to, " ");
}

static void add_next(luaL_Buffer *to, const mull_verdict *verdict)
{
    if (verdict->action == MULL_RETRY)
        add(to, "again ");
    else
        add_redelivery(to, verdict);
    add_begin(to, verdict->delay_ms);
    if (verdict->reason == MULL_REASON_OVERRIDE)
        add(to, ": override");
}

static void add_end(luaL_Buffer *to, const mull_failure *failure, const mull_verdict *verdict)
{
    const char *reason = mull_reason_name(verdict->reason);
    int is_discard = verdict->action == MULL_DISCARD;
    add(to, is_discard ? "discarded" : "to ");
    add(to, is_discard ? "" : verdict->queue);
    add(to, " after ");
    add_count(to, failure->calls, " call", " calls");
    add(to, " and ");
    add_count(to, failure->redeliveries, " redelivery", " redeliveries");
    add(to, ": ");
    add(to, is_discard && verdict->note ? verdict->note : reason);
    const char *fallback = mull_fallback_name(verdict->fallback);
    if (!is_discard && fallback) {
        add(to, " (");
        add(to, fallback);
        add(to, ")");
    }
}

static void add_rule(luaL_Buffer *to, const mull_rule *rule)
{
    if (!rule->file) {
        add(to, "no rule");
        return;
    }
    add(to, rule->file);
    add(to, ":");
    add_number(to, rule->line);
}

/* push_clean makes it one line of UTF-8, whatever came into it. */
static void push_clean(luaL_Buffer *to)
{
    char *text = luaL_buffaddr(to);
    size_t size = luaL_bufflen(to);
    mull__utf8_repair(text, size);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7F)
            text[i] = ' ';
    luaL_pushresult(to);
}

void mull__push_decided_words(lua_State *L, const mull_event *event)
{
    static const char *const deeds[] = {[MULL_RETRY] = "retry",
                                        [MULL_REDELIVER] = "redelivery",
                                        [MULL_DEAD_LETTER] = "dead letter",
                                        [MULL_DISCARD] = "discard"};
    const mull_failure *failure = event->failure;
    const mull_verdict *verdict = event->verdict;
    luaL_Buffer to;
    luaL_buffinit(L, &to);
    add(&to, deeds[verdict->action]);
    add(&to, ": message ");
    add(&to, failure->message->id);
    if (failure->consumer) {
        add(&to, ", consumer ");
        add(&to, failure->consumer);
    }
    add(&to, ": ");
    add_error(&to, failure->error);
    add(&to, "; ");
    add_attempts(&to, failure->attempt, verdict);
    add(&to, ", ");
    if (verdict->action == MULL_RETRY || verdict->action == MULL_REDELIVER)
        add_next(&to, verdict);
    else
        add_end(&to, failure, verdict);
    add(&to, "; ");
    add_rule(&to, &verdict->rule);
    push_clean(&to);
}
