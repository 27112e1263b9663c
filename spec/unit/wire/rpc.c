/* rpc.c: messages of MessagePack-RPC: cut at every byte, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "wire/rpc.h"

enum { MOST = 4096 };

/* ---- Reading --------------------------------------------------------------------------------- */

static const char three[] = "\x94\x00\x07\xa4ping\x91\x80"                   /* request 7 */
                            "\x93\x02\xa4stop\x91\x81\xa8grace_ms\x05"       /* notification */
                            "\x94\x01\xce\xff\xff\xff\xff\xc0\x81\xa1x\x01"; /* answer */

/* read_cut hears of the messages in `three` by pieces that end at `cut`, and at the end. */
static void read_cut(size_t cut)
{
    char *bytes = malloc(sizeof three - 1), why[MULL__MSGPACK_WHY];
    size_t size = sizeof three - 1, done = 0, come = cut;
    mull__rpc_reader reader = {0};
    int messages = 0;
    memcpy(bytes, three, size);
    for (;;) {
        mull__rpc_message message;
        long whole = mull__rpc_read(&reader, &message, bytes + done, come - done, MOST, why);
        assert_true(whole >= 0);
        if (whole == 0 && come == size)
            break;
        if (whole == 0) {
            come = size;
            continue;
        }
        done += (size_t)whole;
        messages++;
        if (messages == 1) {
            assert_int_equal(message.kind, MULL__RPC_REQUEST);
            assert_int_equal(message.id, 7);
            assert_true(mull__rpc_is(&message, "ping"));
            assert_false(mull__rpc_is(&message, "pin"));
            assert_memory_equal(message.params, "\x80", 1);
        } else if (messages == 2) {
            assert_int_equal(message.kind, MULL__RPC_NOTIFICATION);
            assert_true(mull__rpc_is(&message, "stop"));
            assert_memory_equal(message.params, "\x81\xa8grace_ms\x05", 11);
        } else {
            assert_int_equal(message.kind, MULL__RPC_ANSWER);
            assert_true(message.id == UINT32_MAX);
            assert_memory_equal(message.error, "\xc0", 1);
            assert_memory_equal(message.result, "\x81\xa1x\x01", 4);
        }
    }
    assert_int_equal(messages, 3);
    assert_int_equal(done, size);
    free(bytes);
}

static void messages_are_read_wherever_they_are_cut(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof three; cut++)
        read_cut(cut);
}

static void what_is_no_message_is_said(void **state)
{
    (void)state;
    static const char shape[] =
        "a message must be [0, id, method, [map]], [1, id, error, result] or [2, method, [map]]";
    static const char id[] = "a message's id must be a whole number of 32 bits, from 0";
    static const char method[] = "a message's method must be a text (str), not empty";
    static const char params[] = "a message's params must be a list of one map";
    static const struct {
        const char *bytes;
        size_t size;
        const char *why;
    } cases[] = {
        {"\xc0", 1, shape},
        {"\x90", 1, shape},
        {"\x80", 1, shape},
        {"\x94\x03\x00\xc0\xc0", 5, shape},
        {"\x94\xff\x00\xc0\xc0", 5, shape},
        {"\x93\x00\x00\xa1x", 5, shape},
        {"\x94\xa1\x30\x00\xc0\xc0", 6, shape},
        {"\x94\x02\xa1x\x90\xc0", 6, shape},
        {"\x94\x00\xff\xa1x\x90", 6, id},
        {"\x94\x00\xcf\0\0\0\1\0\0\0\0\xa1x\x90", 14, id},
        {"\x94\x00\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa1x\x90", 14, id},
        {"\x94\x01\xa1x\xc0\xc0", 6, id},
        {"\x94\x00\x00\xa0\x90", 5, method},
        {"\x94\x00\x00\x05\x90", 5, method},
        {"\x93\x02\xa1\0\x90", 5, method},
        {"\x94\x00\x00\xa1x\x80", 6, params},
        {"\x94\x00\x00\xa1x\x91\x05", 7, params},
        {"\x94\x00\x00\xa1x\x92\x80\x80", 8, params},
        {"\x94\xc1", 2, "this isn't MessagePack: a value can't begin with the byte 0xc1"},
        {"\xdb\x00\x01\x00\x00", 5, "a message is longer than 4096 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[16], why[MULL__MSGPACK_WHY] = "";
        mull__rpc_reader reader = {0};
        mull__rpc_message message;
        memcpy(copy, cases[i].bytes, cases[i].size);
        long whole = mull__rpc_read(&reader, &message, copy, cases[i].size, MOST, why);
        if (whole >= 0 || strcmp(why, cases[i].why) != 0)
            fail_msg("case %zu: %ld, %s", i, whole, why);
    }
}

static void a_request_may_have_no_params(void **state)
{
    (void)state;
    char bytes[] = "\x94\x00\x00\xa1x\x90", why[MULL__MSGPACK_WHY];
    mull__rpc_reader reader = {0};
    mull__rpc_message message;
    assert_int_equal(mull__rpc_read(&reader, &message, bytes, 6, MOST, why), 6);
    assert_null(message.params);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void what_is_written_has_these_bytes(void **state)
{
    (void)state;
    static const char wanted[] = "\x94\x00\x05\xa4ping\x91\x80"
                                 "\x93\x02\xa4stop\x91\x80"
                                 "\x94\x01\x06\xc0\xc3"
                                 "\x94\x01\xcd\x01\x00\xc2\xc0";
    mull_allocator allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    mull__msgpack out = {.allocator = &allocator};
    mull__rpc_request(&out, 5, "ping");
    mull__msgpack_entries(&out, 0);
    mull__rpc_notification(&out, "stop");
    mull__msgpack_entries(&out, 0);
    mull__rpc_answer(&out, 6);
    mull__msgpack_flag(&out, 1);
    mull__rpc_failure(&out, 256);
    mull__msgpack_flag(&out, 0);
    mull__rpc_end_failure(&out);
    assert_int_equal(out.size, sizeof wanted - 1);
    assert_memory_equal(out.memory, wanted, out.size);
    mull__free(&allocator, out.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_read_wherever_they_are_cut),
        cmocka_unit_test(what_is_no_message_is_said),
        cmocka_unit_test(a_request_may_have_no_params),
        cmocka_unit_test(what_is_written_has_these_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
