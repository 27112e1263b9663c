/* clock.c: see clock.h. */
#include "clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t mull__monotonic_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

int64_t mull__wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

/* put_digits writes a number from 0 on in so many digits, and gives where they end. */
static char *put_digits(char *at, int number, int digits)
{
    for (int i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + digits;
}

/* put_second writes "2026-11-20T07:08:09", a year of four digits, and gives where it ends. */
static char *put_second(char *at, const struct tm *t)
{
    const int numbers[] = {t->tm_mon + 1, t->tm_mday, t->tm_hour, t->tm_min, t->tm_sec};
    at = put_digits(at, t->tm_year + 1900, 4);
    for (int i = 0; i < 5; i++) {
        *at++ = "--T::"[i];
        at = put_digits(at, numbers[i], 2);
    }
    return at;
}

void mull__timestamp_write(int64_t wall_ms, char text[MULL__TIMESTAMP_SIZE])
{
    const int64_t last_ms = 253402300799999; /* the end of the year 9999 */
    int64_t ms = wall_ms < 0 ? 0 : wall_ms > last_ms ? last_ms : wall_ms;
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&seconds, &t);
    char *at = put_second(text, &t);
    *at++ = '.';
    at = put_digits(at, (int)(ms % 1000), 3);
    memcpy(at, "Z", 2);
}

/* fraction reads ".123456" as 123 milliseconds, nothing as 0; -1: a point without digits. */
static int fraction(const char **at)
{
    if (**at != '.')
        return 0;
    (*at)++;
    if (**at < '0' || **at > '9')
        return -1;
    int ms = 0;
    for (int place = 100; **at >= '0' && **at <= '9'; (*at)++, place /= 10)
        ms += (**at - '0') * place;
    return ms;
}

/* mull__timestamp_read takes a second as it would be written: timegm mends the 31st of April. */
int mull__timestamp_read(const char *text, int64_t *wall_ms)
{
    enum { LENGTH = sizeof "2026-11-20T07:08:09" - 1 };
    char again[LENGTH];
    struct tm t = {0};
    if (strspn(text, "0123456789") != 4 || /* no sign */
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
               &t.tm_min, &t.tm_sec) != 6)
        return -1;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    time_t seconds = timegm(&t);
    if (t.tm_year + 1900 > 9999)
        return -1; /* by the months and days of 9999 */
    put_second(again, &t);
    if (strncmp(text, again, LENGTH) != 0)
        return -1;
    text += LENGTH;
    int ms = fraction(&text);
    if (ms < 0 || strcmp(text, "Z") != 0)
        return -1;
    *wall_ms = (int64_t)seconds * 1000 + ms;
    return 0;
}
