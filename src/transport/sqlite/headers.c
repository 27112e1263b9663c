/* headers.c: headers out of a row, where they are a JSON object. One without escapes and spaces, as
 * mulligan writes it, is read here; any other by SQLite's own reader of JSON. That takes more than
 * headers may be, and what is too much is refused here: other values than strings and objects of
 * them, NULs, bytes and halves of surrogate pairs that are no UTF-8. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "store.h"

#include <string.h>

/* The columns of MULL__SQL_HEADERS. */
enum { NAME, VALUE };

/* has_nul says whether a NUL is escaped somewhere: SQLite ends the string there. */
static int has_nul(const char *text)
{
    while ((text = strchr(text, '\\')) && text[1]) {
        if (strncmp(text, "\\u0000", 6) == 0)
            return 1;
        text += 2;
    }
    return 0;
}

/* is_object says no to what SQLite would find nothing wrong with, as an empty list. What follows
 * the brace is SQLite's to judge. */
static int is_object(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{';
}

/* take copies a string to `*end` and moves that behind it; NULL: it is none, or no memory, which
 * the statement remembers. */
static const char *take(char **end, sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) != SQLITE_TEXT)
        return NULL;
    const char *text = (const char *)sqlite3_column_text(row, column);
    if (!text || !mull__utf8_valid(text))
        return NULL;
    size_t size = (size_t)sqlite3_column_bytes(row, column) + 1;
    char *start = *end;
    *end += size;
    return memcpy(start, text, size);
}

static int take_all(sqlite3_stmt *read, mull_header *headers, size_t *count, char *end)
{
    while (sqlite3_step(read) == SQLITE_ROW) {
        mull_header header = {.name = take(&end, read, NAME), .value = take(&end, read, VALUE)};
        if (!header.name || !header.value) {
            int code = sqlite3_reset(read);
            return code != SQLITE_OK ? code : SQLITE_ERROR;
        }
        headers[(*count)++] = header;
    }
    return sqlite3_reset(read);
}

/* take_plain copies a string of JSON that has no escape, from `*at` to `*end`, and moves both
 * behind it. NULL: it is something else. */
static const char *take_plain(char **end, const char **at)
{
    const unsigned char *from = (const unsigned char *)*at + 1, *to = from;
    if (**at != '"')
        return NULL;
    while (*to >= 0x20 && *to != '"' && *to != '\\')
        to++;
    if (*to != '"')
        return NULL;
    size_t size = (size_t)(to - from);
    char *start = memcpy(*end, from, size);
    start[size] = 0;
    *end += size + 1;
    *at = (const char *)to + 1;
    return mull__utf8_valid(start) ? start : NULL;
}

/* take_all_plain reads an object of such strings; 0: it is something else. */
static int take_all_plain(const char *at, mull_header *headers, size_t *count, char *end)
{
    do {
        at++; /* behind the brace, or a comma */
        mull_header header = {.name = take_plain(&end, &at)};
        if (header.name && *at == ':' && at++)
            header.value = take_plain(&end, &at);
        if (!header.value)
            return 0;
        headers[(*count)++] = header;
    } while (*at == ',');
    return at[0] == '}' && !at[1];
}

/* most_headers is how many there can be: each but the last has a comma behind it. */
static size_t most_headers(const char *text)
{
    size_t most = 1;
    while ((text = strchr(text, ',')))
        most++, text++;
    return most;
}

int mull__store_headers(mull__store *store, const char *text, mull_header **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    if (!*text || strcmp(text, "{}") == 0)
        return SQLITE_OK;
    if (!is_object(text) || has_nul(text))
        return SQLITE_ERROR;
    /* No string is longer than in JSON, with its quotes. */
    size_t most = most_headers(text);
    mull_header *block = mull__alloc(&store->allocator, most * sizeof *block + strlen(text));
    if (!block)
        return SQLITE_NOMEM;
    char *end = (char *)(block + most);
    int code = SQLITE_OK;
    if (!take_all_plain(text, block, count, end)) {
        *count = 0;
        code = take_all(mull__store_bind(store, MULL__SQL_HEADERS, "t", text), block, count, end);
    }
    if (code == SQLITE_OK) {
        *out = block;
    } else {
        mull__free(&store->allocator, block);
        *count = 0;
    }
    return code;
}
