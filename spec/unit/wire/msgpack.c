/* msgpack.c: MessagePack in and out, held against msgpack-c by random values; what a failure can't
 * hold; and where memory ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "counting_allocator.h"
#include "wire/msgpack_json.h"
#include "wire/msgpack_read.h"
#include "wire/verdict_msgpack.h"

static mull_allocator libc(void)
{
    return mull__allocator_or_default((mull_allocator){NULL, NULL});
}

/* ---- Random values, by msgpack-c ------------------------------------------------------------- */

static void pack_text(msgpack_packer *to, mull__rand *chance)
{
    static const size_t lengths[] = {0, 1, 7, 31, 32, 255, 256, 70000};
    static char text[70000];
    size_t size = lengths[mull__rand_next(chance) % 8];
    memset(text, 'a' + (int)(mull__rand_next(chance) % 26), size);
    msgpack_pack_str(to, size);
    msgpack_pack_str_body(to, text, size);
}

static void pack_number(msgpack_packer *to, mull__rand *chance)
{
    uint64_t bits = mull__rand_next(chance) >> mull__rand_next(chance) % 64;
    switch (mull__rand_next(chance) % 5) {
    case 0:
        msgpack_pack_uint64(to, bits);
        break;
    case 1:
        msgpack_pack_int64(to, -(int64_t)(bits >> 1));
        break;
    case 2:
        msgpack_pack_double(to, (double)bits / 7);
        break;
    case 3:
        msgpack_pack_float(to, (float)bits);
        break;
    default:
        msgpack_pack_int64(to, (int64_t)(bits >> 1));
    }
}

static void pack_value(msgpack_packer *to, mull__rand *chance, int level)
{
    static const size_t counts[] = {0, 1, 3, 15, 16, 40};
    size_t count = counts[mull__rand_next(chance) % 6];
    char name[24];
    switch (mull__rand_next(chance) % (level < 3 ? 7 : 5)) {
    case 0:
        msgpack_pack_nil(to);
        break;
    case 1:
        mull__rand_next(chance) % 2 ? msgpack_pack_true(to) : msgpack_pack_false(to);
        break;
    case 2:
        pack_text(to, chance);
        break;
    case 5:
        msgpack_pack_array(to, count);
        for (size_t i = 0; i < count; i++)
            pack_value(to, chance, level + 1);
        break;
    case 6:
        msgpack_pack_map(to, count);
        for (size_t i = 0; i < count; i++) {
            size_t size = (size_t)snprintf(name, sizeof name, "n%zu", i);
            msgpack_pack_str(to, size);
            msgpack_pack_str_body(to, name, size);
            pack_value(to, chance, level + 1);
        }
        break;
    default:
        pack_number(to, chance);
    }
}

/* ---- The same in both ------------------------------------------------------------------------ */

static void same(const msgpack_object *theirs, const mull_value *ours);

static void same_map(const msgpack_object_map *theirs, const mull_value *ours)
{
    size_t next = 0;
    assert_int_equal(ours->kind, MULL_MAP);
    for (uint32_t i = 0; i < theirs->size; i++) {
        if (theirs->ptr[i].val.type == MSGPACK_OBJECT_NIL)
            continue;
        assert_true(next < ours->count);
        const mull_field *field = &ours->as.fields[next++];
        assert_int_equal(strlen(field->name), theirs->ptr[i].key.via.str.size);
        assert_memory_equal(field->name, theirs->ptr[i].key.via.str.ptr, strlen(field->name));
        same(&theirs->ptr[i].val, &field->value);
    }
    assert_int_equal(next, ours->count);
}

static void same(const msgpack_object *theirs, const mull_value *ours)
{
    switch (theirs->type) {
    case MSGPACK_OBJECT_NIL:
        assert_int_equal(ours->kind, MULL_NIL);
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        assert_int_equal(ours->kind, MULL_BOOLEAN);
        assert_int_equal(ours->as.boolean, theirs->via.boolean);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        assert_int_equal(ours->kind, MULL_INTEGER);
        assert_true(ours->as.integer == theirs->via.i64);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        if (theirs->via.u64 > INT64_MAX) {
            assert_int_equal(ours->kind, MULL_NUMBER);
            assert_true(ours->as.number == (double)theirs->via.u64);
        } else {
            assert_int_equal(ours->kind, MULL_INTEGER);
            assert_true((uint64_t)ours->as.integer == theirs->via.u64);
        }
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        assert_int_equal(ours->kind, MULL_NUMBER);
        assert_true(ours->as.number == theirs->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        assert_int_equal(ours->kind, MULL_STRING);
        assert_int_equal(strlen(ours->as.string), theirs->via.str.size);
        assert_memory_equal(ours->as.string, theirs->via.str.ptr, theirs->via.str.size);
        break;
    case MSGPACK_OBJECT_ARRAY:
        assert_int_equal(ours->kind, MULL_LIST);
        assert_int_equal(ours->count, theirs->via.array.size);
        for (uint32_t i = 0; i < theirs->via.array.size; i++)
            same(&theirs->via.array.ptr[i], &ours->as.items[i]);
        break;
    case MSGPACK_OBJECT_MAP:
        same_map(&theirs->via.map, ours);
        break;
    default:
        fail_msg("a type that was never packed: %d", (int)theirs->type);
    }
}

/* scan_cut scans bytes that come in pieces; each piece is memory of its own, so that a sanitizer
 * sees a look beyond its end. */
static void scan_cut(const char *bytes, size_t size, size_t step)
{
    mull__msgpack_progress scan = {0};
    for (size_t come = step < size ? step : size;; come = size - come < step ? size : come + step) {
        char *exact = malloc(come);
        memcpy(exact, bytes, come);
        int found = mull__msgpack_scan(&scan, exact, come, size);
        free(exact);
        assert_int_equal(found, come == size);
        if (found)
            break;
    }
    assert_int_equal(scan.at, size);
}

static void what_msgpack_c_packs_is_read_as_it_reads_it(void **state)
{
    (void)state;
    mull__rand chance;
    mull__rand_init(&chance, 17);
    for (int round = 0; round < 400; round++) {
        msgpack_sbuffer buffer;
        msgpack_packer packer;
        msgpack_unpacked theirs;
        msgpack_sbuffer_init(&buffer);
        msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
        pack_value(&packer, &chance, 0);
        scan_cut(buffer.data, buffer.size, buffer.size > 600 ? buffer.size / 97 + 1 : 1);
        msgpack_unpacked_init(&theirs);
        size_t end = 0;
        assert_int_equal(msgpack_unpack_next(&theirs, buffer.data, buffer.size, &end),
                         MSGPACK_UNPACK_SUCCESS);
        char *copy = malloc(buffer.size), *at = copy, why[MULL__MSGPACK_WHY];
        memcpy(copy, buffer.data, buffer.size);
        mull__arena arena = {.allocator = libc()};
        mull__msgpack_extent extent;
        mull_value ours;
        assert_int_equal(mull__msgpack_value(&ours, &arena, &at, &extent, why), 0);
        assert_ptr_equal(at, copy + buffer.size);
        same(&theirs.data, &ours);
        mull__arena_free(&arena);
        free(copy);
        msgpack_unpacked_destroy(&theirs);
        msgpack_sbuffer_destroy(&buffer);
    }
}

/* ---- What is wrong --------------------------------------------------------------------------- */

static int scan(const char *bytes, size_t size, size_t most)
{
    mull__msgpack_progress progress = {0};
    return mull__msgpack_scan(&progress, bytes, size, most);
}

static void what_is_too_much_is_refused_before_it_comes(void **state)
{
    (void)state;
    char deep[40];
    memset(deep, 0x91, sizeof deep);
    deep[32] = (char)0xc0;
    assert_int_equal(scan(deep, 33, 100), 1);
    deep[32] = (char)0x90;
    assert_int_equal(scan(deep, 33, 100), MULL_EREFUSED);
    deep[31] = (char)0x90;
    assert_int_equal(scan(deep, 32, 100), 1);
    assert_int_equal(scan("\xc1", 1, 100), MULL_EINVAL);
    assert_int_equal(scan("\xdb\xff\xff\xff\xff", 5, 1 << 20), MULL_ETOOBIG);
    assert_int_equal(scan("\xdd\x00\x10\x00\x00", 5, 1 << 20), MULL_ETOOBIG);
    assert_int_equal(scan("\xdf\xff\xff\xff\xff", 5, 1 << 20), MULL_ETOOBIG);
    assert_int_equal(scan("\xc6\xff\xff\xff\xff", 5, 1 << 20), MULL_ETOOBIG);
    assert_int_equal(scan("\xda\x00", 2, 1 << 20), 0);
    assert_int_equal(scan("\xa3xyz", 4, 4), 1);
    assert_int_equal(scan("\xa3xy", 3, 3), MULL_ETOOBIG);
    assert_int_equal(scan("\x92\xc0", 2, 2), MULL_ETOOBIG);
}

static void what_a_failure_cannot_hold_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *why;
    } cases[] = {
        {"\xc4\x01x", 3, "bytes (bin, ext) have no place in a failure, whose texts are str"},
        {"\x91\xd6\x01xxxx", 7, "bytes (bin, ext) have no place in a failure, whose texts are str"},
        {"\xa2\xff!", 3, "a text must be UTF-8, without a NUL"},
        {"\xa2\0!", 3, "a text must be UTF-8, without a NUL"},
        {"\x81\x01\x02", 3, "a name must be a text (str)"},
        {"\x81\x91\x01\x02", 4, "a name must be a text (str)"},
        {"\x82\xa1"
         "a\x01\xa1"
         "a\x02",
         7, "a name is there twice: \"a\""},
        {"\xca\x7f\xc0\x00\x00", 5, "a number must be finite"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[16], *at = copy, why[MULL__MSGPACK_WHY];
        mull__arena arena = {.allocator = libc()};
        mull__msgpack_extent extent;
        mull_value value;
        memcpy(copy, cases[i].bytes, cases[i].size);
        assert_int_equal(scan(copy, cases[i].size, 100), 1);
        assert_int_equal(mull__msgpack_value(&value, &arena, &at, &extent, why), MULL_EINVAL);
        assert_string_equal(why, cases[i].why);
        assert_ptr_equal(at, copy + cases[i].size);
        mull__arena_free(&arena);
    }
}

/* A map with many names is sorted for the look whether one is there twice. */
static void a_name_among_many_is_found_twice(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        mull_allocator allocator = libc();
        mull__msgpack out = {.allocator = &allocator};
        size_t begun = mull__msgpack_begin(&out, 1);
        for (int i = 0; i < 100; i++) {
            char name[8];
            int size = snprintf(name, sizeof name, "n%d", twice && i == 99 ? 7 : i);
            mull__msgpack_string(&out, name, (size_t)size);
            mull__msgpack_integer(&out, i);
        }
        mull__msgpack_end(&out, begun, 100);
        char *at = out.memory, why[MULL__MSGPACK_WHY];
        mull__arena arena = {.allocator = allocator};
        mull__msgpack_extent extent;
        mull_value value;
        assert_int_equal(mull__msgpack_value(&value, &arena, &at, &extent, why),
                         twice ? MULL_EINVAL : 0);
        assert_string_equal(why, twice ? "a name is there twice: \"n7\"" : "");
        assert_int_equal(extent.values, 101);
        mull__arena_free(&arena);
        mull__free(&allocator, out.memory);
    }
}

/* ---- JSON, and verdicts ---------------------------------------------------------------------- */

static void json_goes_to_messagepack_and_back(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-1,127,128,255,256,65535,65536,4294967295,4294967296,-32,-33,-128,-129,-32768,"
        "-32769,-2147483648,-2147483649,9223372036854775807,-9223372036854775808],\"b\":{\"c\":"
        "\"\xc3\xa9\\n\\\"\",\"d\":[]},\"e\":[null,true,false],\"f\":1.5,\"g\":2.0,\"h\":1e+300}";
    mull_allocator allocator = libc();
    mull__msgpack out = {.allocator = &allocator};
    assert_int_equal(mull__json_to_msgpack(&out, text, strlen(text)), 0);
    assert_int_equal(scan(out.memory, out.size, out.size), 1);
    char *at = out.memory, why[MULL__MSGPACK_WHY];
    mull__arena arena = {.allocator = allocator};
    mull__msgpack_extent extent;
    mull_value value;
    assert_int_equal(mull__msgpack_value(&value, &arena, &at, &extent, why), 0);
    mull__json_text json = {.allocator = &allocator};
    assert_int_equal(mull__value_to_json(&json, &value), 0);
    json.memory[json.size] = 0;
    assert_string_equal(json.memory, text);
    mull__arena_free(&arena);
    mull__free(&allocator, json.memory);
    mull__free(&allocator, out.memory);
}

static mull_verdict some_verdict(void)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    verdict.action = MULL_RETRY;
    verdict.tier = MULL_TIER_RETRY;
    verdict.delay_ms = 200;
    verdict.step = 1;
    verdict.of = 5;
    verdict.rule = (mull_rule){.file = "p.lua", .line = 7, .scope = "bus", .type = "A"};
    verdict.generation = "3f";
    return verdict;
}

/* as_json gives what was written, as JSON; yours to free. */
static char *as_json(mull__msgpack *out, const mull_allocator *allocator)
{
    msgpack_unpacked theirs;
    msgpack_unpacked_init(&theirs);
    size_t end = 0;
    assert_int_equal(msgpack_unpack_next(&theirs, out->memory, out->size, &end),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(end, out->size);
    char *text = mull__alloc(allocator, 2048);
    msgpack_object_print_buffer(text, 2048, theirs.data);
    msgpack_unpacked_destroy(&theirs);
    return text;
}

static void a_verdict_has_every_key(void **state)
{
    (void)state;
    mull_allocator allocator = libc();
    mull__msgpack out = {.allocator = &allocator};
    mull_verdict verdict = some_verdict();
    mull__verdict_to_msgpack(&out, &verdict);
    char *json = as_json(&out, &allocator);
    assert_string_equal(
        json, "{\"action\"=>\"retry\", \"delay_ms\"=>200, \"queue\"=>nil, \"reason\"=>nil, "
              "\"note\"=>nil, \"tier\"=>\"retry\", \"step\"=>1, \"of\"=>5, \"rule\"=>{\"file\"=>"
              "\"p.lua\", \"line\"=>7, \"scope\"=>\"bus\", \"type\"=>\"A\"}, \"fallback\"=>nil, "
              "\"generation\"=>\"3f\"}");
    mull__free(&allocator, json);
    out.size = 0;
    verdict.of = MULL_UNLIMITED;
    verdict.rule.file = NULL;
    verdict.action = MULL_DEAD_LETTER;
    verdict.tier = MULL_TIER_NONE;
    verdict.queue = "a queue whose name is longer than thirty-one bytes";
    verdict.reason = MULL_REASON_NO_RULE;
    mull__verdict_to_msgpack(&out, &verdict);
    json = as_json(&out, &allocator);
    assert_string_equal(json, "{\"action\"=>\"dead_letter\", \"delay_ms\"=>200, \"queue\"=>\"a "
                              "queue whose name is longer than thirty-one bytes\", \"reason\"=>"
                              "\"no_rule\", \"note\"=>nil, \"tier\"=>nil, \"step\"=>nil, \"of\"=>"
                              "nil, \"rule\"=>nil, \"fallback\"=>nil, \"generation\"=>\"3f\"}");
    mull__free(&allocator, json);
    mull__free(&allocator, out.memory);
}

static void a_lack_of_memory_is_told(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,{\"b\":\"c\"}],\"d\":1.5}";
    int status = MULL_ENOMEM;
    for (long n = 1; status != 0; n++) {
        counting_allocator counting = {.fail_at = n};
        mull_allocator allocator = counting_allocator_ops(&counting);
        mull__msgpack out = {.allocator = &allocator};
        mull__arena arena = {.allocator = allocator};
        mull__json_text json = {.allocator = &allocator};
        mull__msgpack_extent extent;
        mull_value value;
        mull_verdict verdict = some_verdict();
        char why[MULL__MSGPACK_WHY];
        status = mull__json_to_msgpack(&out, text, strlen(text));
        char *at = out.memory;
        if (status == 0)
            status = mull__msgpack_value(&value, &arena, &at, &extent, why);
        if (status == 0)
            status = mull__value_to_json(&json, &value);
        if (status == 0) {
            mull__verdict_to_msgpack(&out, &verdict);
            status = out.status;
        }
        assert_true(status == 0 || status == MULL_ENOMEM);
        mull__free(&allocator, out.memory);
        mull__free(&allocator, json.memory);
        mull__arena_free(&arena);
        assert_int_equal(counting.out, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_msgpack_c_packs_is_read_as_it_reads_it),
        cmocka_unit_test(what_is_too_much_is_refused_before_it_comes),
        cmocka_unit_test(what_a_failure_cannot_hold_is_said),
        cmocka_unit_test(a_name_among_many_is_found_twice),
        cmocka_unit_test(json_goes_to_messagepack_and_back),
        cmocka_unit_test(a_verdict_has_every_key),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
