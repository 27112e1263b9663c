/* companions.c: what works beside an engine: see companions.h. */
#include "companions.h"

#include "engine_control.h"

static mull__companion *companion_of(mull__link *link)
{
    return link ? MULL__ENTRY(link, mull__companion, link) : NULL;
}

static mull__companion *next(mull_engine *engine, mull__companion *after)
{
    mull__list *list = &engine->companions;
    return companion_of(after ? mull__list_after(list, &after->link) : mull__list_first(list));
}

void mull__companion_add(mull_engine *engine, mull__companion *companion)
{
    mull__list_push(&engine->companions, &companion->link);
    if (engine->state == MULL__RUNNING)
        companion->start(companion->data);
}

void mull__companion_gone(mull_engine *engine, mull__companion *companion)
{
    mull__list_remove(&engine->companions, &companion->link);
    mull__engine_mark_posted(engine);
}

void mull__companions_start(mull_engine *engine)
{
    for (mull__companion *c = NULL; (c = next(engine, c));)
        c->start(c->data);
}

void mull__companions_stop(mull_engine *engine)
{
    for (mull__companion *c = NULL; (c = next(engine, c));)
        c->stop(c->data, engine->options.grace_ms);
}

int mull__companions_end(mull_engine *engine)
{
    mull__companion *c = engine->companions_end ? NULL : next(engine, NULL);
    engine->companions_end = 1;
    while (c) { /* which may be gone at once */
        mull__companion *following = next(engine, c);
        c->close(c->data);
        c = following;
    }
    return engine->companions.count == 0;
}
