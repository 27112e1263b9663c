/* model.c: what docs/plain-rules.md calls the kinds of model.h and limits.h. */
#include "limits.h"

#include <stddef.h>

const char *const mull__value_words[] = {
    [MULL__ONE_OF] = "one_of",     [MULL__BETWEEN] = "between",
    [MULL__CONTAINS] = "contains", [MULL__MATCHES] = "matches",
    [MULL__PRESENT] = "present",   [MULL__ABSENT] = "absent",
    [MULL__NOT] = "not",           NULL,
};

const char *const mull__subject_words[] = {
    [MULL__OF_ERROR] = "error",
    [MULL__OF_CTX] = "ctx",
    [MULL__OF_MESSAGE] = "message",
    [MULL__OF_HEADER] = "header",
    NULL,
};

const char *const mull__matcher_words[] = {
    [MULL__MATCH_ALWAYS] = "always",
    [MULL__MATCH_TESTS] = "tests",
    [MULL__MATCH_FUNCTION] = "function",
    [MULL__MATCH_ALL] = "all",
    [MULL__MATCH_ANY] = "any",
    [MULL__MATCH_NONE] = "none",
    NULL,
};

const char *const mull__backoff_words[] = {
    [MULL__CONSTANT] = "constant",
    [MULL__LINEAR] = "linear",
    [MULL__EXPONENTIAL] = "exponential",
    NULL,
};

const char *const mull__scope_words[] = {
    [MULL__CONSUMER] = "consumer",
    [MULL__TRANSPORT] = "transport",
    [MULL__BUS] = "bus",
    [MULL__HOST] = "host",
    NULL,
};

const char *const mull__per_words[] = {
    [MULL__PER_CONSUMER] = "consumer",
    [MULL__PER_KEY] = "key",
    [MULL__PER_TYPE] = "type",
    [MULL__PER_HEADER] = "header",
    NULL,
};
