/* calls.c: the numbers of calls, and what handlers do with them from any thread.
 *
 * A call is a slot's index in the low 24 bits and its serial above: a number is never used twice,
 * so one that is late, double or made up finds a slot whose serial differs. Ended calls wait in the
 * inbox, linked through their deliveries: an end needs no memory but for a copy of its error. */
#include "calls.h"

#include "base/given.h"
#include "copy.h"

#define OWN(named, text)                                                                           \
    {                                                                                              \
        .size = sizeof(mull_error), .type = (named), .message = (text)                             \
    }

const mull_error mull__own_errors[MULL__OWN_ERRORS] = {
    [MULL__TIMED_OUT] = OWN("HandlerTimeoutError", "the handler ran longer than its timeout"),
    [MULL__CRASHED] = OWN("HandlerCrashError", "the process that handled it died"),
    [MULL__OUT_OF_MEMORY] = OWN("Error", "not enough memory"),
    [MULL__TOO_BIG] =
        OWN("MessageDeserializationError", "the body is larger than the consumer's max_body"),
    [MULL__BODILESS] =
        OWN("MessageDeserializationError", "the body is missing: the transport has lost it"),
};

void mull__error_free(mull_engine *engine, const mull_error *error)
{
    for (int i = 0; i < MULL__OWN_ERRORS; i++)
        if (error == &mull__own_errors[i])
            return;
    mull__free(&engine->allocator, (void *)(uintptr_t)error);
}

enum { INDEX_BITS = 24 };
static const uint32_t index_mask = (1u << INDEX_BITS) - 1;

static int grow(mull_engine *engine)
{
    mull__calls *calls = &engine->calls;
    uint32_t room = calls->room ? calls->room * 2 : 64;
    if (room > index_mask)
        return MULL_ENOMEM;
    mull__call_slot *slots = mull__grow(&engine->allocator, calls->slots, room, sizeof *slots);
    if (!slots)
        return MULL_ENOMEM;
    for (uint32_t i = room - 1; i >= calls->room && i > 0; i--) {
        slots[i] = (mull__call_slot){.serial = 0, .next_free = calls->first_free};
        calls->first_free = i;
    }
    calls->slots = slots;
    calls->room = room;
    return 0;
}

/* find gives the slot of a call that hasn't ended; NULL: there is none. Under the mutex. */
static mull__call_slot *find(mull_engine *engine, mull_call call)
{
    uint32_t index = (uint32_t)(call & index_mask);
    if (index == 0 || index >= engine->calls.room)
        return NULL;
    mull__call_slot *slot = &engine->calls.slots[index];
    int open = slot->state == MULL__CALL_OPEN || slot->state == MULL__CALL_DETACHED;
    return open && slot->serial == call >> INDEX_BITS ? slot : NULL;
}

mull_call mull__call_new(mull_engine *engine, mull__delivery *d)
{
    mull_call call = 0;
    uv_mutex_lock(&engine->mutex);
    mull__calls *calls = &engine->calls;
    if (calls->first_free != 0 || grow(engine) == 0) {
        uint32_t index = calls->first_free;
        mull__call_slot *slot = &calls->slots[index];
        calls->first_free = slot->next_free;
        slot->serial++;
        mull__call_becomes(slot, MULL__CALL_OPEN);
        slot->delivery = d;
        call = slot->serial << INDEX_BITS | index;
    }
    uv_mutex_unlock(&engine->mutex);
    return call;
}

int mull__call_detach(mull_engine *engine, mull_call call)
{
    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    int was_open = slot && slot->state == MULL__CALL_OPEN;
    if (was_open)
        mull__call_becomes(slot, MULL__CALL_DETACHED);
    uv_mutex_unlock(&engine->mutex);
    return was_open;
}

static void free_slot(mull__calls *calls, mull_call call)
{
    uint32_t index = (uint32_t)(call & index_mask);
    mull__call_slot *slot = &calls->slots[index];
    mull__call_becomes(slot, MULL__CALL_NONE);
    slot->delivery = NULL;
    slot->next_free = calls->first_free;
    calls->first_free = index;
}

mull__delivery *mull__calls_take_ended(mull_engine *engine)
{
    uv_mutex_lock(&engine->mutex);
    mull__link *link = mull__list_pop(&engine->inbox);
    mull__delivery *d = link ? MULL__ENTRY(link, mull__delivery, inbox_link) : NULL;
    if (d)
        free_slot(&engine->calls, d->call);
    uv_mutex_unlock(&engine->mutex);
    if (d)
        d->call = 0;
    return d;
}

void mull__calls_free(mull_engine *engine)
{
    mull__free(&engine->allocator, engine->calls.slots);
    engine->calls = (mull__calls){0};
}

static int is_error(const mull_error *error)
{
    return error->size >= MULL__ERROR_LEAST && error->type && error->type[0];
}

/* end ends a call, well or with an error, which it owns from now on. All of it is inside the mutex:
 * once that is free, the engine may see the end, close, and be gone. */
static int end(mull_engine *engine, mull_call call, const mull_error *error)
{
    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    int status = slot && slot->state == MULL__CALL_OPEN ? 0 : MULL_EDONE;
    if (slot) {
        mull__call_becomes(slot, MULL__CALL_ENDED);
        slot->delivery->ended = status == 0 ? error : NULL;
        mull__list_push(&engine->inbox, &slot->delivery->inbox_link);
        mull__engine_wake(engine);
    }
    if (status != 0)
        mull__error_free(engine, error);
    uv_mutex_unlock(&engine->mutex);
    return status;
}

int mull_done(mull_engine *engine, mull_call call, const mull_error *error)
{
    if (!engine || (error && !is_error(error)))
        return MULL_EINVAL;
    mull_error *copy = NULL;
    if (error && !(copy = mull__error_copy(&engine->allocator, error)))
        return MULL_ENOMEM;
    return end(engine, call, copy);
}

int mull__done_short(mull_engine *engine, mull_call call)
{
    return end(engine, call, &mull__own_errors[MULL__OUT_OF_MEMORY]);
}

/* delivery_of finds a call's delivery; NULL: it has none any more. Under the mutex. */
static mull__delivery *delivery_of(mull_engine *engine, mull_call call)
{
    const mull__call_slot *slot = &engine->calls.slots[call & index_mask];
    return slot->serial == call >> INDEX_BITS ? slot->delivery : NULL;
}

int mull__uncount(mull_engine *engine, mull_call call)
{
    uv_mutex_lock(&engine->mutex);
    mull__delivery *d = delivery_of(engine, call);
    if (d)
        d->uncounted = 1;
    uv_mutex_unlock(&engine->mutex);
    return d && d->alone;
}

int mull__is_alone(mull_engine *engine, mull_call call)
{
    uv_mutex_lock(&engine->mutex);
    const mull__delivery *d = delivery_of(engine, call);
    uv_mutex_unlock(&engine->mutex);
    return d && d->alone;
}

/* keep puts an outgoing message behind the others of a call. Under the mutex. */
static int keep(mull_engine *engine, mull__delivery *d, const mull_outgoing *outgoing, size_t bytes)
{
    bytes += sizeof *d->sends;
    if (bytes > MULL__SENDS_MAX - d->send_bytes)
        return MULL_ETOOBIG;
    if (d->send_count == d->send_room) {
        size_t room = d->send_room ? d->send_room * 2 : 4;
        mull_outgoing *sends = mull__grow(&engine->allocator, d->sends, room, sizeof *sends);
        if (!sends)
            return MULL_ENOMEM;
        d->sends = sends;
        d->send_room = room;
    }
    d->sends[d->send_count++] = *outgoing;
    d->send_bytes += bytes;
    return 0;
}

int mull_send(mull_engine *engine, mull_call call, const mull_message *given, int64_t delay_ms)
{
    if (!engine || delay_ms < 0)
        return MULL_EINVAL;
    mull_message message;
    int status = mull__message_take(&message, given);
    if (status != 0)
        return status;
    mull_outgoing outgoing;
    size_t bytes;
    int64_t due_ms = mull__engine_due(engine, delay_ms);
    char id[33] = "";
    if (!message.id)
        mull__engine_id(engine, id);
    status = mull__outgoing_copy(&engine->allocator, &outgoing, &bytes, &message, id, due_ms);
    if (status != 0)
        return status;

    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    status = slot && slot->state == MULL__CALL_OPEN ? 0 : MULL_EDONE;
    if (status == 0)
        status = mull__delay_check(&slot->delivery->consumer->port->abilities, delay_ms);
    if (status == 0)
        status = keep(engine, slot->delivery, &outgoing, bytes);
    uv_mutex_unlock(&engine->mutex);
    if (status != 0)
        mull__outgoing_free(&engine->allocator, &outgoing);
    return status;
}

void mull__sends_drop(mull__delivery *d)
{
    const mull_allocator *allocator = &d->consumer->engine->allocator;
    for (size_t i = 0; i < d->send_count; i++)
        mull__outgoing_free(allocator, &d->sends[i]);
    mull__free(allocator, d->sends);
    d->sends = NULL;
    d->send_count = d->send_room = d->send_bytes = 0;
}
