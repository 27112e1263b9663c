/* msgpack_write.c: see msgpack_write.h. Each value takes the fewest bytes that it can. */
#include "msgpack_write.h"

#include "base/alloc.h"

#include <string.h>

enum { USUAL_ROOM = 1024, LONG_HEAD = 5 };

/* ---- Into room that is there ----------------------------------------------------------------- */

static char *put_bytes(char *to, unsigned first, uint64_t number, int bytes)
{
    *to++ = (char)first;
    for (int i = bytes - 1; i >= 0; i--)
        *to++ = (char)(number >> (8 * i));
    return to;
}

static char *put_below(char *to, int64_t number)
{
    if (number >= -32)
        return put_bytes(to, (unsigned char)number, 0, 0);
    if (number >= INT8_MIN)
        return put_bytes(to, 0xd0, (uint64_t)number, 1);
    if (number >= INT16_MIN)
        return put_bytes(to, 0xd1, (uint64_t)number, 2);
    return number >= INT32_MIN ? put_bytes(to, 0xd2, (uint64_t)number, 4)
                               : put_bytes(to, 0xd3, (uint64_t)number, 8);
}

char *mull__msgpack_put_integer(char *to, int64_t number)
{
    if (number < 0)
        return put_below(to, number);
    if (number < 0x80)
        return put_bytes(to, (unsigned)number, 0, 0);
    if (number <= UINT8_MAX)
        return put_bytes(to, 0xcc, (uint64_t)number, 1);
    if (number <= UINT16_MAX)
        return put_bytes(to, 0xcd, (uint64_t)number, 2);
    return number <= UINT32_MAX ? put_bytes(to, 0xce, (uint64_t)number, 4)
                                : put_bytes(to, 0xcf, (uint64_t)number, 8);
}

char *mull__msgpack_put_string(char *to, const char *text, size_t size)
{
    if (size < 32)
        *to++ = (char)(0xa0 | size);
    else if (size <= UINT8_MAX)
        to = put_bytes(to, 0xd9, size, 1);
    else
        to = size <= UINT16_MAX ? put_bytes(to, 0xda, size, 2) : put_bytes(to, 0xdb, size, 4);
    memcpy(to, text, size);
    return to + size;
}

/* ---- Into what grows ------------------------------------------------------------------------- */

char *mull__msgpack_room(mull__msgpack *out, size_t size)
{
    if (out->status != 0)
        return NULL;
    if (!out->memory || out->room - out->size < size) {
        size_t room = 2 * out->room + size + USUAL_ROOM;
        char *memory = mull__grow(out->allocator, out->memory, room, 1);
        if (!memory) {
            out->status = MULL_ENOMEM;
            return NULL;
        }
        out->memory = memory;
        out->room = room;
    }
    return out->memory + out->size;
}

static void end_at(mull__msgpack *out, const char *end)
{
    out->size = (size_t)(end - out->memory);
}

void mull__msgpack_raw(mull__msgpack *out, const void *bytes, size_t size)
{
    char *to = mull__msgpack_room(out, size);
    if (!to || size == 0)
        return;
    memcpy(to, bytes, size);
    out->size += size;
}

static void add_head(mull__msgpack *out, unsigned first, uint64_t number, int bytes)
{
    char *to = mull__msgpack_room(out, MULL__MSGPACK_HEAD);
    if (to)
        end_at(out, put_bytes(to, first, number, bytes));
}

void mull__msgpack_nil(mull__msgpack *out)
{
    add_head(out, 0xc0, 0, 0);
}

void mull__msgpack_flag(mull__msgpack *out, int is)
{
    add_head(out, is ? 0xc3 : 0xc2, 0, 0);
}

void mull__msgpack_number(mull__msgpack *out, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    add_head(out, 0xcb, bits, 8);
}

void mull__msgpack_integer(mull__msgpack *out, int64_t number)
{
    char *to = mull__msgpack_room(out, MULL__MSGPACK_HEAD);
    if (to)
        end_at(out, mull__msgpack_put_integer(to, number));
}

void mull__msgpack_string(mull__msgpack *out, const char *text, size_t size)
{
    char *to = mull__msgpack_room(out, size + LONG_HEAD);
    if (to)
        end_at(out, mull__msgpack_put_string(to, text, size));
}

void mull__msgpack_bytes(mull__msgpack *out, const void *bytes, size_t size)
{
    if (size <= UINT8_MAX)
        add_head(out, 0xc4, size, 1);
    else if (size <= UINT16_MAX)
        add_head(out, 0xc5, size, 2);
    else
        add_head(out, 0xc6, size, 4);
    mull__msgpack_raw(out, bytes, size);
}

size_t mull__msgpack_begin(mull__msgpack *out, int is_map)
{
    size_t begun = out->size;
    add_head(out, is_map ? 0xdf : 0xdd, 0, 4);
    return begun;
}

void mull__msgpack_end(mull__msgpack *out, size_t begun, uint32_t count)
{
    if (out->status == 0)
        put_bytes(out->memory + begun, (unsigned char)out->memory[begun], count, 4);
}

void mull__msgpack_items(mull__msgpack *out, unsigned count)
{
    add_head(out, 0x90 | count, 0, 0);
}

void mull__msgpack_entries(mull__msgpack *out, unsigned count)
{
    add_head(out, 0x80 | count, 0, 0);
}
