/* arena.c: see arena.h. */
#include "arena.h"

#include "scoped.h"

#include <lauxlib.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char type_name[] = "mulligan.arena";

enum { BLOCK = 2048, ALIGN = alignof(max_align_t) };

typedef struct block {
    struct block *next;
    size_t used, room;
    alignas(max_align_t) char bytes[];
} block;

struct mull__arena {
    block *blocks;
};

void mull__arena_drop(mull__arena *arena)
{
    while (arena->blocks) {
        block *first = arena->blocks;
        arena->blocks = first->next;
        free(first);
    }
}

static int drop(lua_State *L)
{
    mull__arena_drop(lua_touserdata(L, 1));
    return 0;
}

mull__arena *mull__arena_new(lua_State *L)
{
    return mull__scoped_new(L, sizeof(mull__arena), type_name, drop);
}

static block *add_block(lua_State *L, mull__arena *arena, size_t bytes)
{
    size_t room = bytes > BLOCK ? bytes : BLOCK;
    block *added = bytes <= SIZE_MAX / 2 ? malloc(sizeof *added + room) : NULL;
    if (!added) {
        luaL_error(L, "not enough memory");
        return NULL;
    }
    *added = (block){.next = arena->blocks, .room = room};
    arena->blocks = added;
    return added;
}

void *mull__arena_take(lua_State *L, mull__arena *arena, size_t count, size_t bytes)
{
    size_t size = bytes && count > SIZE_MAX / 2 / bytes ? SIZE_MAX : count * bytes;
    size_t rounded = size < SIZE_MAX - ALIGN ? (size + ALIGN - 1) / ALIGN * ALIGN : SIZE_MAX;
    block *b = arena->blocks;
    if (!b || b->room - b->used < rounded)
        b = add_block(L, arena, rounded);
    void *memory = b->bytes + b->used;
    b->used += rounded;
    return memset(memory, 0, size);
}

char *mull__arena_copy(lua_State *L, mull__arena *arena, const char *bytes, size_t size)
{
    char *copy = mull__arena_take(L, arena, size + 1, 1);
    memcpy(copy, bytes, size);
    return copy;
}
