/* stderr_queue.c: see stderr_queue.h. */
#include "stderr_queue.h"

#include "base/clock.h"
#include "mulligan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines come in bursts, and to wake a thread for each costs more than to write it. */
enum { GATHER_MS = 1 };

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
    uint64_t dealt;     /* how often something was dealt with: goes up as long as something moves */
    int tells;          /* lost lines are to be told of, though none follows them */
    int is_busy;
    /* Never changed: */
    int fd;
    size_t most;
    const char *notice; /* what tells of lost lines */
    /* The thread's alone: */
    uint64_t lost;
    int torn; /* what was written last doesn't end a line */
};

static size_t room_of(const line *l)
{
    return sizeof *l + l->size;
}

/* ---- Writing, on its thread ------------------------------------------------------------------ */

/* may_go_on says, once it is, whether a write is worth another try. Somebody else may have made the
 * descriptor one that doesn't block: it is shared with other processes, and left as it is. */
static int may_go_on(int fd)
{
    struct pollfd there = {.fd = fd, .events = POLLOUT};
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return poll(&there, 1, -1) >= 0 || errno == EINTR;
    return errno == EINTR;
}

/* put_out gives how much of it is written. */
static size_t put_out(mull__writer *w, const char *text, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(w->fd, text + done, size - done);
        if (written < 0 && may_go_on(w->fd))
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
        w->torn = text[done - 1] != '\n';
    }
    return done;
}

/* tell_lost says how many lines are lost, if any are; where even that can't be written, they stay
 * to be told of. */
static void tell_lost(mull__writer *w)
{
    const char *time = strstr(w->notice, "@time@"), *count = strstr(w->notice, "@count@");
    char moment[MULL__TIMESTAMP_SIZE], text[640];
    if (w->lost == 0)
        return;
    mull__timestamp_write(mull__wall_ms(), moment);
    snprintf(text, sizeof text, "%.*s%s%.*s%" PRIu64 "%s\n", (int)(time - w->notice), w->notice,
             moment, (int)(count - time) - 6, time + 6, w->lost, count + 7);
    if ((!w->torn || put_out(w, "\n", 1) == 1) && put_out(w, text, strlen(text)) == strlen(text))
        w->lost = 0;
}

/* joins says whether a line is written together with those before it: in a pipe, other processes'
 * lines don't get into what is no longer than PIPE_BUF; and what was lost is told between lines. */
static int joins(const line *l, size_t size)
{
    return l && l->lost_before == 0 && size + l->size <= PIPE_BUF;
}

/* take takes the lines that are next; NULL: those that found no room are all there is to tell of.
 */
static line *take(mull__writer *w)
{
    line *first = w->first, *last = first;
    if (!first) {
        w->lost += w->lost_last;
        w->lost_last = 0;
        w->tells = 0;
        return NULL;
    }
    for (size_t size = first->size; joins(last->next, size); last = last->next)
        size += last->next->size;
    w->first = last->next;
    w->end = w->first ? w->end : &w->first;
    w->lost += first->lost_before;
    last->next = NULL;
    return first;
}

/* write_all writes lines in one write, where the descriptor takes them at once. */
static void write_all(mull__writer *w, const line *lines)
{
    char together[PIPE_BUF];
    const char *text = lines->text;
    size_t size = lines->size;
    if (lines->next) {
        size = 0;
        for (const line *l = lines; l; size += l->size, l = l->next)
            memcpy(together + size, l->text, l->size);
        text = together;
    }
    size_t done = w->lost > 0 ? 0 : put_out(w, text, size);
    for (const line *l = lines; l; l = l->next) {
        w->lost += done < l->size;
        done -= done < l->size ? done : l->size;
    }
}

static size_t free_all(line *lines)
{
    size_t freed = 0;
    while (lines) {
        line *next = lines->next;
        freed += room_of(lines);
        free(lines);
        lines = next;
    }
    return freed;
}

/* wait_for_lines, once there is one, waits GATHER_MS for others, whose putters wake nobody. */
static void wait_for_lines(mull__writer *w)
{
    if (w->first || w->tells)
        return;
    while (!w->first && !w->tells)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    poll(NULL, 0, GATHER_MS);
    pthread_mutex_lock(&w->lock);
}

/* work keeps the order: what was lost before a line is told before it is written. */
static void *work(void *data)
{
    mull__writer *w = data;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        wait_for_lines(w);
        line *lines = take(w);
        w->is_busy = 1;
        pthread_mutex_unlock(&w->lock);
        tell_lost(w);
        if (lines)
            write_all(w, lines);
        size_t freed = free_all(lines);
        pthread_mutex_lock(&w->lock);
        w->waiting -= freed;
        w->dealt++;
        w->is_busy = 0;
    }
    return NULL;
}

/* ---- From outside ---------------------------------------------------------------------------- */

/* start_thread starts it with all signals blocked: they are the other threads'. */
static int start_thread(mull__writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int problem = pthread_create(&thread, NULL, work, w);
    if (problem == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

int mull__writer_new(mull__writer **out, int fd, size_t most, const char *lost)
{
    mull__writer *w = calloc(1, sizeof *w);
    char *notice = strdup(lost);
    if (w && notice) {
        *w = (mull__writer){.fd = fd, .most = most, .notice = notice, .end = &w->first};
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->changed, NULL);
        if (start_thread(w) == 0) {
            *out = w;
            return MULL_OK;
        }
    }
    free(notice);
    free(w);
    return MULL_ENOMEM;
}

void mull__writer_put(mull__writer *w, const char *text, size_t size)
{
    line *l = size < w->most ? malloc(sizeof *l + size) : NULL;
    pthread_mutex_lock(&w->lock);
    if (l && sizeof *l + size <= w->most - w->waiting) {
        *l = (line){.size = size, .lost_before = w->lost_last};
        memcpy(l->text, text, size);
        w->lost_last = 0;
        *w->end = l;
        w->end = &l->next;
        w->waiting += room_of(l);
        l = NULL;
    } else {
        w->lost_last++;
        w->tells = 1;
    }
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    free(l);
}

static int is_idle(const mull__writer *w)
{
    return !w->first && !w->tells && !w->is_busy;
}

/* The thread may stand still in a write for ever. */
void mull__writer_flush(mull__writer *w, int patience_ms, int longest_ms)
{
    int64_t begun = mull__monotonic_ms(), moved = begun, now = begun;
    pthread_mutex_lock(&w->lock);
    w->tells = 1;
    pthread_cond_signal(&w->changed);
    for (uint64_t dealt = w->dealt; !is_idle(w);) {
        if (now - moved >= patience_ms || now - begun >= longest_ms)
            break;
        pthread_mutex_unlock(&w->lock);
        poll(NULL, 0, 1);
        pthread_mutex_lock(&w->lock);
        now = mull__monotonic_ms();
        moved = w->dealt == dealt ? moved : now;
        dealt = w->dealt;
    }
    pthread_mutex_unlock(&w->lock);
}
