/* stall_watchdog.h: a thread that sees whether the thread of a loop goes on, and what holds it. It
 * is for a program that has its process to itself, such as `mulligan run`: it takes signals.
 *
 *   loop's thread    at(work) ── seen ── at(NULL) ── turned ...   each says: it goes on
 *   watchdog's       every 0.25 s: has it gone on since? SIGTERM? ── tell
 *
 * It counts its own looks, not the time: a process that stood still (SIGSTOP) wasn't held. */
#ifndef MULL__STALL_WATCHDOG_H
#define MULL__STALL_WATCHDOG_H

#include <stdint.h>

typedef struct mull__watchdog mull__watchdog;

enum { MULL__PLACE_SIZE = 256 };

/* mull__work is what the loop's thread is at work on. Each text may be NULL. */
typedef struct mull__work {
    const char *consumer, *message; /* a name and an id */
    const char *begins_in;          /* a file */
    int begins_at;                  /* a line of it */
    char file[MULL__PLACE_SIZE];    /* where it was last seen, "": nowhere yet */
    int line;
} mull__work;

typedef enum mull__stall_state {
    MULL__STALLED,         /* nothing went on for `held_ms`, told once */
    MULL__STALL_OVER,      /* it goes on, after it was told of */
    MULL__STALL_PAST_GRACE /* it was to stop, and is held beyond the grace time, told once */
} mull__stall_state;

/* mull__stall is what is told. Long names and ids are cut. */
typedef struct mull__stall {
    mull__stall_state state;
    int64_t ms;                                                 /* for how long, so far or in all */
    char consumer[MULL__PLACE_SIZE], message[MULL__PLACE_SIZE]; /* "": none holds it */
    char file[MULL__PLACE_SIZE];
    int line;
} mull__stall;

/* mull__watchdog_options: all of them are required. */
typedef struct mull__watchdog_options {
    int64_t look_ms;  /* between two looks */
    int64_t held_ms;  /* without a sign that it goes on: then it is held */
    int64_t grace_ms; /* from the signal to stop on */
    void (*tell)(const mull__stall *stall, void *data); /* on the watchdog's thread */
    void *data;
} mull__watchdog_options;

/* mull__watchdog_new starts one, which rests until the first turn. From now on SIGTERM, SIGINT and
 * SIGHUP don't end the process. MULL_ENOMEM. MULL_EIO: there can't be another thread or loop. */
int mull__watchdog_new(mull__watchdog **out, const mull__watchdog_options *options);

/* mull__watchdog_free: SIGTERM, SIGINT and SIGHUP mean death again. The caller has them blocked
 * until it has set up something else. */
void mull__watchdog_free(mull__watchdog *watchdog);

/* ---- For the loop's thread: without a watchdog, NULL, they do nothing ------------------------ */

/* mull__watchdog_set_work: it is at work on this now, which lives until the next call. NULL:
 * unknown. */
void mull__watchdog_set_work(mull__watchdog *watchdog, mull__work *work);

/* mull__watchdog_set_line keeps the place where that work is now. */
void mull__watchdog_set_line(mull__watchdog *watchdog, const char *file, int line);

/* mull__watchdog_heartbeat: it goes on. From the first time on it comes oftener than `held_ms`. */
void mull__watchdog_heartbeat(mull__watchdog *watchdog);

/* mull__watchdog_exiting: the process ends, so that it has the grace time, as after a signal. */
void mull__watchdog_exiting(mull__watchdog *watchdog);

#endif
