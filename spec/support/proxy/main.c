/* main.c: the proxy as a program, for tests.
 *
 *   proxy TARGET_PORT
 *
 * It writes "port N", and then a line for each line that it reads: "ok", the numbers asked for, or
 * "error: ...". It ends when its input does. DIRECTION is up (to the server) or down (to the
 * client); without one, both are meant. What holds, holds for all connections, now and later:
 *
 *   delay MS [DIRECTION]           bytes are passed on so much later
 *   slice N [DIRECTION]            N bytes at a time; 0: as they come
 *   stop [DIRECTION]               bytes are held; once 64 KiB are, the sender has to wait
 *   resume [DIRECTION]
 *   refuse, accept                 new connections
 *   cut-after N DIRECTION          the connection that passes the N-th byte from now is cut, once
 *   reset-after N DIRECTION        or reset
 *
 * What is done now, to all connections:
 *
 *   cut                            they end in order, on both sides; what is held is lost
 *   reset                          they end in a reset
 *   half-close DIRECTION           one side sees the end, the other way goes on
 *   count                          answers "accepted N open N up N down N held N": connections,
 *                                  bytes that were passed on, bytes that wait here
 *   await WHAT N                   answers once one of these is at least N (`open`: is N), or an
 *                                  error after 60 s */
#include "proxy.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHDOG_MS = 60000, LINE_SIZE = 128 };

static proxy the_proxy;
static uv_pipe_t input;
static uv_timer_t watchdog;
static char line[LINE_SIZE];
static size_t line_length;

/* What is awaited; "": nothing. */
static char awaited[LINE_SIZE];
static uint64_t awaited_count;

static void answer(const char *text)
{
    puts(text);
    fflush(stdout);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static const char *const counters[] = {"accepted", "open", "up", "down", "held"};

/* counter finds a number by its name; 0: there is none such. */
static int counter(const char *name, uint64_t *value)
{
    uint64_t values[] = {the_proxy.accepted, the_proxy.connections.count,
                         the_proxy.rules[UP].passed, the_proxy.rules[DOWN].passed,
                         proxy_held(&the_proxy)};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (strcmp(name, counters[i]) == 0) {
            *value = values[i];
            return 1;
        }
    return 0;
}

static void stop_waiting(const char *text)
{
    awaited[0] = '\0';
    uv_timer_stop(&watchdog);
    answer(text);
}

void proxy_changed(proxy *p)
{
    uint64_t value;
    (void)p;
    if (!counter(awaited, &value))
        return;
    if (strcmp(awaited, "open") == 0 ? value == awaited_count : value >= awaited_count)
        stop_waiting("ok");
}

static void on_watchdog(uv_timer_t *timer)
{
    uint64_t value = 0;
    char text[2 * LINE_SIZE];
    (void)timer;
    counter(awaited, &value);
    snprintf(text, sizeof text, "error: waited for %s %" PRIu64 ", there are %" PRIu64, awaited,
             awaited_count, value);
    stop_waiting(text);
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* command is a line: its words, and what they mean. */
typedef struct command {
    const char *words[4];
    int count;
    uint64_t number; /* the second word, where it is one */
    int has_number;
    unsigned directions; /* bits, from the last word; both without one */
    int has_direction;
} command;

static command split(char *text)
{
    command c = {.directions = 1u << UP | 1u << DOWN};
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word && c.count < 4;
         word = strtok_r(NULL, " ", &rest))
        c.words[c.count++] = word;
    if (c.count > 1) {
        char *end;
        const char *last = c.words[c.count - 1];
        c.number = strtoull(c.words[1], &end, 10);
        c.has_number = *end == '\0';
        c.has_direction = strcmp(last, "up") == 0 || strcmp(last, "down") == 0;
        if (c.has_direction)
            c.directions = 1u << (strcmp(last, "up") == 0 ? UP : DOWN);
    }
    return c;
}

static int is(const command *c, const char *name)
{
    return c->count > 0 && strcmp(c->words[0], name) == 0;
}

static void set_rule(const command *c, rule *r)
{
    if (is(c, "delay"))
        r->delay_ms = c->number;
    else if (is(c, "slice"))
        r->slice = (size_t)c->number;
    else if (is(c, "stop") || is(c, "resume"))
        r->stopped = is(c, "stop");
    else {
        r->ends = 1;
        r->left_until_end = c->number;
        r->ends_by_reset = is(c, "reset-after");
    }
}

/* is_rule says whether a command sets one, and has what it needs. */
static int is_rule(const command *c)
{
    int with_number = 1 + c->has_number + c->has_direction;
    if (is(c, "delay") || is(c, "slice"))
        return c->has_number && c->count == with_number;
    if (is(c, "stop") || is(c, "resume"))
        return c->count == 1 + c->has_direction;
    return (is(c, "cut-after") || is(c, "reset-after")) && c->has_number && c->number > 0 &&
           c->has_direction && c->count == 3;
}

/* act does a command; 0: it is none, or lacks something. */
static int act(const command *c)
{
    proxy *p = &the_proxy;
    if (is_rule(c)) {
        for (int to = UP; to <= DOWN; to++)
            if (c->directions & 1u << to)
                set_rule(c, &p->rules[to]);
        proxy_go_on(p);
    } else if (is(c, "half-close") && c->has_direction && c->count == 2) {
        proxy_half_close(p, c->directions == 1u << UP ? UP : DOWN);
    } else if (c->count != 1) {
        return 0;
    } else if (is(c, "cut") || is(c, "reset")) {
        proxy_end(p, is(c, "reset"));
    } else if (is(c, "refuse")) {
        proxy_refuse(p);
    } else if (is(c, "accept")) {
        proxy_listen(p);
    } else {
        return 0;
    }
    return 1;
}

static void obey(char *text)
{
    command c = split(text);
    char reply[2 * LINE_SIZE];
    uint64_t value;
    if (is(&c, "await") && c.count == 3 && counter(c.words[1], &value)) {
        strcpy(awaited, c.words[1]);
        awaited_count = strtoull(c.words[2], NULL, 10);
        uv_timer_start(&watchdog, on_watchdog, WATCHDOG_MS, 0);
        proxy_changed(&the_proxy);
    } else if (is(&c, "count") && c.count == 1) {
        int length = 0;
        for (size_t i = 0; i < sizeof counters / sizeof *counters && counter(counters[i], &value);
             i++)
            length += snprintf(reply + length, sizeof reply - (size_t)length, "%s%s %" PRIu64,
                               i > 0 ? " " : "", counters[i], value);
        answer(reply);
    } else if (act(&c)) {
        answer("ok");
    } else {
        snprintf(reply, sizeof reply, "error: '%s' is no command, or lacks something",
                 c.count > 0 ? c.words[0] : "");
        answer(reply);
    }
}

/* ---- The program ----------------------------------------------------------------------------- */

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char bytes[1024];
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(bytes, sizeof bytes);
}

static void on_input(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    (void)stream;
    if (size < 0)
        exit(0);
    for (ssize_t i = 0; i < size; i++) {
        if (buffer->base[i] != '\n') {
            if (line_length < sizeof line - 1)
                line[line_length++] = buffer->base[i];
            continue;
        }
        line[line_length] = '\0';
        line_length = 0;
        obey(line);
    }
}

int main(int count, char **arguments)
{
    int target = count == 2 ? atoi(arguments[1]) : 0;
    if (target < 1 || target > 65535) {
        fprintf(stderr, "usage: proxy TARGET_PORT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    proxy_open(&the_proxy, target);
    uv_timer_init(&the_proxy.loop, &watchdog);
    uv_pipe_init(&the_proxy.loop, &input, 0);
    if (uv_pipe_open(&input, 0) != 0 ||
        uv_read_start((uv_stream_t *)&input, on_allocate, on_input) != 0) {
        fprintf(stderr, "proxy: its input must be a pipe\n");
        return 2;
    }
    printf("port %d\n", the_proxy.port);
    fflush(stdout);
    uv_run(&the_proxy.loop, UV_RUN_DEFAULT);
    return 0;
}
