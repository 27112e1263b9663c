/* named.c: see named.h. */
#include "named.h"

#include "base/given.h"

/* leads_back: an error is a cause of its own. */
static int leads_back(const mull_error *error)
{
    const mull_error *cause = mull__cause(error);
    for (int i = 0; i < MULL__ROUND && cause && cause != error; i++)
        cause = mull__cause(cause);
    return cause == error;
}

/* lead_back copies the causes on the way from an error to itself, so that they come round to its
 * copy, which has its name. */
static void lead_back(mull__named *room, const mull_error *error)
{
    mull_error *last = &room->error;
    for (int i = 0; last->cause != error; i++) {
        mull__struct_take(&room->causes[i], sizeof *room->causes, MULL__ERROR_LEAST, last->cause);
        last->cause = &room->causes[i];
        last = &room->causes[i];
    }
    last->cause = &room->error;
}

static int name_type(mull_failure *failure, const mull__ids *ids, mull__named *room)
{
    const mull_error *given = failure->error;
    if (!mull__struct_take(&room->error, sizeof room->error, MULL__ERROR_LEAST, given))
        room->error = MULL_INIT(mull_error);
    else if (leads_back(given))
        lead_back(room, given);
    room->error.type = mull__ids_type(ids, failure->type);
    failure->error = &room->error;
    return room->error.type ? MULL_OK : MULL_EINVAL;
}

int mull__name_all(mull_failure *failure, const mull__ids *ids, mull__named *room)
{
    if (failure->type && name_type(failure, ids, room))
        return MULL_EINVAL;
    if (failure->site &&
        mull__ids_site(ids, failure->site, &failure->consumer, &failure->transport))
        return MULL_EINVAL;
    failure->type = failure->site = 0;
    return MULL_OK;
}
