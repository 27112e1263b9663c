/* fuzz.h: what the fuzz targets share. Each holds what it says in its first lines against any
 * input; what breaks that, aborts. */
#ifndef SPEC_FUZZ_H
#define SPEC_FUZZ_H

#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int luaopen_mulligan(lua_State *L);

/* expect ends the program with a finding. */
static inline void expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "finding: %s\n", what);
    abort();
}

/* open_lua gives a state with mulligan's module and files in it. */
static inline lua_State *open_lua(void)
{
    lua_State *L = luaL_newstate();
    expect(L != NULL, "no Lua");
    luaL_openlibs(L);
    luaL_requiref(L, "mulligan", luaopen_mulligan, 1);
    lua_settop(L, 0);
    return L;
}

#endif
