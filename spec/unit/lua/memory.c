/* memory.c: the Lua module in an embedder's state, where the n-th request for memory
 * is refused: the state's own, at once and after its emergency collection, or what the module asks
 * of malloc; for a moment, for good until it is had again, or for good. A script loads a policy,
 * makes an engine on a test's clock, publishes, handles, reloads and closes, and tries each of
 * these again where it failed. No error passes by what is protected, no message is lost, and
 * nothing is left. And what is read of a call that is wrong isn't left to the collector. */
#include "counting_allocator.h"
#include "sample.h"
#include "test_engine.h"

#include <lauxlib.h>
#include <lualib.h>
#include <unistd.h>

int luaopen_mulligan(lua_State *L);

static const char script[] =
    "local mulligan, testing = require 'mulligan', require 'mulligan.testing'\n"
    "local text = [[\n"
    "    local policy = require 'mulligan.policy'\n"
    "    policy.bus():on('Deadly'):dead_letter()\n"
    "    policy.bus():on('Passing', function(err) return err.code == 7 end):redeliver(900, '1s')\n"
    "    policy.bus():default():retry(900, '1s', 'constant')\n"
    "    policy.consumer('Dead'):dead_letter_queue('nowhere')\n"
    "    policy.consumer('Dead'):default():retry(900, '1s', 'constant')\n"
    "]]\n"
    "local ids = { 'good', 'passing', 'sleepy', 'deadly', 'strange' }\n"
    "local book = {}\n"
    "for _, id in ipairs(ids) do\n"
    "    book[id] = { taken = false, answers = 0, done = 0, buried = 0, sequel = 0, calls = 0 }\n"
    "end\n"
    "local function ignore() end\n"
    "local handlers = {\n"
    "    good = function(msg) mulligan.send('sequels', msg.body, { id = msg.id }) end,\n"
    "    passing = function(msg)\n"
    "        if msg.calls == 0 then mulligan.error { type = 'Passing', code = 7 } end\n"
    "    end,\n"
    "    sleepy = function() mulligan.sleep('5s') end,\n"
    "    deadly = function() mulligan.error { type = 'Deadly', message = ('x'):rep(2000) } end,\n"
    "    strange = function(msg)\n"
    "        local closed <close> = setmetatable({}, { __close = ignore })\n"
    "        if msg.calls == 0 then error(setmetatable({}, { __tostring = error })) end\n"
    "    end,\n"
    "}\n"
    "local function handle(msg)\n"
    "    local one = book[msg.id]\n"
    "    one.calls = one.calls + 1\n"
    "    handlers[msg.id](msg)\n"
    "    one.done = one.done + 1\n" /* nothing behind this needs memory */
    "end\n"
    "local clock, policy, engine = testing.clock(), nil, nil\n"
    "local steps = {}\n"
    "function steps.load()\n"
    "    policy = policy or assert(mulligan.load_text(text, { log = ignore, event = ignore }))\n"
    "end\n"
    "function steps.set_up()\n"
    "    if engine then engine:close() end\n"
    "    engine = assert(mulligan.engine { policy = policy, clock = clock, seed = 1,\n"
    "        log = ignore, event = ignore })\n"
    "    assert(engine:transport('t', 'memory:'))\n"
    "    assert(engine:consumer('C', { transport = 't', queue = 'q', concurrency = 2,\n"
    "        timeout = '365d', handler = handle }))\n"
    "    assert(engine:consumer('Sequels', { transport = 't', queue = 'sequels',\n"
    "        handler = function(msg)\n"
    "            local one = book[msg.id]\n"
    "            one.sequel = one.sequel + 1\n"
    "        end }))\n"
    "    assert(engine:consumer('Dead', { transport = 't', queue = 'error',\n"
    "        handler = function(msg)\n"
    "            local one = book[msg.id]\n"
    "            one.buried = one.buried + 1\n"
    "        end }))\n"
    "    assert(engine:start())\n"
    "end\n"
    "function steps.publish()\n"
    "    for _, id in ipairs(ids) do\n"
    "        local one = book[id]\n"
    "        if not one.taken then\n"
    "            local function answer(well) one.answers = one.answers + (well and 1 or 0) end\n"
    "            local given = { id = id, headers = { tenant = 'acme' } }\n"
    "            one.taken = assert(engine:publish('t', 'q', 'body', given, answer))\n"
    "        end\n"
    "    end\n"
    "end\n"
    "function steps.work() clock:advance('3s') end\n"
    "function steps.decide()\n"
    "    local verdict = assert(policy:decide { error = { type = 'Passing', code = 7 } })\n"
    "    assert(verdict.action == 'redeliver' or verdict.action == 'retry')\n"
    "end\n"
    "function steps.reload() assert(policy:reload(text .. '-- once more')) end\n"
    "function steps.work_on() clock:advance('1h') end\n"
    "function steps.stop()\n"
    "    engine:stop()\n"
    "    clock:advance('1m')\n"
    "    assert(engine:stopped())\n"
    "end\n"
    "function steps.close()\n"
    "    engine:close()\n"
    "    policy:close()\n"
    "end\n"
    "return steps, book\n";

/* ---- Whose memory ---------------------------------------------------------------------------- */

static counting_allocator luas, ours;

/* What the objects ask of malloc comes here, by the linker's --wrap. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *pointer, size_t bytes);
void __real_free(void *pointer);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *pointer, size_t bytes);
void __wrap_free(void *pointer);

static void *counted(void *memory)
{
    atomic_fetch_add(&ours.out, memory != NULL);
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return counting_allocator_refuses(&ours) ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return counting_allocator_refuses(&ours) ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *pointer, size_t bytes)
{
    if (counting_allocator_refuses(&ours))
        return NULL;
    void *memory = __real_realloc(pointer, bytes);
    return pointer ? memory : counted(memory);
}

void __wrap_free(void *pointer)
{
    atomic_fetch_sub(&ours.out, pointer != NULL);
    __real_free(pointer);
}

/* lua_resize: Lua counts on it that making smaller never fails. */
static void *lua_resize(void *data, void *pointer, size_t old, size_t wanted)
{
    (void)data;
    if (wanted == 0) {
        luas.out -= pointer != NULL;
        __real_free(pointer);
        return NULL;
    }
    if ((!pointer || wanted > old) && counting_allocator_refuses(&luas))
        return NULL;
    void *memory = __real_realloc(pointer, wanted);
    luas.out += !pointer && memory;
    return memory;
}

/* ---- The script ------------------------------------------------------------------------------ */

static int panic(lua_State *L)
{
    fail_msg("an error passed by what is protected: %s", lua_tostring(L, -1));
    return 0;
}

/* open_script makes a state, with memory enough, and leaves the steps and the book in it. */
static lua_State *open_script(void)
{
    lua_State *L = lua_newstate(lua_resize, NULL);
    assert_non_null(L);
    lua_atpanic(L, panic);
    luaL_openlibs(L);
    luaL_requiref(L, "mulligan", luaopen_mulligan, 0);
    if (luaL_dostring(L, script) != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
    lua_setfield(L, LUA_REGISTRYINDEX, "book");
    lua_setfield(L, LUA_REGISTRYINDEX, "steps");
    lua_settop(L, 0);
    return L;
}

/* take_step says whether it went well; what it raised must be the lack of memory. */
static int take_step(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "steps");
    lua_getfield(L, -1, name);
    int status = lua_pcall(L, 0, 0, 0);
    if (status != LUA_OK) {
        const char *why = lua_tostring(L, -1);
        if (!why || (!strstr(why, "not enough memory") && !strstr(why, "out of memory")))
            fail_msg("%s raised %s", name, why ? why : luaL_typename(L, -1));
    }
    lua_settop(L, 0);
    return status == LUA_OK;
}

static lua_Integer noted(lua_State *L, int one, const char *what)
{
    lua_getfield(L, one, what);
    lua_Integer number = lua_isboolean(L, -1) ? lua_toboolean(L, -1) : lua_tointeger(L, -1);
    lua_pop(L, 1);
    return number;
}

/* assert_book: each message taken has exactly one end, and the sequel that goes with it. */
static void assert_book(lua_State *L, int at_most)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "book");
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        const char *id = lua_tostring(L, 2);
        lua_Integer done = noted(L, 3, "done"), buried = noted(L, 3, "buried");
        lua_Integer taken = noted(L, 3, "taken"), sequel = noted(L, 3, "sequel");
        int deadly = strcmp(id, "deadly") == 0;
        if (at_most ? done + buried > taken : done + buried != taken || buried != (taken && deadly))
            fail_msg("%s: taken %lld, done %lld, buried %lld", id, taken, done, buried);
        if (at_most ? sequel > done : sequel != (strcmp(id, "good") == 0 ? done : 0))
            fail_msg("%s: done %lld, sequels %lld", id, done, sequel);
        if (!at_most)
            assert_int_equal(noted(L, 3, "answers"), taken);
    }
    lua_settop(L, 0);
}

/* ---- A life ---------------------------------------------------------------------------------- */

static const char *const steps[] = {"load",   "set_up",  "publish", "work", "decide",
                                    "reload", "work_on", "stop",    "close"};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* trial is what fails, from which request of which step on and for how long, and whether memory is
 * ever had again. */
typedef struct trial {
    counting_allocator *short_of;
    int step;
    long at, length; /* at 0: nothing fails */
    int heals;
} trial;

/* live takes the steps, each again where it failed. Memory is had again when one has failed so
 * often; or never, and it ends there: 0. */
static int live(lua_State *L, const trial *t)
{
    enum { TRIES = 3 };
    for (int i = 0; i < STEPS; i++) {
        if (i == t->step) {
            t->short_of->asked = 0;
            t->short_of->fail_at = t->at;
        }
        for (int tries = 1; !take_step(L, steps[i]); tries++) {
            assert_true(t->short_of->fail_at != 0);
            if (tries == TRIES && !t->heals)
                return 0;
            if (tries == TRIES)
                t->short_of->fail_at = 0;
        }
        if (i == t->step && !t->at)
            break; /* all that was to be known is how much it asks for */
    }
    return 1;
}

static void live_through(const trial *t)
{
    luas = ours = (counting_allocator){0};
    t->short_of->fail_for = t->length;
    lua_State *L = open_script();
    int ended = live(L, t);
    if (t->at)
        assert_book(L, !ended);
    lua_close(L);
    assert_int_equal(luas.out, 0);
    assert_int_equal(ours.out, 0);
}

/* fail_some has some `lives` for each step, or as many as it makes requests. */
static void fail_some(counting_allocator *short_of, long length, int heals, long lives)
{
    long all = 0, tried = 0;
    for (int step = 0; step < STEPS; step++) {
        trial t = {.short_of = short_of, .step = step};
        live_through(&t);
        long asked = short_of->asked;
        sample s = sample_of(SLOWNESS * (1 + asked / lives));
        for (long at = sample_after(&s, 0); at <= asked; at = sample_after(&s, at), tried++) {
            t = (trial){short_of, step, at, length, heals};
            live_through(&t);
        }
        all += asked;
    }
    print_message("%ld requests, %ld lives\n", all, tried);
    assert_true(tried > 0);
}

#define FAILS(name, short_of, length, heals, lives)                                                \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        fail_some(short_of, length, heals, lives);                                                 \
    }

/* ---- What is left to the collector ----------------------------------------------------------- */

static const char wrong_calls[] =
    "local mulligan, testing = require 'mulligan', require 'mulligan.testing'\n"
    "local clock, text = testing.clock(), ('x'):rep(100000)\n"
    "local policy = assert(mulligan.load_text '')\n"
    "local engine = assert(mulligan.engine { policy = policy, clock = clock })\n"
    "assert(engine:transport('t', 'memory:'))\n"
    "local wrong = { id = text, headers = 5 }\n"
    "local calls = {\n"
    "    function() policy:decide { error = { type = 'E', message = text, lineage = 5 } } end,\n"
    "    function() engine:publish('t', 'out', 'x', wrong) end,\n"
    "    function() mulligan.send('out', 'x', wrong) end,\n"
    "    function() mulligan.json.decode(('['):rep(1000) .. (']'):rep(1000)) end,\n"
    "}\n"
    "local called = 0\n"
    "local function call_all()\n"
    "    for _, call in ipairs(calls) do\n"
    "        local well, why = pcall(call)\n"
    "        assert(not well and not tostring(why):find('in a handler only'), why)\n"
    "        called = called + 1\n"
    "    end\n"
    "end\n"
    "assert(engine:consumer('C', { transport = 't', queue = 'q', handler = function()\n"
    "    call_all()\n" /* what is made once is there */
    "    collectgarbage('stop')\n"
    "    local before = out()\n"
    "    call_all()\n"
    "    assert(out() == before, out() - before)\n"
    "    collectgarbage('restart')\n"
    "end }))\n"
    "assert(engine:start())\n"
    "assert(engine:publish('t', 'q', 'x'))\n"
    "clock:advance('1s')\n"
    "assert(called == 2 * #calls and engine:counts().done == 1)\n"
    "engine:close()\n"
    "policy:close()\n";

static int push_out(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ours.out);
    return 1;
}

/* The collector sees a few bytes where malloc gave a lot, so it would come too late. */
static void what_raises_leaves_nothing_to_the_collector(void **state)
{
    (void)state;
    luas = ours = (counting_allocator){0};
    lua_State *L = open_script();
    lua_register(L, "out", push_out);
    if (luaL_dostring(L, wrong_calls) != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
    lua_close(L);
    assert_int_equal(ours.out, 0);
}

FAILS(the_states_nth_fails_twice, &luas, 2, 1, 10)
FAILS(the_states_memory_is_had_again, &luas, FOR_GOOD, 1, 8)
FAILS(the_states_memory_is_gone, &luas, FOR_GOOD, 0, 6)
FAILS(the_modules_nth_fails, &ours, 1, 1, 6)
FAILS(the_modules_nth_fails_twice, &ours, 2, 1, 6)
FAILS(the_modules_memory_is_had_again, &ours, FOR_GOOD, 1, 6)
FAILS(the_modules_memory_is_gone, &ours, FOR_GOOD, 0, 6)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_raises_leaves_nothing_to_the_collector),
        cmocka_unit_test(the_states_nth_fails_twice),
        cmocka_unit_test(the_states_memory_is_had_again),
        cmocka_unit_test(the_states_memory_is_gone),
        cmocka_unit_test(the_modules_nth_fails),
        cmocka_unit_test(the_modules_nth_fails_twice),
        cmocka_unit_test(the_modules_memory_is_had_again),
        cmocka_unit_test(the_modules_memory_is_gone),
    };
    if (!getenv("MULL_EVERY"))
        alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
