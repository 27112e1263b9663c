/* match.c: see match.h. */
#include "match.h"

#include <string.h>

/* integer_equals compares without rounding: 2^53 + 1 is no double. */
static int integer_equals(int64_t integer, double number)
{
    return number >= -0x1p63 && number < 0x1p63 && (double)(int64_t)number == number &&
           (int64_t)number == integer;
}

static int equals(const mull_value *a, const mull_value *b)
{
    if (a->kind == MULL_INTEGER && b->kind == MULL_NUMBER)
        return integer_equals(a->as.integer, b->as.number);
    if (a->kind == MULL_NUMBER && b->kind == MULL_INTEGER)
        return integer_equals(b->as.integer, a->as.number);
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case MULL_BOOLEAN:
        return !a->as.boolean == !b->as.boolean;
    case MULL_INTEGER:
        return a->as.integer == b->as.integer;
    case MULL_NUMBER:
        return a->as.number == b->as.number;
    case MULL_STRING:
        return strcmp(a->as.string, b->as.string) == 0;
    case MULL_NIL:
    case MULL_LIST:
    case MULL_MAP:
        break; /* absent for table matchers */
    }
    return 0;
}

/* own_text is the text of the fields that every error has; NULL for other names. */
static const char *own_text(const mull_error *error, const char *name)
{
    if (strcmp(name, "message") == 0)
        return error->message ? error->message : "";
    if (strcmp(name, "stack") == 0)
        return error->stack ? error->stack : "";
    return strcmp(name, "type") == 0 ? error->type : NULL;
}

int mull__field_passes(const mull_field *literal, const mull_error *error)
{
    const char *text = own_text(error, literal->name);
    if (text)
        return equals(&literal->value, &(mull_value){.kind = MULL_STRING, .as.string = text});
    for (size_t i = 0; i < error->field_count; i++)
        if (strcmp(error->fields[i].name, literal->name) == 0)
            return equals(&literal->value, &error->fields[i].value);
    return 0;
}

static int function_passes(const mull__rule *rule, const mull_failure *failure,
                           const mull__runner *runner)
{
    char why[512] = "";
    int answer = runner->match(runner->state, rule->matcher.function, failure, why, sizeof why);
    if (answer < 0 && runner->failed)
        runner->failed(runner->data, failure, &rule->source, why);
    return answer > 0;
}

static int fields_pass(const mull__plain_matcher *matcher, const mull_error *error)
{
    for (size_t i = 0; i < matcher->field_count; i++)
        if (!mull__field_passes(&matcher->fields[i], error))
            return 0;
    return 1;
}

static int passes(const mull__rule *rule, const mull_failure *failure, const mull__runner *runner)
{
    switch (rule->matcher.kind) {
    case MULL__MATCH_FIELDS:
        return fields_pass(&rule->matcher, failure->error);
    case MULL__MATCH_FUNCTION:
        return function_passes(rule, failure, runner);
    case MULL__MATCH_ALWAYS:
        break;
    }
    return 1;
}

static const mull__rule *match_type(const mull__scope *scope, uint32_t type,
                                    const mull_failure *failure, const mull__runner *runner)
{
    const mull__rule *rule = mull__first_rule(scope, type);
    while (rule && !passes(rule, failure, runner))
        rule = mull__next_rule(scope, rule);
    return rule;
}

const mull__rule *mull__match(const mull__scope *scope, const mull__lineage *lineage,
                              const mull_failure *failure, const mull__runner *runner)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const mull__rule *rule = match_type(scope, (uint32_t)lineage->types[i], failure, runner);
        if (rule)
            return rule;
    }
    return match_type(scope, MULL__ERROR_TYPE, failure, runner);
}
