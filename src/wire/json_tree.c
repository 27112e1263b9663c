/* json_tree.c: see json_tree.h. A mull__json is a json_t that nobody else can see into. */
#include "json_tree.h"

#include <jansson.h>
#include <stdio.h>

static const json_t *node(const mull__json *value)
{
    return (const json_t *)(const void *)value;
}

mull__json *mull__json_parse(const char *text, size_t size, char *why, size_t why_size)
{
    json_error_t problem;
    json_t *root = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
    if (!root)
        snprintf(why, why_size, "line %d, column %d: %s", problem.line, problem.column,
                 problem.text);
    return (mull__json *)(void *)root;
}

void mull__json_drop(mull__json *root)
{
    json_decref((json_t *)(void *)root);
}

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
