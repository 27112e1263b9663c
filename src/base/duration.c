/* duration.c: see duration.h. Whole numbers throughout: "0.1s" is exactly 100. */
#include "duration.h"

#include <stdio.h>
#include <string.h>

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

enum { UNITS = sizeof units / sizeof units[0] };

static const int64_t longest_ms = 365 * (int64_t)86400000;

/* Of a day in whole milliseconds at most ten digits are left behind the point, and those times a
 * day's milliseconds stay below 2^63. */
static const int64_t finest_scale = 10000000000;

struct reader {
    const char *at, *end;
    const char *problem;
};

static int is_digit(const struct reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* read_whole reads digits, saturating far above the longest duration in any unit. */
static int64_t read_whole(struct reader *r)
{
    int64_t whole = 0;
    for (; is_digit(r); r->at++) {
        if (whole <= longest_ms)
            whole = whole * 10 + (*r->at - '0');
    }
    return whole;
}

/* read_unit takes the longest name that fits; UNITS: none. */
static size_t read_unit(struct reader *r)
{
    const char *begin = r->at;
    while (r->at < r->end && *r->at >= 'a' && *r->at <= 'z')
        r->at++;
    size_t length = (size_t)(r->at - begin);
    for (size_t i = 0; i < UNITS; i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, begin, length) == 0)
            return i;
    }
    return UNITS;
}

/* read_part reads a number and its unit, which must be smaller than those before `*next`. */
static int64_t read_part(struct reader *r, size_t *next)
{
    if (!is_digit(r)) {
        r->problem = "must be a number with a unit, such as \"200ms\", \"1.5s\" or \"1h30m\"";
        return 0;
    }
    int64_t whole = read_whole(r), fraction = 0, scale = 1;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!is_digit(r)) {
            r->problem = "needs a digit on both sides of the point";
            return 0;
        }
        const char *last = r->at; /* behind the last digit that isn't 0 */
        for (const char *p = r->at; p < r->end && *p >= '0' && *p <= '9'; p++)
            last = *p != '0' ? p + 1 : last;
        for (; r->at < last && scale < finest_scale; r->at++) {
            fraction = fraction * 10 + (*r->at - '0');
            scale *= 10;
        }
        if (r->at < last) {
            r->problem = "must be whole milliseconds";
            return 0;
        }
        read_whole(r);
    }
    size_t unit = read_unit(r);
    if (unit == UNITS)
        r->problem = "needs a unit after each number: ms, s, m, h or d";
    else if (unit < *next)
        r->problem = "must have its units from the largest to the smallest, each once";
    else if (fraction * units[unit].ms % scale != 0)
        r->problem = "must be whole milliseconds";
    else if (whole > longest_ms / units[unit].ms)
        r->problem = "must be at most 365 days";
    if (r->problem)
        return 0;
    *next = unit + 1;
    return whole * units[unit].ms + fraction * units[unit].ms / scale;
}

int mull__duration_read(int64_t *milliseconds, const char *text, size_t size, char *why,
                        size_t why_size)
{
    struct reader r = {.at = text, .end = text + size};
    int64_t sum = 0;
    size_t next = 0;
    do
        sum += read_part(&r, &next);
    while (!r.problem && r.at < r.end);
    if (!r.problem && sum > longest_ms)
        r.problem = "must be at most 365 days";
    if (r.problem) {
        snprintf(why, why_size, "%s", r.problem);
        return -1;
    }
    *milliseconds = sum;
    return 0;
}
