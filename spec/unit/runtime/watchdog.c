/* watchdog.c: what a watchdog tells of a loop that is held, and when. */
#include "runtime/stall_watchdog.h"

#include "mulligan.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { LOOK_MS = 2, HELD_MS = 40, GRACE_MS = 80, LONGER_MS = 1000, LONG_S = 60, MOST = 8 };

/* stage is a watchdog, and all that it has told. */
typedef struct stage {
    mull__watchdog *watchdog;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mull__stall told[MOST];
    int count;
} stage;

static void keep(const mull__stall *held, void *data)
{
    stage *s = data;
    pthread_mutex_lock(&s->lock);
    if (s->count < MOST)
        s->told[s->count] = *held;
    s->count++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void begin(stage *s, int64_t held_ms)
{
    *s = (stage){.count = 0};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    const mull__watchdog_options options = {LOOK_MS, held_ms, GRACE_MS, keep, s};
    assert_int_equal(mull__watchdog_new(&s->watchdog, &options), MULL_OK);
}

static void end(stage *s)
{
    mull__watchdog_free(s->watchdog);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

static int count_of(stage *s)
{
    pthread_mutex_lock(&s->lock);
    int count = s->count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* await waits until so much was told, and gives the last of it. */
static const mull__stall *await(stage *s, int count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG_S;
    pthread_mutex_lock(&s->lock);
    while (s->count < count)
        assert_int_equal(pthread_cond_timedwait(&s->changed, &s->lock, &until), 0);
    pthread_mutex_unlock(&s->lock);
    return &s->told[count - 1];
}

static void what_holds_it_is_told_once_and_that_it_goes_on(void **state)
{
    (void)state;
    stage s;
    begin(&s, HELD_MS);
    mull__work work = {
        .consumer = "C", .message = "m-1", .begins_in = "service.lua", .begins_at = 3};
    mull__watchdog_set_work(s.watchdog, &work);
    mull__watchdog_set_line(s.watchdog, "other.lua", 7);
    mull__watchdog_heartbeat(s.watchdog);
    const mull__stall *held = await(&s, 1);
    assert_int_equal(held->state, MULL__STALLED);
    assert_int_equal(held->ms, HELD_MS);
    assert_string_equal(held->consumer, "C");
    assert_string_equal(held->message, "m-1");
    assert_string_equal(held->file, "other.lua");
    assert_int_equal(held->line, 7);
    mull__watchdog_set_work(s.watchdog, NULL);
    assert_int_equal(await(&s, 2)->state, MULL__STALL_OVER);
    assert_string_equal(s.told[1].message, "m-1");
    assert_int_equal(await(&s, 3)->state, MULL__STALLED);
    assert_string_equal(s.told[2].consumer, "");
    mull__watchdog_heartbeat(s.watchdog);
    assert_int_equal(await(&s, 4)->state, MULL__STALL_OVER);
    end(&s);
    assert_true(s.count >= 4);
}

static void long_names_and_ids_are_cut_at_whole_characters(void **state)
{
    (void)state;
    stage s;
    char text[1000];
    memset(text, 'x', sizeof text);
    for (size_t at = 1; at + 2 < sizeof text; at += 2)
        memcpy(text + at, "\xc3\xa4", 2);
    text[sizeof text - 1] = '\0';
    begin(&s, HELD_MS);
    mull__work work = {.consumer = text, .message = NULL};
    mull__watchdog_set_work(s.watchdog, &work);
    mull__watchdog_heartbeat(s.watchdog);
    const mull__stall *held = await(&s, 1);
    assert_int_equal(strlen(held->consumer), sizeof held->consumer - 1);
    assert_memory_equal(held->consumer, text, sizeof held->consumer - 2);
    assert_string_equal(held->message, "");
    end(&s);
}

/* A second one that is held says when the time has come in which the others could have told. */
static void what_goes_on_or_rests_is_not_held(void **state)
{
    (void)state;
    stage goes_on, rests, is_held;
    begin(&goes_on, LONGER_MS);
    begin(&rests, LONGER_MS);
    mull__watchdog_heartbeat(goes_on.watchdog);
    begin(&is_held, LONGER_MS);
    mull__watchdog_heartbeat(is_held.watchdog);
    while (count_of(&is_held) == 0) {
        mull__watchdog_heartbeat(goes_on.watchdog);
        poll(NULL, 0, 1);
    }
    end(&goes_on);
    end(&rests);
    end(&is_held);
    assert_int_equal(goes_on.count, 0);
    assert_int_equal(rests.count, 0);
}

static void a_stop_is_over_after_the_grace_time_where_it_is_held(void **state)
{
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        stage s;
        begin(&s, HELD_MS);
        mull__watchdog_heartbeat(s.watchdog);
        await(&s, 1);
        assert_int_equal(kill(getpid(), numbers[i]), 0);
        assert_int_equal(await(&s, 2)->state, MULL__STALL_PAST_GRACE);
        assert_true(s.told[1].ms >= GRACE_MS);
        mull__watchdog_heartbeat(s.watchdog);
        assert_int_equal(await(&s, 3)->state, MULL__STALL_OVER);
        end(&s);
    }
}

static void one_that_leaves_is_over_after_the_grace_time_too(void **state)
{
    (void)state;
    stage s;
    begin(&s, HELD_MS);
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    mull__watchdog_exiting(s.watchdog);
    assert_int_equal(await(&s, 1)->state, MULL__STALLED);
    assert_int_equal(await(&s, 2)->state, MULL__STALL_PAST_GRACE);
    end(&s);
}

static void no_signal_means_that_it_may_be_held_for_ever(void **state)
{
    (void)state;
    stage s, other;
    begin(&s, HELD_MS);
    mull__watchdog_heartbeat(s.watchdog);
    await(&s, 1);
    begin(&other, 2 * (HELD_MS + GRACE_MS));
    mull__watchdog_heartbeat(other.watchdog);
    await(&other, 1);
    assert_int_equal(count_of(&s), 1);
    end(&s);
    end(&other);
}

/* goes_on_until_closed is a process that goes on; how often it was told that it doesn't. */
static int goes_on_until_closed(int ready, int closed)
{
    stage s;
    struct pollfd there = {.fd = closed, .events = POLLIN};
    begin(&s, LONGER_MS);
    do {
        mull__watchdog_heartbeat(s.watchdog);
        if (ready >= 0)
            close(ready);
        ready = -1;
    } while (poll(&there, 1, 1) == 0);
    end(&s);
    return s.count;
}

static void a_process_that_stood_still_was_not_held(void **state)
{
    (void)state;
    int ready[2], closed[2], status;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(closed), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(closed[1]);
        _exit(goes_on_until_closed(ready[1], closed[0]));
    }
    close(ready[1]);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 0);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    poll(NULL, 0, 2 * LONGER_MS); /* the time for which the child stands still */
    assert_int_equal(kill(child, SIGCONT), 0);
    close(closed[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(ready[0]);
    close(closed[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_stood_still_was_not_held),
        cmocka_unit_test(what_holds_it_is_told_once_and_that_it_goes_on),
        cmocka_unit_test(long_names_and_ids_are_cut_at_whole_characters),
        cmocka_unit_test(what_goes_on_or_rests_is_not_held),
        cmocka_unit_test(a_stop_is_over_after_the_grace_time_where_it_is_held),
        cmocka_unit_test(one_that_leaves_is_over_after_the_grace_time_too),
        cmocka_unit_test(no_signal_means_that_it_may_be_held_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
