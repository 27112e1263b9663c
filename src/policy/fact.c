/* fact.c: see fact.h. */
#include "fact.h"

#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

typedef struct named {
    mull__subject subject;
    const char *name;
    mull__fact fact;
} named;

static const named facts[] = {
    {MULL__OF_ERROR, "type", MULL__ERROR_TYPE_NAME},
    {MULL__OF_ERROR, "message", MULL__ERROR_MESSAGE},
    {MULL__OF_ERROR, "stack", MULL__ERROR_STACK},
    {MULL__OF_ERROR, "cause", MULL__NO_FACT},
    {MULL__OF_CTX, "attempt", MULL__ATTEMPT},
    {MULL__OF_CTX, "redeliveries", MULL__REDELIVERIES},
    {MULL__OF_CTX, "deliveries", MULL__DELIVERIES},
    {MULL__OF_CTX, "calls", MULL__CALLS},
    {MULL__OF_CTX, "age_ms", MULL__AGE},
    {MULL__OF_CTX, "consumer", MULL__CONSUMER_NAME},
    {MULL__OF_CTX, "transport", MULL__TRANSPORT_NAME},
    {MULL__OF_MESSAGE, "id", MULL__MESSAGE_ID},
    {MULL__OF_MESSAGE, "type", MULL__MESSAGE_TYPE},
    {MULL__OF_MESSAGE, "key", MULL__MESSAGE_KEY},
    {MULL__OF_MESSAGE, "size", MULL__MESSAGE_SIZE},
};

mull__fact mull__fact_named(mull__subject subject, const char *name)
{
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].subject == subject && strcmp(facts[i].name, name) == 0)
            return facts[i].fact;
    if (subject == MULL__OF_HEADER)
        return MULL__HEADER;
    return subject == MULL__OF_ERROR ? MULL__ERROR_FIELD : MULL__NO_FACT;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static const char *header_of(const mull_message *message, const char *name)
{
    if (message)
        for (size_t i = 0; i < mull__header_count(message); i++)
            if (message->headers[i].name && strcmp(message->headers[i].name, name) == 0)
                return message->headers[i].value;
    return NULL;
}

static const mull_value *text(mull_value *room, const char *string)
{
    if (!string)
        return NULL;
    *room = (mull_value){.kind = MULL_STRING, .as.string = string};
    return room;
}

static const mull_value *integer(mull_value *room, int64_t number)
{
    *room = (mull_value){.kind = MULL_INTEGER, .as.integer = number};
    return room;
}

/* of_message: a failure without a message has an empty one, of size 0. */
static const mull_value *of_message(const mull__plain_test *test, const mull_message *message,
                                    mull_value *room)
{
    switch ((mull__fact)test->fact) {
    case MULL__MESSAGE_ID:
        return text(room, message ? message->id : NULL);
    case MULL__MESSAGE_TYPE:
        return text(room, message ? message->type : NULL);
    case MULL__MESSAGE_KEY:
        return text(room, message ? message->key : NULL);
    case MULL__MESSAGE_SIZE:
        return integer(room, message ? (int64_t)message->body_size : 0);
    case MULL__HEADER:
        return text(room, header_of(message, test->name));
    default:
        return NULL;
    }
}

const mull_value *mull__fact_of(const mull__plain_test *test, const mull_failure *failure,
                                const mull_error *error, mull_value *room)
{
    switch ((mull__fact)test->fact) {
    case MULL__ERROR_FIELD:
        return mull__field_of(error, test->name);
    case MULL__ERROR_TYPE_NAME:
        return text(room, error->type);
    case MULL__ERROR_MESSAGE:
        return text(room, error->message ? error->message : "");
    case MULL__ERROR_STACK:
        return text(room, error->stack ? error->stack : "");
    case MULL__ATTEMPT:
        return integer(room, failure->attempt);
    case MULL__REDELIVERIES:
        return integer(room, failure->redeliveries);
    case MULL__DELIVERIES:
        return integer(room, failure->deliveries);
    case MULL__CALLS:
        return integer(room, failure->calls);
    case MULL__AGE:
        return integer(room, failure->age_ms);
    case MULL__CONSUMER_NAME:
        return text(room, failure->consumer);
    case MULL__TRANSPORT_NAME:
        return text(room, failure->transport);
    default:
        return of_message(test, failure->message, room);
    }
}
