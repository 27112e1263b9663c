/* verdict_json.c: a verdict as the line that `mulligan decide` writes: every key, in this order. */
#include "convert.h"
#include "json_encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(lua_State *L, mull__json_text *out, const char *text)
{
    mull__json_add(L, out, text, strlen(text));
}

static void add_text(lua_State *L, mull__json_text *out, const char *key, const char *text)
{
    add(L, out, key);
    if (text)
        mull__json_add_string(L, out, text, strlen(text));
    else
        add(L, out, "null");
}

static void add_integer(lua_State *L, mull__json_text *out, const char *key, int64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    add(L, out, key);
    add(L, out, digits);
}

static void add_count(lua_State *L, mull__json_text *out, const char *key, int64_t count, int is)
{
    if (is)
        add_integer(L, out, key, count);
    else
        add_text(L, out, key, NULL);
}

static void add_rule(lua_State *L, mull__json_text *out, const char *key, const mull_rule *rule)
{
    if (!rule->file) {
        add_text(L, out, key, NULL);
        return;
    }
    add(L, out, key);
    add_text(L, out, "{\"file\": ", rule->file);
    add_integer(L, out, ", \"line\": ", rule->line);
    add_text(L, out, ", \"scope\": ", rule->scope);
    add_text(L, out, ", \"type\": ", rule->type);
    add(L, out, "}");
}

void mull__push_verdict_json(lua_State *L, const mull_verdict *verdict)
{
    mull__json_text *out = mull__json_text_new(L);
    int in_tier = verdict->tier != MULL_TIER_NONE;
    int is_counted = in_tier && verdict->of != MULL_UNLIMITED && verdict->of > 0;
    add_text(L, out, "{\"action\": ", mull_action_name(verdict->action));
    add_integer(L, out, ", \"delay_ms\": ", verdict->delay_ms);
    add_text(L, out, ", \"queue\": ", verdict->queue);
    add_text(L, out, ", \"reason\": ", mull_reason_name(verdict->reason));
    add_text(L, out, ", \"note\": ", verdict->note);
    add_text(L, out, ", \"tier\": ", mull_tier_name(verdict->tier));
    add_count(L, out, ", \"step\": ", verdict->step, in_tier);
    add_count(L, out, ", \"of\": ", verdict->of, is_counted);
    add_rule(L, out, ", \"rule\": ", &verdict->rule);
    add_text(L, out, ", \"fallback\": ", mull_fallback_name(verdict->fallback));
    add_text(L, out, ", \"generation\": ", verdict->generation);
    add(L, out, "}");
    mull__json_text_push(L, out);
    lua_remove(L, -2);
}
