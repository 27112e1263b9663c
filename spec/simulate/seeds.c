/* seeds.c: see seeds.h. */
#include "seeds.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATCHDOG_S = 120 };

static const seeds_program *the_program;

/* ---- When the program itself fails ----------------------------------------------------------- */

/* where_it_was is called in whatever state the program is in. */
static void where_it_was(void)
{
    const kernel *k = the_program->kernel;
    printf("seed %" PRIu64 ", step %" PRIu64 ", at %" PRId64 " ms: the program failed\n", k->seed,
           k->steps, k->now_ms);
    printf("again, every step: %s --seed %" PRIu64 " --trace\n", the_program->name, k->seed);
    fflush(stdout);
}

static void on_signal(int number)
{
    where_it_was();
    signal(number, SIG_DFL);
    raise(number);
}

/* AddressSanitizer and its like have this, and call what it is given before they end us. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void watch(void)
{
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(where_it_was);
    else
        signal(SIGSEGV, on_signal);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
}

/* ---- What is asked --------------------------------------------------------------------------- */

typedef struct request {
    uint64_t first, last;
    int trace, twice, one;
} request;

static int usage(void)
{
    fprintf(stderr, "usage: %s [--seeds FIRST-LAST | --seed N [--trace] | --twice FIRST-LAST]\n",
            the_program->name);
    return 2;
}

static int read_number(const char *text, uint64_t *number, char **end)
{
    *number = strtoull(text, end, 10);
    return *end != text && text[0] != '-';
}

static int read_range(const char *text, request *r)
{
    char *end;
    return read_number(text, &r->first, &end) && *end == '-' &&
           read_number(end + 1, &r->last, &end) && !*end && r->first <= r->last;
}

static int read_request(request *r, int count, char **words)
{
    *r = (request){.first = 1, .last = 1000};
    for (int i = 1; i < count; i++) {
        char *end;
        const char *more = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--trace") == 0) {
            r->trace = 1;
        } else if (strcmp(words[i], "--seed") == 0 && read_number(more, &r->first, &end) && !*end) {
            r->last = r->first;
            r->one = 1;
            i++;
        } else if (strcmp(words[i], "--seeds") == 0 && read_range(more, r)) {
            i++;
        } else if (strcmp(words[i], "--twice") == 0 && read_range(more, r)) {
            r->twice = 1;
            i++;
        } else {
            return -1;
        }
    }
    return 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

static uint64_t run_seed(uint64_t seed, int tell)
{
    alarm(WATCHDOG_S);
    the_program->run(seed, tell);
    return the_program->kernel->hash;
}

static int run_all(const request *r)
{
    uint64_t steps = 0;
    for (uint64_t seed = r->first;; seed++) {
        uint64_t hash = run_seed(seed, r->trace);
        steps += the_program->kernel->steps;
        if (r->twice && run_seed(seed, 0) != hash) {
            printf("seed %" PRIu64 " isn't the same a second time\n", seed);
            return 1;
        }
        if (r->one)
            printf("seed %" PRIu64 ": hash %016" PRIx64 "\n", seed, hash);
        if (seed == r->last)
            break;
    }
    the_program->show_totals();
    printf("%" PRIu64 " seeds, %" PRIu64 " steps, 0 violations\n", r->last - r->first + 1, steps);
    return 0;
}

int seeds_main(const seeds_program *program, int count, char **words)
{
    request r;
    the_program = program;
    if (read_request(&r, count, words) != 0)
        return usage();
    watch();
    return run_all(&r);
}
