/* json_write.c: see json_write.h. */
#include "json_write.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* USUAL_ROOM: what most headers need; a text that needs more grows. ESCAPE_MOST: \u0000. */
enum { USUAL_ROOM = 1024, ESCAPE_MOST = 6 };

#define ONES  UINT64_C(0x0101010101010101) /* one in each byte of a word */
#define HIGHS (ONES * 0x80)

static int reserve(mull__json_text *out, size_t more)
{
    if (out->memory && out->room - out->size >= more)
        return 0;
    size_t room = out->memory ? 2 * out->room + more : USUAL_ROOM + more;
    char *memory = mull__grow(out->allocator, out->memory, room, 1);
    if (!memory)
        return MULL_ENOMEM;
    out->memory = memory;
    out->room = room;
    return 0;
}

static void add(mull__json_text *out, char byte)
{
    out->memory[out->size++] = byte;
}

static void add_escaped(mull__json_text *out, unsigned char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt",
                      hex[] = "0123456789ABCDEF";
    const char *found = strchr(named, c);
    add(out, '\\');
    add(out, found ? letters[found - named] : 'u');
    if (found)
        return;
    add(out, '0');
    add(out, '0');
    add(out, hex[c >> 4]);
    add(out, hex[c & 15]);
}

/* copy_plain copies the bytes at the beginning that need no escape: whole words of them, then
 * bytes; `*seen` gets the bits of all. A subtraction sets the high bit of an ASCII byte that needs
 * one, and of no other below it in its word. */
static size_t copy_plain(char *to, const char *from, size_t length, uint64_t *seen)
{
    size_t at = 0;
    for (uint64_t word; length - at >= sizeof word; at += sizeof word) {
        memcpy(&word, from + at, sizeof word);
        uint64_t quote = (word ^ ONES * '"') - ONES, slash = (word ^ ONES * '\\') - ONES,
                 below = word - ONES * 0x20;
        if ((quote | slash | below) & HIGHS & ~word)
            break;
        memcpy(to + at, &word, sizeof word);
        *seen |= word;
    }
    for (; at < length && (unsigned char)from[at] >= 0x20 && from[at] != '"' && from[at] != '\\';
         at++) {
        to[at] = from[at];
        *seen |= (unsigned char)from[at];
    }
    return at;
}

int mull__json_add(mull__json_text *out, const char *json)
{
    size_t size = strlen(json);
    int status = reserve(out, size + 1);
    if (status == 0) {
        memcpy(out->memory + out->size, json, size + 1);
        out->size += size;
    }
    return status;
}

int mull__json_add_string(mull__json_text *out, const char *string, char behind)
{
    const char *at = string, *end = string + strlen(string);
    uint64_t seen = 0;
    int status = reserve(out, (size_t)(end - at) + sizeof "\"\",");
    if (status != 0)
        return status;
    add(out, '"');
    for (;;) {
        size_t plain = copy_plain(out->memory + out->size, at, (size_t)(end - at), &seen);
        out->size += plain;
        at += plain;
        if (at == end)
            break;
        status = reserve(out, (size_t)(end - at) + ESCAPE_MOST + sizeof "\",");
        if (status != 0)
            return status;
        add_escaped(out, (unsigned char)*at++);
    }
    add(out, '"');
    add(out, behind);
    return seen & HIGHS && !mull__utf8_valid(string) ? MULL_EINVAL : 0;
}
