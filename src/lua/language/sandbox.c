/* sandbox.c: see sandbox.h. */
#include "sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pattern.h"
#include "dsl_dispatch.h"
#include "lua/machine/embedded.h"
#include "lua/machine/sandbox_library.h"

#define MIB(count) ((size_t)(count)*1024 * 1024)

static const mull__vm_budget load_budget = {.instructions = MULL__LOAD_INSTRUCTIONS,
                                            .in_all = MIB(1024)};
static const mull__vm_budget again_budget = {.instructions = MULL__AGAIN_INSTRUCTIONS,
                                             .in_all = MIB(1024 + 128)};
const mull__vm_budget mull__function_budget = {
    .instructions = MULL__CALL_INSTRUCTIONS, .at_once = MIB(1), .in_all = MIB(16)};

/* Keys of the registry, by their addresses. */
static const char modules, load_side, box, result, shared;

static mull__sandbox *sandbox_of(lua_State *L)
{
    return (mull__sandbox *)mull__vm_of(L);
}

/* ---- What is embedded ------------------------------------------------------------------------ */

/* push_embedded pushes a file's function. */
static void push_embedded(lua_State *L, const char *name)
{
    const mull__embedded *file = mull__embedded_find(name);
    int status = file ? mull__embedded_load(L, file) : LUA_OK;
    if (!file)
        luaL_error(L, "there is no embedded file %s", name);
    else if (status == LUA_ERRMEM)
        mull__vm_raise_no_memory(L);
    else if (status != LUA_OK)
        lua_error(L);
}

/* require_embedded is `require` for embedded files, which policies never see. */
static int require_embedded(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &modules);
    if (lua_getfield(L, -1, name) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    push_embedded(L, name);
    lua_call(L, 0, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
    return 1;
}

/* ---- What C offers to sandbox.lua ------------------------------------------------------------ */

static int offer_log(lua_State *L)
{
    const char *text = luaL_checkstring(L, 1);
    mull__sandbox *s = sandbox_of(L);
    if (!s->options.silent) {
        mull__vm_leave(&s->vm);
        mull__log_write(s->options.log, MULL_INFO, text);
        mull__vm_enter(&s->vm);
    }
    return 0;
}

/* get gives a file of the source: the host policy is one file, its first. */
static int get(const mull__sandbox *s, const char *name, const mull__source_file **file, char *why,
               size_t why_size)
{
    return s->options.is_host ? mull__source_get_host(s->options.source, file, why, why_size)
                              : mull__source_get(s->options.source, name, file, why, why_size);
}

/* offer_read(file) reads it, if that wasn't done before: true; or false and why not. */
static int offer_read(lua_State *L)
{
    char why[1024];
    const mull__source_file *file;
    int status = get(sandbox_of(L), luaL_checkstring(L, 1), &file, why, sizeof why);
    if (status == MULL_ENOMEM) {
        mull__vm_of(L)->refused = MULL__VM_NO_MEMORY;
        return mull__vm_raise_no_memory(L);
    }
    lua_pushboolean(L, !status);
    lua_pushstring(L, status ? why : NULL);
    return 2;
}

enum { PARSED = 16 }; /* bytes of a text that are parsed in the time of an instruction */

/* offer_compile(file, environment), after read(file): a function; or nil and Lua's message. Its
 * text, without a byte order mark, never becomes a string of Lua's. Bytecode could do anything, so
 * only text is let in. */
static int offer_compile(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const char *chunk = lua_pushfstring(L, "@%s", name);
    const mull__source_file *file;
    if (get(sandbox_of(L), name, &file, NULL, 0))
        return luaL_error(L, "%s wasn't read", name);
    size_t mark = file->size >= 3 && memcmp(file->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    mull__vm_charge(L, file->size / PARSED);
    int status = luaL_loadbufferx(L, file->text + mark, file->size - mark, chunk, "t");
    if (status == LUA_ERRMEM)
        return mull__vm_raise_no_memory(L);
    if (status != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    lua_pushvalue(L, 2);
    lua_setupvalue(L, -2, 1);
    return 1;
}

/* offer_pattern_mistake: what is wrong with a pattern; nil: nothing. */
static int offer_pattern_mistake(lua_State *L)
{
    size_t size;
    const char *pattern = luaL_checklstring(L, 1, &size);
    lua_pushstring(L, mull__pattern_check(pattern, size));
    return 1;
}

static void push_offers(lua_State *L)
{
    static const luaL_Reg offers[] = {{"pcall", mull__vm_pcall},
                                      {"log", offer_log},
                                      {"read", offer_read},
                                      {"compile", offer_compile},
                                      {"reveal", mull__proxy_unwrap},
                                      {"pattern_mistake", offer_pattern_mistake},
                                      {NULL, NULL}};
    const mull__sandbox_options *options = &sandbox_of(L)->options;
    luaL_newlib(L, offers);
    lua_pushstring(L, options->main);
    lua_setfield(L, -2, "main");
    lua_pushboolean(L, options->is_host);
    lua_setfield(L, -2, "is_host");
    if (options->host) {
        mull__sandbox_shared(L, options->host);
        lua_setfield(L, -2, "host");
    }
}

/* ---- Loading --------------------------------------------------------------------------------- */

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_MATHLIBNAME, luaopen_math},
                                         {LUA_UTF8LIBNAME, luaopen_utf8},
                                         {LUA_DBLIBNAME, luaopen_debug},
                                         {NULL, NULL}};
    for (const luaL_Reg *library = libraries; library->func; library++) {
        luaL_requiref(L, library->name, library->func, 1);
        lua_pop(L, 1);
    }
}

/* prepare loads the words and the sandbox around them. */
static int prepare(lua_State *L)
{
    open_libraries(L);
    lua_newtable(L);
    push_offers(L);
    lua_setfield(L, -2, "mulligan.sandbox.offers");
    mull__sandbox_library_push(L);
    lua_setfield(L, -2, "mulligan.sandbox.library");
    mull__dsl_dispatch_push(L);
    lua_setfield(L, -2, "mulligan.policy.dispatch");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &modules);
    lua_pushcfunction(L, require_embedded);
    lua_setglobal(L, "require");
    push_embedded(L, "mulligan.sandbox");
    lua_call(L, 0, 1);
    push_embedded(L, "mulligan.policy");
    lua_call(L, 0, 2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &load_side);
    lua_call(L, 2, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &box);
    return 0;
}

static int run(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &box);
    lua_getfield(L, -1, "run");
    lua_call(L, 0, 0);
    return 0;
}

/* finish notes the error that ended the run, if any, and keeps the result. Its argument is a copy
 * of the vm with that error, or NULL. */
static int finish(lua_State *L)
{
    const mull__vm *failed = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &box);
    if (failed) {
        lua_getfield(L, -1, "failed");
        lua_pushstring(L, failed->file[0] ? failed->file : sandbox_of(L)->options.main);
        lua_pushinteger(L, failed->line);
        lua_pushstring(L, failed->message);
        lua_call(L, 3, 0);
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &load_side);
    lua_getfield(L, -1, "collect");
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "shared");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &shared);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &result);
    lua_getfield(L, -2, "freeze");
    lua_call(L, 0, 0);
    return 0;
}

void mull__sandbox_result(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &result);
}

/* copy pushes on `to` what is on top of `from`: texts, whole numbers, booleans, and a few levels of
 * tables of these, for which either stack has room. Nothing here allocates in `from`, where an
 * error would find nobody. Where `to` raises, both are freed, with what is left on their stacks. */
static void copy(lua_State *to, lua_State *from)
{
    size_t size;
    switch (lua_type(from, -1)) {
    case LUA_TSTRING: {
        const char *text = lua_tolstring(from, -1, &size);
        lua_pushlstring(to, text, size);
        break;
    }
    case LUA_TNUMBER:
        lua_pushinteger(to, lua_tointeger(from, -1));
        break;
    case LUA_TTABLE:
        lua_newtable(to);
        for (lua_pushnil(from); lua_next(from, -2); lua_pop(from, 1)) {
            lua_pushvalue(from, -2);
            copy(to, from);
            lua_pop(from, 1);
            copy(to, from);
            lua_rawset(to, -3);
        }
        break;
    default:
        lua_pushboolean(to, lua_toboolean(from, -1));
    }
}

void mull__sandbox_shared(lua_State *L, const mull__sandbox *from)
{
    lua_rawgetp(from->vm.lua, LUA_REGISTRYINDEX, &shared);
    copy(L, from->vm.lua);
    lua_pop(from->vm.lua, 1);
}

int mull__sandbox_load(mull__sandbox *sandbox)
{
    enum { PAUSE = 1000 }; /* garbage is collected once there is ten times what there was last */
    mull__vm *vm = &sandbox->vm;
    lua_gc(vm->lua, LUA_GCINC, PAUSE, 0, 0);
    int status = mull__vm_call(vm, prepare, NULL, NULL);
    if (status)
        return status;
    status = mull__vm_call(vm, run, NULL, sandbox->options.again ? &again_budget : &load_budget);
    if (status == MULL_ENOMEM)
        return status;
    mull__vm failed = *vm;
    /* A policy that used up its memory still gets its mistakes told; one that just passed is still
     * to be compiled, and its functions to be called. */
    mull__vm_spare(vm, MIB(MULL__LOADED_SPARE_MIB));
    status = mull__vm_call(vm, finish, status ? &failed : NULL, NULL);
    sandbox->options.silent = 0; /* what its functions print from now on is new */
    return status;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int mull__sandbox_new(mull__sandbox **out, const mull_allocator *allocator,
                      const mull__sandbox_options *options)
{
    *out = NULL;
    mull__sandbox *s = mull__zalloc(allocator, 1, sizeof *s);
    if (!s)
        return MULL_ENOMEM;
    s->options = *options;
    if (mull__vm_open(&s->vm, allocator, MIB(MULL__LOAD_MIB))) {
        mull__free(allocator, s);
        return MULL_ENOMEM;
    }
    if (options->again)
        mull__vm_spare(&s->vm, MIB(MULL__AGAIN_SPARE_MIB));
    *out = s;
    return MULL_OK;
}

void mull__sandbox_free(mull__sandbox *sandbox)
{
    if (!sandbox)
        return;
    const mull_allocator a = sandbox->vm.allocator;
    mull__vm_close(&sandbox->vm);
    mull__free(&a, sandbox);
}
