/* settings.c: see settings.h. */
#include "settings.h"

const mull__settings mull__default_settings = {.set = (1u << MULL__SETTINGS) - 1,
#define DEFAULT(NUMBER, field, kind, otherwise, ...) .field = otherwise,
                                               MULL__EACH_SETTING(DEFAULT)
#undef DEFAULT
};

void mull__settings_lay(mull__settings *on, const mull__settings *near)
{
    if (near->set == 0)
        return;
    on->set |= near->set;
#define TAKE(NUMBER, field, ...)                                                                   \
    if (mull__is_set(near, MULL__##NUMBER))                                                        \
        on->field = near->field;
    MULL__EACH_SETTING(TAKE)
#undef TAKE
}
