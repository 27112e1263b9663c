/* lint_override.c: overrides that nothing holds to an end. */
#include "lint_internal.h"
#include "policy/resolve.h"

/* hold is what holds the override of a scope, wherever that is in force. */
typedef struct hold {
    mull__lint_context *finder;
    const mull__scope *setter;
} hold;

/* is_endless: the setter's override is in force, and no limit. */
static int is_endless(void *data, const mull__effective_settings *effective)
{
    const hold *h = data;
    const mull__settings *settings = &effective->settings;
    return settings->max_attempts == MULL__OFF && settings->max_age_ms == MULL__OFF &&
           settings->deadline_ms == MULL__OFF &&
           mull__scope_that_sets(h->finder->table, effective, MULL__OVERRIDE) == h->setter;
}

static int is_endless_for_users(hold *h)
{
    const mull__scope_users *users = h->finder->users;
    for (size_t i = 0; i < users->count; i++) {
        const mull__effective_settings effective = mull__effective_settings_of(
            h->finder->table, users->items[i].consumer, users->items[i].transport);
        if (is_endless(h, &effective))
            return 1;
    }
    return 0;
}

void mull__lint_endless_override(mull__lint_context *f, const mull__lint_item *item)
{
    const mull__scope *setter = item->scope;
    const mull__source_pos *place = &setter->places[MULL__OVERRIDE];
    hold h = {.finder = f, .setter = setter};
    const mull__layer_visitor all = {
        .table = f->table, .scope = setter, .effort = &f->effort, .look = is_endless, .data = &h};
    if (!mull__is_set(&setter->settings, MULL__OVERRIDE) || setter->settings.override == MULL__OFF)
        return;
    int found = f->users->count ? is_endless_for_users(&h) : mull__each_layer(&all);
    if (!found && f->effort <= 0)
        mull__stop(f, "override", place->file, place->line);
    else if (found)
        mull__lint_report(
            f, NULL,
            (mull__finding){.file = place->file, .line = place->line, .scope = setter->label});
}
