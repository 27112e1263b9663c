/* sound.c: see sound.h. The kinds of values are RabbitMQ's, as librabbitmq has them. */
#include "sound.h"

#include "session.h"

#include <stdint.h>

/* span is a stretch of bytes that is read from its beginning. */
typedef struct span {
    const unsigned char *bytes;
    size_t size, at;
} span;

static int skip(span *s, uint64_t count)
{
    if (count > s->size - s->at)
        return 0;
    s->at += (size_t)count;
    return 1;
}

/* number reads an unsigned number of so many bytes, the highest first. */
static int number(span *s, size_t count, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < count && s->at + i < s->size; i++)
        *out = *out << 8 | s->bytes[s->at + i];
    return skip(s, count);
}

static int sized(span *s, size_t count)
{
    uint64_t length;
    return number(s, count, &length) && skip(s, length);
}

static int values(span *s, int are_named, int depth);

static int value(span *s, int depth)
{
    uint64_t kind;
    if (!number(s, 1, &kind))
        return 0;
    switch (kind) {
    case AMQP_FIELD_KIND_BOOLEAN:
    case AMQP_FIELD_KIND_I8:
    case AMQP_FIELD_KIND_U8:
        return skip(s, 1);
    case AMQP_FIELD_KIND_I16:
    case AMQP_FIELD_KIND_U16:
        return skip(s, 2);
    case AMQP_FIELD_KIND_I32:
    case AMQP_FIELD_KIND_U32:
    case AMQP_FIELD_KIND_F32:
        return skip(s, 4);
    case AMQP_FIELD_KIND_I64:
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_F64:
    case AMQP_FIELD_KIND_TIMESTAMP:
        return skip(s, 8);
    case AMQP_FIELD_KIND_DECIMAL:
        return skip(s, 5);
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES:
        return sized(s, 4);
    case AMQP_FIELD_KIND_ARRAY:
        return values(s, 0, depth + 1);
    case AMQP_FIELD_KIND_TABLE:
        return values(s, 1, depth + 1);
    case AMQP_FIELD_KIND_VOID:
        return 1;
    default:
        return 0;
    }
}

/* values is a table, whose values are named, or an array. */
static int values(span *s, int are_named, int depth)
{
    uint64_t length;
    if (depth > MULL__AMQP_TABLE_DEPTH || !number(s, 4, &length) || length > s->size - s->at)
        return 0;
    span inner = {s->bytes, s->at + (size_t)length, s->at};
    while (inner.at < inner.size)
        if ((are_named && !sized(&inner, 1)) || !value(&inner, depth))
            return 0;
    s->at = inner.at;
    return 1;
}

int mull__amqp_table_sound(const char *bytes, size_t size, size_t *at)
{
    span s = {(const unsigned char *)bytes, size, *at};
    int sound = values(&s, 1, 1);
    *at = s.at;
    return sound;
}

int mull__amqp_properties_sound(const char *bytes, size_t size)
{
    /* In the order of their flags, from the highest: short texts, the table of headers, numbers. */
    static const char kinds[] = "ssT11ssss8ssss";
    span s = {(const unsigned char *)bytes, size, 0};
    uint64_t flags;
    if (!number(&s, 2, &flags) || flags & 3) /* there are no more than 14 */
        return 0;
    for (size_t i = 0; kinds[i]; i++) {
        if (!(flags & 0x8000u >> i))
            continue;
        int good = kinds[i] == 's'   ? sized(&s, 1)
                   : kinds[i] == 'T' ? values(&s, 1, 1)
                                     : skip(&s, (uint64_t)(kinds[i] - '0'));
        if (!good)
            return 0;
    }
    return s.at == s.size;
}
