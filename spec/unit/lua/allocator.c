/* allocator.c: the allocator of a policy's Lua state never looks into the state, for Lua
 * may ask for memory while it moves its stack: from Lua 5.4.6 on, what points into the stack is no
 * pointer then. A state is filled in every way, and as often refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <lua.h>

#include "mulligan.h"

/* ---- Who is asked ---------------------------------------------------------------------------- */

static int allocating;       /* an allocator is at work */
static long refused, looked; /* requests that got nothing; functions called meanwhile */

/* guard is an allocator with another one around it. */
typedef struct guard {
    lua_Alloc resize;
    void *data;
} guard;

static void *guarded(void *data, void *pointer, size_t old, size_t wanted)
{
    const guard *g = data;
    allocating++;
    void *memory = g->resize(g->data, pointer, old, wanted);
    allocating--;
    refused += wanted > 0 && !memory;
    return memory;
}

/* What the objects call comes here, by the linker's --wrap. */
lua_State *__real_lua_newstate(lua_Alloc resize, void *data);
lua_State *__wrap_lua_newstate(lua_Alloc resize, void *data);

lua_State *__wrap_lua_newstate(lua_Alloc resize, void *data)
{
    static guard guards[64];
    static size_t count;
    guard *g = &guards[count++];
    assert_true(count <= sizeof guards / sizeof *guards);
    *g = (guard){resize, data};
    return __real_lua_newstate(guarded, g);
}

#define LOOK(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        looked += allocating > 0;                                                                  \
        return __real_##name arguments;                                                            \
    }

LOOK(int, lua_getstack, (lua_State * L, int level, lua_Debug *at), (L, level, at))
LOOK(int, lua_getinfo, (lua_State * L, const char *what, lua_Debug *at), (L, what, at))
LOOK(int, lua_gethookmask, (lua_State * L), (L))
LOOK(int, lua_gettop, (lua_State * L), (L))
LOOK(int, lua_type, (lua_State * L, int index), (L, index))
LOOK(void *, lua_touserdata, (lua_State * L, int index), (L, index))
LOOK(const char *, lua_tolstring, (lua_State * L, int index, size_t *size), (L, index, size))
LOOK(int, lua_checkstack, (lua_State * L, int count), (L, count))

/* ---- What fills a state ---------------------------------------------------------------------- */

static const char *const bodies[] = {
    "#{ table.unpack({}, 1, 200000) }",
    "#{ string.byte(('x'):rep(200000), 1, -1) }",
    "(function() local function f(...) return 1 + f(1, ...) end return f() end)()",
    "(function() local function f() return 1 + f() end return f() end)()",
    "(function() local t = {} while true do t = { t } end end)()",
    "(function() local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end end)()",
    "(function() local t = {} while true do t['x' .. #t] = #t t[#t + 1] = 1 end end)()",
    "(function() local t = {} for i = 1, 1e9 do t[-i] = 1 end end)()",
    "(function() local s = 'x' while true do s = s .. s end end)()",
    "(function() pcall(table.unpack, {}, 1, 200000) return ('x'):rep(1 << 27) end)()",
    "(function() while true do pcall(string.rep, 'x', 1 << 27) end end)()",
    "(function() local t = {} for i = 1, 1e9 do table.insert(t, {}) end end)()",
};
enum { BODIES = sizeof bodies / sizeof *bodies };

static void count_event(const mull_event *event, void *data)
{
    long *failed = data;
    *failed += event->kind == MULL_EVENT_MATCHER_FAILED;
}

static void a_call_that_fills_it(void **state)
{
    (void)state;
    long failed = 0;
    for (int i = 0; i < BODIES; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "require('mulligan.policy').bus():on('E', function() return %s end):discard()",
                 bodies[i]);
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.text = text;
        options.event = count_event;
        options.data = &failed;
        mull_policy *policy;
        mull_decider *decider;
        assert_int_equal(mull_policy_load(&policy, &options), 0);
        assert_int_equal(mull_decider_new(&decider, policy), 0);
        mull_error error = MULL_INIT(mull_error);
        error.type = "E";
        mull_failure failure = MULL_INIT(mull_failure);
        failure.error = &error;
        mull_verdict verdict = MULL_INIT(mull_verdict);
        assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
        assert_int_equal(failed, i + 1);
        mull_decider_free(decider);
        mull_policy_free(policy);
    }
    assert_true(refused > BODIES);
    assert_int_equal(looked, 0);
}

static void a_load_that_fills_it(void **state)
{
    (void)state;
    refused = 0;
    for (int i = 0; i < BODIES; i++) {
        char text[512];
        snprintf(text, sizeof text, "_ = %s > 0\nerror('it passed')", bodies[i]);
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.text = text;
        mull_policy *policy;
        assert_int_equal(mull_policy_load(&policy, &options), MULL_EPOLICY);
    }
    assert_true(refused > 0);
    assert_int_equal(looked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fills_it),
        cmocka_unit_test(a_load_that_fills_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
