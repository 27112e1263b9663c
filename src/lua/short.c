/* short.c: see short.h. The instructions are those that lua_dump gives:
 *
 *   header: "\x1bLua" version format 6 bytes, sizes of an instruction, an integer and a number, one
 *           of each of the latter two
 *   count of upvalues, source (none: stripped), first line, last line, parameters, is it variadic,
 *   size of the stack, count of instructions, instructions, count of constants, constants, ...
 *
 * Sizes and lines have 7 bits a byte, the highest first; the last byte has its top bit set. */
#include "short.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    HEAD = 64,   /* bytes before the instructions, at most */
    TAIL = 1024, /* bytes of constants that are looked at */
    SIZES = 12,  /* where the sizes are in the header */
    OPCODE_BITS = 7,
    JUMP_BIAS = (1 << 24) - 1 /* a jump by 0 */
};

typedef struct beginning {
    unsigned char bytes[HEAD + MULL__SHORT * sizeof(uint32_t) + TAIL];
    size_t size, at;
} beginning;

/* keep_beginning ends the dump once there is no room for more. */
static int keep_beginning(lua_State *L, const void *bytes, size_t size, void *data)
{
    (void)L;
    beginning *b = data;
    size_t room = sizeof b->bytes - b->size;
    size_t taken = size < room ? size : room;
    memcpy(b->bytes + b->size, bytes, taken);
    b->size += taken;
    return taken < size;
}

/* byte gives the next one; 0 behind the end. */
static unsigned byte(beginning *b)
{
    return b->at < b->size ? b->bytes[b->at++] : 0;
}

static size_t number(beginning *b)
{
    size_t n = 0;
    while (b->at < b->size) {
        unsigned next = byte(b);
        n = n << 7 | (next & 0x7f);
        if (next & 0x80)
            break;
    }
    return n;
}

static int is_known_version(const beginning *b)
{
    static const unsigned char begins[] = "\x1bLua\x54\0\x19\x93\r\n\x1a\n\x04";
    return b->size >= sizeof begins - 1 && memcmp(b->bytes, begins, sizeof begins - 1) == 0;
}

/* skip_to_code gives how many instructions there are, the first of which is next. */
static size_t skip_to_code(beginning *b)
{
    size_t values = (size_t)b->bytes[SIZES + 1] + b->bytes[SIZES + 2];
    b->at = SIZES + 3 + values + 1;
    if (number(b) != 0) /* the source */
        return 0;
    number(b);
    number(b);
    b->at += 3;
    return number(b);
}

/* Of the instructions, in the order of Lua 5.4, those at the ends of what a short function has. */
enum opcode {
    LOADNIL = 8, /* behind it: upvalues */
    GETTABLE = 12,
    GETFIELD = 14, /* behind it: setting fields, new tables, methods */
    ADDI = 21,
    LEN = 52, /* behind it: joining strings, closing variables */
    JMP = 56,
    EQ = 57,
    TESTSET = 67, /* behind it: calls */
    RETURN = 70,
    RETURN1 = 72, /* behind it: loops, functions, arguments without a name */
    EXTRAARG = 82
};

static unsigned opcode_of(uint32_t instruction)
{
    return instruction & ((1u << OPCODE_BITS) - 1);
}

/* ends_soon: whether an instruction goes on to one behind it, and does no more than read, compare
 * and compute. */
static int ends_soon(uint32_t instruction)
{
    unsigned opcode = opcode_of(instruction);
    if (opcode == JMP)
        return instruction >> OPCODE_BITS >= JUMP_BIAS;
    return opcode <= LOADNIL || (opcode >= GETTABLE && opcode <= GETFIELD) ||
           (opcode >= ADDI && opcode <= LEN) || (opcode >= EQ && opcode <= TESTSET) ||
           (opcode >= RETURN && opcode <= RETURN1) || opcode == EXTRAARG;
}

/* is_read: whether an instruction reads a field of register 0, where the first argument is; what is
 * put there in its place may be meant as well. */
static int is_read(uint32_t instruction)
{
    return opcode_of(instruction) == GETFIELD && (instruction >> 16 & 0xff) == 0;
}

static uint32_t next_instruction(beginning *b)
{
    uint32_t instruction;
    memcpy(&instruction, b->bytes + b->at, sizeof instruction);
    b->at += sizeof instruction;
    return instruction;
}

/* read_beginning gives how many instructions the function on top has, the first of which is next;
 * 0: too many, or it isn't known. */
static size_t read_beginning(lua_State *L, beginning *b)
{
    b->size = b->at = 0;
    lua_dump(L, keep_beginning, b, 1);
    if (!is_known_version(b))
        return 0;
    size_t count = skip_to_code(b);
    return count <= MULL__SHORT && b->at + count * sizeof(uint32_t) <= b->size ? count : 0;
}

int mull__is_short(lua_State *L)
{
    beginning b;
    size_t count = read_beginning(L, &b);
    for (size_t i = 0; i < count; i++)
        if (!ends_soon(next_instruction(&b)))
            return 0;
    return count > 0;
}

/* ---- What it reads --------------------------------------------------------------------------- */

/* text_of gives the constant that is next, and moves behind it; NULL: it is no text. */
static const char *text_of(beginning *b, size_t *length)
{
    enum { INTEGER = 0x03, NUMBER = 0x13, SHORT_TEXT = 0x04, LONG_TEXT = 0x14 };
    const char *text = NULL;
    unsigned type = byte(b);
    *length = type == INTEGER ? b->bytes[SIZES + 1] : type == NUMBER ? b->bytes[SIZES + 2] : 0;
    if (type == SHORT_TEXT || type == LONG_TEXT) {
        *length = number(b) - 1;
        text = (const char *)b->bytes + b->at;
    }
    *length = *length < b->size - b->at ? *length : b->size - b->at;
    b->at += *length;
    return b->at < b->size ? text : NULL;
}

/* push_name pushes a text from among the constants, which begin there. 0: it is cut off, or has a
 * zero byte. */
static int push_name(lua_State *L, beginning *b, size_t constants, size_t index)
{
    size_t back = b->at, length = 0;
    const char *text = NULL;
    b->at = constants;
    size_t count = number(b);
    for (size_t i = 0; i <= index && i < count; i++)
        text = text_of(b, &length);
    b->at = back;
    if (!text || memchr(text, 0, length))
        return 0;
    lua_pushlstring(L, text, length);
    return 1;
}

/* is_there says whether the value on top is among the `count` below it. */
static int is_there(lua_State *L, int count)
{
    for (int i = 0; i < count; i++)
        if (lua_rawequal(L, -1, -2 - i))
            return 1;
    return 0;
}

int mull__push_reads(lua_State *L)
{
    beginning b;
    size_t count = read_beginning(L, &b);
    size_t constants = b.at + count * sizeof(uint32_t);
    int reads = 0;
    for (size_t i = 0; i < count && reads < MULL__READS; i++) {
        uint32_t instruction = next_instruction(&b);
        if (!is_read(instruction) || !push_name(L, &b, constants, instruction >> 24))
            continue;
        if (is_there(L, reads))
            lua_pop(L, 1);
        else
            reads++;
    }
    return reads;
}
