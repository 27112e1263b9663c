/* json_tree.c: see json_tree.h. A mull__json is a json_t that nobody else can see into. */
#include "json_tree.h"

#include "base/utf8.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *node(const mull__json *value)
{
    return (const json_t *)(const void *)value;
}

/* ---- Parsing --------------------------------------------------------------------------------- */

/* span_of gives how many of the bytes at `at` are among `bytes`. */
static size_t span_of(const char *at, const char *end, const char *bytes)
{
    const char *stop = at;
    while (stop < end && *stop && strchr(bytes, *stop))
        stop++;
    return (size_t)(stop - at);
}

/* is_too_big says whether a number is a whole one that doesn't fit 64 bits. */
static int is_too_big(const char *number, size_t length)
{
    int negative = *number == '-';
    const char *at = number + negative, *end = number + length;
    uint64_t most = (uint64_t)INT64_MAX + (uint64_t)negative, value = 0;
    if (span_of(at, end, "0123456789") != (size_t)(end - at))
        return 0;
    for (; at < end; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (most - digit) / 10)
            return 1;
        value = value * 10 + digit;
    }
    return 0;
}

static size_t string_length(const char *at, const char *end)
{
    const char *stop = at + 1;
    while (stop < end && *stop != '"')
        stop += *stop == '\\' && stop + 1 < end ? 2 : 1;
    return (size_t)(stop - at) + (stop < end);
}

/* widen gives a copy in which each whole number that is too big for jansson has a ".0" behind it,
 * so that it is read as a real one; NULL: out of memory. */
static char *widen(const char *text, size_t *size)
{
    const char *at = text, *end = text + *size;
    char *copy = malloc(*size + *size / 8 + 1), *to = copy; /* such a number has 19 digits */
    if (!copy)
        return NULL;
    while (at < end) {
        size_t number = span_of(at, end, "+-.0123456789Ee");
        size_t length = number ? number : *at == '"' ? string_length(at, end) : 1;
        memcpy(to, at, length);
        to += length;
        if (number && is_too_big(at, number)) {
            memcpy(to, ".0", 2);
            to += 2;
        }
        at += length;
    }
    *size = (size_t)(to - copy);
    return copy;
}

static json_t *load(const char *text, size_t size, int flags, json_error_t *problem)
{
    size_t how = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    if (flags & MULL__JSON_UNIQUE)
        how |= JSON_REJECT_DUPLICATES;
    return json_loadb(text, size, how, problem);
}

mull__json *mull__json_parse(const char *text, size_t size, int flags, char *why, size_t why_size)
{
    json_error_t problem;
    json_t *root = load(text, size, flags, &problem);
    if (!root && json_error_code(&problem) == json_error_numeric_overflow) {
        char *wide = widen(text, &size);
        root = wide ? load(wide, size, flags, &problem) : NULL;
        free(wide);
    }
    if (!root) {
        snprintf(why, why_size, "line %d, column %d: %s", problem.line, problem.column,
                 problem.text);
        mull__utf8_mend(why, strlen(why)); /* it quotes the text */
    }
    return (mull__json *)(void *)root;
}

void mull__json_drop(mull__json *root)
{
    json_decref((json_t *)(void *)root);
}

/* What each of these adds to a tree at most: by the sizes of jansson's structs, what malloc rounds
 * them up to, and what is copied while a list or map grows. Names are copied into their maps. */
static size_t weight_of(char mark)
{
    switch (mark) {
    case '[':
        return 192;
    case '{':
        return 320;
    case ',':
        return 64;
    case ':':
        return 144;
    case '"':
        return 80;
    default:
        return 0;
    }
}

size_t mull__json_weight(const char *text, size_t size)
{
    const char *end = text + size;
    size_t weight = 512 + 3 * size; /* strings, and the wide copy */
    for (const char *at = text; at < end; at += *at == '"' ? string_length(at, end) : 1)
        weight += weight_of(*at);
    return weight;
}

/* ---- Looking --------------------------------------------------------------------------------- */

void mull__json_look(const mull__json *value, mull__json_view *view)
{
    const json_t *json = node(value);
    *view = (mull__json_view){.kind = MULL_NIL};
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        view->kind = MULL_MAP;
        view->size = json_object_size(json);
        break;
    case JSON_ARRAY:
        view->kind = MULL_LIST;
        view->size = json_array_size(json);
        break;
    case JSON_STRING:
        view->kind = MULL_STRING;
        view->text = json_string_value(json);
        view->size = json_string_length(json);
        break;
    case JSON_INTEGER:
        view->kind = MULL_INTEGER;
        view->integer = json_integer_value(json);
        break;
    case JSON_REAL:
        view->kind = MULL_NUMBER;
        view->number = json_real_value(json);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        view->kind = MULL_BOOLEAN;
        view->boolean = json_is_true(json);
        break;
    case JSON_NULL:
        break;
    }
}

const mull__json *mull__json_item(const mull__json *list, size_t index)
{
    return (const mull__json *)(const void *)json_array_get(node(list), index);
}

const mull__json *mull__json_member(const mull__json *map, void **place, const char **name,
                                    size_t *name_size)
{
    /* jansson's iterator asks for an object that may be written, and doesn't write. */
    union {
        const mull__json *given;
        json_t *json;
    } object = {.given = map};
    *place = *place ? json_object_iter_next(object.json, *place) : json_object_iter(object.json);
    if (!*place)
        return NULL;
    *name = json_object_iter_key(*place);
    *name_size = json_object_iter_key_len(*place);
    return (const mull__json *)(const void *)json_object_iter_value(*place);
}
