/* transports.c: the one file that names every transport. A new one is a row here. */
#include "transports.h"

#include <stdio.h>
#include <string.h>

#define TRANSPORTS(X)                                                                              \
    X(mull__memory)                                                                                \
    X(mull__sqlite)

#define DECLARE(symbol) extern const mull_transport_ops symbol;
TRANSPORTS(DECLARE)

#define ROW(symbol) &symbol,
static const mull_transport_ops *const transports[] = {TRANSPORTS(ROW)};

enum { COUNT = sizeof transports / sizeof transports[0] };

int mull__has_scheme(const char *url, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncmp(url, scheme, length) == 0 && url[length] == ':';
}

const mull_transport_ops *mull__transport_for(const char *url)
{
    for (size_t i = 0; i < COUNT; i++)
        if (mull__has_scheme(url, transports[i]->scheme))
            return transports[i];
    return NULL;
}

int mull__transport_is_later(const char *url)
{
    return mull__has_scheme(url, "amqp") || mull__has_scheme(url, "redis") ||
           mull__has_scheme(url, "nats");
}

void mull__transport_schemes(char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < COUNT && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s:", i ? ", " : "",
                                   transports[i]->scheme);
}

void mull__transport_unknown(const char *url, const char *more, char *why, size_t size)
{
    char known[128];
    size_t length = strcspn(url, ":");
    int scheme = length < 32 ? (int)length : 32;
    mull__transport_schemes(known, sizeof known);
    if (mull__transport_is_later(url))
        snprintf(why, size, "'%.*s:' is not in this version yet", scheme, url);
    else if (!url[length])
        snprintf(why, size, "'%.*s' begins with no scheme; known are %s%s", scheme, url, known,
                 more);
    else
        snprintf(why, size, "there is no '%.*s:'; known are %s%s", scheme, url, known, more);
}
