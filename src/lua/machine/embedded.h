/* embedded.h: the Lua files of lua/, in the library itself, so that an installed program or a C
 * host needs no Lua path. The table is made by cmake/embed.cmake.
 *
 * Beside a file's text may stand its bytecode, by tools/bytecode.c: parsing the files that give a
 * policy its words would be most of what a load takes. Bytecode is only for the very Lua that made
 * it; any other parses the text. */
#ifndef MULL__EMBEDDED_H
#define MULL__EMBEDDED_H

#include <lua.h>
#include <stddef.h>

typedef struct mull__embedded {
    const char *name; /* of the Lua module: "mulligan.policy"; an init.lua has its folder's */
    const char *text; /* ends in a NUL besides */
    size_t size;      /* in bytes, without the NUL */
    const char *code; /* bytecode; NULL: there is none */
    size_t code_size; /* in bytes */
} mull__embedded;

/* mull__embedded_files is ordered by path; mull__embedded_count of them. */
extern const mull__embedded mull__embedded_files[];
extern const size_t mull__embedded_count;

/* mull__embedded_lua_ident is how the Lua that made the bytecode calls itself, its lua_ident. */
extern const char mull__embedded_lua_ident[];

/* mull__embedded_find gives the file of a name, or NULL. */
const mull__embedded *mull__embedded_find(const char *name);

/* mull__embedded_load pushes a file's function, or an error message, and gives what lua_load does.
 * The name of its chunk begins with "=", which tells it from a policy's. */
int mull__embedded_load(lua_State *L, const mull__embedded *file);

/* mull__embedded_load_for does so with bytecode of the Lua that `maker` names. */
int mull__embedded_load_for(lua_State *L, const mull__embedded *file, const char *maker);

#endif
