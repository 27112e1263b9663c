/* field_match.c: see field_match.h. */
#include "field_match.h"

#include <stddef.h>
#include <string.h>

#include "base/pattern.h"

/* ---- Names ----------------------------------------------------------------------------------- */

/* Where a value comes from. A NULL is an absent WORD, but the TEXT "". */
typedef enum source { NOTHING, FIELD, HEADER, TEXT, WORD, COUNT, SIZE } source;

/* inputs, by their numbers: what each is called, and where it is in the subject's struct. */
static const struct attribute {
    mull__subject subject;
    source source;
    const char *name;
    size_t offset;
} inputs[] = {
    [MULL__NO_ATTRIBUTE] = {MULL__OF_ERROR, NOTHING, "cause", 0},
    [MULL__ERROR_FIELD] = {MULL__OF_ERROR, FIELD, NULL, 0},
    [MULL__ERROR_TYPE_NAME] = {MULL__OF_ERROR, WORD, "type", offsetof(mull_error, type)},
    [MULL__ERROR_MESSAGE] = {MULL__OF_ERROR, TEXT, "message", offsetof(mull_error, message)},
    [MULL__ERROR_STACK] = {MULL__OF_ERROR, TEXT, "stack", offsetof(mull_error, stack)},
    [MULL__ATTEMPT] = {MULL__OF_CTX, COUNT, "attempt", offsetof(mull_failure, attempt)},
    [MULL__REDELIVERIES] = {MULL__OF_CTX, COUNT, "redeliveries",
                            offsetof(mull_failure, redeliveries)},
    [MULL__DELIVERIES] = {MULL__OF_CTX, COUNT, "deliveries", offsetof(mull_failure, deliveries)},
    [MULL__CALLS] = {MULL__OF_CTX, COUNT, "calls", offsetof(mull_failure, calls)},
    [MULL__AGE] = {MULL__OF_CTX, COUNT, "age_ms", offsetof(mull_failure, age_ms)},
    [MULL__CONSUMER_NAME] = {MULL__OF_CTX, WORD, "consumer", offsetof(mull_failure, consumer)},
    [MULL__TRANSPORT_NAME] = {MULL__OF_CTX, WORD, "transport", offsetof(mull_failure, transport)},
    [MULL__MESSAGE_ID] = {MULL__OF_MESSAGE, WORD, "id", offsetof(mull_message, id)},
    [MULL__MESSAGE_TYPE] = {MULL__OF_MESSAGE, WORD, "type", offsetof(mull_message, type)},
    [MULL__MESSAGE_KEY] = {MULL__OF_MESSAGE, WORD, "key", offsetof(mull_message, key)},
    [MULL__MESSAGE_SIZE] = {MULL__OF_MESSAGE, SIZE, "size", 0},
    [MULL__HEADER] = {MULL__OF_HEADER, HEADER, NULL, 0},
};

mull__attribute mull__attribute_named(mull__subject subject, const char *name)
{
    if (subject == MULL__OF_HEADER)
        return MULL__HEADER;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i].subject == subject && inputs[i].name && strcmp(inputs[i].name, name) == 0)
            return (mull__attribute)i;
    return subject == MULL__OF_ERROR ? MULL__ERROR_FIELD : MULL__NO_ATTRIBUTE;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static const char *header_of(const mull_message *message, const char *name)
{
    for (size_t i = 0; i < mull__header_count(message); i++)
        if (message->headers[i].name && strcmp(message->headers[i].name, name) == 0)
            return message->headers[i].value;
    return NULL;
}

static const mull_value *text(mull_value *room, const char *string)
{
    if (!string)
        return NULL;
    *room = (mull_value){.kind = MULL_STRING, .as.string = string};
    return room;
}

static const mull_value *integer(mull_value *room, int64_t number)
{
    *room = (mull_value){.kind = MULL_INTEGER, .as.integer = number};
    return room;
}

const mull_value *mull__attribute_of(const mull__field_test *test, const mull_failure *failure,
                                     const mull_error *error, mull_value *room)
{
    static const mull_message none; /* a failure without a message has an empty one */
    const mull_message *message = failure->message ? failure->message : &none;
    const void *subjects[] = {[MULL__OF_ERROR] = error,
                              [MULL__OF_CTX] = failure,
                              [MULL__OF_MESSAGE] = message,
                              [MULL__OF_HEADER] = message};
    const struct attribute *attribute = &inputs[test->attribute];
    const void *at = (const char *)subjects[attribute->subject] + attribute->offset;
    const char *string;
    switch (attribute->source) {
    case FIELD:
        return mull__field_of(error, test->name);
    case HEADER:
        return text(room, header_of(message, test->name));
    case TEXT:
        string = *(const char *const *)at;
        return text(room, string ? string : "");
    case WORD:
        return text(room, *(const char *const *)at);
    case COUNT:
        return integer(room, *(const int64_t *)at);
    case SIZE:
        return integer(room, (int64_t)message->body_size);
    case NOTHING:
        break;
    }
    return NULL;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static int is_number(const mull_value *value)
{
    return value->kind == MULL_INTEGER || value->kind == MULL_NUMBER;
}

/* at_most says whether a <= b for numbers, without rounding: 2^53 + 1 is no double. */
static int at_most(const mull_value *a, const mull_value *b)
{
    if (a->kind == MULL_NUMBER && b->kind == MULL_NUMBER)
        return a->as.number <= b->as.number;
    if (a->kind == MULL_INTEGER && b->kind == MULL_INTEGER)
        return a->as.integer <= b->as.integer;
    double number = a->kind == MULL_NUMBER ? a->as.number : b->as.number;
    if (!(number >= -0x1p63 && number < 0x1p63)) /* beyond all integers, or NaN */
        return a->kind == MULL_NUMBER ? number < 0 : number > 0;
    int64_t whole = (int64_t)number; /* towards zero */
    if (a->kind == MULL_NUMBER)
        return whole + ((double)whole < number) <= b->as.integer;
    return a->as.integer <= whole - ((double)whole > number);
}

static int between(const mull__condition *wanted, const mull_value *given)
{
    return is_number(given) && (wanted->low.kind == MULL_NIL || at_most(&wanted->low, given)) &&
           (wanted->high.kind == MULL_NIL || at_most(given, &wanted->high));
}

/* ---- Literals -------------------------------------------------------------------------------- */

int mull__numbers_equal(const mull_value *a, const mull_value *b)
{
    return is_number(a) && is_number(b) && at_most(a, b) && at_most(b, a);
}

static int one_of(const mull__condition *wanted, const mull_value *given)
{
    for (size_t i = 0; i < wanted->literal_count; i++)
        if (mull__values_equal(&wanted->literals[i], given))
            return 1;
    return 0;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* contains: strstr takes time by the product of both lengths on some machines. */
static int contains(const char *text, const char *part)
{
    enum { FEW = 64 };
    size_t size = strlen(part);
    return (size <= FEW ? strstr(text, part) : memmem(text, strlen(text), part, size)) != NULL;
}

/* found: the pattern was checked, so that nothing can be wrong but that it takes too long. */
static int found(const char *text, const char *pattern, int64_t *steps)
{
    mull__pattern_match match;
    mull__pattern_steps budget = {.left = *steps};
    int is_there =
        mull__pattern_find(&match, text, strlen(text), 0, pattern, strlen(pattern), &budget);
    *steps = budget.left;
    return is_there;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* passes_there is for a field that is there. */
static int passes_there(const mull__condition *wanted, const mull_value *given, int64_t *steps)
{
    switch (wanted->kind) {
    case MULL__ONE_OF:
        return one_of(wanted, given);
    case MULL__BETWEEN:
        return between(wanted, given);
    case MULL__CONTAINS:
        return given->kind == MULL_STRING && contains(given->as.string, wanted->text);
    case MULL__MATCHES:
        return given->kind == MULL_STRING ? found(given->as.string, wanted->text, steps) : 0;
    case MULL__PRESENT:
        return 1;
    case MULL__ABSENT:
    case MULL__NOT:
        break;
    }
    return 0;
}

int mull__condition_passes(const mull__condition *wanted, const mull_value *given, int64_t *steps)
{
    int turned = 0;
    for (; wanted->kind == MULL__NOT; wanted = wanted->inner)
        turned = !turned;
    int answer = given ? passes_there(wanted, given, steps) : wanted->kind == MULL__ABSENT;
    return answer < 0 ? answer : answer != turned;
}
