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

/* fraction_of gives the milliseconds that the digits behind a point are of a unit, -1: no whole
 * number. From the last digit on, each step has to come out even for the sum to be whole. */
static int64_t fraction_of(int64_t unit_ms, const char *first, const char *end)
{
    int64_t ms = 0;
    while (end > first) {
        ms += (*--end - '0') * unit_ms;
        if (ms % 10 != 0)
            return -1;
        ms /= 10;
    }
    return ms;
}

/* read_part reads a number and its unit, which must be smaller than those before `*next`. */
static int64_t read_part(struct reader *r, size_t *next)
{
    if (!is_digit(r)) {
        r->problem = "must be a number with a unit, such as \"200ms\", \"1.5s\" or \"1h30m\"";
        return 0;
    }
    int64_t whole = read_whole(r), fraction = 0;
    const char *point = r->at, *end = r->at;
    if (r->at < r->end && *r->at == '.') {
        point = ++r->at;
        if (!is_digit(r)) {
            r->problem = "needs a digit on both sides of the point";
            return 0;
        }
        read_whole(r);
        end = r->at;
    }
    size_t unit = read_unit(r);
    if (unit == UNITS)
        r->problem = "needs a unit after each number: ms, s, m, h or d";
    else if (unit < *next)
        r->problem = "must have its units from the largest to the smallest, each once";
    else if ((fraction = fraction_of(units[unit].ms, point, end)) < 0)
        r->problem = "must be whole milliseconds";
    else if (whole > longest_ms / units[unit].ms)
        r->problem = "must be at most 365 days";
    if (r->problem)
        return 0;
    *next = unit + 1;
    return whole * units[unit].ms + fraction;
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
