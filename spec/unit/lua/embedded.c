/* embedded.c: the embedded files' bytecode says what their texts say, and is only for the
 * Lua that made it. */
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "fixtures.h"
#include "lua/machine/embedded.h"

extern const char lua_ident[];

static lua_State *open_state(void)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    return L;
}

/* push_dump pushes what string.dump makes of the function that a file gives for a maker: its
 * instructions, constants, lines and names, and those of all functions in it. */
static void push_dump(lua_State *L, const mull__embedded *file, const char *maker)
{
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 0);
    lua_getfield(L, -1, "dump");
    lua_remove(L, -2);
    assert_int_equal(mull__embedded_load_for(L, file, maker), LUA_OK);
    lua_call(L, 1, 1);
}

static void bytecode_says_what_the_text_says(void **state)
{
    (void)state;
    lua_State *L = open_state();
    assert_string_equal(mull__embedded_lua_ident, lua_ident);
    assert_true(mull__embedded_count > 0);
    for (size_t i = 0; i < mull__embedded_count; i++) {
        const mull__embedded *file = &mull__embedded_files[i];
        assert_non_null(file->code);
        push_dump(L, file, mull__embedded_lua_ident);
        push_dump(L, file, "");
        if (!lua_rawequal(L, -1, -2))
            fail_msg("%s: its bytecode isn't that of its text", file->name);
        lua_settop(L, 0);
    }
    lua_close(L);
}

/* ---- Which of the two ------------------------------------------------------------------------ */

/* used gives which of the two a file is loaded from for a maker: both return what they are. */
static const char *used(lua_State *L, const mull__embedded *file, const char *maker)
{
    assert_int_equal(mull__embedded_load_for(L, file, maker), LUA_OK);
    lua_call(L, 0, 1);
    return lua_tostring(L, -1);
}

static void bytecode_of_another_lua_is_left_alone(void **state)
{
    (void)state;
    lua_State *L = open_state();
    static const char text[] = "return 'text'", code[] = "return 'code'";
    mull__embedded other = {.name = "other", .text = code, .size = sizeof code - 1};
    push_dump(L, &other, "");
    size_t size;
    char bytes[512];
    const char *made = lua_tolstring(L, -1, &size);
    assert_in_range(size, 1, sizeof bytes);
    memcpy(bytes, made, size);
    mull__embedded both = {"both", text, sizeof text - 1, bytes, size};
    assert_string_equal(used(L, &both, lua_ident), "code");
    assert_string_equal(used(L, &both, "$LuaVersion: Lua 5.4.0"), "text");
    assert_string_equal(used(L, &both, ""), "text");
    both.code = NULL;
    assert_string_equal(used(L, &both, lua_ident), "text");
    lua_close(L);
}

/* Behind the signature stand the version, the format, and the sizes of instructions and numbers. */
static void bytecode_of_other_sizes_is_left_alone(void **state)
{
    (void)state;
    lua_State *L = open_state();
    static const char text[] = "return 'text'";
    mull__embedded both = {.name = "both", .text = text, .size = sizeof text - 1};
    push_dump(L, &both, "");
    size_t size;
    char bytes[512];
    const char *made = lua_tolstring(L, -1, &size);
    assert_in_range(size, 32, sizeof bytes);
    for (size_t at = 0; at < 31; at++) {
        memcpy(bytes, made, size);
        bytes[at] ^= 1;
        both.code = bytes;
        both.code_size = size;
        assert_string_equal(used(L, &both, lua_ident), "text");
        lua_settop(L, 1);
    }
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytecode_says_what_the_text_says),
        cmocka_unit_test(bytecode_of_another_lua_is_left_alone),
        cmocka_unit_test(bytecode_of_other_sizes_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
