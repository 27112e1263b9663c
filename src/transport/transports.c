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

const mull_transport_ops *mull__transport_for(const char *url)
{
    for (size_t i = 0; i < COUNT; i++) {
        size_t length = strlen(transports[i]->scheme);
        if (strncmp(url, transports[i]->scheme, length) == 0 && url[length] == ':')
            return transports[i];
    }
    return NULL;
}

void mull__transport_schemes(char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < COUNT && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s:", i ? ", " : "",
                                   transports[i]->scheme);
}
