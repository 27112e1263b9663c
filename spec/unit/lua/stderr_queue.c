/* stderr_queue.c: lines for a pipe that is full, gone, or back again. */
#include "lua/binding/stderr_queue.h"

#include "mulligan.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A watchdog, never what a test waits for. */
enum { LONG_MS = 60000 };

#define LOST "@time@ lost @count@."

typedef struct stage {
    int in, out; /* of a pipe */
    mull__writer *writer;
} stage;

static void open_pipe(stage *s)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    s->in = ends[1];
    s->out = ends[0];
}

static void begin(stage *s, size_t most)
{
    open_pipe(s);
    assert_int_equal(mull__writer_new(&s->writer, s->in, most, LOST), MULL_OK);
}

/* close_all gives the writer all of its time, and closes the pipe. */
static void close_all(stage *s)
{
    mull__writer_flush(s->writer, LONG_MS, LONG_MS);
    close(s->in);
}

static void put(stage *s, const char *text)
{
    mull__writer_put(s->writer, text, strlen(text));
}

/* fill_pipe fills what the kernel holds; it gives how much that is. */
static size_t fill_pipe(int fd)
{
    static const char dots[4096];
    size_t filled = 0;
    int flags = fcntl(fd, F_GETFL);
    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    for (ssize_t size; (size = write(fd, dots, sizeof dots)) > 0;)
        filled += (size_t)size;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
    return filled;
}

static void drain(int fd, size_t size)
{
    char bytes[4096];
    while (size > 0) {
        ssize_t got = read(fd, bytes, size < sizeof bytes ? size : sizeof bytes);
        assert_true(got > 0);
        size -= (size_t)got;
    }
}

/* next_line reads a line, without its line feed; "": there are no more. */
static const char *next_line(int fd)
{
    static char text[256];
    size_t size = 0;
    while (size < sizeof text - 1 && read(fd, &text[size], 1) == 1 && text[size] != '\n')
        size++;
    text[size] = 0;
    return text;
}

/* lost_in gives the count of a line that tells of lost ones, after its moment; 0: it is another. */
static unsigned long lost_in(const char *text)
{
    unsigned long count = 0;
    int taken = 0;
    const char *words = strchr(text, ' ');
    if (!words || strlen(text) < 24 || text[4] != '-' || text[10] != 'T')
        return 0;
    return sscanf(words, " lost %lu.%n", &count, &taken) == 1 && !words[taken] ? count : 0;
}

/* ---------------------------------------------------------------------------------------------- */

static void writes_all_in_order(void **state)
{
    enum { LINES = 1000 };
    (void)state;
    stage s;
    begin(&s, 1 << 20);
    char text[32];
    for (int i = 0; i < LINES; i++) {
        snprintf(text, sizeof text, "line %d\n", i);
        put(&s, text);
    }
    close_all(&s);
    for (int i = 0; i < LINES; i++) {
        snprintf(text, sizeof text, "line %d", i);
        assert_string_equal(next_line(s.out), text);
    }
    assert_string_equal(next_line(s.out), "");
    close(s.out);
}

/* What finds no room is told of exactly where it is missing. */
static void tells_of_lost_lines_in_their_place(void **state)
{
    enum { LINES = 5000 };
    (void)state;
    stage s;
    begin(&s, 4096);
    size_t filled = fill_pipe(s.in);
    char text[32];
    for (int i = 0; i < LINES; i++) {
        snprintf(text, sizeof text, "line %d\n", i);
        put(&s, text);
    }
    drain(s.out, filled);
    /* Where some was read, there is room for more, behind what was lost. */
    unsigned long next = 0, lost = 0;
    for (; next < LINES; next++) {
        unsigned long count = 0, seen = 0;
        const char *line = next_line(s.out);
        if ((count = lost_in(line)) > 0) {
            lost += count;
            next += count - 1;
            continue;
        }
        assert_int_equal(sscanf(line, "line %lu", &seen), 1);
        assert_int_equal(seen, next);
    }
    assert_int_equal(next, LINES);
    assert_in_range(lost, LINES - 4096 / 24, LINES - 1);
    put(&s, "after\n");
    assert_string_equal(next_line(s.out), "after");
    close_all(&s);
    assert_string_equal(next_line(s.out), "");
    close(s.out);
}

static void loses_a_line_that_is_larger_than_its_queue(void **state)
{
    (void)state;
    stage s;
    begin(&s, 1024);
    char large[2048];
    memset(large, 'x', sizeof large);
    put(&s, "before\n");
    mull__writer_put(s.writer, large, sizeof large);
    put(&s, "after\n");
    close_all(&s);
    assert_string_equal(next_line(s.out), "before");
    assert_int_equal(lost_in(next_line(s.out)), 1);
    assert_string_equal(next_line(s.out), "after");
    assert_string_equal(next_line(s.out), "");
    close(s.out);
}

static void writes_again_when_somebody_reads_again(void **state)
{
    (void)state;
    stage s;
    begin(&s, 1 << 20);
    put(&s, "first\n");
    assert_string_equal(next_line(s.out), "first");
    close(s.out);
    for (int i = 0; i < 10; i++)
        put(&s, "nobody reads this\n");
    /* The same descriptor, but another pipe. What was tried until then is lost; what wasn't yet is
     * written, behind the line that tells of it. */
    int again[2];
    assert_int_equal(pipe(again), 0);
    assert_int_equal(dup2(again[1], s.in), s.in);
    close(again[1]);
    put(&s, "last\n");
    close_all(&s);
    unsigned long lost = 0, count;
    int kept = 0;
    const char *line;
    while (strcmp(line = next_line(again[0]), "last") != 0) {
        if ((count = lost_in(line)) > 0) {
            assert_int_equal(kept, 0);
            lost += count;
        } else {
            assert_string_equal(line, "nobody reads this");
            kept++;
        }
    }
    assert_int_equal((int)lost + kept, 10);
    assert_string_equal(next_line(again[0]), "");
    close(again[0]);
}

/* tear lets a line be cut off by its reader, who goes, and `pauses` later puts a file in the place
 * of the pipe. It gives what is in that file in the end. */
static const char *tear(int pauses)
{
    enum { LARGE = 256 * 1024 };
    static char large[LARGE], text[LARGE + 256];
    stage s;
    begin(&s, 1 << 20);
    memset(large, 'x', LARGE);
    large[LARGE - 1] = '\n';
    mull__writer_put(s.writer, large, LARGE);
    drain(s.out, 4096); /* its writing has begun, and can't have ended */
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    assert_true(file >= 0);
    close(s.out);
    for (int i = 0; i < pauses; i++)
        sched_yield();
    assert_int_equal(dup2(file, s.in), s.in);
    put(&s, "last\n");
    close_all(&s);
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    assert_true(size > 0);
    text[size] = 0;
    close(file);
    return text;
}

/* A line that was cut off is ended before anything else is written. Where the file was there before
 * the writer found its reader gone, the rest of the line is in the file. */
static void ends_a_line_that_was_torn(void **state)
{
    enum { TRIES = 2000 };
    (void)state;
    int torn = 0;
    for (int pauses = 0; pauses < TRIES && !torn; pauses++) {
        const char *text = tear(pauses);
        const char *first = text + strspn(text, "x");
        assert_int_equal(*first, '\n');
        torn = first == text;
        if (!torn) {
            assert_string_equal(first, "\nlast\n");
            continue;
        }
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(first + 1, "\n"), first + 1);
        assert_int_equal(lost_in(line), 1);
        assert_string_equal(first + 1 + strlen(line), "\nlast\n");
    }
    assert_true(torn);
}

static void waits_where_others_made_the_descriptor_one_that_does_not(void **state)
{
    enum { LINES = 20000 };
    (void)state;
    stage s;
    begin(&s, 4 << 20);
    assert_int_equal(fcntl(s.in, F_SETFL, fcntl(s.in, F_GETFL) | O_NONBLOCK), 0);
    for (int i = 0; i < LINES; i++)
        put(&s, "a line that is there\n");
    for (int i = 0; i < LINES; i++)
        assert_string_equal(next_line(s.out), "a line that is there");
    close_all(&s);
    assert_string_equal(next_line(s.out), "");
    close(s.out);
}

/* The pipe is full and stays so: neither giving lines nor the end waits for it. */
static void ends_where_nobody_reads(void **state)
{
    (void)state;
    stage s;
    begin(&s, 1 << 20);
    fill_pipe(s.in);
    for (int i = 0; i < 100000; i++)
        put(&s, "a line that nobody reads\n");
    mull__writer_flush(s.writer, 10, LONG_MS);
    close(s.out);
}

/* What can't be written is lost, and the thread ends all the same. */
static void ends_where_nothing_can_be_written(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY);
    int bad = dup(full);
    assert_true(full >= 0 && bad >= 0);
    close(bad);
    const int fds[] = {full, bad};
    for (int i = 0; i < 2; i++) {
        mull__writer *writer;
        assert_int_equal(mull__writer_new(&writer, fds[i], 1 << 20, LOST), MULL_OK);
        for (int n = 0; n < 100; n++)
            mull__writer_put(writer, "nowhere\n", 8);
        mull__writer_flush(writer, LONG_MS, LONG_MS);
    }
    close(full);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_all_in_order),
        cmocka_unit_test(tells_of_lost_lines_in_their_place),
        cmocka_unit_test(loses_a_line_that_is_larger_than_its_queue),
        cmocka_unit_test(writes_again_when_somebody_reads_again),
        cmocka_unit_test(ends_a_line_that_was_torn),
        cmocka_unit_test(waits_where_others_made_the_descriptor_one_that_does_not),
        cmocka_unit_test(ends_where_nothing_can_be_written),
        cmocka_unit_test(ends_where_nobody_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
