/* writer.c: see writer.h. */
#include "writer.h"

#include "base/clock.h"
#include "mulligan.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct line {
    struct line *next;
    uint64_t lost_before; /* lines that found no room, since the one before this */
    size_t size;
    char text[];
} line;

struct mull__writer {
    /* Under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    line *first, **end; /* what waits */
    size_t waiting;     /* bytes of it, and of the line that is being written */
    uint64_t lost_last; /* lines that found no room, since the last one that did */
    uint64_t taken;     /* lines that were dealt with: goes up as long as something moves */
    int closing, ended;
    int left; /* whoever closed it didn't wait: the thread frees it */
    /* Never changed: */
    pthread_t thread;
    int fd;
    size_t most;
    char *notice; /* what tells of lost lines */
    /* The thread's alone: */
    uint64_t lost;
    int torn; /* what was written last doesn't end a line */
};

static size_t room_of(const line *l)
{
    return sizeof *l + l->size;
}

/* ---- Writing, on its thread ------------------------------------------------------------------ */

/* wait_for_room returns where a write is worth another try. Somebody else may have made the
 * descriptor one that doesn't block: it is shared with other processes, and left as it is. */
static int wait_for_room(int fd)
{
    struct pollfd there = {.fd = fd, .events = POLLOUT};
    return poll(&there, 1, -1) >= 0 || errno == EINTR;
}

static int may_go_on(int fd)
{
    return errno == EINTR || ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for_room(fd));
}

static int put_out(mull__writer *w, const char *text, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t written = write(w->fd, text + done, size - done);
        if (written < 0 && may_go_on(w->fd))
            continue;
        if (written <= 0)
            return -1;
        done += (size_t)written;
        w->torn = text[done - 1] != '\n';
    }
    return 0;
}

/* fill writes `value` over the first `mark` in a text, which may grow up to `size` bytes. */
static void fill(char *text, size_t size, const char *mark, const char *value)
{
    char *at = strstr(text, mark);
    size_t old = strlen(mark), new = strlen(value);
    if (!at || strlen(text) - old + new + 1 > size)
        return;
    memmove(at + new, at + old, strlen(at + old) + 1);
    memcpy(at, value, new);
}

enum { NOTICE_MORE = MULL__MOMENT_SIZE + 32 }; /* what it grows by, a line feed included */

/* tell_lost says how many lines are lost, if any are; where even that can't be written, they stay
 * to be told of. */
static void tell_lost(mull__writer *w)
{
    char moment[MULL__MOMENT_SIZE], count[24];
    size_t size = strlen(w->notice) + NOTICE_MORE;
    char *text = w->lost > 0 ? malloc(size) : NULL;
    if (!text)
        return;
    mull__moment_write(mull__wall_ms(), moment);
    snprintf(count, sizeof count, "%" PRIu64, w->lost);
    snprintf(text, size, "%s", w->notice);
    fill(text, size, "@time@", moment);
    fill(text, size, "@count@", count);
    strcat(text, "\n");
    if ((!w->torn || put_out(w, "\n", 1) == 0) && put_out(w, text, strlen(text)) == 0)
        w->lost = 0;
    free(text);
}

/* write_line keeps the order: what was lost before a line is told before it is written. */
static void write_line(mull__writer *w, const line *l)
{
    tell_lost(w);
    if (w->lost > 0 || put_out(w, l->text, l->size) != 0)
        w->lost++;
}

/* take takes what is next; NULL: lines that found no room are all there is to tell of. */
static line *take(mull__writer *w)
{
    line *l = w->first;
    if (!l) {
        w->lost += w->lost_last;
        w->lost_last = 0;
        return NULL;
    }
    w->first = l->next;
    if (!w->first)
        w->end = &w->first;
    w->lost += l->lost_before;
    return l;
}

static void release(mull__writer *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    for (line *l = w->first, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    free(w->notice);
    free(w);
}

static void *work(void *data)
{
    mull__writer *w = data;
    pthread_mutex_lock(&w->lock);
    while (!w->left && (!w->closing || w->first || w->lost_last > 0)) {
        if (!w->first && w->lost_last == 0) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        line *l = take(w);
        pthread_mutex_unlock(&w->lock);
        if (l)
            write_line(w, l);
        else
            tell_lost(w);
        pthread_mutex_lock(&w->lock);
        w->waiting -= l ? room_of(l) : 0;
        w->taken++;
        pthread_cond_broadcast(&w->changed);
        free(l);
    }
    int left = w->left;
    pthread_mutex_unlock(&w->lock);
    if (!left)
        tell_lost(w); /* what failed last: perhaps it can be written by now */
    pthread_mutex_lock(&w->lock);
    w->ended = 1;
    left = w->left;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (left)
        release(w);
    return NULL;
}

/* ---- From outside ---------------------------------------------------------------------------- */

/* start_thread starts it with all signals blocked: they are the other threads'. */
static int start_thread(mull__writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int mull__writer_new(mull__writer **out, int fd, size_t most, const char *lost)
{
    *out = NULL;
    mull__writer *w = calloc(1, sizeof *w);
    char *notice = strdup(lost);
    if (!w || !notice) {
        free(w);
        free(notice);
        return MULL_ENOMEM;
    }
    *w = (mull__writer){.fd = fd, .most = most, .notice = notice};
    w->end = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    init_condition(&w->changed);
    if (start_thread(w) != 0) {
        release(w);
        return MULL_ENOMEM;
    }
    *out = w;
    return MULL_OK;
}

static line *new_line(const char *text, size_t size)
{
    line *l = malloc(sizeof *l + size);
    if (!l)
        return NULL;
    *l = (line){.size = size};
    memcpy(l->text, text, size);
    return l;
}

void mull__writer_put(mull__writer *w, const char *text, size_t size)
{
    line *l = size < w->most ? new_line(text, size) : NULL;
    pthread_mutex_lock(&w->lock);
    if (l && room_of(l) <= w->most - w->waiting) {
        l->lost_before = w->lost_last;
        w->lost_last = 0;
        *w->end = l;
        w->end = &l->next;
        w->waiting += room_of(l);
        l = NULL;
    } else {
        w->lost_last++;
    }
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    free(l);
}

static struct timespec from_now(int ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    return at;
}

static int is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static int has_ended(const mull__writer *w)
{
    return w->ended;
}

static int is_idle(const mull__writer *w)
{
    return w->waiting == 0 && w->lost_last == 0;
}

/* wait_for waits for the thread, which may stand still in a write for ever. */
static int wait_for(mull__writer *w, int (*over)(const mull__writer *w), int patience_ms,
                    int longest_ms)
{
    const struct timespec last = from_now(longest_ms);
    struct timespec until = from_now(patience_ms);
    for (uint64_t taken = w->taken; !over(w);) {
        if (w->taken != taken)
            until = from_now(patience_ms);
        taken = w->taken;
        const struct timespec *next = is_before(&until, &last) ? &until : &last;
        if (pthread_cond_timedwait(&w->changed, &w->lock, next) == ETIMEDOUT)
            return over(w);
    }
    return 1;
}

void mull__writer_flush(mull__writer *w, int patience_ms, int longest_ms)
{
    pthread_mutex_lock(&w->lock);
    wait_for(w, is_idle, patience_ms, longest_ms);
    pthread_mutex_unlock(&w->lock);
}

void mull__writer_close(mull__writer *w, int patience_ms, int longest_ms)
{
    pthread_mutex_lock(&w->lock);
    w->closing = 1;
    pthread_cond_broadcast(&w->changed);
    int ended = wait_for(w, has_ended, patience_ms, longest_ms);
    w->left = !ended;
    pthread_t thread = w->thread;
    pthread_mutex_unlock(&w->lock);
    if (!ended) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    release(w);
}
