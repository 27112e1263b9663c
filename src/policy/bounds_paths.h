/* bounds_paths.h: what several courses allow together, attempt by attempt and round by round: what
 * bounds_ages.c and bounds_calls.c follow walks over. Rounds count from 0, by redeliveries done. */
#ifndef MULL__BOUNDS_PATHS_H
#define MULL__BOUNDS_PATHS_H

#include "bounds.h"

typedef struct mull__paths {
    const mull__walks *walks;
    const mull_allocator *allocator;
    int64_t max_age_ms;          /* MULL__FOREVER: none */
    const mull__course *courses; /* each once, by the number of their retries */
    size_t count;
    int64_t calls;      /* the most in one round: its attempts are 1 ... calls */
    int64_t exit;       /* the first of them at which some course has no retry left */
    int64_t rounds;     /* redeliveries that the courses allow, unlimited ones left out */
    int unlimited;      /* and those that aren't left out: some course has no end of them */
    int capped;         /* max_attempts may cut a walk short */
    mull__ages *retry;  /* [attempt]: the waits after it, the next call included */
    int64_t *end_round; /* [attempt]: from which round on its failure may end the message by the end
                           of its chain; MULL__FOREVER: never */
    size_t *level;      /* [attempt]: how many courses have no retry left */
    mull__ages *redeliver; /* [level]: the waits before the next round, its first call included */
    mull__span *spans;     /* all of theirs */
    int64_t round;         /* that they are filled in for; -1: none */
    int settled;           /* and for all rounds from it on */
    int64_t longest_wait_ms;
    int64_t work; /* done so far, in nanoseconds, roughly */
} mull__paths;

/* MULL__MOST_WORK: who comes to it gives up, and says what holds in any case. */
enum { MULL__MOST_WORK = 100000000 };

/* mull__paths_init: MULL_ENOMEM. */
int mull__paths_init(mull__paths *paths, const mull__walks *walks, const mull_allocator *allocator);
void mull__paths_free(mull__paths *paths);

/* mull__paths_round fills in `redeliver` for the end of a round. */
void mull__paths_round(mull__paths *paths, int64_t round);

/* mull__retry_low_ms is the least wait after an attempt. */
static inline int64_t mull__retry_low_ms(const mull__paths *paths, int64_t attempt)
{
    return paths->retry[attempt].at[0].low_ms;
}

/* mull__redelivery is the waits for a redelivery after an attempt; NULL: there is none. */
static inline const mull__ages *mull__redelivery(const mull__paths *paths, int64_t attempt)
{
    const mull__ages *waits = &paths->redeliver[paths->level[attempt]];
    return waits->count ? waits : NULL;
}

/* mull__ages_of_walks gives the shortest and longest time where there is max_age or the paths are
 * capped, mull__calls_of_walks the most calls where there is max_age. MULL_ENOMEM. */
int mull__ages_of_walks(mull__extent *extent, mull__paths *paths);
int mull__calls_of_walks(mull__extent *extent, mull__paths *paths);

#endif
