/* lint_comparison.c: texts in table matchers that look like a comparison with a number: ">= 500".
 * They are compared as texts, like all literals. */
#include <string.h>

#include "lint_internal.h"
#include "policy/field_match.h"

static const char *behind_spaces(const char *text)
{
    return text + strspn(text, " ");
}

/* behind_operator gives NULL where a text doesn't begin with an operator. */
static const char *behind_operator(const char *text)
{
    static const char *const operators[] = {">=", "<=", "==", "!=", "~=", "<>", ">", "<", "="};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t length = strlen(operators[i]);
        if (strncmp(text, operators[i], length) == 0)
            return text + length;
    }
    return NULL;
}

/* behind_number gives NULL where a text doesn't begin with a number. */
static const char *behind_number(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-';
    size_t whole = strspn(text, digits), fraction = 0;
    text += whole;
    if (whole && *text == '.')
        fraction = strspn(text + 1, digits);
    return whole ? text + fraction + (fraction > 0) : NULL;
}

static int is_comparison(const char *text)
{
    const char *at = behind_operator(behind_spaces(text));
    at = at ? behind_number(behind_spaces(at)) : NULL;
    return at && !*behind_spaces(at);
}

/* may_be_number: what a test looks at isn't always a text. */
static int may_be_number(const mull__field_test *test)
{
    switch (test->attribute) {
    case MULL__ERROR_FIELD:
    case MULL__ATTEMPT:
    case MULL__REDELIVERIES:
    case MULL__DELIVERIES:
    case MULL__CALLS:
    case MULL__AGE:
    case MULL__MESSAGE_SIZE:
        return 1;
    default:
        return 0;
    }
}

static void look_at_test(const mull__lint_context *f, const mull__rule *rule,
                         const mull__field_test *test)
{
    const mull__condition *value = &test->value;
    while (value->kind == MULL__NOT)
        value = value->inner;
    for (size_t i = 0; value->kind == MULL__ONE_OF && i < value->literal_count; i++) {
        const mull_value *literal = &value->literals[i];
        if (literal->kind == MULL_STRING && is_comparison(literal->as.string))
            mull__lint_report(
                f, rule, (mull__finding){.word = test->name, .other.type = literal->as.string});
    }
}

static void look_at_matcher(const mull__lint_context *f, const mull__rule *rule,
                            const mull__matcher *matcher)
{
    for (size_t i = 0; i < matcher->test_count; i++)
        if (may_be_number(&matcher->tests[i]))
            look_at_test(f, rule, &matcher->tests[i]);
    for (size_t i = 0; i < matcher->part_count; i++)
        look_at_matcher(f, rule, &matcher->parts[i]);
}

void mull__lint_comparison(mull__lint_context *f, const mull__lint_item *item)
{
    look_at_matcher(f, item->rule, &item->rule->matcher);
}
