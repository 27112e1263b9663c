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

typedef struct complaint {
    const char *url;
    char *why;
    size_t size;
} complaint;

static int complain(const complaint *to, text name, const char *problem)
{
    snprintf(to->why, to->size, "%s: %.*s %s", to->url, (int)name.length, name.start, problem);
    return MULL_EINVAL;
}

static int read_duration(int64_t *out, const complaint *to, text name, text value)
{
    char why[160];
    if (mull__duration_read(out, value.start, value.length, why, sizeof why) != 0)
        return complain(to, name, why);
    return *out > 0 ? 0 : complain(to, name, "must be more than 0; leave it out for no limit");
}

static int read_flag(int *out, const complaint *to, text name, text value)
{
    if (!is(value, "yes") && !is(value, "no"))
        return complain(to, name, "must be yes or no");
    *out = is(value, "yes");
    return 0;
}

static int read_option(mull__memory_options *options, const complaint *to, text option)
{
    text value = option, name = until(&value, '=');
    if (is(name, "claim_timeout"))
        return read_duration(&options->claim_timeout_ms, to, name, value);
    if (is(name, "longest_delay"))
        return read_duration(&options->longest_delay_ms, to, name, value);
    if (is(name, "hold"))
        return read_flag(&options->hold, to, name, value);
    if (is(name, "retry"))
        return read_flag(&options->retry, to, name, value);
    if (is(name, "delay"))
        return read_flag(&options->delay, to, name, value);
    if (is(name, "deliveries"))
        return read_flag(&options->deliveries, to, name, value);
    return complain(
        to, name,
        "is no option; there are claim_timeout, hold, retry, delay, longest_delay and deliveries");
}

int mull__memory_options_read(mull__memory_options *options, const char *url, char *why,
                              size_t why_size)
{
    *options = (mull__memory_options){.retry = 1, .delay = 1, .deliveries = 1, .hold = 1};
    complaint to = {url, why, why_size};
    const char *mark = strchr(url, '?');
    text rest = mark ? (text){mark + 1, strlen(mark + 1)} : (text){url, 0};
    int status = 0;
    while (status == 0 && rest.length > 0)
        status = read_option(options, &to, until(&rest, '&'));
    return status;
}
