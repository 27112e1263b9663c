/* calls.c: the numbers of calls, and what handlers do with them from any thread.
 *
 * A call is a slot's index in the low 24 bits and its serial above: a number is never used twice,
 * so one that is late, double or made up finds a slot whose serial differs. Ended calls wait in the
 * inbox, linked through their deliveries: an end needs no memory but for a copy of its error. */
#include "calls.h"

#include "base/struct_compat.h"
#include "copy.h"
#include "engine_state.h"
#include "transitions.h"

#define OWN(named, text)                                                                           \
    {                                                                                              \
        .size = sizeof(mull_error), .type = (named), .message = (text)                             \
    }

const mull_error mull__engine_errors[MULL__ENGINE_ERRORS] = {
    [MULL__TIMED_OUT] = OWN("HandlerTimeoutError", "the handler ran longer than its timeout"),
    [MULL__CRASHED] = OWN("HandlerCrashError", "the process that handled it died"),
    [MULL__NO_CONSUMER] =
        OWN("NoConsumerError", "no consumer of this queue takes messages of this type"),
    [MULL__OUT_OF_MEMORY] = OWN("Error", "not enough memory"),
    [MULL__TOO_BIG] =
        OWN("MessageDeserializationError", "the body is larger than the consumer's max_body"),
    [MULL__BODILESS] =
        OWN("MessageDeserializationError", "the body is missing: the transport has lost it"),
    [MULL__UNREADABLE] = OWN("MessageDeserializationError", "the message can't be read"),
    [MULL__SEND_REFUSED] = OWN("Error", "the transport refuses what the handler sent"),
    [MULL__UNCALLED] = OWN("Error", "the policy allows no further call of its handler"),
};

void mull__error_free(mull_engine *engine, const mull_error *error)
{
    if (!error)
        return;
    for (int i = 0; i < MULL__ENGINE_ERRORS; i++)
        if (error == &mull__engine_errors[i])
            return;
    mull__free(&engine->allocator, (void *)(uintptr_t)error);
}

static const uint32_t most_calls = (1u << MULL__CALL_INDEX_BITS) - 1;

static void grow(mull_engine *engine)
{
    uint32_t room = engine->call_room ? engine->call_room * 2 : 64;
    mull__call_slot *slots = NULL;
    if (room <= most_calls)
        slots = mull__grow(&engine->allocator, engine->calls, room, sizeof *slots);
    if (!slots)
        return;
    for (uint32_t i = room - 1; i >= engine->call_room && i > 0; i--) {
        slots[i] = (mull__call_slot){.next_free = engine->free_call};
        engine->free_call = i;
    }
    engine->calls = slots;
    engine->call_room = room;
}

/* find gives the slot of a call whose end the loop hasn't seen, or NULL. Under the mutex. */
static mull__call_slot *find(mull_engine *engine, mull_call call)
{
    uint32_t index = mull__call_index(call);
    if (index == 0 || index >= engine->call_room)
        return NULL;
    mull__call_slot *slot = &engine->calls[index];
    return slot->delivery && slot->serial == call >> MULL__CALL_INDEX_BITS ? slot : NULL;
}

mull_call mull__call_new(mull_engine *engine, mull__delivery *d)
{
    mull_call call = 0;
    uv_mutex_lock(&engine->mutex);
    if (engine->free_call == 0)
        grow(engine);
    uint32_t index = engine->free_call;
    if (index != 0) {
        mull__call_slot *slot = &engine->calls[index];
        engine->free_call = slot->next_free;
        mull__call_becomes(slot, MULL__CALL_OPEN);
        slot->delivery = d;
        call = ++slot->serial << MULL__CALL_INDEX_BITS | index;
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

mull__delivery *mull__calls_take_ended(mull_engine *engine)
{
    mull__delivery *d = NULL;
    uv_mutex_lock(&engine->mutex);
    mull__link *link = mull__list_pop(&engine->inbox);
    if (link) {
        d = MULL__ENTRY(link, mull__delivery, inbox_link);
        mull__call_slot *slot = find(engine, d->call);
        mull__call_becomes(slot, MULL__CALL_NONE);
        slot->delivery = NULL;
        slot->next_free = engine->free_call;
        engine->free_call = mull__call_index(d->call);
        d->call = 0;
    }
    uv_mutex_unlock(&engine->mutex);
    return d;
}

/* end ends a call, well or with an error, which it owns from now on. All of it is inside the mutex:
 * once that is free, the engine may see the end, close, and be gone. */
static int end(mull_engine *engine, mull_call call, const mull_error *error)
{
    int64_t now_ms = mull__engine_now(engine);
    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    int status = slot && slot->state == MULL__CALL_OPEN ? 0 : MULL_EDONE;
    if (slot && slot->state != MULL__CALL_ENDED) {
        mull__call_becomes(slot, MULL__CALL_ENDED);
        slot->delivery->ended = status == 0 ? error : NULL;
        slot->delivery->ended_ms = now_ms;
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
    if (!engine || (error && (error->size < MULL__ERROR_LEAST || !error->type || !error->type[0])))
        return MULL_EINVAL;
    mull_error *copy = NULL;
    if (error && !(copy = mull__error_copy(&engine->allocator, error)))
        return MULL_ENOMEM;
    return end(engine, call, copy);
}

int mull__done_out_of_memory(mull_engine *engine, mull_call call)
{
    return end(engine, call, &mull__engine_errors[MULL__OUT_OF_MEMORY]);
}

int mull__done_crashed(mull_engine *engine, mull_call call, const mull_error *error)
{
    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    if (slot && slot->state == MULL__CALL_OPEN)
        slot->delivery->crashed = 1;
    uv_mutex_unlock(&engine->mutex);
    int status = mull_done(engine, call, error);
    return status == MULL_ENOMEM ? mull__done_out_of_memory(engine, call) : status;
}

const char *mull__call_why_cancelled(mull_engine *engine, mull_call call)
{
    uv_mutex_lock(&engine->mutex);
    const mull__call_slot *slot = find(engine, call);
    int is_lost = slot && slot->delivery->state == MULL__LOST;
    uv_mutex_unlock(&engine->mutex);
    return is_lost ? "lost" : engine->grace_over ? "stop" : "timeout";
}

/* is_alone says whether a call runs alone, and marks it as one that counts for nothing. */
static int is_alone(mull_engine *engine, mull_call call, int uncounted)
{
    uv_mutex_lock(&engine->mutex);
    const mull__call_slot *slot = find(engine, call);
    if (slot)
        slot->delivery->uncounted |= uncounted;
    int alone = slot && slot->delivery->alone;
    uv_mutex_unlock(&engine->mutex);
    return alone;
}

int mull__call_uncount(mull_engine *engine, mull_call call)
{
    return is_alone(engine, call, 1);
}

int mull__call_is_isolated(mull_engine *engine, mull_call call)
{
    return is_alone(engine, call, 0);
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
    char id[33];
    mull_message message;
    mull_outgoing outgoing;
    size_t bytes;
    int64_t due_ms = mull__engine_due(engine, delay_ms);
    int status = mull__message_take(engine, &message, id, given);
    if (status == 0)
        status = mull__outgoing_copy(&engine->allocator, &outgoing, &bytes, &message, due_ms);
    if (status != 0)
        return status;

    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    status = slot && slot->state == MULL__CALL_OPEN ? 0 : MULL_EDONE;
    if (status == 0)
        status = mull__delay_check(&slot->delivery->consumer->can, delay_ms);
    if (status == 0)
        status = keep(engine, slot->delivery, &outgoing, bytes);
    uv_mutex_unlock(&engine->mutex);
    if (status != 0)
        mull__outgoing_free(&engine->allocator, &outgoing);
    return status;
}

int mull__sends_add(mull__delivery *d, const mull_message *given)
{
    char id[33];
    mull_message message;
    mull_outgoing outgoing;
    size_t bytes;
    int status = mull__message_take(d->engine, &message, id, given);
    if (status == 0)
        status = mull__outgoing_copy(&d->engine->allocator, &outgoing, &bytes, &message, 0);
    if (status != 0)
        return status;
    status = keep(d->engine, d, &outgoing, bytes);
    if (status != 0)
        mull__outgoing_free(&d->engine->allocator, &outgoing);
    return status;
}

void mull__sends_drop(mull__delivery *d)
{
    for (size_t i = 0; i < d->send_count; i++)
        mull__outgoing_free(&d->engine->allocator, &d->sends[i]);
    mull__free(&d->engine->allocator, d->sends);
    d->sends = NULL;
    d->send_count = d->send_room = d->send_bytes = 0;
}
