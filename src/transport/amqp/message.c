/* message.c: see message.h. */
#include "message.h"

#include "base/utf8.h"
#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHORT_MAX = 255, NUMBER_ROOM = 40 };

/* Properties that handlers see as headers, and that are set by headers of these names. */
static const struct {
    const char *name;
    amqp_flags_t flag;
    size_t offset;
} shown[] = {
    {"amqp-content-type", AMQP_BASIC_CONTENT_TYPE_FLAG,
     offsetof(amqp_basic_properties_t, content_type)},
    {"amqp-content-encoding", AMQP_BASIC_CONTENT_ENCODING_FLAG,
     offsetof(amqp_basic_properties_t, content_encoding)},
    {"amqp-correlation-id", AMQP_BASIC_CORRELATION_ID_FLAG,
     offsetof(amqp_basic_properties_t, correlation_id)},
    {"amqp-reply-to", AMQP_BASIC_REPLY_TO_FLAG, offsetof(amqp_basic_properties_t, reply_to)},
    {"amqp-app-id", AMQP_BASIC_APP_ID_FLAG, offsetof(amqp_basic_properties_t, app_id)},
};

enum { SHOWN = sizeof shown / sizeof *shown };

static amqp_bytes_t *shown_in(amqp_basic_properties_t *properties, size_t i)
{
    return (amqp_bytes_t *)(void *)((char *)properties + shown[i].offset);
}

static amqp_bytes_t shown_of(const amqp_basic_properties_t *properties, size_t i)
{
    return *(const amqp_bytes_t *)(const void *)((const char *)properties + shown[i].offset);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int is_text(amqp_bytes_t bytes)
{
    return bytes.len == 0 || (!memchr(bytes.bytes, 0, bytes.len) &&
                              mull__utf8_prefix(bytes.bytes, bytes.len) == bytes.len);
}

static const char *lay_out(mull__block *block, amqp_bytes_t bytes)
{
    char *copy = mull__block_take(block, bytes.len + 1);
    if (!copy)
        return NULL;
    if (bytes.len > 0)
        memcpy(copy, bytes.bytes, bytes.len);
    copy[bytes.len] = 0;
    return copy;
}

static int begins_with(amqp_bytes_t bytes, const char *prefix)
{
    size_t length = strlen(prefix);
    return bytes.len >= length && memcmp(bytes.bytes, prefix, length) == 0;
}

/* headers_of is the table of headers; one without entries where there is none. */
static amqp_table_t headers_of(const amqp_basic_properties_t *properties)
{
    return properties->_flags & AMQP_BASIC_HEADERS_FLAG ? properties->headers : amqp_empty_table;
}

static const amqp_field_value_t *header(const amqp_basic_properties_t *properties, const char *name)
{
    amqp_table_t table = headers_of(properties);
    for (int i = 0; i < table.num_entries; i++)
        if (mull__amqp_same(table.entries[i].key, name))
            return &table.entries[i].value;
    return NULL;
}

/* text_header is a header that is a text; empty, with no bytes, where there is none. */
static amqp_bytes_t text_header(const amqp_basic_properties_t *properties, const char *name)
{
    const amqp_field_value_t *value = header(properties, name);
    int is_one = value &&
                 (value->kind == AMQP_FIELD_KIND_UTF8 || value->kind == AMQP_FIELD_KIND_BYTES) &&
                 value->value.bytes.bytes;
    return is_one ? value->value.bytes : amqp_empty_bytes;
}

static amqp_bytes_t id_of(const amqp_basic_properties_t *properties)
{
    if (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
        return properties->message_id;
    /* Celery's, whose messages have no other. */
    return header(properties, "task") ? text_header(properties, "id") : amqp_empty_bytes;
}

static amqp_bytes_t type_of(const amqp_basic_properties_t *properties)
{
    if (properties->_flags & AMQP_BASIC_TYPE_FLAG)
        return properties->type;
    amqp_bytes_t type = text_header(properties, "task"); /* Celery's */
    if (!type.bytes)
        type = text_header(properties, "__TypeId__"); /* Spring's */
    if (!type.bytes) {
        type = text_header(properties, "NServiceBus.EnclosedMessageTypes");
        for (size_t i = 0; i < type.len; i++)
            if (strchr(",;", ((const char *)type.bytes)[i]))
                type.len = i;
    }
    return type;
}

/* number_text writes a value that is no text as one; 0: it has none. */
static int number_text(char text[NUMBER_ROOM], const amqp_field_value_t *value)
{
    switch (value->kind) {
    case AMQP_FIELD_KIND_BOOLEAN:
        return snprintf(text, NUMBER_ROOM, "%s", value->value.boolean ? "true" : "false");
    case AMQP_FIELD_KIND_I8:
        return snprintf(text, NUMBER_ROOM, "%d", value->value.i8);
    case AMQP_FIELD_KIND_U8:
        return snprintf(text, NUMBER_ROOM, "%u", value->value.u8);
    case AMQP_FIELD_KIND_I16:
        return snprintf(text, NUMBER_ROOM, "%d", value->value.i16);
    case AMQP_FIELD_KIND_U16:
        return snprintf(text, NUMBER_ROOM, "%u", value->value.u16);
    case AMQP_FIELD_KIND_I32:
        return snprintf(text, NUMBER_ROOM, "%" PRId32, value->value.i32);
    case AMQP_FIELD_KIND_U32:
        return snprintf(text, NUMBER_ROOM, "%" PRIu32, value->value.u32);
    case AMQP_FIELD_KIND_I64:
        return snprintf(text, NUMBER_ROOM, "%" PRId64, value->value.i64);
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP:
        return snprintf(text, NUMBER_ROOM, "%" PRIu64, value->value.u64);
    default:
        return 0;
    }
}

/* text_of is a header's value as a text; 0: it can't be one. `room` may hold it. */
static int text_of(amqp_bytes_t *text, const amqp_field_value_t *value, char room[NUMBER_ROOM])
{
    if (value->kind == AMQP_FIELD_KIND_UTF8 || value->kind == AMQP_FIELD_KIND_BYTES) {
        *text = value->value.bytes;
        return is_text(*text);
    }
    int length = number_text(room, value);
    *text = (amqp_bytes_t){(size_t)length, room};
    return length > 0;
}

/* is_brokers says whether a broker wrote a header, or acts on it, so that no copy may have it. */
static int is_brokers(amqp_bytes_t name)
{
    return mull__amqp_same(name, "x-death") || begins_with(name, "x-first-death-") ||
           begins_with(name, "x-last-death-") || mull__amqp_same(name, "x-delivery-count") ||
           mull__amqp_same(name, "x-acquired-count") || mull__amqp_same(name, "CC") ||
           mull__amqp_same(name, "BCC");
}

static int is_private(amqp_bytes_t name)
{
    return begins_with(name, MULL__AMQP_DELAY_BIT) || mull__amqp_same(name, MULL__AMQP_KEY);
}

/* was_put_off says whether a message came through our delays, whose dead-lettering is no news. */
static int was_put_off(const amqp_basic_properties_t *properties)
{
    amqp_table_t table = headers_of(properties);
    for (int i = 0; i < table.num_entries; i++)
        if (begins_with(table.entries[i].key, MULL__AMQP_DELAY_BIT))
            return 1;
    return 0;
}

/* is_seen says whether mulligan sees a header by its name: the first of each, and none that is only
 * the broker's or ours. */
static int is_seen(const amqp_table_t *table, int at, int put_off)
{
    amqp_bytes_t name = table->entries[at].key;
    if (is_private(name) || !is_text(name) || name.len == 0 ||
        mull__amqp_same(name, "x-delivery-count") || (put_off && is_brokers(name)))
        return 0;
    for (size_t i = 0; i < SHOWN; i++)
        if (mull__amqp_same(name, shown[i].name))
            return 0;
    for (int i = 0; i < at; i++)
        if (table->entries[i].key.len == name.len &&
            memcmp(table->entries[i].key.bytes, name.bytes, name.len) == 0)
            return 0;
    return 1;
}

/* read_headers lays out the texts of headers; `out` NULL: it counts. */
static size_t read_headers(mull__block *block, mull_header *out,
                           const amqp_basic_properties_t *properties)
{
    char room[NUMBER_ROOM];
    size_t count = 0;
    amqp_bytes_t text;
    amqp_table_t table = headers_of(properties);
    int put_off = was_put_off(properties);
    for (size_t i = 0; i < SHOWN; i++) {
        if (!(properties->_flags & shown[i].flag) || !is_text(shown_of(properties, i)))
            continue;
        const char *value = lay_out(block, shown_of(properties, i));
        if (out)
            out[count] = (mull_header){shown[i].name, value};
        count++;
    }
    for (int i = 0; i < table.num_entries && i < MULL__AMQP_SEEN_MAX; i++) {
        if (!text_of(&text, &table.entries[i].value, room) || !is_seen(&table, i, put_off))
            continue;
        const char *name = lay_out(block, table.entries[i].key);
        const char *value = lay_out(block, text);
        if (out)
            out[count] = (mull_header){name, value};
        count++;
    }
    return count;
}

const char *mull__amqp_message_read(mull__block *block, mull_message *message,
                                    const amqp_basic_properties_t *properties)
{
    const amqp_bytes_t id = id_of(properties), type = type_of(properties),
                       key = text_header(properties, MULL__AMQP_KEY);
    mull__block counted = {0};
    message->header_count = read_headers(&counted, NULL, properties);
    mull_header *headers = mull__block_take(block, message->header_count * sizeof *headers);
    if (headers)
        read_headers(block, headers, properties);
    else
        block->used += counted.used;
    message->headers = headers;
    if (!is_text(id))
        return "its message id is no UTF-8";
    if (!is_text(type))
        return "its type is no UTF-8";
    if (!is_text(key))
        return "its key is no UTF-8";
    if (id.bytes && id.len > 0)
        message->id = lay_out(block, id);
    if (type.bytes)
        message->type = lay_out(block, type);
    if (key.bytes)
        message->key = lay_out(block, key);
    return NULL;
}

int64_t mull__amqp_deliveries(const amqp_basic_properties_t *properties, int redelivered)
{
    const amqp_field_value_t *value = header(properties, "x-delivery-count");
    int64_t count = redelivered ? 1 : 0;
    if (value && value->kind == AMQP_FIELD_KIND_I64)
        count = value->value.i64;
    else if (value && value->kind == AMQP_FIELD_KIND_I32)
        count = value->value.i32;
    else if (value && value->kind == AMQP_FIELD_KIND_I16)
        count = value->value.i16;
    else if (value && value->kind == AMQP_FIELD_KIND_I8)
        count = value->value.i8;
    return count < 0 || count == INT64_MAX ? 1 : count + 1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* set sets a property that is a short text. NULL: it has none. */
static int set(amqp_basic_properties_t *properties, amqp_bytes_t *property, amqp_flags_t flag,
               const char *text)
{
    if (!text)
        return 0;
    *property = mull__amqp_text(text);
    properties->_flags |= flag;
    return property->len > SHORT_MAX ? MULL_EREFUSED : 0;
}

static void add(amqp_table_t *table, amqp_bytes_t name, amqp_field_value_t value)
{
    table->entries[table->num_entries++] = (amqp_table_entry_t){name, value};
}

static int add_text(amqp_table_t *table, const char *name, const char *text)
{
    amqp_field_value_t value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = mull__amqp_text(text)};
    add(table, mull__amqp_text(name), value);
    return strlen(name) > SHORT_MAX ? MULL_EREFUSED : 0;
}

/* add_delay adds a header for each bit of a delay, which the exchanges of delays go by. */
static int add_delay(amqp_table_t *table, amqp_pool_t *pool, mull__amqp_delay delay)
{
    for (int level = 0; delay.steps > 0 && level <= delay.level; level++) {
        char *name = amqp_pool_alloc(pool, sizeof MULL__AMQP_BIT_FORMAT + 2);
        if (!name)
            return MULL_ENOMEM;
        sprintf(name, MULL__AMQP_BIT_FORMAT, level);
        amqp_field_value_t bit = {.kind = AMQP_FIELD_KIND_BOOLEAN,
                                  .value.boolean = (int)(delay.steps >> level & 1)};
        add(table, mull__amqp_text(name), bit);
    }
    return 0;
}

/* begin_table makes room for as many entries, the transport's own not counted. */
static int begin_table(amqp_table_t *table, amqp_pool_t *pool, size_t count)
{
    table->num_entries = 0;
    table->entries =
        amqp_pool_alloc(pool, (count + 1 + MULL__AMQP_LEVELS) * sizeof *table->entries);
    return table->entries ? 0 : MULL_ENOMEM;
}

/* end_table gives a message its table; one without entries is none. */
static void end_table(amqp_basic_properties_t *properties, const amqp_table_t *table)
{
    properties->headers = *table;
    properties->_flags &= (amqp_flags_t)~AMQP_BASIC_HEADERS_FLAG;
    if (table->num_entries > 0)
        properties->_flags |= AMQP_BASIC_HEADERS_FLAG;
    properties->delivery_mode = AMQP_DELIVERY_PERSISTENT;
    properties->_flags |= AMQP_BASIC_DELIVERY_MODE_FLAG;
}

static int refused(const char **why, int status, const char *what)
{
    *why = status == MULL_ENOMEM ? "out of memory" : what;
    return status;
}

static int add_header(amqp_basic_properties_t *properties, amqp_table_t *table,
                      const mull_header *one)
{
    for (size_t i = 0; i < SHOWN; i++)
        if (strcmp(one->name, shown[i].name) == 0)
            return set(properties, shown_in(properties, i), shown[i].flag, one->value);
    return add_text(table, one->name, one->value);
}

int mull__amqp_properties_new(amqp_basic_properties_t *properties, amqp_pool_t *pool,
                              const mull_message *message, mull__amqp_delay delay, const char **why)
{
    amqp_table_t table;
    *properties = (amqp_basic_properties_t){0};
    int status = begin_table(&table, pool, message->header_count);
    for (size_t i = 0; status == 0 && i < message->header_count; i++)
        if ((status = add_header(properties, &table, &message->headers[i])) != 0)
            return refused(why, status,
                           "a header's name, or the value of one that is a property, is longer "
                           "than 255 bytes");
    if (status == 0 && message->key)
        status = add_text(&table, MULL__AMQP_KEY, message->key);
    if (status == 0)
        status = add_delay(&table, pool, delay);
    if (status != 0)
        return refused(why, status, NULL);
    end_table(properties, &table);
    status = set(properties, &properties->message_id, AMQP_BASIC_MESSAGE_ID_FLAG, message->id);
    if (status == 0)
        status = set(properties, &properties->type, AMQP_BASIC_TYPE_FLAG, message->type);
    return status ? refused(why, status, "its id or its type is longer than 255 bytes") : 0;
}

/* is_replaced: `ours` has a header of that name. */
static int is_replaced(amqp_bytes_t name, const mull_settlement *settlement)
{
    for (size_t i = 0; i < settlement->our_count; i++)
        if (mull__amqp_same(name, settlement->ours[i].name))
            return 1;
    return 0;
}

/* may_pass says whether a header of a message is one of its copy's. */
static int may_pass(amqp_bytes_t name, const mull_settlement *settlement)
{
    if (is_brokers(name) || begins_with(name, MULL__AMQP_DELAY_BIT))
        return 0;
    return settlement->as_it_came ||
           (!begins_with(name, "mulligan-") && !is_replaced(name, settlement));
}

/* add_ours adds those of a settlement's headers whose values are shorter than `shorter_than`, and
 * whose names are headers' names in AMQP. */
static void add_ours(amqp_table_t *table, const mull_settlement *settlement, size_t shorter_than)
{
    for (size_t i = 0; i < settlement->our_count; i++) {
        const mull_header *one = &settlement->ours[i];
        if (strlen(one->value) < shorter_than && strlen(one->name) <= SHORT_MAX)
            add_text(table, one->name, one->value);
    }
}

int mull__amqp_properties_copied(amqp_basic_properties_t *properties, amqp_pool_t *pool,
                                 const mull_settlement *settlement, const char *user,
                                 mull__amqp_delay delay, size_t shorter_than, const char **why)
{
    amqp_table_t table, old = headers_of(properties);
    int status = begin_table(&table, pool, (size_t)old.num_entries + settlement->our_count);
    for (int i = 0; status == 0 && i < old.num_entries; i++)
        if (may_pass(old.entries[i].key, settlement))
            add(&table, old.entries[i].key, old.entries[i].value);
    if (status == 0)
        add_ours(&table, settlement, shorter_than);
    if (status == 0)
        status = add_delay(&table, pool, delay);
    if (status != 0)
        return refused(why, status, NULL);
    end_table(properties, &table);
    properties->_flags &= (amqp_flags_t)~AMQP_BASIC_EXPIRATION_FLAG;
    if (!(properties->_flags & AMQP_BASIC_USER_ID_FLAG) ||
        !mull__amqp_same(properties->user_id, user))
        properties->_flags &= (amqp_flags_t)~AMQP_BASIC_USER_ID_FLAG;
    int has_id = properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG && properties->message_id.len > 0;
    if (!has_id && settlement->id && strlen(settlement->id) <= SHORT_MAX) /* else a header has it */
        set(properties, &properties->message_id, AMQP_BASIC_MESSAGE_ID_FLAG, settlement->id);
    return 0;
}
