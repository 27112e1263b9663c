/* verdict_msgpack.c: see verdict_msgpack.h. Room for all of it is made once; each key stands here
 * with its head. */
#include "verdict_msgpack.h"

#include <string.h>

/* KEYS: what all heads, keys and words take, and more. */
enum { KEYS = 512 };

#define PUT(to, bytes) ((char *)memcpy(to, bytes, sizeof(bytes) - 1) + sizeof(bytes) - 1)

/* KEY puts a name with its head: the two are apart, or C would read on in the head. */
#define KEY(to, head, name) PUT(to, head name)
#define NIL                 "\xc0"

static size_t size_of(const char *text)
{
    return text ? strlen(text) : 0;
}

static inline char *put_text(char *to, const char *text)
{
    return text ? mull__msgpack_put_string(to, text, strlen(text)) : PUT(to, NIL);
}

static char *put_step(char *to, int64_t number, int is_there)
{
    return is_there ? mull__msgpack_put_integer(to, number) : PUT(to, NIL);
}

static char *put_rule(char *to, const mull_rule *rule)
{
    if (!rule->file)
        return PUT(to, NIL);
    to = KEY(to, "\x84\xa4", "file");
    to = put_text(to, rule->file);
    to = KEY(to, "\xa4", "line");
    to = mull__msgpack_put_integer(to, rule->line);
    to = KEY(to, "\xa5", "scope");
    to = put_text(to, rule->scope);
    to = KEY(to, "\xa4", "type");
    return put_text(to, rule->type);
}

void mull__verdict_to_msgpack(mull__msgpack *out, const mull_verdict *verdict)
{
    const mull_rule *rule = &verdict->rule;
    int has_step = verdict->tier != MULL_TIER_NONE;
    char *to = mull__msgpack_room(out, KEYS + size_of(verdict->queue) + size_of(verdict->note) +
                                           size_of(rule->file) + size_of(rule->scope) +
                                           size_of(rule->type) + size_of(verdict->generation));
    if (!to)
        return;
    to = KEY(to, "\x8b\xa6", "action");
    to = put_text(to, mull_action_name(verdict->action));
    to = KEY(to, "\xa8", "delay_ms");
    to = mull__msgpack_put_integer(to, verdict->delay_ms);
    to = KEY(to, "\xa5", "queue");
    to = put_text(to, verdict->queue);
    to = KEY(to, "\xa6", "reason");
    to = put_text(to, mull_reason_name(verdict->reason));
    to = KEY(to, "\xa4", "note");
    to = put_text(to, verdict->note);
    to = KEY(to, "\xa4", "tier");
    to = put_text(to, mull_tier_name(verdict->tier));
    to = KEY(to, "\xa4", "step");
    to = put_step(to, verdict->step, has_step);
    to = KEY(to, "\xa2", "of");
    to = put_step(to, verdict->of, has_step && verdict->of > 0);
    to = KEY(to, "\xa4", "rule");
    to = put_rule(to, rule);
    to = KEY(to, "\xa8", "fallback");
    to = put_text(to, mull_fallback_name(verdict->fallback));
    to = KEY(to, "\xaa", "generation");
    to = put_text(to, verdict->generation);
    out->size = (size_t)(to - out->memory);
}
