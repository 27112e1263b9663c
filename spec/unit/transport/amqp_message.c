/* amqp_message.c: transport/amqp/message.c: what mulligan sees of AMQP's properties, which other
 * programs wrote; what is written of a message; and what its copies keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/amqp/message.h"
#include "transport/amqp/session.h"

static amqp_basic_properties_t properties;
static amqp_table_entry_t entries[64];
static amqp_pool_t pool;
static mull_message message;
static char *memory, with_nul[] = "a\0b";

static int set_up(void **state)
{
    (void)state;
    memset(&properties, 0, sizeof properties);
    memset(&message, 0, sizeof message);
    properties.headers.entries = entries;
    init_amqp_pool(&pool, 4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    empty_amqp_pool(&pool);
    free(memory);
    memory = NULL;
    return 0;
}

static void add(const char *name, uint8_t kind, amqp_field_value_t value)
{
    value.kind = kind;
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    entries[properties.headers.num_entries++] = (amqp_table_entry_t){mull__amqp_text(name), value};
}

static void add_text(const char *name, const char *text)
{
    add(name, AMQP_FIELD_KIND_UTF8, (amqp_field_value_t){.value.bytes = mull__amqp_text(text)});
}

/* read gives why the message can't be understood. */
static const char *read(void)
{
    mull__block block = {0};
    const char *why = mull__amqp_message_read(&block, &message, &properties);
    size_t counted = block.used;
    memory = malloc(counted + 1);
    block = (mull__block){memory, 0};
    message = (mull_message){0};
    assert_ptr_equal(mull__amqp_message_read(&block, &message, &properties), why);
    assert_int_equal(block.used, counted);
    return why;
}

static const char *header(const char *name)
{
    for (size_t i = 0; i < message.header_count; i++)
        if (strcmp(message.headers[i].name, name) == 0)
            return message.headers[i].value;
    return NULL;
}

/* kept is the value of a header of `properties`; NULL: it isn't there. */
static const amqp_field_value_t *kept(const char *name)
{
    for (int i = 0; i < properties.headers.num_entries; i++)
        if (mull__amqp_same(properties.headers.entries[i].key, name))
            return &properties.headers.entries[i].value;
    return NULL;
}

/* ---- What is read ---------------------------------------------------------------------------- */

static void a_plain_message_is_read(void **state)
{
    (void)state;
    properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG |
                         AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG;
    properties.message_id = mull__amqp_text("id-1");
    properties.type = mull__amqp_text("OrderPlaced");
    properties.correlation_id = mull__amqp_text("c-7");
    properties.content_type = mull__amqp_text("application/json");
    add_text("plain", "value");
    add("number", AMQP_FIELD_KIND_I32, (amqp_field_value_t){.value.i32 = -5});
    add("large", AMQP_FIELD_KIND_U64, (amqp_field_value_t){.value.u64 = UINT64_MAX});
    add("yes", AMQP_FIELD_KIND_BOOLEAN, (amqp_field_value_t){.value.boolean = 1});
    add("void", AMQP_FIELD_KIND_VOID, (amqp_field_value_t){0});
    add("table", AMQP_FIELD_KIND_TABLE, (amqp_field_value_t){0});
    add("no text", AMQP_FIELD_KIND_BYTES,
        (amqp_field_value_t){.value.bytes = mull__amqp_text("\xff\xfe")});
    add("NUL", AMQP_FIELD_KIND_UTF8, (amqp_field_value_t){.value.bytes = {3, with_nul}});
    add_text("plain", "a second one");
    assert_null(read());
    assert_string_equal(message.id, "id-1");
    assert_string_equal(message.type, "OrderPlaced");
    assert_null(message.key);
    assert_string_equal(header("plain"), "value");
    assert_string_equal(header("number"), "-5");
    assert_string_equal(header("large"), "18446744073709551615");
    assert_string_equal(header("yes"), "true");
    assert_string_equal(header("amqp-correlation-id"), "c-7");
    assert_string_equal(header("amqp-content-type"), "application/json");
    assert_int_equal(message.header_count, 6);
}

static void celery_spring_and_nservicebus_are_read(void **state)
{
    (void)state;
    add_text("task", "shop.tasks.charge");
    add_text("id", "5f0e");
    assert_null(read());
    assert_string_equal(message.type, "shop.tasks.charge");
    assert_string_equal(message.id, "5f0e");
    tear_down(state);
    set_up(state);
    add_text("__TypeId__", "com.shop.Order");
    add_text("id", "a header of somebody's");
    assert_null(read());
    assert_string_equal(message.type, "com.shop.Order");
    assert_null(message.id);
    tear_down(state);
    set_up(state);
    add_text("NServiceBus.EnclosedMessageTypes", "Shop.Order, Shop, Version=1.0.0.0;Shop.IEvent");
    assert_null(read());
    assert_string_equal(message.type, "Shop.Order");
}

static void what_is_no_text_cannot_be_understood(void **state)
{
    (void)state;
    properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.message_id = mull__amqp_text("\xc3(");
    assert_string_equal(read(), "its message id is no UTF-8");
    tear_down(state);
    set_up(state);
    properties._flags |= AMQP_BASIC_TYPE_FLAG;
    properties.type = (amqp_bytes_t){3, with_nul};
    assert_string_equal(read(), "its type is no UTF-8");
}

static void deliveries_are_counted(void **state)
{
    (void)state;
    assert_int_equal(mull__amqp_deliveries(&properties, 0), 1);
    assert_int_equal(mull__amqp_deliveries(&properties, 1), 2);
    add("x-delivery-count", AMQP_FIELD_KIND_I64, (amqp_field_value_t){.value.i64 = 4});
    assert_int_equal(mull__amqp_deliveries(&properties, 1), 5);
    entries[0].value.value.i64 = -4;
    assert_int_equal(mull__amqp_deliveries(&properties, 1), 1);
    entries[0].value.value.i64 = INT64_MAX;
    assert_int_equal(mull__amqp_deliveries(&properties, 1), 1);
    assert_null(read());
    assert_int_equal(message.header_count, 0);
}

static void of_our_own_delays_nothing_is_seen(void **state)
{
    (void)state;
    add("mulligan.delay.3", AMQP_FIELD_KIND_BOOLEAN, (amqp_field_value_t){.value.boolean = 1});
    add("x-death", AMQP_FIELD_KIND_ARRAY, (amqp_field_value_t){0});
    add_text("x-first-death-queue", "mulligan.delay.quorum.3");
    add_text("mulligan.key", "k");
    add_text("theirs", "1");
    assert_null(read());
    assert_int_equal(message.header_count, 1);
    assert_string_equal(message.key, "k");
    tear_down(state);
    set_up(state);
    add_text("x-first-death-queue", "of somebody's own");
    assert_null(read());
    assert_string_equal(header("x-first-death-queue"), "of somebody's own");
}

static void many_headers_are_seen_up_to_a_bound(void **state)
{
    (void)state;
    static amqp_table_entry_t many[MULL__AMQP_SEEN_MAX + 5];
    static char names[MULL__AMQP_SEEN_MAX + 5][16];
    for (int i = 0; i < MULL__AMQP_SEEN_MAX + 5; i++) {
        snprintf(names[i], sizeof names[i], "h%d", i);
        many[i] =
            (amqp_table_entry_t){mull__amqp_text(names[i]),
                                 {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_empty_bytes}};
    }
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    properties.headers = (amqp_table_t){MULL__AMQP_SEEN_MAX + 5, many};
    assert_null(read());
    assert_int_equal(message.header_count, MULL__AMQP_SEEN_MAX);
}

/* ---- What is written ------------------------------------------------------------------------- */

static void a_published_message_is_written(void **state)
{
    (void)state;
    const char *why = NULL;
    const mull_header headers[] = {
        {"plain", "v"}, {"amqp-reply-to", "answers"}, {"mulligan-calls", "2"}};
    mull_message given = {
        .id = "i", .type = "T", .key = "k", .headers = headers, .header_count = 3};
    assert_int_equal(
        mull__amqp_properties_new(&properties, &pool, &given, (mull__amqp_delay){5, 2}, &why), 0);
    assert_true(mull__amqp_same(properties.message_id, "i"));
    assert_true(mull__amqp_same(properties.type, "T"));
    assert_true(mull__amqp_same(properties.reply_to, "answers"));
    assert_int_equal(properties.delivery_mode, 2);
    assert_int_equal(properties.headers.num_entries, 2 + 1 + 3);
    assert_int_equal(kept("mulligan.delay.0")->value.boolean, 1);
    assert_int_equal(kept("mulligan.delay.1")->value.boolean, 0);
    assert_int_equal(kept("mulligan.delay.2")->value.boolean, 1);
    assert_null(read());
    assert_int_equal(message.header_count, 3);
    assert_string_equal(header("amqp-reply-to"), "answers");
    assert_string_equal(message.key, "k");
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    char text[300];
    const char *why = NULL;
    memset(text, 'x', sizeof text);
    text[256] = 0;
    const mull_header headers[] = {{text, "v"}};
    mull_message given = {.headers = headers, .header_count = 1};
    mull__amqp_delay none = {0, 0};
    assert_int_equal(mull__amqp_properties_new(&properties, &pool, &given, none, &why),
                     MULL_EREFUSED);
    assert_non_null(strstr(why, "longer than 255 bytes"));
    given = (mull_message){.id = text};
    assert_int_equal(mull__amqp_properties_new(&properties, &pool, &given, none, &why),
                     MULL_EREFUSED);
    text[255] = 0;
    assert_int_equal(mull__amqp_properties_new(&properties, &pool, &given, none, &why), 0);
}

static void a_copy_keeps_all_but_what_the_broker_acts_on(void **state)
{
    (void)state;
    const char *why = NULL;
    const mull_header ours[] = {{"mulligan-calls", "3"}};
    mull_settlement settlement = {.id = "given", .ours = ours, .our_count = 1};
    mull__amqp_delay none = {0, 0};
    properties._flags |= AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_USER_ID_FLAG |
                         AMQP_BASIC_PRIORITY_FLAG | AMQP_BASIC_TIMESTAMP_FLAG |
                         AMQP_BASIC_CORRELATION_ID_FLAG;
    properties.expiration = mull__amqp_text("1000");
    properties.user_id = mull__amqp_text("somebody");
    properties.correlation_id = mull__amqp_text("c");
    properties.priority = 7;
    properties.timestamp = 99;
    add("number", AMQP_FIELD_KIND_I16, (amqp_field_value_t){.value.i16 = 12});
    add_text("CC", "other");
    add_text("BCC", "other");
    add("x-death", AMQP_FIELD_KIND_ARRAY, (amqp_field_value_t){0});
    add("x-delivery-count", AMQP_FIELD_KIND_I64, (amqp_field_value_t){.value.i64 = 4});
    add("mulligan.delay.3", AMQP_FIELD_KIND_BOOLEAN, (amqp_field_value_t){.value.boolean = 1});
    add_text("mulligan.key", "k");
    add_text("mulligan-calls", "2");
    assert_int_equal(mull__amqp_properties_copied(&properties, &pool, &settlement, "guest", none,
                                                  SIZE_MAX, &why),
                     0);
    assert_int_equal(properties.headers.num_entries, 3);
    assert_int_equal(kept("number")->kind, AMQP_FIELD_KIND_I16);
    assert_int_equal(kept("number")->value.i16, 12);
    assert_true(mull__amqp_same(kept("mulligan.key")->value.bytes, "k"));
    assert_true(mull__amqp_same(kept("mulligan-calls")->value.bytes, "3"));
    assert_false(properties._flags & (AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_USER_ID_FLAG));
    assert_true(properties._flags & AMQP_BASIC_PRIORITY_FLAG && properties.priority == 7);
    assert_true(properties._flags & AMQP_BASIC_TIMESTAMP_FLAG && properties.timestamp == 99);
    assert_true(mull__amqp_same(properties.correlation_id, "c"));
    assert_true(mull__amqp_same(properties.message_id, "given"));
}

static void as_it_came_a_copy_keeps_ours_too(void **state)
{
    (void)state;
    const char *why = NULL;
    mull_settlement settlement = {.id = "i", .as_it_came = 1};
    properties._flags |= AMQP_BASIC_USER_ID_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.user_id = mull__amqp_text("guest");
    properties.message_id = mull__amqp_text("theirs");
    add_text("mulligan-calls", "2");
    assert_int_equal(mull__amqp_properties_copied(&properties, &pool, &settlement, "guest",
                                                  (mull__amqp_delay){0, 0}, SIZE_MAX, &why),
                     0);
    assert_true(mull__amqp_same(kept("mulligan-calls")->value.bytes, "2"));
    assert_true(mull__amqp_same(properties.message_id, "theirs"));
    assert_true(properties._flags & AMQP_BASIC_USER_ID_FLAG);
}

static void of_ours_a_copy_leaves_out_what_is_long(void **state)
{
    (void)state;
    char name[300];
    const char *why = NULL;
    memset(name, 'n', sizeof name);
    name[256] = 0;
    const mull_header ours[] = {
        {"mulligan-calls", "3"}, {"mulligan-error-stack", "long"}, {name, "v"}};
    mull_settlement settlement = {.id = "i", .ours = ours, .our_count = 3};
    mull__amqp_delay none = {0, 0};
    add_text("theirs", "much longer");
    assert_int_equal(
        mull__amqp_properties_copied(&properties, &pool, &settlement, "guest", none, 4, &why), 0);
    assert_int_equal(properties.headers.num_entries, 2);
    assert_non_null(kept("theirs"));
    assert_non_null(kept("mulligan-calls"));
}

/* Celery's id is a header, which may have any length. */
static void an_id_that_no_property_can_have_stays_a_header(void **state)
{
    (void)state;
    char id[300];
    const char *why = NULL;
    memset(id, 'i', sizeof id);
    id[256] = 0;
    add_text("task", "orders.pay");
    add_text("id", id);
    assert_null(read());
    assert_string_equal(message.id, id);
    mull_settlement settlement = {.id = message.id};
    assert_int_equal(mull__amqp_properties_copied(&properties, &pool, &settlement, "guest",
                                                  (mull__amqp_delay){0, 0}, SIZE_MAX, &why),
                     0);
    assert_false(properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG);
    assert_non_null(kept("id"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plain_message_is_read),
        TEST(celery_spring_and_nservicebus_are_read),
        TEST(what_is_no_text_cannot_be_understood),
        TEST(deliveries_are_counted),
        TEST(of_our_own_delays_nothing_is_seen),
        TEST(many_headers_are_seen_up_to_a_bound),
        TEST(a_published_message_is_written),
        TEST(what_is_too_long_is_refused),
        TEST(a_copy_keeps_all_but_what_the_broker_acts_on),
        TEST(as_it_came_a_copy_keeps_ours_too),
        TEST(of_ours_a_copy_leaves_out_what_is_long),
        TEST(an_id_that_no_property_can_have_stays_a_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
