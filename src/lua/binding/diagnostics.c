/* diagnostics.c: see diagnostics.h. */
#include "diagnostics.h"

#include "callbacks.h"
#include "lua/values/values.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

void mull__diagnostic_keep(const char *file, int line, const char *text, void *data)
{
    mull__diagnostics *problems = data;
    size_t file_size = strlen(file ? file : "") + 1, text_size = strlen(text) + 1;
    mull__diagnostic *kept = malloc(sizeof *kept + file_size + text_size);
    if (!kept)
        return;
    kept->next = NULL;
    kept->line = line;
    memcpy(kept->file, file ? file : "", file_size);
    kept->text = memcpy(kept->file + file_size, text, text_size);
    if (problems->last)
        problems->last->next = kept;
    else
        problems->first = kept;
    problems->last = kept;
}

void mull__diagnostics_drop(mull__diagnostics *problems)
{
    while (problems->first) {
        mull__diagnostic *first = problems->first;
        problems->first = first->next;
        free(first);
    }
    problems->last = NULL;
}

static void add_line(luaL_Buffer *message, const mull__diagnostic *p)
{
    if (p->file[0] && p->line > 0)
        lua_pushfstring(message->L, "%s:%d: %s", p->file, p->line, p->text);
    else
        lua_pushfstring(message->L, p->file[0] ? "%s: %s" : "%s%s", p->file, p->text);
    luaL_addvalue(message);
    if (p->next)
        luaL_addchar(message, '\n');
}

void mull__diagnostics_push(lua_State *L, const mull__diagnostics *problems)
{
    lua_newtable(L);
    lua_Integer count = 0;
    for (const mull__diagnostic *p = problems->first; p; p = p->next) {
        lua_createtable(L, 0, 3);
        mull__set_text(L, "file", p->file[0] ? p->file : NULL);
        if (p->line > 0)
            mull__set_integer(L, "line", p->line);
        mull__set_text(L, "text", p->text);
        lua_rawseti(L, -2, ++count);
    }
}

int mull__diagnostics_fail(lua_State *L, mull__diagnostics *problems, int code)
{
    luaL_Buffer message;
    luaL_buffinit(L, &message);
    for (const mull__diagnostic *p = problems->first; p; p = p->next)
        add_line(&message, p);
    luaL_pushresult(&message);
    mull__fail(L, code, lua_tostring(L, -1));
    mull__diagnostics_push(L, problems);
    mull__diagnostics_drop(problems);
    return 4;
}
