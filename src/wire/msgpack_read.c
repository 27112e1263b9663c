/* msgpack_read.c: see msgpack_read.h. */
#include "msgpack_read.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Heads ----------------------------------------------------------------------------------- */

typedef enum kind { BAD, NIL, FLAG, WHOLE, SIGNED, FLOAT, TEXT, BYTES, LIST, MAP } kind;

/* head is what a value begins with: its first byte, and a length where it has one. */
typedef struct head {
    kind kind;
    uint32_t size;  /* of the head */
    uint64_t count; /* of the bytes behind it; of a list or map, its items, a name being one */
} head;

/* From 0xc0 to 0xdf the first byte says how many bytes have the length, or how many follow. */
static const struct {
    unsigned char kind, length, follow;
} shapes[] = {
    {NIL, 0, 0},    {BAD, 0, 0},    {FLAG, 0, 0},  {FLAG, 0, 0},  {BYTES, 1, 0},  {BYTES, 2, 0},
    {BYTES, 4, 0},  {BYTES, 1, 1},  {BYTES, 2, 1}, {BYTES, 4, 1}, {FLOAT, 0, 4},  {FLOAT, 0, 8},
    {WHOLE, 0, 1},  {WHOLE, 0, 2},  {WHOLE, 0, 4}, {WHOLE, 0, 8}, {SIGNED, 0, 1}, {SIGNED, 0, 2},
    {SIGNED, 0, 4}, {SIGNED, 0, 8}, {BYTES, 0, 2}, {BYTES, 0, 3}, {BYTES, 0, 5},  {BYTES, 0, 9},
    {BYTES, 0, 17}, {TEXT, 1, 0},   {TEXT, 2, 0},  {TEXT, 4, 0},  {LIST, 2, 0},   {LIST, 4, 0},
    {MAP, 2, 0},    {MAP, 4, 0},
};

static uint64_t number_of(const unsigned char *at, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return number;
}

/* long_head reads one from 0xc0 to 0xdf. */
static head long_head(const unsigned char *at, size_t left)
{
    unsigned byte = *at;
    unsigned length = shapes[byte - 0xc0].length;
    head read = {(kind)shapes[byte - 0xc0].kind, 1 + length, shapes[byte - 0xc0].follow};
    if (left < read.size)
        return (head){read.kind, 0, 0};
    if (length > 0)
        read.count += number_of(at + 1, length);
    if (read.kind == MAP)
        read.count *= 2;
    return read;
}

/* head_of reads a head of which `left` bytes are there, at least one; a size of 0: that isn't all
 * of it. */
static inline head head_of(const char *bytes, size_t left)
{
    unsigned char byte = (unsigned char)*bytes;
    if ((byte & 0xe0) == 0xa0)
        return (head){TEXT, 1, byte & 31u};
    if (byte >= 0xe0 || byte < 0x80)
        return (head){SIGNED, 1, 0};
    if (byte >= 0xc0)
        return long_head((const unsigned char *)bytes, left);
    return (head){byte < 0x90 ? MAP : LIST, 1, byte < 0x90 ? 2 * (byte & 15u) : byte & 15u};
}

static int has_items(const head *h)
{
    return h->kind == LIST || h->kind == MAP;
}

/* ---- Bytes as they come ---------------------------------------------------------------------- */

/* cursor is where a scan is: `left` is of the level that it is at. */
typedef struct cursor {
    size_t at, limit, most;
    uint64_t left;
    int level;
} cursor;

/* enter_items goes down to the items of a list or map, each of which has at least a byte. */
static inline int enter_items(mull__msgpack_progress *scan, cursor *c, uint64_t count)
{
    if (count > c->most - c->at)
        return MULL_ETOOBIG;
    if (c->level == MULL__MSGPACK_LEVELS)
        return MULL_EREFUSED;
    if (count == 0)
        return 1;
    scan->left[c->level++] = c->left;
    c->left = count;
    return 1;
}

/* scan_long goes over an item whose first byte is from 0xc0 to 0xdf. 1: it is whole, or its items
 * are to come; 0: it isn't all there; below 0: as mull__msgpack_scan. */
static int scan_long(mull__msgpack_progress *scan, cursor *c, const char *bytes)
{
    const head h = head_of(bytes + c->at, c->limit - c->at);
    size_t end = c->at + h.size;
    if (h.kind == BAD)
        return MULL_EINVAL;
    if (end > c->most || h.count > c->most - end)
        return MULL_ETOOBIG;
    if (h.size == 0 || (!has_items(&h) && h.count > c->limit - end))
        return 0;
    c->left--;
    c->at = has_items(&h) ? end : end + (size_t)h.count;
    return has_items(&h) ? enter_items(scan, c, h.count) : 1;
}

/* scan_short goes over texts below 32 bytes and small numbers, which most items are. */
static inline void scan_short(cursor *c, const char *bytes)
{
    size_t at = c->at;
    uint64_t left = c->left;
    for (; left > 0 && at < c->limit; left--) {
        unsigned char byte = (unsigned char)bytes[at];
        size_t size = 1;
        if ((byte & 0xe0) == 0xa0)
            size += byte & 31u;
        else if (byte >= 0x80 && byte < 0xe0)
            break;
        if (size > c->limit - at)
            break;
        at += size;
    }
    c->at = at;
    c->left = left;
}

/* scan_item goes over the item that ended scan_short. */
static inline int scan_item(mull__msgpack_progress *scan, cursor *c, const char *bytes)
{
    unsigned char byte = (unsigned char)bytes[c->at];
    if ((byte & 0xe0) == 0xc0)
        return scan_long(scan, c, bytes);
    if ((byte & 0xe0) != 0x80)
        return c->at + (byte & 31u) >= c->most ? MULL_ETOOBIG : 0;
    c->at++;
    c->left--;
    return enter_items(scan, c, byte < 0x90 ? 2 * (byte & 15u) : byte & 15u);
}

int mull__msgpack_scan(mull__msgpack_progress *scan, const char *bytes, size_t size, size_t most)
{
    cursor c = {scan->at, size < most ? size : most, most,
                scan->begun ? scan->left[scan->level] : 1, scan->level};
    int found = 1;
    while (found > 0) {
        scan_short(&c, bytes);
        if (c.left == 0 && c.level == 0)
            break;
        if (c.left == 0)
            c.left = scan->left[--c.level];
        else if (c.at >= c.limit)
            found = c.at >= most ? MULL_ETOOBIG : 0;
        else
            found = scan_item(scan, &c, bytes);
    }
    scan->begun = 1;
    scan->at = c.at;
    scan->level = c.level;
    scan->left[c.level] = c.left;
    return found;
}

/* ---- Whole values, item by item -------------------------------------------------------------- */

enum { WHOLE_HEAD = 5 }; /* as much as any head has: a value that is whole has all of its own */

static int enter(char **at, kind of, size_t *count)
{
    const head h = head_of(*at, WHOLE_HEAD);
    if (h.kind != of)
        return MULL_EINVAL;
    *at += h.size;
    *count = (size_t)h.count;
    return 0;
}

int mull__msgpack_list(char **at, size_t *count)
{
    return enter(at, LIST, count);
}

int mull__msgpack_map(char **at, size_t *count)
{
    int status = enter(at, MAP, count);
    if (status == 0)
        *count /= 2;
    return status;
}

/* read_whole reads a number; 0: it is beyond 64 bits with a sign. */
static int read_whole(const char *bytes, const head *h, int64_t *number)
{
    const unsigned char *at = (const unsigned char *)bytes;
    if (h->count == 0) {
        *number = *(const signed char *)bytes;
        return 1;
    }
    uint64_t bits = number_of(at + 1, (size_t)h->count);
    if (h->kind == SIGNED && h->count < 8 && bits >> (8 * h->count - 1))
        bits |= ~UINT64_C(0) << (8 * h->count);
    *number = (int64_t)bits;
    return h->kind == SIGNED || bits <= INT64_MAX;
}

int mull__msgpack_whole(char **at, int64_t *number)
{
    const head h = head_of(*at, WHOLE_HEAD);
    if ((h.kind != WHOLE && h.kind != SIGNED) || !read_whole(*at, &h, number))
        return MULL_EINVAL;
    *at += h.size + h.count;
    return 0;
}

static void read_bytes(char **at, const head *h, const char **bytes, size_t *size)
{
    *bytes = *at + h->size;
    *size = (size_t)h->count;
    *at += h->size + h->count;
}

int mull__msgpack_text(char **at, const char **text, size_t *size)
{
    const head h = head_of(*at, WHOLE_HEAD);
    if (h.kind != TEXT)
        return MULL_EINVAL;
    read_bytes(at, &h, text, size);
    return 0;
}

int mull__msgpack_bytes_or_text(char **at, const char **bytes, size_t *size)
{
    static const unsigned char first = 0xc4, last = 0xc6; /* not an ext, whose kind is BYTES too */
    const head h = head_of(*at, WHOLE_HEAD);
    unsigned char byte = (unsigned char)**at;
    if (h.kind != TEXT && (byte < first || byte > last))
        return MULL_EINVAL;
    read_bytes(at, &h, bytes, size);
    return 0;
}

void mull__msgpack_skip(char **at)
{
    mull__msgpack_progress scan;
    scan.at = 0;
    scan.begun = scan.level = 0;
    mull__msgpack_scan(&scan, *at, SIZE_MAX, SIZE_MAX);
    *at += scan.at;
}

/* ---- Values ---------------------------------------------------------------------------------- */

typedef struct reader {
    mull__arena *arena;
    mull__msgpack_extent extent;
    int status;
    char *why;
} reader;

/* read_value reads the value at `at`, and gives where it ends. Those that it calls do the same;
 * where the reader is, is in none of its fields, so that it stays in a register. */
static char *read_value(reader *r, char *at, mull_value *out, int level);

/* refuse notes what is wrong, unless something was before. */
static void refuse(reader *r, const char *what, const char *name)
{
    if (r->status != 0)
        return;
    r->status = MULL_EINVAL;
    snprintf(r->why, MULL__MSGPACK_WHY, "%s%.60s%s", what, name, *name ? "\"" : "");
    mull__utf8_repair(r->why, strlen(r->why));
}

/* odd is 0 where each byte is from 1 to 127. */
static uint64_t odd(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    return (word | (word - ones)) & ones * 0x80;
}

/* MOVE moves the first and the last bytes of a text to the front by one, as much of them as `type`
 * has. They may overlap, so both are read first. What is above a type in a word is 1. */
#define MOVE(type)                                                                                 \
    do {                                                                                           \
        type first, last;                                                                          \
        memcpy(&first, from, sizeof first);                                                        \
        memcpy(&last, from + size - sizeof last, sizeof last);                                     \
        memcpy(from - 1, &first, sizeof first);                                                    \
        memcpy(from - 1 + size - sizeof last, &last, sizeof last);                                 \
        return odd(first | above(sizeof first)) | odd(last | above(sizeof last));                  \
    } while (0)

/* above gives a word whose bytes from `size` on are 1. */
static inline uint64_t above(size_t size)
{
    return size == sizeof(uint64_t) ? 0 : UINT64_C(0x0101010101010101) << (8 * size);
}

/* move_long is for texts of more than two words: their last one is read before it is written. */
static uint64_t move_long(char *from, size_t size)
{
    uint64_t found = 0, word, last;
    memcpy(&last, from + size - sizeof last, sizeof last);
    for (size_t i = 0; i + sizeof word < size; i += sizeof word) {
        memcpy(&word, from + i, sizeof word);
        found |= odd(word);
        memcpy(from - 1 + i, &word, sizeof word);
    }
    memcpy(from - 1 + size - sizeof last, &last, sizeof last);
    return found | odd(last);
}

/* move_down moves a text to the front by a byte, and gives 0 where all of it is ASCII without a
 * NUL. */
static inline uint64_t move_down(char *from, size_t size)
{
    if (size > 2 * sizeof(uint64_t))
        return move_long(from, size);
    if (size >= sizeof(uint64_t))
        MOVE(uint64_t);
    if (size >= sizeof(uint32_t))
        MOVE(uint32_t);
    if (size >= sizeof(uint16_t))
        MOVE(uint16_t);
    if (size > 0)
        MOVE(uint8_t);
    return 0;
}

/* check_text is for a text with other than ASCII in it. */
static void check_text(reader *r, const char *text, size_t size)
{
    if (mull__utf8_prefix(text, size) != size || strlen(text) != size)
        refuse(r, "a text must be UTF-8, without a NUL", "");
}

/* read_text moves a text to where its head ends, so that there is a byte for its NUL. */
static inline const char *read_text(reader *r, char *from, size_t size)
{
    char *text = from - 1;
    uint64_t found = move_down(from, size);
    text[size] = 0;
    if (found)
        check_text(r, text, size);
    return text;
}

/* read_short reads a short text or a number from 0 to 127, which most values are; 0: it is another.
 */
static inline int read_short(reader *r, char **at, mull_value *out)
{
    unsigned char byte = (unsigned char)**at;
    size_t size = byte & 31u;
    if ((byte & 0xe0) == 0xa0) {
        *out = (mull_value){.kind = MULL_STRING, .as.string = read_text(r, *at + 1, size)};
        *at += 1 + size;
        return 1;
    }
    if (byte >= 0x80)
        return 0;
    *out = (mull_value){.kind = MULL_INTEGER, .as.integer = byte};
    ++*at;
    return 1;
}

static void *take(reader *r, size_t count, size_t bytes)
{
    void *memory = mull__arena_alloc(r->arena, count, bytes);
    if (!memory)
        r->status = MULL_ENOMEM;
    return memory;
}

static char *skip_items(char *at, size_t count)
{
    while (count-- > 0)
        mull__msgpack_skip(&at);
    return at;
}

static char *read_list(reader *r, char *at, mull_value *out, size_t count, int level)
{
    mull_value *items = take(r, count, sizeof *items);
    if (!items)
        return skip_items(at, count);
    *out = (mull_value){.kind = MULL_LIST, .as.items = items, .count = count};
    for (size_t i = 0; i < count; i++)
        if (!read_short(r, &at, &items[i]))
            at = read_value(r, at, &items[i], level);
    return at;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* name_twice gives a name that is there twice; NULL: none is. */
static const char *name_twice(reader *r, const mull_field *fields, size_t count)
{
    enum { FEW = 24 }; /* are compared with each other, the rest once they are sorted */
    if (count <= FEW) {
        for (size_t i = 1; i < count; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(fields[i].name, fields[k].name) == 0)
                    return fields[i].name;
        return NULL;
    }
    const char **names = take(r, count, sizeof *names);
    for (size_t i = 0; names && i < count; i++)
        names[i] = fields[i].name;
    if (names)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; names && i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

/* names_seen is a bit for each name, which some share. */
typedef struct names_seen {
    uint64_t bits;
    int may_be_twice;
} names_seen;

static void note_name(names_seen *seen, const char *name, size_t size)
{
    enum { SHIFT = 26 }; /* to one of 64 bits */
    unsigned first = (unsigned char)*name, middle = (unsigned char)name[size / 2];
    uint32_t mixed = (first << 16 ^ middle << 8 ^ (uint32_t)size) * UINT32_C(2654435769);
    uint64_t bit = UINT64_C(1) << (mixed >> SHIFT);
    seen->may_be_twice |= (seen->bits & bit) != 0;
    seen->bits |= bit;
}

static inline const char *read_name(reader *r, char **at, names_seen *seen)
{
    const head h = head_of(*at, WHOLE_HEAD);
    const char *name = "";
    if (h.kind == TEXT) {
        name = read_text(r, *at + h.size, (size_t)h.count);
        note_name(seen, name, (size_t)h.count);
        *at += h.size + h.count;
    } else {
        refuse(r, "a name must be a text (str)", "");
        mull__msgpack_skip(at);
    }
    return name;
}

/* drop_nils gives how many fields are left. */
static size_t drop_nils(mull_field *fields, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (fields[i].value.kind != MULL_NIL)
            fields[left++] = fields[i];
    return left;
}

static char *read_map(reader *r, char *at, mull_value *out, size_t count, int level)
{
    mull_field *fields = take(r, count, sizeof *fields);
    names_seen seen = {0, 0};
    int has_nils = 0;
    if (!fields)
        return skip_items(at, 2 * count);
    for (size_t i = 0; i < count; i++) {
        fields[i].name = read_name(r, &at, &seen);
        if (read_short(r, &at, &fields[i].value))
            continue;
        at = read_value(r, at, &fields[i].value, level);
        has_nils |= fields[i].value.kind == MULL_NIL;
    }
    const char *twice = seen.may_be_twice && r->status == 0 ? name_twice(r, fields, count) : NULL;
    if (twice)
        refuse(r, "a name is there twice: \"", twice);
    *out = (mull_value){.kind = MULL_MAP,
                        .as.fields = fields,
                        .count = has_nils ? drop_nils(fields, count) : count};
    return at;
}

static double read_float(const char *bytes, const head *h)
{
    uint64_t bits = number_of((const unsigned char *)bytes + 1, (size_t)h->count);
    uint32_t half = (uint32_t)bits;
    float narrow;
    double number;
    memcpy(&number, &bits, sizeof number);
    memcpy(&narrow, &half, sizeof narrow);
    return h->count == sizeof narrow ? (double)narrow : number;
}

/* read_number reads what isn't read otherwise: nil, a flag, a number, and bytes, which are refused.
 */
static char *read_number(reader *r, char *at, mull_value *out, const head *h)
{
    int64_t number = 0;
    if (h->kind == FLAG) {
        *out = (mull_value){.kind = MULL_BOOLEAN, .as.boolean = *at & 1};
    } else if (h->kind == FLOAT) {
        *out = (mull_value){.kind = MULL_NUMBER, .as.number = read_float(at, h)};
        if (!isfinite(out->as.number))
            refuse(r, "a number must be finite", "");
    } else if (h->kind == BYTES) {
        refuse(r, "bytes (bin, ext) have no place in a failure, whose texts are str", "");
    } else if (h->kind != NIL && read_whole(at, h, &number)) {
        *out = (mull_value){.kind = MULL_INTEGER, .as.integer = number};
    } else if (h->kind != NIL) {
        *out = (mull_value){.kind = MULL_NUMBER, .as.number = (double)(uint64_t)number};
    }
    return at + h->size + h->count;
}

static char *read_value(reader *r, char *at, mull_value *out, int level)
{
    const head h = head_of(at, WHOLE_HEAD);
    *out = (mull_value){.kind = MULL_NIL};
    if (h.kind == TEXT) {
        out->kind = MULL_STRING;
        out->as.string = read_text(r, at + h.size, (size_t)h.count);
        return at + h.size + h.count;
    }
    if (!has_items(&h))
        return read_number(r, at, out, &h);
    size_t count = h.kind == MAP ? (size_t)h.count / 2 : (size_t)h.count;
    r->extent.values += count;
    if (level >= r->extent.levels)
        r->extent.levels = level + 1;
    return h.kind == MAP ? read_map(r, at + h.size, out, count, level + 1)
                         : read_list(r, at + h.size, out, count, level + 1);
}

int mull__msgpack_value(mull_value *out, mull__arena *arena, char **at,
                        mull__msgpack_extent *extent, char why[MULL__MSGPACK_WHY])
{
    reader r = {.arena = arena, .why = why, .extent.values = 1};
    why[0] = 0;
    *at = read_value(&r, *at, out, 0);
    *extent = r.extent;
    return r.status;
}
