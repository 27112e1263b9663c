/* headers.c: see headers.h. Reading looks each header up in a table of names; writing collects
 * pieces of text first, then lays all of them out in one block. */
#include "headers.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "json_write.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = "mulligan-";

int mull__is_own(const char *name)
{
    return strncmp(name, prefix, sizeof prefix - 1) == 0;
}

enum {
    MESSAGE_MAX = 16 * 1024, /* also of the stack */
    CHAIN_MAX = 4 * 1024,
    NAME_MAX = 1024, /* a type, a queue, a consumer, a rule */
    CAUSES_MAX = 16,
    PIECES_MAX = 20
};

/* cut gives the length of `text` at most `most`, without half a character at the end. */
static size_t cut(const char *text, size_t most)
{
    size_t length = strnlen(text, most + 1);
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xC0) == 0x80)
        most--;
    return most;
}

/* ---- Reading --------------------------------------------------------------------------------- */

const char *mull__header_find(const mull_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(headers[i].name, name) == 0)
            return headers[i].value;
    return NULL;
}

/* whole reads a whole number from 0; -1: it is none, or too long to be a count. */
static int64_t whole(const char *text)
{
    int64_t value = 0;
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length > 15 || text[length])
        return -1;
    for (size_t i = 0; i < length; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

static void ignore(mull__header_record *record, const char *name)
{
    for (size_t i = 0; i < sizeof record->ignored / sizeof *record->ignored; i++)
        if (!record->ignored[i]) {
            record->ignored[i] = name;
            return;
        }
}

/* counter reads a counter: `missing` where there is none, 0 where it can't be read. */
static int64_t counter(mull__header_record *record, const mull_header *headers, size_t count,
                       const char *name, int64_t missing)
{
    const char *text = mull__header_find(headers, count, name);
    if (!text)
        return missing;
    int64_t value = whole(text);
    if (value >= 0)
        return value;
    ignore(record, name);
    return 0;
}

/* names says whether a header, which may have been cut, names the queue. */
static int names(const char *header, const char *queue)
{
    size_t length = cut(queue, NAME_MAX);
    return header && strlen(header) == length && memcmp(header, queue, length) == 0;
}

/* moment reads a moment that isn't ahead; 0: there is none, or none that can be. */
static int64_t moment(mull__header_record *record, const mull_header *headers, size_t count,
                      const char *name, int64_t now_ms)
{
    int64_t value = 0;
    const char *text = mull__header_find(headers, count, name);
    if (!text || (mull__timestamp_read(text, &value) == 0 && value <= now_ms))
        return value;
    ignore(record, name);
    return 0;
}

static void read_counters(mull__header_record *record, const mull_header *headers, size_t count,
                          int64_t now_ms)
{
    record->redeliveries = counter(record, headers, count, "mulligan-redeliveries", 0);
    record->calls = counter(record, headers, count, "mulligan-calls", record->redeliveries);
    record->first_failure_ms = moment(record, headers, count, "mulligan-first-failure", now_ms);
    record->last_failure_ms = moment(record, headers, count, "mulligan-last-failure", INT64_MAX);
    record->held_ms = counter(record, headers, count, "mulligan-held", 0);
    record->held_since_ms = moment(record, headers, count, "mulligan-held-since", now_ms);
    record->error_type = mull__header_find(headers, count, "mulligan-error-type");
}

void mull__record_read(mull__header_record *record, const mull_header *headers, size_t count,
                       const char *queue, int64_t now_ms)
{
    *record = (mull__header_record){0};
    if (count == 0)
        return;
    record->given_id = mull__header_find(headers, count, "mulligan-id");
    const char *came_from = mull__header_find(headers, count, "mulligan-queue");
    const char *counting = mull__header_find(headers, count, "mulligan-counting");
    const char *due = mull__header_find(headers, count, "mulligan-due");
    if (due && mull__timestamp_read(due, &record->due_ms) != 0)
        record->due_ms = 0;
    record->returned = names(came_from, queue);
    record->aside = came_from && !record->returned;
    int anew = record->returned || (record->aside && !names(counting, queue));
    if (!anew)
        read_counters(record, headers, count, now_ms);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* piece is a header to be written: its value is `text`, cut to `length`. */
typedef struct piece {
    const char *name;
    const char *text;
    size_t length;
} piece;

typedef struct pieces {
    piece list[PIECES_MAX];
    size_t count;
    char redeliveries[24], calls[24], held[24];
    char first[MULL__TIMESTAMP_SIZE], last[MULL__TIMESTAMP_SIZE], due[MULL__TIMESTAMP_SIZE],
        held_since[MULL__TIMESTAMP_SIZE];
    char rule[NAME_MAX], chain[CHAIN_MAX];
} pieces;

static void put(pieces *p, const char *name, const char *text, size_t most)
{
    if (text && p->count < PIECES_MAX)
        p->list[p->count++] = (piece){.name = name, .text = text, .length = cut(text, most)};
}

static void put_number(pieces *p, const char *name, char buffer[24], int64_t value)
{
    snprintf(buffer, 24, "%lld", (long long)value);
    put(p, name, buffer, 24);
}

static void put_moment(pieces *p, const char *name, char buffer[MULL__TIMESTAMP_SIZE],
                       int64_t wall_ms)
{
    if (wall_ms <= 0)
        return;
    mull__timestamp_write(wall_ms, buffer);
    put(p, name, buffer, MULL__TIMESTAMP_SIZE);
}

/* chain_of writes the types of the causes, "A, B, C"; at most 16, so a cycle ends too. */
static void chain_of(const mull_error *error, char chain[CHAIN_MAX])
{
    size_t used = 0;
    chain[0] = 0;
    const mull_error *cause = error->cause;
    for (int depth = 0; cause && depth < CAUSES_MAX; depth++, cause = cause->cause) {
        size_t length = cut(cause->type ? cause->type : "", NAME_MAX);
        if (used + length + 3 > CHAIN_MAX)
            return;
        used += (size_t)snprintf(chain + used, CHAIN_MAX - used, "%s%.*s", depth ? ", " : "",
                                 (int)length, cause->type ? cause->type : "");
    }
}

static void put_failure(pieces *p, const mull__header_values *stamp)
{
    const mull_error *error = stamp->error;
    const mull_verdict *verdict = stamp->verdict;
    put(p, "mulligan-queue", stamp->queue, NAME_MAX);
    put(p, "mulligan-consumer", stamp->consumer, NAME_MAX);
    put(p, "mulligan-error-type", error->type, NAME_MAX);
    put(p, "mulligan-error-message", error->message ? error->message : "", MESSAGE_MAX);
    put(p, "mulligan-error-stack", error->stack ? error->stack : "", MESSAGE_MAX);
    chain_of(error, p->chain);
    if (p->chain[0])
        put(p, "mulligan-error-chain", p->chain, CHAIN_MAX);
    if (verdict->rule.file) {
        snprintf(p->rule, sizeof p->rule, "%.*s:%d", (int)cut(verdict->rule.file, NAME_MAX - 16),
                 verdict->rule.file, verdict->rule.line);
        put(p, "mulligan-rule", p->rule, NAME_MAX);
    }
    put(p, "mulligan-reason", mull_reason_name(verdict->reason), NAME_MAX);
    put(p, "mulligan-generation", verdict->generation, NAME_MAX);
}

static void collect(pieces *p, const mull__header_values *stamp)
{
    p->count = 0;
    put(p, "mulligan-id", stamp->given_id, NAME_MAX);
    put_number(p, "mulligan-redeliveries", p->redeliveries, stamp->redeliveries);
    put_number(p, "mulligan-calls", p->calls, stamp->calls);
    put_moment(p, "mulligan-first-failure", p->first, stamp->first_failure_ms);
    put_moment(p, "mulligan-last-failure", p->last, stamp->last_failure_ms);
    put_moment(p, "mulligan-due", p->due, stamp->due_ms);
    if (stamp->held_ms > 0)
        put_number(p, "mulligan-held", p->held, stamp->held_ms);
    put_moment(p, "mulligan-held-since", p->held_since, stamp->held_since_ms);
    if (stamp->error)
        put_failure(p, stamp);
    else if (stamp->keep_aside)
        put(p, "mulligan-counting", stamp->queue, NAME_MAX);
    else
        put(p, "mulligan-error-type", stamp->error_type, NAME_MAX);
}

/* is_kept: of ours, the record of an earlier dead letter. */
static int is_kept(const char *name, const mull__header_values *stamp)
{
    static const char *const rewritten[] = {"mulligan-id",           "mulligan-redeliveries",
                                            "mulligan-calls",        "mulligan-first-failure",
                                            "mulligan-last-failure", "mulligan-counting",
                                            "mulligan-due",          "mulligan-held",
                                            "mulligan-held-since"};
    if (!stamp->keep_aside || stamp->error || !mull__is_own(name))
        return 0;
    for (size_t i = 0; i < sizeof rewritten / sizeof *rewritten; i++)
        if (strcmp(name, rewritten[i]) == 0)
            return 0;
    return 1;
}

/* place_text copies the beginning of a text to `*at`, and moves that behind it. */
static const char *place_text(char **at, const char *from, size_t length)
{
    char *text = memcpy(*at, from, length);
    text[length] = 0;
    mull__utf8_repair(text, length); /* an error's text may be anything */
    *at += length + 1;
    return text;
}

int mull__headers_write(mull_header **out, size_t *out_count, const mull_allocator *allocator,
                        const mull_header *came, size_t came_count,
                        const mull__header_values *stamp)
{
    pieces p;
    collect(&p, stamp);
    size_t most = (stamp->keep_aside ? came_count : 0) + p.count + stamp->fault_count;
    size_t text_size = 0;
    for (size_t i = 0; i < p.count; i++)
        text_size += p.list[i].length + 1;
    for (size_t i = 0; i < stamp->fault_count; i++)
        text_size += strlen(stamp->faults[i].name) + cut(stamp->faults[i].value, MESSAGE_MAX) + 2;

    *out = mull__alloc(allocator, most * sizeof(mull_header) + text_size);
    if (!*out)
        return MULL_ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < came_count; i++)
        if (is_kept(came[i].name, stamp))
            (*out)[count++] = came[i];
    char *text = (char *)(*out + most);
    for (size_t i = 0; i < p.count; i++) {
        const char *value = place_text(&text, p.list[i].text, p.list[i].length);
        (*out)[count++] = (mull_header){.name = p.list[i].name, .value = value};
    }
    for (size_t i = 0; i < stamp->fault_count; i++) {
        const mull_header *fault = &stamp->faults[i];
        const char *name = place_text(&text, fault->name, strlen(fault->name));
        const char *value = place_text(&text, fault->value, cut(fault->value, MESSAGE_MAX));
        (*out)[count++] = (mull_header){.name = name, .value = value};
    }
    *out_count = count;
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int add_headers(mull__json_text *out, const mull_header *headers, size_t count)
{
    int status = mull__json_add(out, "{");
    for (size_t i = 0; status == 0 && i < count; i++) {
        status = mull__json_add_string(out, headers[i].name, ':');
        if (status == 0)
            status = mull__json_add_string(out, headers[i].value, ',');
    }
    out->size -= status == 0 && count > 0; /* the last comma */
    return status == 0 ? mull__json_add(out, "}") : status;
}

int mull__headers_to_json(char **out, const mull_allocator *allocator, const mull_header *headers,
                          size_t count)
{
    mull__json_text written = {.allocator = allocator};
    int status = add_headers(&written, headers, count);
    *out = status == 0 ? written.memory : NULL;
    if (status != 0)
        mull__free(allocator, written.memory);
    return status;
}
