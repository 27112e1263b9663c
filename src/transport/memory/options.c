/* options.c: memory:NAME?claim_timeout=30s&retry=no&... */
#include "options.h"

#include "base/duration.h"
#include "mulligan.h"

#include <stdio.h>
#include <string.h>

/* text is a part of the URL. */
typedef struct text {
    const char *start;
    size_t length;
} text;

static int is(text part, const char *word)
{
    return part.length == strlen(word) && memcmp(part.start, word, part.length) == 0;
}

/* until cuts `from` at the first `mark`, and moves it behind that; the rest where there is none. */
static text until(text *from, char mark)
{
    text part = *from;
    const char *found = memchr(from->start, mark, from->length);
    if (found)
        part.length = (size_t)(found - from->start);
    size_t step = part.length + (found != NULL);
    from->start += step;
    from->length -= step;
    return part;
}

/* read_duration and read_flag answer NULL, or what is wrong. */
static const char *read_duration(int64_t *out, text value, char *why, size_t size)
{
    if (mull__duration_read(out, value.start, value.length, why, size) != 0)
        return why;
    return *out > 0 ? NULL : "must be more than 0; leave it out for no limit";
}

static const char *read_flag(int *out, text value)
{
    *out = is(value, "yes");
    return *out || is(value, "no") ? NULL : "must be yes or no";
}

static int read_option(mull__memory_options *options, text option, const char *url, char *why,
                       size_t why_size)
{
    const struct {
        const char *name;
        int64_t *duration;
        int *flag;
    } known[] = {
        {"claim_timeout", &options->claim_timeout_ms, NULL},
        {"longest_delay", &options->longest_delay_ms, NULL},
        {"hold", NULL, &options->hold},
        {"retry", NULL, &options->retry},
        {"delay", NULL, &options->delay},
        {"deliveries", NULL, &options->deliveries},
    };
    text value = option, name = until(&value, '=');
    char problem[160];
    const char *wrong =
        "is no option; there are claim_timeout, hold, retry, delay, longest_delay and deliveries";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is(name, known[i].name))
            wrong = known[i].flag
                        ? read_flag(known[i].flag, value)
                        : read_duration(known[i].duration, value, problem, sizeof problem);
    if (wrong)
        snprintf(why, why_size, "%s: %.*s %s", url, (int)name.length, name.start, wrong);
    return wrong ? MULL_EINVAL : 0;
}

int mull__memory_options_read(mull__memory_options *options, const char *url, char *why,
                              size_t why_size)
{
    *options = (mull__memory_options){.retry = 1, .delay = 1, .deliveries = 1, .hold = 1};
    const char *mark = strchr(url, '?');
    text rest = mark ? (text){mark + 1, strlen(mark + 1)} : (text){url, 0};
    int status = 0;
    while (status == 0 && rest.length > 0)
        status = read_option(options, until(&rest, '&'), url, why, why_size);
    return status;
}
