/* bytecode.c: writes a Lua file as bytecode, for the Lua that this is linked with;
 * cmake/embed.cmake asks for it.
 *
 *   bytecode                 prints what that Lua calls itself
 *   bytecode NAME FILE OUT   compiles FILE as the chunk "=NAME", its lines and names kept */
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>

extern const char lua_ident[]; /* no header declares it */

static int complain(const char *name, const char *why)
{
    fprintf(stderr, "bytecode: %s: %s\n", name, why);
    return 1;
}

static int write_piece(lua_State *L, const void *piece, size_t size, void *data)
{
    (void)L;
    return fwrite(piece, 1, size, data) != size;
}

/* write_function writes the function on top of the stack. */
static int write_function(lua_State *L, const char *path)
{
    FILE *out = fopen(path, "wb");
    if (!out)
        return complain(path, "can't be written");
    int status = lua_dump(L, write_piece, out, 0);
    if (fclose(out) != 0 || status != 0)
        return complain(path, "can't be written");
    return 0;
}

/* load pushes the function of a file. luaL_loadfilex would name the chunk after its path. */
static int load(lua_State *L, const char *name, const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file)
        return complain(path, "can't be read");
    size_t size = fread(text, 1, sizeof text, file);
    int is_whole = !ferror(file) && size < sizeof text;
    fclose(file);
    if (!is_whole)
        return complain(path, "can't be read, or is too large");
    const char *chunk = lua_pushfstring(L, "=%s", name);
    if (luaL_loadbufferx(L, text, size, chunk, "t") != LUA_OK)
        return complain(path, lua_tostring(L, -1));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        fputs(lua_ident, stdout);
        return fflush(stdout) != 0;
    }
    if (argc != 4) {
        fprintf(stderr, "usage: bytecode [NAME FILE OUT]\n");
        return 2;
    }
    lua_State *L = luaL_newstate();
    if (!L)
        return complain(argv[1], "out of memory");
    int status = load(L, argv[1], argv[2]);
    if (status == 0)
        status = write_function(L, argv[3]);
    lua_close(L);
    return status;
}
