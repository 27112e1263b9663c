/* verdict_json.c: see verdict_json.h. Each value has a comma behind it; the last one of an object
 * gives way to its brace. */
#include "verdict_json.h"

#include <inttypes.h>
#include <stdio.h>

/* line is what is written, until something fails. */
typedef struct line {
    mull__json_text *out;
    int status;
} line;

static void add(line *l, const char *json)
{
    if (l->status == 0)
        l->status = mull__json_add(l->out, json);
}

static void add_text(line *l, const char *key, const char *text)
{
    add(l, key);
    if (!text)
        add(l, "null,");
    else if (l->status == 0)
        l->status = mull__json_add_string(l->out, text, ',');
}

static void add_number(line *l, const char *key, int64_t number, int is_there)
{
    char digits[24] = "null,";
    if (is_there)
        snprintf(digits, sizeof digits, "%" PRId64 ",", number);
    add(l, key);
    add(l, digits);
}

static void end_object(line *l, const char *json)
{
    l->out->size -= l->status == 0;
    add(l, json);
}

static void add_rule(line *l, const mull_rule *rule)
{
    if (!rule->file) {
        add(l, " \"rule\": null,");
        return;
    }
    add_text(l, " \"rule\": {\"file\": ", rule->file);
    add_number(l, " \"line\": ", rule->line, 1);
    add_text(l, " \"scope\": ", rule->scope);
    add_text(l, " \"type\": ", rule->type);
    end_object(l, "},");
}

int mull__verdict_to_json(mull__json_text *out, const mull_verdict *verdict)
{
    line l = {out, 0};
    int has_step = verdict->tier != MULL_TIER_NONE;
    add_text(&l, "{\"action\": ", mull_action_name(verdict->action));
    add_number(&l, " \"delay_ms\": ", verdict->delay_ms, 1);
    add_text(&l, " \"queue\": ", verdict->queue);
    add_text(&l, " \"reason\": ", mull_reason_name(verdict->reason));
    add_text(&l, " \"note\": ", verdict->note);
    add_text(&l, " \"tier\": ", mull_tier_name(verdict->tier));
    add_number(&l, " \"step\": ", verdict->step, has_step);
    add_number(&l, " \"of\": ", verdict->of, has_step && verdict->of > 0);
    add_rule(&l, &verdict->rule);
    add_text(&l, " \"fallback\": ", mull_fallback_name(verdict->fallback));
    add_text(&l, " \"generation\": ", verdict->generation);
    end_object(&l, "}");
    return l.status;
}
