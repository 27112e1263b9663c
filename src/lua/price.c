/* price.c: see price.h.
 *
 *   block   up to LONG bytes | from LONG bytes on: its bytes, and one behind them, the mark: the
 *           logarithm of a string's size; HASH and that of the places of a hash part; 0 for
 * anything else; so that both are known again when they are freed
 */
#include "price.h"

enum {
    LONG = MULL__PRICE_LONG,
    HASH = 128,        /* in a mark */
    PLACES = 256,      /* those of a large hash part; must take LONG bytes */
    PLACE_BYTES = 32,  /* of a string that are touched in the time that a place takes */
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

/* ---- Tallies --------------------------------------------------------------------------------- */

/* settle forgets what was there since the last look, but isn't any more. */
static void settle(mull__price_tally *tally)
{
    while (tally->largest > 0 && tally->count[tally->largest] == 0)
        tally->largest--;
}

/* is_there says whether there is one of that size, or a larger one. */
static int is_there(const mull__price_tally *tally, int bits)
{
    for (; bits <= tally->largest; bits++)
        if (tally->count[bits] > 0)
            return 1;
    return 0;
}

static void note(mull__price *price, mull__price_tally *tally, int bits)
{
    tally->count[bits]++;
    if (bits > tally->largest) {
        tally->largest = bits;
        price->has_risen = 1;
    }
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

size_t mull__price_places(const mull__price *price)
{
    return price->touched / PLACE_BYTES;
}

/* note_block gives the mark of a new block. */
static unsigned char note_block(mull__price *price, size_t size, mull__price_kind kind)
{
    if (kind == MULL__PRICE_STRING) {
        note(price, &price->strings, logarithm(size));
        price->made += size >= price->touched;
        return (unsigned char)logarithm(size);
    }
    if (kind == MULL__PRICE_HASH) {
        size_t places = size / price->place;
        note(price, &price->hashes, logarithm(places));
        price->made += places > mull__price_places(price);
        return (unsigned char)(HASH | logarithm(places));
    }
    return 0;
}

static void forget_block(mull__price *price, unsigned char mark)
{
    if (mark & HASH)
        price->hashes.count[mark & ~HASH]--;
    else if (mark)
        price->strings.count[mark]--;
}

/* note_stack follows the stack. It grows into a new block, which is made just before the old one is
 * freed; or, in other versions of Lua, as blocks else do. */
static void note_stack(mull__price *price, const void *old, const void *now, size_t size)
{
    if (!old && now) {
        price->newest = now;
        price->newest_size = size;
    }
    if (!old)
        return;
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

void *mull__price_resize(mull__price *price, mull__pool *pool, void *pointer, size_t old,
                         size_t wanted, mull__price_kind kind)
{
    unsigned char mark = old >= LONG ? ((unsigned char *)pointer)[old] : 0;
    unsigned char *memory =
        mull__pool_resize(pool, pointer, old + (old >= LONG), wanted + (wanted >= LONG));
    if (wanted > 0 && !memory)
        return NULL;
    forget_block(price, mark);
    if (wanted >= LONG)
        memory[wanted] = note_block(price, wanted, kind);
    note_stack(price, pointer, memory, wanted);
    return memory;
}

/* ---- Hash parts ------------------------------------------------------------------------------ */

int mull__price_may_be_hash(const mull__price *price, size_t bytes)
{
    size_t places = price->place ? bytes / price->place : 0;
    return places >= PLACES && bytes >= LONG && (places & (places - 1)) == 0 &&
           places * price->place == bytes;
}

int64_t mull__price_filling(const mull__price *price, size_t bytes)
{
    /* A table grows into twice its places. One that has room, but not where Lua looks for it, is
     * filled anew in as many. Each key walks through those that are there already. */
    size_t places = bytes / price->place;
    size_t keys = is_there(&price->hashes, logarithm(places)) ? places : places / 2;
    size_t unit = 2 * mull__price_places(price);
    return keys < UINT32_MAX ? (int64_t)(keys * keys / unit) : INT64_MAX;
}

/* ---- Prices ---------------------------------------------------------------------------------- */

size_t mull__price_lookup(const mull__price *price)
{
    int bits = price->hashes.largest;
    size_t times = bits ? ((size_t)1 << bits) / mull__price_places(price) : 0;
    return times > 0 ? times - 1 : 0;
}

static int64_t price_of(const mull__price *price, size_t stack)
{
    int longest = price->strings.largest;
    size_t size = longest ? (size_t)1 << longest : 0;
    size_t cost = 1 + mull__price_lookup(price);
    if (size >= price->touched)
        cost += size / (price->touched / STRING_PARTS);
    if (stack >= MULL__PRICE_DEEP)
        cost += stack / STACK_BYTES;
    return (int64_t)cost;
}

int64_t mull__price_look(mull__price *price)
{
    int64_t cost = price_of(price, price->stack_most);
    settle(&price->strings);
    settle(&price->hashes);
    price->stack_most = price->stack_size;
    price->has_risen = 0;
    return cost;
}

int64_t mull__price_now(const mull__price *price)
{
    return price_of(price, price->stack_size);
}

int mull__price_is_deep(const mull__price *price)
{
    return price->stack_size >= MULL__PRICE_DEEP;
}
