/* failure_value.c: see failure_value.h. */
#include "failure_value.h"

#include <string.h>

enum { CAUSES = 8 };

static int is(const mull_field *field, const char *name)
{
    return *field->name == *name && strcmp(field->name, name) == 0;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int text_of(const char **out, const mull_value *value)
{
    *out = value->as.string;
    return value->kind == MULL_STRING ? 0 : MULL_EINVAL;
}

static int name_of(const char **out, const mull_value *value)
{
    return value->kind == MULL_STRING && *value->as.string ? text_of(out, value) : MULL_EINVAL;
}

static int whole_of(int64_t *out, const mull_value *value, int64_t least)
{
    *out = value->as.integer;
    return value->kind == MULL_INTEGER && *out >= least ? 0 : MULL_EINVAL;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static int read_error(const mull_error **out, mull__arena *arena, const mull_value *map, int below);

static int read_lineage(mull_error *error, mull__arena *arena, const mull_value *list)
{
    int status = list->kind == MULL_LIST ? 0 : MULL_EINVAL;
    const char **lineage = mull__arena_alloc(arena, list->count, sizeof *lineage);
    if (!lineage)
        return MULL_ENOMEM;
    for (size_t i = 0; status == 0 && i < list->count; i++)
        status = name_of(&lineage[i], &list->as.items[i]);
    error->lineage = lineage;
    error->lineage_count = list->count;
    return status;
}

/* read_part reads an entry of an error; what has no meaning is kept in `fields`. */
static int read_part(mull_error *error, mull_field *fields, mull__arena *arena,
                     const mull_field *part, int below)
{
    if (is(part, "type"))
        return name_of(&error->type, &part->value);
    if (is(part, "message"))
        return text_of(&error->message, &part->value);
    if (is(part, "stack"))
        return text_of(&error->stack, &part->value);
    if (is(part, "lineage"))
        return read_lineage(error, arena, &part->value);
    if (is(part, "cause"))
        return read_error(&error->cause, arena, &part->value, below - 1);
    fields[error->field_count++] = *part;
    return 0;
}

static int read_error(const mull_error **out, mull__arena *arena, const mull_value *map, int below)
{
    if (map->kind != MULL_MAP || below < 0)
        return MULL_EINVAL;
    mull_error *error = mull__arena_alloc(arena, 1, sizeof *error);
    mull_field *fields = mull__arena_alloc(arena, map->count, sizeof *fields);
    if (!error || !fields)
        return MULL_ENOMEM;
    *error = MULL_INIT(mull_error);
    error->fields = fields;
    *out = error;
    int status = 0;
    for (size_t i = 0; status == 0 && i < map->count; i++)
        status = read_part(error, fields, arena, &map->as.fields[i], below);
    return status == 0 && !error->type ? MULL_EINVAL : status;
}

int mull__error_of_value(const mull_error **out, mull__arena *arena, const mull_value *map,
                         int causes)
{
    return read_error(out, arena, map, causes);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static int read_headers(mull_message *message, mull__arena *arena, const mull_value *map)
{
    int status = map->kind == MULL_MAP ? 0 : MULL_EINVAL;
    mull_header *headers = mull__arena_alloc(arena, map->count, sizeof *headers);
    if (!headers)
        return MULL_ENOMEM;
    for (size_t i = 0; status == 0 && i < map->count; i++) {
        headers[i].name = map->as.fields[i].name;
        status =
            *headers[i].name ? text_of(&headers[i].value, &map->as.fields[i].value) : MULL_EINVAL;
    }
    message->headers = headers;
    message->header_count = map->count;
    return status;
}

static int read_message_part(mull_message *message, mull__arena *arena, const mull_field *part)
{
    if (is(part, "id"))
        return text_of(&message->id, &part->value);
    if (is(part, "type"))
        return text_of(&message->type, &part->value);
    if (is(part, "key"))
        return text_of(&message->key, &part->value);
    if (is(part, "headers"))
        return read_headers(message, arena, &part->value);
    int64_t size;
    int status = is(part, "size") ? whole_of(&size, &part->value, 0) : MULL_EINVAL;
    if (status == 0)
        message->body_size = (size_t)size;
    return status;
}

static int read_message(mull_failure *failure, mull__arena *arena, const mull_value *map)
{
    int status = map->kind == MULL_MAP ? 0 : MULL_EINVAL;
    mull_message *message = mull__arena_alloc(arena, 1, sizeof *message);
    if (!message)
        return MULL_ENOMEM;
    *message = MULL_INIT(mull_message);
    for (size_t i = 0; status == 0 && i < map->count; i++)
        status = read_message_part(message, arena, &map->as.fields[i]);
    failure->message = message;
    return status;
}

/* ---- Failures -------------------------------------------------------------------------------- */

static int read_abilities(mull_failure *failure, const mull_value *map)
{
    if (map->kind != MULL_MAP)
        return MULL_EINVAL;
    for (size_t i = 0; i < map->count; i++) {
        const mull_field *part = &map->as.fields[i];
        uint32_t flag = is(part, "retry")   ? MULL_CANNOT_RETRY
                        : is(part, "delay") ? MULL_CANNOT_DELAY
                                            : 0;
        if (!flag || part->value.kind != MULL_BOOLEAN)
            return MULL_EINVAL;
        failure->flags |= part->value.as.boolean ? 0 : flag;
    }
    return 0;
}

static int read_counter(mull_failure *failure, const mull_field *part)
{
    if (is(part, "attempt"))
        return whole_of(&failure->attempt, &part->value, 1);
    if (is(part, "redeliveries"))
        return whole_of(&failure->redeliveries, &part->value, 0);
    if (is(part, "calls"))
        return whole_of(&failure->calls, &part->value, 1);
    if (is(part, "deliveries"))
        return whole_of(&failure->deliveries, &part->value, 1);
    return is(part, "age_ms") ? whole_of(&failure->age_ms, &part->value, 0) : MULL_EINVAL;
}

static int read_failure_part(mull_failure *failure, mull__arena *arena, const mull_field *part)
{
    if (is(part, "error"))
        return read_error(&failure->error, arena, &part->value, CAUSES);
    if (is(part, "consumer"))
        return name_of(&failure->consumer, &part->value);
    if (is(part, "transport"))
        return name_of(&failure->transport, &part->value);
    if (is(part, "message"))
        return read_message(failure, arena, &part->value);
    if (is(part, "can"))
        return read_abilities(failure, &part->value);
    return read_counter(failure, part);
}

int mull__failure_of_value(mull_failure *out, mull__arena *arena, const mull_value *map)
{
    int status = map->kind == MULL_MAP ? 0 : MULL_EINVAL;
    *out = MULL_INIT(mull_failure);
    for (size_t i = 0; status == 0 && i < map->count; i++)
        status = read_failure_part(out, arena, &map->as.fields[i]);
    return status == 0 && !out->error ? MULL_EINVAL : status;
}
