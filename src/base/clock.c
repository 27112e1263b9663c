/* clock.c: see clock.h. */
#include "clock.h"

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

/* put writes a number of so many digits, with the character that stands behind them, and gives
 * where the next one goes. */
static char *put(char *at, int number, int count, char behind)
{
    for (int i = count; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    at[count] = behind;
    return at + count + 1;
}

void mull__moment_write(int64_t wall_ms, char text[MULL__MOMENT_SIZE])
{
    const int64_t last_ms = 253402300799999; /* the end of the year 9999 */
    int64_t ms = wall_ms < 0 ? 0 : wall_ms > last_ms ? last_ms : wall_ms;
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&seconds, &t);
    char *at = put(text, t.tm_year + 1900, 4, '-');
    at = put(at, t.tm_mon + 1, 2, '-');
    at = put(at, t.tm_mday, 2, 'T');
    at = put(at, t.tm_hour, 2, ':');
    at = put(at, t.tm_min, 2, ':');
    at = put(at, t.tm_sec, 2, '.');
    at = put(at, (int)(ms % 1000), 3, 'Z');
    *at = 0;
}

/* digits reads exactly `count` digits and steps over them; -1: there are fewer. */
static int digits(const char **at, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        value = value * 10 + (**at - '0');
    }
    return value;
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

int mull__moment_read(const char *text, int64_t *wall_ms)
{
    static const char between[] = "--T::";
    static const int widths[] = {4, 2, 2, 2, 2, 2};
    int part[6];
    const char *at = text;
    for (int i = 0; i < 6; i++) {
        if ((part[i] = digits(&at, widths[i])) < 0)
            return -1;
        if (i < 5 && *at++ != between[i])
            return -1;
    }
    int ms = fraction(&at);
    if (ms < 0 || strcmp(at, "Z") != 0)
        return -1;
    struct tm t = {.tm_year = part[0] - 1900,
                   .tm_mon = part[1] - 1,
                   .tm_mday = part[2],
                   .tm_hour = part[3],
                   .tm_min = part[4],
                   .tm_sec = part[5]};
    struct tm as_given = t;
    time_t seconds = timegm(&t);
    /* timegm mends the 31st of April; we don't take it. */
    if (t.tm_mon != as_given.tm_mon || t.tm_mday != as_given.tm_mday ||
        t.tm_hour != as_given.tm_hour || t.tm_min != as_given.tm_min)
        return -1;
    *wall_ms = (int64_t)seconds * 1000 + ms;
    return 0;
}
