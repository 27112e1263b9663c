/* short.c: see short.h. The instructions are those that lua_dump gives:
 *
 *   header: "\x1bLua" version format 6 bytes, sizes of an instruction, an integer and a number, one
 *           of each of the latter two
 *   count of upvalues, source (none: stripped), first line, last line, parameters, is it variadic,
 *   size of the stack, count of instructions, instructions, ...
 *
 * Sizes and lines have 7 bits a byte, the highest first; the last byte has its top bit set. */
#include "short.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    HEAD = 64,  /* bytes before the instructions, at most */
    SIZES = 12, /* where the sizes are in the header */
    OPCODE_BITS = 7,
    JUMP_BIAS = (1 << 24) - 1 /* a jump by 0 */
};

typedef struct beginning {
    unsigned char bytes[HEAD + MULL__SHORT * sizeof(uint32_t)];
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

/* ends_soon: whether an instruction goes on to one behind it, and does no more than read, compare
 * and compute. The order of instructions is that of Lua 5.4. */
static int ends_soon(uint32_t instruction)
{
    enum {
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
    unsigned opcode = instruction & ((1u << OPCODE_BITS) - 1);
    if (opcode == JMP)
        return instruction >> OPCODE_BITS >= JUMP_BIAS;
    return opcode <= LOADNIL || (opcode >= GETTABLE && opcode <= GETFIELD) ||
           (opcode >= ADDI && opcode <= LEN) || (opcode >= EQ && opcode <= TESTSET) ||
           (opcode >= RETURN && opcode <= RETURN1) || opcode == EXTRAARG;
}

static uint32_t next_instruction(beginning *b)
{
    uint32_t instruction;
    memcpy(&instruction, b->bytes + b->at, sizeof instruction);
    b->at += sizeof instruction;
    return instruction;
}

int mull__is_short(lua_State *L)
{
    beginning b = {.size = 0};
    lua_dump(L, keep_beginning, &b, 1);
    if (!is_known_version(&b))
        return 0;
    size_t count = skip_to_code(&b);
    if (count == 0 || count > MULL__SHORT || b.at + count * sizeof(uint32_t) > b.size)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (!ends_soon(next_instruction(&b)))
            return 0;
    return 1;
}
