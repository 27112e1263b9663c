/* declare.c: queues as they shall be, or as they are found; see state.h.
 *
 * A broker tells nobody what a queue's arguments are. But it refuses a declaration that differs,
 * and names the first argument that does with its value. So that is put into the next declaration,
 * until one is taken: then all of them are known, and whether the queue may be used. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mull__amqp_argument argument;

/* No number of hand-outs is too many for the broker: max_deliveries is the policy's. It knows no
 * word for that in all of its versions. */
enum { DELIVERY_LIMIT = INT32_MAX };

static argument *find(mull__amqp_declaration *d, const char *name)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->arguments[i].name, name) == 0)
            return &d->arguments[i];
    return NULL;
}

/* place finds an argument, or makes one. NULL: there are too many. */
static argument *place(mull__amqp_declaration *d, const char *name)
{
    argument *found = find(d, name);
    if (found || d->count == MULL__AMQP_ARGUMENTS || strlen(name) >= sizeof found->name)
        return found;
    found = &d->arguments[d->count++];
    *found = (argument){0};
    snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

void mull__amqp_declare_begin(mull__amqp *t, mull__amqp_declaration *d, int is_read)
{
    *d = (mull__amqp_declaration){.as_is = !t->options.declare, .is_read = is_read};
    if (d->as_is)
        return;
    argument *type = place(d, "x-queue-type"), *limit = NULL;
    type->kind = AMQP_FIELD_KIND_UTF8;
    snprintf(type->text, sizeof type->text, "%s", t->options.classic ? "classic" : "quorum");
    if (t->options.classic)
        return;
    limit = place(d, "x-delivery-limit");
    limit->kind = AMQP_FIELD_KIND_I64;
    limit->number = DELIVERY_LIMIT;
}

int mull__amqp_declare_send(mull__amqp *t, const mull__amqp_declaration *d, const char *queue)
{
    amqp_table_entry_t entries[MULL__AMQP_ARGUMENTS];
    amqp_queue_declare_t declare = {.queue = mull__amqp_text(queue),
                                    .passive = d->as_is,
                                    .durable = 1,
                                    .arguments = {0, entries}};
    for (size_t i = 0; i < d->count; i++) {
        const argument *a = &d->arguments[i];
        amqp_table_entry_t *entry = &entries[declare.arguments.num_entries];
        if (a->kind == 0)
            continue;
        entry->key = mull__amqp_text(a->name);
        entry->value.kind = (uint8_t)a->kind;
        if (a->kind == AMQP_FIELD_KIND_UTF8)
            entry->value.value.bytes = mull__amqp_text(a->text);
        else if (a->kind == AMQP_FIELD_KIND_BOOLEAN)
            entry->value.value.boolean = a->number != 0;
        else
            entry->value.value.i64 = a->number;
        declare.arguments.num_entries++;
    }
    return mull__amqp_send(&t->session, MULL__AMQP_ASKS, AMQP_QUEUE_DECLARE_METHOD, &declare);
}

/* ---- What is there --------------------------------------------------------------------------- */

/* between copies what stands between two marks of a text; 0: it isn't there whole. */
static int between(char *out, size_t size, const char *text, const char *before, const char *after)
{
    const char *begin = strstr(text, before);
    const char *end = begin ? strstr(begin + strlen(before), after) : NULL;
    if (!end)
        return 0;
    begin += strlen(before);
    return snprintf(out, size, "%.*s", (int)(end - begin), begin) < (int)size;
}

static void note(mull__amqp_declaration *d, const char *name, const char *value)
{
    size_t length = strlen(d->differs);
    snprintf(d->differs + length, sizeof d->differs - length, "%s%s %s", length ? ", " : "", name,
             value);
}

static void set(argument *a, int kind, const char *value)
{
    a->kind = kind;
    snprintf(a->text, sizeof a->text, "%s", value);
    a->number = strcmp(value, "true") == 0 ? 1 : strtoll(value, NULL, 10);
}

/* read_current reads what an argument is, in each of the ways in which the broker says that:
 *
 *   received 'quorum' but current is 'classic'                     of the same kind
 *   received none but current is the value '5' of type 'byte'
 *   received the value 'quorum' of type 'longstr' but current is none
 *
 * 0: in another. `value` is for people. */
static int read_current(argument *a, const char *current, char value[256])
{
    char type[32];
    if (strncmp(current, "none", 4) == 0 && a->kind != 0) {
        snprintf(value, 256, "none");
        a->kind = 0;
        return 1;
    }
    if (current[0] == '\'' && a->kind != 0 && between(value, 256, current, "'", "'")) {
        set(a, a->kind, value);
        return 1;
    }
    if (!between(value, 256, current, "the value '", "' of type '") ||
        !between(type, sizeof type, current, "' of type '", "'"))
        return 0;
    set(a,
        strcmp(type, "longstr") == 0 ? AMQP_FIELD_KIND_UTF8
        : strcmp(type, "bool") == 0  ? AMQP_FIELD_KIND_BOOLEAN
                                     : AMQP_FIELD_KIND_I64,
        value);
    return 1;
}

/* learn takes over the argument that differs, as it is there. 0: it can't be told, or what was
 * taken over for it isn't what is there: bytes that the broker's text can't have, say. */
static int learn(mull__amqp_declaration *d, const char *text)
{
    static const char before[] = "but current is ";
    char name[48], value[256];
    const char *current = strstr(text, before);
    argument *a = current && between(name, sizeof name, text, "inequivalent arg '", "'")
                      ? place(d, name)
                      : NULL;
    if (!a || a->is_learnt || !read_current(a, current + sizeof before - 1, value))
        return 0;
    a->is_learnt = 1;
    note(d, name, value[0] ? value : "''");
    return 1;
}

/* unsafe says what about a queue loses messages, or can't be read; NULL: nothing known. */
static const char *unsafe(const char *text)
{
    if (strstr(text, "inequivalent arg 'durable'"))
        return "it isn't durable, so its messages are gone after a restart of the broker";
    if (strstr(text, "inequivalent arg 'auto_delete'"))
        return "it is deleted with its last consumer (auto-delete), and its messages with it";
    return NULL;
}

static int refuse(char *why, size_t size, const char *what, const char *otherwise)
{
    snprintf(why, size, "it is there already, and %s; use another%s", what, otherwise);
    return MULL_EREFUSED;
}

static const char or_as_it_is[] = ", or take it as it is by declare=no";

static int is_given(mull__amqp_declaration *d, const char *name)
{
    const argument *found = find(d, name);
    return found && found->kind != 0;
}

/* drops writes the arguments by which the broker drops messages, and says how many they are. */
static size_t drops(mull__amqp_declaration *d, char *out, size_t size)
{
    static const char *const names[] = {"x-expires", "x-message-ttl", "x-max-age", "x-max-length",
                                        "x-max-length-bytes"};
    const argument *overflow = find(d, "x-overflow");
    int rejects = overflow && strncmp(overflow->text, "reject-publish", 14) == 0;
    size_t count = 0, length = 0;
    for (size_t i = 0; i < (rejects ? 3 : 5); i++) {
        if (!is_given(d, names[i]))
            continue;
        length += (size_t)snprintf(out + length, size - length, "%s%s %.40s", count ? ", " : "",
                                   names[i], find(d, names[i])->text);
        count++;
    }
    return count;
}

/* tell_drops warns of a queue that drops messages. That is its owner's to decide: it isn't refused.
 * One that expires goes with all that it has, whatever its exchange for dead letters. */
static void tell_drops(mull__amqp *t, mull__amqp_declaration *d, const char *queue)
{
    char what[320];
    int keeps = is_given(d, "x-dead-letter-exchange") && !is_given(d, "x-expires");
    if (drops(d, what, sizeof what) > 0)
        mull__amqp_log(t, MULL_WARNING,
                       "the queue '%s' has %s: the broker %s messages there, whatever the policy "
                       "says",
                       queue, what, keeps ? "dead-letters" : "drops");
}

/* judge says whether a queue whose arguments are known may be read. */
static int judge(mull__amqp *t, mull__amqp_declaration *d, const char *queue, char *why,
                 size_t size)
{
    const argument *type = find(d, "x-queue-type"), *limit = find(d, "x-delivery-limit");
    const char *is = type && type->kind == AMQP_FIELD_KIND_UTF8 ? type->text : "classic";
    const char *wanted = t->options.classic ? "classic" : "quorum";
    char what[160];
    if (strcmp(is, "quorum") != 0 && strcmp(is, "classic") != 0) {
        snprintf(what, sizeof what, "it is a %.40s, from which no message can be taken", is);
        return refuse(why, size, what, "");
    }
    if (t->options.type_is_asked && strcmp(is, wanted) != 0) {
        snprintf(what, sizeof what, "it is a %.40s queue, but the URL says queue_type=%s", is,
                 wanted);
        return refuse(why, size, what, or_as_it_is);
    }
    d->is_quorum = strcmp(is, "quorum") == 0;
    int unlimited = limit && limit->kind ? limit->number < 0 || limit->number >= DELIVERY_LIMIT
                                         : t->session.server_major < 4;
    if (d->is_quorum && !unlimited)
        mull__amqp_log(t, MULL_WARNING,
                       "the queue '%s' has an x-delivery-limit, after which the broker drops a "
                       "message or dead-letters it, whatever the policy says; declare it with %d",
                       queue, DELIVERY_LIMIT);
    if (d->differs[0])
        mull__amqp_log(t, MULL_INFO, "the queue '%s' is there already, and used as it is: %s",
                       queue, d->differs);
    return 1;
}

/* closed says what a refusal comes to. */
static int closed(mull__amqp *t, mull__amqp_declaration *d, const mull__amqp_reply *reply,
                  char *why, size_t size)
{
    const char *what = reply->code == AMQP_PRECONDITION_FAILED ? unsafe(reply->text) : NULL;
    if (what)
        return refuse(why, size, what, or_as_it_is);
    if (reply->code == AMQP_NOT_FOUND && !t->options.declare) {
        snprintf(why, size, "there is no such queue; make it, or leave out declare=no");
        return MULL_EREFUSED;
    }
    if (reply->code == AMQP_ACCESS_REFUSED && !d->as_is) {
        snprintf(why, size,
                 "user '%.60s' may not declare it (403); allow that, or make the queue and use "
                 "declare=no",
                 t->login.user);
        return MULL_EREFUSED;
    }
    if (reply->code == AMQP_PRECONDITION_FAILED && !d->as_is && learn(d, reply->text))
        return 0;
    if (reply->code == AMQP_PRECONDITION_FAILED && !d->as_is &&
        !(d->is_read && t->options.type_is_asked)) {
        d->as_is = 1; /* what can't be told is no reason not to use it */
        return 0;
    }
    snprintf(why, size, "it can't be declared (%d): %s", reply->code, reply->text);
    return MULL_EREFUSED;
}

int mull__amqp_declare_answered(mull__amqp *t, mull__amqp_declaration *d, const char *queue,
                                const mull__amqp_reply *reply, char *why, size_t size)
{
    if (reply->code < 0) {
        snprintf(why, size, "%s", reply->text);
        return MULL_EIO;
    }
    if (reply->code > 0)
        return closed(t, d, reply, why, size);
    int status = d->is_read && !d->as_is ? judge(t, d, queue, why, size) : 1;
    if (status == 1)
        tell_drops(t, d, queue);
    return status;
}
