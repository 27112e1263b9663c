/* copy.c: deep copies of errors and messages, each in one block (base/block.h). */
#include "copy.h"

#include "base/block.h"
#include "base/struct_compat.h"
#include "base/utf8.h"
#include "calls.h"

#include <string.h>

enum { NESTING_MAX = 16, CAUSES_MAX = 16, VALUES_MAX = 10000, TEXTS_MAX = 1024 * 1024 };

typedef struct block {
    mull__block block;
    size_t values; /* of an error, in its lists and maps, so far */
    size_t texts;  /* bytes of those */
} block;

static void *take(block *b, size_t bytes)
{
    return mull__block_take(&b->block, bytes);
}

static const char *take_text(block *b, const char *text)
{
    return mull__block_text(&b->block, text);
}

/* has_room takes room for what stands right in a list or map. What several of them share is copied
 * for each, so all together have to be bounded. */
static int has_room(block *b, const mull_value *value)
{
    int is_map = value->kind == MULL_MAP;
    size_t texts = b->texts;
    if (value->count > VALUES_MAX - b->values)
        return 0;
    for (size_t i = 0; i < value->count && texts <= TEXTS_MAX; i++) {
        const mull_value *item = is_map ? &value->as.fields[i].value : &value->as.items[i];
        if (is_map && value->as.fields[i].name)
            texts += strlen(value->as.fields[i].name);
        if (mull__kind(item) == MULL_STRING)
            texts += strlen(item->as.string);
    }
    if (texts > TEXTS_MAX)
        return 0;
    b->values += value->count;
    b->texts = texts;
    return 1;
}

static const mull_field *take_fields(block *b, const mull_field *fields, size_t *count, int depth);

static mull_value take_value(block *b, const mull_value *value, int depth)
{
    mull_value copy = *value;
    copy.kind = mull__kind(value);
    int nested = copy.kind == MULL_LIST || copy.kind == MULL_MAP;
    if (nested && (depth >= NESTING_MAX || !has_room(b, value))) {
        copy.kind = MULL_NIL;
    } else if (copy.kind == MULL_STRING) {
        copy.as.string = take_text(b, value->as.string);
    } else if (copy.kind == MULL_MAP) {
        copy.as.fields = take_fields(b, value->as.fields, &copy.count, depth + 1);
    } else if (copy.kind == MULL_LIST) {
        mull_value *items = take(b, value->count * sizeof *items);
        for (size_t i = 0; i < value->count; i++) {
            mull_value item = take_value(b, &value->as.items[i], depth + 1);
            if (items)
                items[i] = item;
        }
        copy.as.items = items;
    }
    return copy;
}

/* take_fields takes those of `count` that have a name, and says how many these are. */
static const mull_field *take_fields(block *b, const mull_field *fields, size_t *count, int depth)
{
    mull_field *copy = take(b, *count * sizeof *copy);
    size_t taken = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!fields[i].name)
            continue;
        mull_field field = {.name = take_text(b, fields[i].name),
                            .value = take_value(b, &fields[i].value, depth)};
        if (copy)
            copy[taken] = field;
        taken++;
    }
    *count = taken;
    return copy;
}

static const char *const *take_texts(block *b, const char *const *texts, size_t count)
{
    const char **copy = take(b, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        const char *text = take_text(b, texts[i]);
        if (copy)
            copy[i] = text;
    }
    return copy;
}

/* take_error comes first in the block, so that the block's address is the copy's. Causes beyond the
 * sixteenth, which a cycle has without end, are left out. */
static mull_error *take_error(block *b, const mull_error *error, int depth)
{
    mull_error *copy = take(b, sizeof *copy);
    size_t lineage_count = mull__lineage_count(error), field_count = mull__field_count(error);
    const mull_field *fields = take_fields(b, error->fields, &field_count, 0);
    mull_error made = {.size = sizeof made,
                       .type = take_text(b, error->type ? error->type : "Error"),
                       .message = take_text(b, error->message),
                       .stack = take_text(b, error->stack),
                       .lineage = take_texts(b, error->lineage, lineage_count),
                       .lineage_count = lineage_count,
                       .fields = fields,
                       .field_count = field_count};
    const mull_error *cause = mull__cause(error);
    if (cause && depth < CAUSES_MAX)
        made.cause = take_error(b, cause, depth + 1);
    if (copy)
        *copy = made;
    return copy;
}

mull_error *mull__error_copy(const mull_allocator *allocator, const mull_error *error)
{
    block counted = {0};
    take_error(&counted, error, 0);
    block b = {.block.memory = mull__alloc(allocator, counted.block.used)};
    return b.block.memory ? take_error(&b, error, 0) : NULL;
}

/* ---- Messages -------------------------------------------------------------------------------- */

int mull__delay_check(const mull_abilities *can, int64_t delay_ms)
{
    int fits = can->can_delay && (can->longest_delay_ms == 0 || delay_ms <= can->longest_delay_ms);
    return delay_ms == 0 || fits ? 0 : MULL_EREFUSED;
}

/* take_valid takes a text, which may find no room and leaves none then. 0: it isn't UTF-8. */
static int take_valid(size_t *left, const char *text)
{
    if (!text)
        return 1;
    size_t size = strnlen(text, *left) + 1;
    if (size > *left) {
        *left = 0;
        return 1;
    }
    *left -= size;
    return mull__utf8_valid(text);
}

/* take_header takes a header's texts. 0: it is none, or repeats a name, as few transports can. */
static int take_header(size_t *left, const mull_header *headers, size_t index)
{
    const char *name = headers[index].name, *value = headers[index].value;
    if (!name || !name[0] || !value || !take_valid(left, name) || !take_valid(left, value))
        return 0;
    for (size_t i = 0; i < index; i++)
        if (strcmp(headers[i].name, name) == 0)
            return 0;
    return 1;
}

static int check(const mull_message *message)
{
    if (!message->queue || !message->queue[0] || (message->body_size > 0 && !message->body) ||
        (message->header_count > 0 && !message->headers))
        return MULL_EINVAL;
    if (message->body_size > MULL__BODY_MAX || message->header_count > MULL__HEADERS_MAX)
        return MULL_ETOOBIG;
    size_t left = MULL__TEXTS_MAX + 1; /* so that 0 is too many */
    if (!take_valid(&left, message->id) || !take_valid(&left, message->type) ||
        !take_valid(&left, message->key) || !take_valid(&left, message->queue))
        return MULL_EINVAL;
    for (size_t i = 0; i < message->header_count && left > 0; i++)
        if (!take_header(&left, message->headers, i))
            return MULL_EINVAL;
    return left == 0 ? MULL_ETOOBIG : 0;
}

int mull__message_take(mull_engine *engine, mull_message *own, char id[33],
                       const mull_message *given)
{
    if (!mull__struct_copy_in(own, sizeof *own, MULL__MESSAGE_LEAST, given))
        return MULL_EINVAL;
    int status = check(own);
    if (status == 0 && !own->id) {
        mull__engine_id(engine, id);
        own->id = id;
    }
    return status;
}

/* take_message puts the struct first, so that its address is the block's. */
static const mull_message *take_message(block *b, const mull_message *message)
{
    mull_message *copy = take(b, sizeof *copy);
    mull_message made = *message;
    mull_header *headers = take(b, message->header_count * sizeof *headers);
    made.header_count = 0;
    for (size_t i = 0; i < message->header_count; i++) {
        if (mull__is_own(message->headers[i].name))
            continue;
        mull_header header = {.name = take_text(b, message->headers[i].name),
                              .value = take_text(b, message->headers[i].value)};
        if (headers)
            headers[made.header_count] = header;
        made.header_count++;
    }
    made.headers = headers;
    made.id = take_text(b, message->id);
    made.type = take_text(b, message->type);
    made.key = take_text(b, message->key);
    made.queue = take_text(b, message->queue);
    void *body = take(b, message->body_size);
    if (body && message->body_size > 0)
        memcpy(body, message->body, message->body_size);
    made.body = body;
    if (copy)
        *copy = made;
    return copy;
}

int mull__outgoing_copy(const mull_allocator *allocator, mull_outgoing *out, size_t *bytes,
                        const mull_message *message, int64_t due_ms)
{
    block counted = {0};
    take_message(&counted, message);
    *bytes = counted.block.used;
    block b = {.block.memory = mull__alloc(allocator, counted.block.used)};
    if (!b.block.memory)
        return MULL_ENOMEM;
    *out = (mull_outgoing){
        .size = sizeof *out, .message = take_message(&b, message), .due_ms = due_ms};
    return 0;
}

void mull__outgoing_free(const mull_allocator *allocator, mull_outgoing *outgoing)
{
    mull__free(allocator, (void *)(uintptr_t)outgoing->message);
}
