/* redact.c: see redact.h. */
#include "redact.h"

#include <string.h>

/* user_of gives where the user part of a URL begins, also of one with a slip in its scheme. In what
 * names a file an '@' and a ':' are of its name. */
static const char *user_of(const char *url)
{
    static const char file[] = "sqlite:";
    size_t scheme = sizeof file - 1;
    if (strncmp(url, file, scheme) == 0 && strncmp(url + scheme, "//", 2) != 0)
        return "";
    while (*url && *url != ':' && strncmp(url, "//", 2) != 0)
        url++;
    url += *url == ':';
    return url + strspn(url, "/");
}

static size_t same_bytes(const char *text, const char *other, size_t most)
{
    size_t length = 0;
    while (length < most && text[length] && text[length] == other[length])
        length++;
    return length;
}

/* hidden_at gives how many bytes at a place of the text are of the user part, or of its beginning:
 * that stands behind what it has in front of it in the URL. */
static size_t hidden_at(const char *text, const char *at, const char *user, size_t length)
{
    if (length == 0)
        return 0;
    if (strncmp(at, user, length + 1) == 0) /* and its '@' */
        return length;
    size_t front = user[-1] == '/' && at - text >= 2 ? 2 : 1;
    int is_behind = (size_t)(at - text) >= front && strncmp(at - front, user - front, front) == 0;
    return is_behind ? same_bytes(at, user, length) : 0;
}

void mull__redact(char *out, size_t size, const char *text, const char *url)
{
    const char *user = user_of(url), *end = strrchr(user, '@');
    size_t length = end ? (size_t)(end - user) : 0, written = 0;
    for (const char *at = text; *at && written + 1 < size;) {
        size_t hidden = hidden_at(text, at, user, length);
        for (int stars = 0; stars < 3 && hidden > 0 && written + 1 < size; stars++)
            out[written++] = '*';
        at += hidden;
        if (hidden == 0)
            out[written++] = *at++;
    }
    if (size > 0)
        out[written] = 0;
}
