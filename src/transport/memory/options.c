/* options.c: see options.h. */
#include "options.h"

#include "base/duration.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Parts of a URL -------------------------------------------------------------------------- */

typedef struct options_text {
    const char *start;
    size_t length;
} options_text;

static int options_is(options_text part, const char *word)
{
    return part.length == strlen(word) && memcmp(part.start, word, part.length) == 0;
}

/* options_until cuts `from` at the first `mark`, and moves it behind that; the rest where there is
 * none. */
static options_text options_until(options_text *from, char mark)
{
    options_text part = *from;
    const char *found = memchr(from->start, mark, from->length);
    if (found)
        part.length = (size_t)(found - from->start);
    size_t step = part.length + (found != NULL);
    from->start += step;
    from->length -= step;
    return part;
}

/* options_of gives all that stands behind the question mark. */
static options_text options_of(const char *url)
{
    const char *mark = strchr(url, '?');
    return mark ? (options_text){mark + 1, strlen(mark + 1)} : (options_text){url, 0};
}

/* ---- One option ------------------------------------------------------------------------------ */

/* options_known is an option, and where its value goes. */
typedef struct options_known {
    const char *name;
    enum { OPTIONS_DURATION, OPTIONS_WORD, OPTIONS_QUEUE } kind;
    size_t offset;        /* of a mull__memory_options */
    const char *wrong;    /* why a value isn't taken */
    const char *words[4]; /* the value of a word is its place here */
} options_known;

#define OPTIONS_AT(field) offsetof(mull__memory_options, field)
#define OPTIONS_NO_LIMIT  "must be more than 0; leave it out for no limit"
#define OPTIONS_YES_NO    "must be yes or no"

static const options_known options_all[] = {
    {"claim_timeout", OPTIONS_DURATION, OPTIONS_AT(claim_timeout_ms), OPTIONS_NO_LIMIT, {NULL}},
    {"longest_delay", OPTIONS_DURATION, OPTIONS_AT(longest_delay_ms), OPTIONS_NO_LIMIT, {NULL}},
    {"hold", OPTIONS_WORD, OPTIONS_AT(hold), OPTIONS_YES_NO, {"no", "yes"}},
    {"retry", OPTIONS_WORD, OPTIONS_AT(retry), OPTIONS_YES_NO, {"no", "yes"}},
    {"delay", OPTIONS_WORD, OPTIONS_AT(delay), OPTIONS_YES_NO, {"no", "yes"}},
    {"deliveries",
     OPTIONS_WORD,
     OPTIONS_AT(deliveries),
     "must be yes, handouts or no",
     {[MULL_COUNTS_NOTHING] = "no",
      [MULL_COUNTS_HANDOUTS] = "handouts",
      [MULL_COUNTS_DEATHS] = "yes"}},
    {"note", OPTIONS_WORD, OPTIONS_AT(note), OPTIONS_YES_NO, {"no", "yes"}},
    {"delay_step",
     OPTIONS_DURATION,
     OPTIONS_AT(delay_step_ms),
     "must be more than 0; leave it out for exact delays",
     {NULL}},
    {"depth",
     OPTIONS_WORD,
     OPTIONS_AT(depth),
     "must be exact, rough or none",
     {[MULL_DEPTH_NONE] = "none", [MULL_DEPTH_ROUGH] = "rough", [MULL_DEPTH_EXACT] = "exact"}},
    {"connect",
     OPTIONS_DURATION,
     OPTIONS_AT(connect_ms),
     "must be more than 0; leave it out to be up at once",
     {NULL}},
    {"refuse", OPTIONS_QUEUE, 0, "must name a queue", {NULL}},
    {"tail", OPTIONS_WORD, OPTIONS_AT(tail), OPTIONS_YES_NO, {"no", "yes"}},
    {"settle",
     OPTIONS_WORD,
     OPTIONS_AT(settle),
     "must be whole, halfway or refused",
     {[MULL__SETTLE_WHOLE] = "whole",
      [MULL__SETTLE_HALFWAY] = "halfway",
      [MULL__SETTLE_REFUSED] = "refused"}},
    {"answers",
     OPTIONS_WORD,
     OPTIONS_AT(answers),
     "must be once, none, twice or late",
     {[MULL__ANSWERS_ONCE] = "once",
      [MULL__ANSWERS_NONE] = "none",
      [MULL__ANSWERS_TWICE] = "twice",
      [MULL__ANSWERS_LATE] = "late"}},
};

static const char *options_take_word(const options_known *known, int *out, options_text value)
{
    for (int i = 0; i < 4 && known->words[i]; i++)
        if (options_is(value, known->words[i])) {
            *out = i;
            return NULL;
        }
    return known->wrong;
}

/* options_take answers NULL, or what is wrong with a value. */
static const char *options_take(mull__memory_options *options, const options_known *known,
                                options_text value, char *why, size_t size)
{
    void *at = (char *)options + known->offset;
    if (known->kind == OPTIONS_WORD)
        return options_take_word(known, at, value);
    if (known->kind == OPTIONS_QUEUE)
        return value.length > 0 ? NULL : known->wrong;
    if (mull__duration_read(at, value.start, value.length, why, size) != 0)
        return why;
    return *(int64_t *)at > 0 ? NULL : known->wrong;
}

static int options_read_one(mull__memory_options *options, options_text option, const char *url,
                            char *why, size_t why_size)
{
    options_text value = option, name = options_until(&value, '=');
    char problem[160];
    const char *wrong =
        "is no option; there are claim_timeout, hold, retry, delay, longest_delay and deliveries, "
        "and note, delay_step, depth, connect, refuse, tail, settle and answers";
    for (size_t i = 0; i < sizeof options_all / sizeof options_all[0]; i++)
        if (options_is(name, options_all[i].name))
            wrong = options_take(options, &options_all[i], value, problem, sizeof problem);
    if (wrong)
        snprintf(why, why_size, "%s: %.*s %s", url, (int)name.length, name.start, wrong);
    return wrong ? MULL_EINVAL : 0;
}

/* ---- All of them ----------------------------------------------------------------------------- */

int mull__memory_options_read(mull__memory_options *options, const char *url, char *why,
                              size_t why_size)
{
    *options = (mull__memory_options){.retry = 1,
                                      .delay = 1,
                                      .hold = 1,
                                      .note = 1,
                                      .deliveries = MULL_COUNTS_DEATHS,
                                      .depth = MULL_DEPTH_EXACT};
    options_text rest = options_of(url);
    int status = 0;
    while (status == 0 && rest.length > 0)
        status = options_read_one(options, options_until(&rest, '&'), url, why, why_size);
    return status;
}

mull_abilities mull__memory_abilities(const mull__memory_options *options)
{
    return (mull_abilities){.size = sizeof(mull_abilities),
                            .can_retry = options->retry,
                            .can_delay = options->delay,
                            .can_hold = options->hold,
                            .can_note = options->note,
                            .settles_whole = options->settle != MULL__SETTLE_HALFWAY,
                            .counts_at_once = options->depth == MULL_DEPTH_EXACT,
                            .deliveries = (mull_counting)options->deliveries,
                            .depth = (mull_depth_kind)options->depth,
                            .delay_step_ms = options->delay_step_ms,
                            .longest_delay_ms = options->longest_delay_ms,
                            .claim_timeout_ms = options->claim_timeout_ms};
}

int mull__memory_refuses(const char *url, const char *queue)
{
    options_text rest = options_of(url);
    while (rest.length > 0) {
        options_text value = options_until(&rest, '&'), name = options_until(&value, '=');
        if (options_is(name, "refuse") && options_is(value, queue))
            return 1;
    }
    return 0;
}
