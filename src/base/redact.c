/* redact.c: see redact.h. */
#include "redact.h"

#include <string.h>

static size_t same_bytes(const char *text, const char *other, size_t most)
{
    size_t length = 0;
    while (length < most && text[length] && text[length] == other[length])
        length++;
    return length;
}

void mull__redact(char *out, size_t size, const char *text, const char *url)
{
    const char *slashes = strstr(url, "//");
    const char *user = slashes ? slashes + 2 : "";
    const char *end = strrchr(user, '@');
    size_t length = end ? (size_t)(end - user) : 0, written = 0;
    for (const char *at = text; *at && written + 1 < size;) {
        out[written++] = *at++;
        int behind = at - text >= 2 && at[-1] == '/' && at[-2] == '/';
        size_t hidden = behind ? same_bytes(at, user, length) : 0;
        for (int stars = 0; stars < 3 && hidden > 0 && written + 1 < size; stars++)
            out[written++] = '*';
        at += hidden;
    }
    if (size > 0)
        out[written] = 0;
}
