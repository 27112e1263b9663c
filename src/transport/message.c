/* message.c: see message.h. */
#include "message.h"

#include <string.h>

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* place copies a string to `*end` and moves that behind it; NULL stays NULL. */
static const char *place(char **end, const char *text)
{
    size_t size = size_of(text);
    char *start = *end;
    *end += size;
    return text ? memcpy(start, text, size) : NULL;
}

size_t mull__message_bytes(const mull_message *message)
{
    size_t bytes = size_of(message->id) + size_of(message->type) + size_of(message->key) +
                   size_of(message->queue) + message->header_count * sizeof *message->headers;
    for (size_t i = 0; i < message->header_count; i++)
        bytes += size_of(message->headers[i].name) + size_of(message->headers[i].value);
    return bytes + message->body_size + 1;
}

void mull__message_copy(mull_message *copy, const mull_message *message, void *memory)
{
    mull_header *headers = memory;
    char *end = (char *)(headers + message->header_count);
    *copy = *message;
    copy->attempt = copy->redeliveries = copy->calls = copy->deliveries =
        0; /* for handlers alone */
    copy->headers = headers;
    copy->id = place(&end, message->id);
    copy->type = place(&end, message->type);
    copy->key = place(&end, message->key);
    copy->queue = place(&end, message->queue);
    for (size_t i = 0; i < message->header_count; i++) {
        headers[i].name = place(&end, message->headers[i].name);
        headers[i].value = place(&end, message->headers[i].value);
    }
    copy->body = end;
    if (message->body_size > 0)
        memcpy(end, message->body, message->body_size);
    end[message->body_size] = 0;
}
