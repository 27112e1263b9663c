/* price.c: see price.h.
 *
 *   block   up to LONG bytes | from LONG bytes on: its bytes, and one behind them: the logarithm of
 *           a string's size, 0 for anything else; so that a string is known again when it is freed
 */
#include "price.h"

#include "base/alloc.h"

enum {
    LONG = 4096,
    STACK_BYTES = 128, /* of it that an instruction moves in its time */
    STRING_PARTS = 64  /* a string that is just too long for nothing costs so much */
};

static int logarithm(size_t size)
{
    int bits = 0;
    for (; size > 1; size /= 2)
        bits++;
    return bits;
}

static int longest_of(const mull__price *price)
{
    int bits = price->longest;
    while (bits > 0 && price->strings[bits] == 0)
        bits--;
    return bits;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static unsigned char note_string(mull__price *price, size_t size)
{
    int bits = logarithm(size);
    price->strings[bits]++;
    price->made += size >= price->touched;
    if (bits > price->longest) {
        price->longest = bits;
        price->has_risen = 1;
    }
    return (unsigned char)bits;
}

/* note_stack follows the stack. It grows into a new block, which is made just before the old one is
 * freed; or, in other versions of Lua, as blocks else do. */
static void note_stack(mull__price *price, const void *old, const void *now, size_t size)
{
    if (!old) {
        price->newest = now;
        price->newest_size = size;
        return;
    }
    if (old != price->stack && !price->finds_stack)
        return;
    price->finds_stack = 0;
    price->stack = now ? now : price->newest;
    price->stack_size = now ? size : price->newest_size;
    if (price->stack_size > price->stack_most) {
        price->stack_most = price->stack_size;
        price->has_risen |= price->stack_size >= MULL__PRICE_DEEP;
    }
}

void *mull__price_resize(mull__price *price, const mull_allocator *allocator, void *pointer,
                         size_t old, size_t wanted, int is_string)
{
    unsigned char bits = old >= LONG ? ((unsigned char *)pointer)[old] : 0;
    unsigned char *memory = NULL;
    if (wanted == 0)
        mull__free(allocator, pointer);
    else
        memory = mull__grow(allocator, pointer, wanted + (wanted >= LONG), 1);
    if (wanted > 0 && !memory) {
        if (wanted > old)
            return NULL;
        memory = pointer; /* shrinking can't fail: the old block will do */
    }
    if (bits)
        price->strings[bits]--;
    if (wanted >= LONG)
        memory[wanted] = is_string ? note_string(price, wanted) : 0;
    note_stack(price, pointer, memory, wanted);
    return memory;
}

/* ---- Prices ---------------------------------------------------------------------------------- */

static int64_t price_of(const mull__price *price, int longest, size_t stack)
{
    size_t size = longest ? (size_t)1 << longest : 0;
    size_t cost = 1;
    if (size >= price->touched)
        cost += size / (price->touched / STRING_PARTS);
    if (stack >= MULL__PRICE_DEEP)
        cost += stack / STACK_BYTES;
    return (int64_t)cost;
}

int64_t mull__price_look(mull__price *price)
{
    int64_t cost = price_of(price, price->longest, price->stack_most);
    price->longest = longest_of(price);
    price->stack_most = price->stack_size;
    price->has_risen = 0;
    return cost;
}

int64_t mull__price_now(const mull__price *price)
{
    return price_of(price, price->longest, price->stack_size);
}

int mull__price_is_deep(const mull__price *price)
{
    return price->stack_size >= MULL__PRICE_DEEP;
}
