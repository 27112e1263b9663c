/* pattern.c: patterns find what Lua's find, and raise what Lua's raise; what the check lets through
 * never raises. The input is a pattern, a line's end, and a text. */
#include <string.h>

#include "base/pattern.h"
#include "fuzz.h"

enum { STEPS = 100000 };

static lua_State *L;

/* check_place holds what was found against what string.find gave, from the stack's second value. */
static void check_place(const mull__pattern_match *match, const char *text)
{
    expect(lua_tointeger(L, 2) == match->start - text + 1, "another start");
    expect(lua_tointeger(L, 3) == match->end - text, "another end");
    expect(lua_gettop(L) == 3 + match->capture_count, "other captures");
    for (int i = 0; i < match->capture_count; i++) {
        const mull__capture *capture = &match->captures[i];
        size_t size = 0;
        if (capture->length == MULL__CAPTURE_POSITION) {
            expect(lua_tointeger(L, 4 + i) == capture->start - text + 1, "another position");
            continue;
        }
        const char *bytes = lua_tolstring(L, 4 + i, &size);
        expect(size == (size_t)capture->length && memcmp(bytes, capture->start, size) == 0,
               "another capture");
    }
}

static int has_open(const mull__pattern_match *match)
{
    for (int i = 0; i < match->capture_count; i++)
        if (match->captures[i].length == MULL__CAPTURE_OPEN)
            return 1;
    return 0;
}

/* is_plain: string.find takes it for a plain text. */
static int is_plain(const char *pattern, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (memchr("^$*+?.([%-", pattern[i], 10))
            return 0;
    return 1;
}

static void compare(const char *pattern, size_t pattern_size, const char *text, size_t size)
{
    mull__pattern_match match = {.wrong = NULL};
    mull__pattern_steps steps = {.left = STEPS};
    const char *mistake = mull__pattern_check(pattern, pattern_size);
    int found = mull__pattern_find(&match, text, size, 0, pattern, pattern_size, &steps);
    expect(steps.left <= STEPS && steps.left > -STEPS, "steps that aren't counted");
    expect(!mistake || mistake[0], "a mistake without a name");
    expect(mistake || found != MULL__PATTERN_MALFORMED, "the check let a mistake through");
    if (found == MULL__PATTERN_OUT_OF_STEPS || is_plain(pattern, pattern_size))
        return; /* Lua may take years for it, or is asked for something else */
    lua_pushvalue(L, 1);
    lua_pushlstring(L, text, size);
    lua_pushlstring(L, pattern, pattern_size);
    int raised = lua_pcall(L, 2, LUA_MULTRET, 0) != LUA_OK;
    if (found == MULL__PATTERN_COMPLEX || found == MULL__PATTERN_MALFORMED) {
        const char *why = found == MULL__PATTERN_MALFORMED ? match.wrong : "pattern too complex";
        expect(raised && strcmp(lua_tostring(L, 2), why) == 0, "another mistake");
    } else if (found == MULL__PATTERN_FOUND && has_open(&match)) {
        expect(raised && mistake, "an open capture isn't a mistake");
    } else {
        expect(!raised, "only Lua raises");
        expect(lua_isnil(L, 2) == (found == MULL__PATTERN_NONE), "found by one only");
        if (found == MULL__PATTERN_FOUND)
            check_place(&match, text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!L) {
        L = open_lua();
        lua_getglobal(L, "string");
        lua_getfield(L, -1, "find");
        lua_replace(L, 1);
    }
    const char *pattern = (const char *)data;
    const char *line = size ? memchr(pattern, '\n', size) : NULL;
    size_t pattern_size = line ? (size_t)(line - pattern) : size;
    const char *text = line ? line + 1 : pattern + size;
    compare(pattern, pattern_size, text, size - (size_t)(text - pattern));
    lua_settop(L, 1);
    return 0;
}
