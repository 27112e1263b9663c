/* trace.c: what happened. The hash is of everything, the records are of the last moments: they are
 * numbers, and text is only made of them when somebody wants to read it. */
#include "sim.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

static void show(const record *r, FILE *to)
{
    fprintf(to, "# %8" PRId64 " ms  ", r->now_ms);
    fprintf(to, r->format, (long long)r->values[0], (long long)r->values[1],
            (long long)r->values[2], (long long)r->values[3]);
    fputc('\n', to);
}

void note(sim *s, const char *format, int64_t a, int64_t b, int64_t c, int64_t d)
{
    record *r = &s->records[s->record_count++ % RECORDS];
    *r = (record){.now_ms = s->now_ms, .format = format, .values = {a, b, c, d}};
    const uint64_t words[] = {s->hash,
                              mull__hash_text(format),
                              (uint64_t)s->now_ms,
                              (uint64_t)a,
                              (uint64_t)b,
                              (uint64_t)c,
                              (uint64_t)d};
    s->hash = mull__hash_words(words, sizeof words / sizeof *words);
    if (s->tell)
        show(r, stdout);
}

void trace_show(const sim *s, FILE *to)
{
    uint64_t first = s->record_count > RECORDS ? s->record_count - RECORDS : 0;
    for (uint64_t i = first; i < s->record_count; i++)
        show(&s->records[i % RECORDS], to);
}

void violation(sim *s, const char *format, ...)
{
    if (!s->tell)
        trace_show(s, stdout);
    printf("seed %" PRIu64 ", step %" PRIu64 ", at %" PRId64 " ms: ", s->seed, s->steps, s->now_ms);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nagain, every step: simulate --seed %" PRIu64 " --trace\n", s->seed);
    fflush(stdout);
    _Exit(1);
}
