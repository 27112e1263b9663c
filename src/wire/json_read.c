/* json_read.c: see json_read.h. */
#include "json_read.h"

#include "base/utf8.h"
#include "mulligan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* reader is at a character, or at the end, where a NUL stands. */
typedef struct reader {
    const char *text, *at, *end;
    size_t values; /* how many there may still be */
    mull__json_taker take;
    void *data;
    char *why;
} reader;

static int read_value(reader *r, int level);

/* ---- What is wrong --------------------------------------------------------------------------- */

/* fail says what is wrong at a character, with its line and its column in characters, and shows
 * `size` bytes of the text from there on, as far as there is room. */
static int fail(const reader *r, const char *at, const char *what, size_t size)
{
    int line = 1, column = 1;
    char shown[32];
    for (const char *c = r->text; c < at; c++) {
        int goes_on = ((unsigned char)*c & 0xC0) == 0x80; /* the character before it */
        column = *c == '\n' ? 1 : column + !goes_on;
        line += *c == '\n';
    }
    if (size >= sizeof shown)
        size = sizeof shown - 1;
    memcpy(shown, at, size);
    shown[size] = '\0';
    for (size_t i = 0; i < size; i++)
        shown[i] = (unsigned char)shown[i] < ' ' ? '?' : shown[i];
    mull__utf8_repair(shown, size);
    snprintf(r->why, MULL__JSON_WHY, "not JSON: line %d, column %d: %s%s", line, column, what,
             shown);
    return MULL_EINVAL;
}

/* expected says that something else stands where the reader is. */
static int expected(const reader *r, const char *what)
{
    char words[64];
    const char *end = r->at;
    snprintf(words, sizeof words, end == r->end ? "expected %s, not the end" : "expected %s, not ",
             what);
    while (end < r->end && !strchr(" \t\r\n,:[]{}", *end))
        end++;
    if (end == r->at && end < r->end)
        end++;
    return fail(r, r->at, words, (size_t)(end - r->at));
}

static int take(const reader *r, mull__json_kind kind, const char *from, const char *end,
                int has_escapes)
{
    const mull__json_part part = {kind, from, (size_t)(end - from), has_escapes};
    int status = r->take(r->data, &part);
    int quote = kind == MULL__JSON_NAME;
    if (status == MULL__JSON_TWICE)
        return fail(r, from - quote, "a name is there twice: ", part.size + 2);
    if (status == MULL__JSON_TOO_LARGE)
        return fail(r, from, "a number is too large: ", part.size);
    return status;
}

static int take_mark(const reader *r, mull__json_kind kind)
{
    return take(r, kind, r->at, r->at, 0);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* skip_digits passes digits, of which one must be there; NULL: it isn't. */
static const char *skip_digits(const reader *r, const char *at)
{
    const char *from = at;
    while (*at >= '0' && *at <= '9')
        at++;
    if (at > from)
        return at;
    fail(r, r->at, "a number lacks a digit: ", (size_t)(at + (at < r->end) - r->at));
    return NULL;
}

static const char *end_of_number(const reader *r)
{
    const char *at = r->at + (*r->at == '-');
    at = *at == '0' ? at + 1 : skip_digits(r, at);
    if (at && *at == '.')
        at = skip_digits(r, at + 1);
    if (at && (*at == 'e' || *at == 'E'))
        at = skip_digits(r, at + 1 + (at[1] == '+' || at[1] == '-'));
    return at;
}

static int read_number(reader *r)
{
    const char *from = r->at, *end = end_of_number(r);
    if (!end)
        return MULL_EINVAL;
    r->at = end;
    return take(r, MULL__JSON_NUMBER, from, end, 0);
}

/* ---- Strings --------------------------------------------------------------------------------- */

static int is_plain(char c)
{
    return (unsigned char)c >= ' ' && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* end_of_string gives where its closing quote is; NULL: it has none, or what can't be in it. */
static const char *end_of_string(const reader *r, int *has_escapes)
{
    const char *at = r->at + 1;
    for (;;) {
        while (is_plain(*at))
            at++;
        if (at == r->end) {
            fail(r, r->at, "a string has no closing quote", 0);
            return NULL;
        }
        if (*at == '"')
            return at;
        size_t size = mull__utf8_char_size(at, (size_t)(r->end - at));
        if (size == 0 || (unsigned char)*at < ' ') {
            fail(r, at,
                 size == 0 ? "a byte that isn't UTF-8"
                           : "a control character in a string must be escaped",
                 0);
            return NULL;
        }
        if (*at == '\\') {
            *has_escapes = 1;
            size += at[1] == '"' || at[1] == '\\';
        }
        at += size;
    }
}

static const char letters[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";

/* hex_of gives the number that four hexadecimal digits are, behind which a NUL or more stands; -1:
 * they aren't. */
static long hex_of(const char *at)
{
    char digits[5] = "";
    strncat(digits, at, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

static int is_high(long code)
{
    return code >= 0xD800 && code < 0xDC00;
}

static int is_low(long code)
{
    return code >= 0xDC00 && code <= 0xDFFF;
}

/* check_code checks \uXXXX, or two that are one character; *at moves behind it. */
static int check_code(const reader *r, const char **at)
{
    static const char digits[] = "\\u takes four hexadecimal digits";
    const char *from = *at;
    long code = hex_of(from + 2);
    if (code < 0)
        return fail(r, from, digits, 0);
    *at += 6;
    if (!is_high(code) && !is_low(code))
        return 0;
    int is_pair = is_high(code) && from[6] == '\\' && from[7] == 'u';
    long second = is_pair ? hex_of(from + 8) : 0;
    if (second < 0)
        return fail(r, *at, digits, 0);
    *at += 6;
    return is_low(second) ? 0 : fail(r, from, "half of a surrogate pair", 0);
}

static int check_escapes(const reader *r, const char *at, const char *end)
{
    int status = 0;
    while (status == 0 && at < end) {
        if (*at != '\\')
            at++;
        else if (at[1] == 'u')
            status = check_code(r, &at);
        else if (strchr(letters, at[1]))
            at += 2;
        else
            status = fail(r, at, "no such escape", 0);
    }
    return status;
}

static int has_nul(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at != '\\')
            continue;
        if (strncmp(++at, "u0000", 5) == 0)
            return 1;
    }
    return 0;
}

static int read_string(reader *r, mull__json_kind kind)
{
    int has_escapes = 0;
    const char *from = r->at + 1, *end = end_of_string(r, &has_escapes);
    int status = !end ? MULL_EINVAL : has_escapes ? check_escapes(r, from, end) : 0;
    if (status != 0)
        return status;
    if (kind == MULL__JSON_NAME && has_escapes && has_nul(from, end))
        return fail(r, r->at, "a name must not hold \\u0000", 0);
    r->at = end + 1;
    return take(r, kind, from, end, has_escapes);
}

/* put_code writes a character as UTF-8, and gives where it ends. */
static char *put_code(char *to, long code)
{
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(size == 1 ? code : marks[size] | code);
    return to + size;
}

/* put_escape writes the character of an escape at *at, and moves behind both. */
static char *put_escape(char *to, const char **at)
{
    const char *from = *at;
    *at += from[1] == 'u' ? 6 : 2;
    if (from[1] != 'u') {
        *to = characters[strchr(letters, from[1]) - letters];
        return to + 1;
    }
    long code = hex_of(from + 2);
    if (is_high(code)) {
        code = 0x10000 + ((code - 0xD800) << 10) + (hex_of(from + 8) - 0xDC00);
        *at += 6;
    }
    return put_code(to, code);
}

size_t mull__json_unescape(char *to, const mull__json_part *part)
{
    const char *at = part->text, *end = at + part->size;
    char *begin = to;
    if (!part->has_escapes) {
        memcpy(to, at, part->size);
        return part->size;
    }
    while (at < end) {
        if (*at == '\\')
            to = put_escape(to, &at);
        else
            *to++ = *at++;
    }
    return (size_t)(to - begin);
}

/* ---- Lists and maps -------------------------------------------------------------------------- */

/* next gives the character after spaces; at the end NUL. */
static char next(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
        r->at++;
    return *r->at;
}

static int read_name(reader *r)
{
    if (next(r) != '"')
        return expected(r, "a name in quotes");
    int status = read_string(r, MULL__JSON_NAME);
    if (status != 0)
        return status;
    if (next(r) != ':')
        return expected(r, "\":\"");
    r->at++;
    return 0;
}

/* read_all reads a list or map, each item of which has a name or hasn't. */
static int read_all(reader *r, char end, const char *what, int are_named, int level)
{
    r->at++;
    if (next(r) != end) {
        for (;; r->at++) {
            int status = are_named ? read_name(r) : 0;
            if (status == 0)
                status = read_value(r, level);
            if (status != 0)
                return status;
            char c = next(r);
            if (c != ',' && c != end)
                return expected(r, what);
            if (c == end)
                break;
        }
    }
    r->at++;
    return 0;
}

static int read_list(reader *r, int level)
{
    int status = take_mark(r, MULL__JSON_LIST);
    if (status == 0)
        status = read_all(r, ']', "\",\" or \"]\"", 0, level);
    return status != 0 ? status : take_mark(r, MULL__JSON_LIST_END);
}

static int read_map(reader *r, int level)
{
    int status = take_mark(r, MULL__JSON_MAP);
    if (status == 0)
        status = read_all(r, '}', "\",\" or \"}\"", 1, level);
    return status != 0 ? status : take_mark(r, MULL__JSON_MAP_END);
}

/* ---- Any value ------------------------------------------------------------------------------- */

static int read_word(reader *r)
{
    static const struct {
        const char *word;
        size_t size;
        mull__json_kind kind;
    } words[] = {
        {"true", 4, MULL__JSON_TRUE}, {"false", 5, MULL__JSON_FALSE}, {"null", 4, MULL__JSON_NULL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(r->at, words[i].word, words[i].size) == 0) {
            r->at += words[i].size;
            return take_mark(r, words[i].kind);
        }
    return expected(r, "a value");
}

static int refuse(const reader *r, const char *why)
{
    snprintf(r->why, MULL__JSON_WHY, "%s", why);
    return MULL_EINVAL;
}

/* read_value reads the value that begins next. */
static int read_value(reader *r, int level)
{
    char c = next(r);
    int is_nested = c == '{' || c == '[';
    if (r->values-- == 0)
        return refuse(r, "JSON of too many values");
    if (is_nested && level == MULL__JSON_LEVELS)
        return refuse(r, "JSON nested deeper than 128 levels");
    if (is_nested)
        return c == '{' ? read_map(r, level + 1) : read_list(r, level + 1);
    if (c == '"')
        return read_string(r, MULL__JSON_STRING);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r);
    return read_word(r);
}

int mull__json_read(const char *text, size_t size, size_t most, mull__json_taker take_part,
                    void *data, char why[MULL__JSON_WHY])
{
    reader r = {text, text, text + size, most, take_part, data, why};
    int status = read_value(&r, 0);
    next(&r);
    return status == 0 && r.at < r.end ? expected(&r, "the end") : status;
}
