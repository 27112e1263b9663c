/* call.c: the numbers of calls, and what may be done with them from any thread.
 *
 * A call is a slot's index in the low 24 bits and its serial above: a number is never used twice,
 * so one that is late, double or made up finds a slot whose serial differs. Ended calls wait in the
 * inbox, linked through their flows: an end needs no memory but for a copy of its error. */
#include "engine.h"

#include "base/given.h"

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
    int open = slot->state == MULL__CALL_OPEN || slot->state == MULL__CALL_CUT;
    return open && slot->serial == call >> INDEX_BITS ? slot : NULL;
}

mull_call mull__call_new(mull_engine *engine, mull__flow *flow)
{
    mull_call call = 0;
    uv_mutex_lock(&engine->mutex);
    mull__calls *calls = &engine->calls;
    if (calls->first_free != 0 || grow(engine) == 0) {
        uint32_t index = calls->first_free;
        mull__call_slot *slot = &calls->slots[index];
        calls->first_free = slot->next_free;
        slot->serial++;
        slot->state = MULL__CALL_OPEN;
        slot->flow = flow;
        call = slot->serial << INDEX_BITS | index;
    }
    uv_mutex_unlock(&engine->mutex);
    return call;
}

int mull__call_cut(mull_engine *engine, mull_call call)
{
    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    int was_open = slot && slot->state == MULL__CALL_OPEN;
    if (was_open)
        slot->state = MULL__CALL_CUT;
    uv_mutex_unlock(&engine->mutex);
    return was_open;
}

static void free_slot(mull__calls *calls, mull_call call)
{
    uint32_t index = (uint32_t)(call & index_mask);
    mull__call_slot *slot = &calls->slots[index];
    slot->state = MULL__CALL_FREE;
    slot->flow = NULL;
    slot->next_free = calls->first_free;
    calls->first_free = index;
}

int mull__inbox_read(mull_engine *engine)
{
    mull__list ended;
    mull__list_init(&ended);
    uv_mutex_lock(&engine->mutex);
    for (mull__link *link; (link = mull__list_pop(&engine->inbox));) {
        free_slot(&engine->calls, MULL__ENTRY(link, mull__flow, inbox_link)->call);
        mull__list_push(&ended, link);
    }
    uv_mutex_unlock(&engine->mutex);

    int count = (int)ended.count;
    for (mull__link *link; (link = mull__list_pop(&ended));)
        mull__flow_ended(MULL__ENTRY(link, mull__flow, inbox_link));
    return count;
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

/* end ends a call: well, with a copy of its error, or, `short_of` memory for that, without. */
static int end(mull_engine *engine, mull_call call, mull_error *copy, int short_of)
{
    uv_mutex_lock(&engine->mutex);
    mull__call_slot *slot = find(engine, call);
    int status = slot && slot->state == MULL__CALL_OPEN ? 0 : MULL_EDONE;
    if (slot) {
        slot->state = MULL__CALL_ENDED;
        slot->flow->ended = status == 0 ? copy : NULL;
        slot->flow->ended_short = status == 0 && short_of;
        mull__list_push(&engine->inbox, &slot->flow->inbox_link);
        /* Inside the mutex: once it is free, the engine may see the end, close, and be gone. */
        mull__engine_wake(engine);
    }
    uv_mutex_unlock(&engine->mutex);
    if (status != 0)
        mull__free(&engine->allocator, copy);
    return status;
}

int mull_done(mull_engine *engine, mull_call call, const mull_error *error)
{
    if (!engine || (error && !is_error(error)))
        return MULL_EINVAL;
    mull_error *copy = NULL;
    if (error && !(copy = mull__error_copy(&engine->allocator, error)))
        return MULL_ENOMEM;
    return end(engine, call, copy, 0);
}

int mull__done_short(mull_engine *engine, mull_call call)
{
    return end(engine, call, NULL, 1);
}

/* keep puts an outgoing message behind the others of a call. Under the mutex. */
static int keep(mull_engine *engine, mull__flow *flow, const mull_outgoing *outgoing, size_t bytes)
{
    bytes += sizeof *flow->sends;
    if (bytes > MULL__SENDS_MAX - flow->send_bytes)
        return MULL_ETOOBIG;
    if (flow->send_count == flow->send_room) {
        size_t room = flow->send_room ? flow->send_room * 2 : 4;
        mull_outgoing *sends = mull__grow(&engine->allocator, flow->sends, room, sizeof *sends);
        if (!sends)
            return MULL_ENOMEM;
        flow->sends = sends;
        flow->send_room = room;
    }
    flow->sends[flow->send_count++] = *outgoing;
    flow->send_bytes += bytes;
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
        status = mull__delay_check(slot->flow->consumer->port, delay_ms);
    if (status == 0)
        status = keep(engine, slot->flow, &outgoing, bytes);
    uv_mutex_unlock(&engine->mutex);
    if (status != 0)
        mull__outgoing_free(&engine->allocator, &outgoing);
    return status;
}

/* mull__sends_drop forgets what a call wanted sent: it failed, or the messages are out. The call
 * must have ended, so that no other thread adds to them. */
void mull__sends_drop(mull__flow *flow)
{
    const mull_allocator *allocator = &flow->consumer->engine->allocator;
    for (size_t i = 0; i < flow->send_count; i++)
        mull__outgoing_free(allocator, &flow->sends[i]);
    mull__free(allocator, flow->sends);
    flow->sends = NULL;
    flow->send_count = flow->send_room = flow->send_bytes = 0;
}
