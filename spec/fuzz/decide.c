/* decide.c: a line of `decide`, whatever it is, gets a verdict that is JSON and has every key, or
 * an error with a text. */
#include "fuzz.h"

static lua_State *L;

static const char harness[] =
    "local m = require 'mulligan'\n"
    "local policy = assert(m.load_text [[\n"
    "local policy = require 'mulligan.policy'\n"
    "local bus = policy.bus()\n"
    "policy.errors { DeadlockError = 'PgError', PgError = 'DatabaseError' }\n"
    "bus:on('DatabaseError', { code = '40P01' }):retry(5, '1s'):then_redeliver()\n"
    "bus:on('HttpError', function(err, ctx) return err.status == 429 and "
    "ctx.message.headers.tenant end)\n"
    "    :redeliver { attempts = 5, delay = '2m' }\n"
    "bus:on('ValidationError'):discard('wrong')\n"
    "policy.consumer('PaymentHandler'):default():dead_letter('parked')\n"
    "bus:default():retry():then_redeliver():then_dead_letter()\n"
    "]])\n"
    "local keys = { 'action', 'delay_ms', 'queue', 'reason', 'note', 'tier', 'step', 'of', "
    "'rule',\n"
    "    'fallback', 'generation' }\n"
    "return function(line)\n"
    "    local well, verdict, message = pcall(policy.decide_json, policy, line, {})\n"
    "    if not well then\n"
    "        assert(type(verdict) == 'string' or type(verdict) == 'table' and verdict.message)\n"
    "    elseif verdict then\n"
    "        local read = m.json.decode(verdict)\n"
    "        for _, key in ipairs(keys) do assert(read[key] ~= nil or verdict:find('\"' .. key .. "
    "'\":', 1, true)) end\n"
    "        assert(not verdict:find('\\n', 1, true), 'two lines')\n"
    "    else\n"
    "        assert(message)\n"
    "    end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!L) {
        L = open_lua();
        if (luaL_dostring(L, harness) != LUA_OK)
            expect(0, lua_tostring(L, -1));
    }
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)data, size);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        expect(0, lua_tostring(L, -1));
    return 0;
}
