/* enum_words.c: the words for codes and kinds, from the lists in mulligan.h. */
#include "mulligan.h"

const char *mull_version(void)
{
    return MULL_VERSION;
}

const char *mull_strerror(int code)
{
#define CASE(name, value, lua, text)                                                               \
    case name:                                                                                     \
        return text;
    switch (code) {
    case MULL_OK:
        return "no error";
        MULL_ERRORS(CASE)
    default:
        return "unknown error code";
    }
#undef CASE
}

/* word gives the `index`-th of a list of words; NULL beyond it. */
static const char *word(const char *const *words, size_t count, int index)
{
    return index >= 0 && (size_t)index < count ? words[index] : NULL;
}

#define WORD(words, index) word(words, sizeof(words) / sizeof *(words), (int)(index))
#define TEXT(name, text)   [name] = (text),

const char *mull_action_name(mull_action action)
{
    static const char *const words[] = {
        [MULL_RETRY] = "retry",
        [MULL_REDELIVER] = "redeliver",
        [MULL_DEAD_LETTER] = "dead_letter",
        [MULL_DISCARD] = "discard",
    };
    return WORD(words, action);
}

const char *mull_reason_name(mull_reason reason)
{
    static const char *const words[] = {MULL_REASONS(TEXT)};
    return WORD(words, reason);
}

const char *mull_tier_name(mull_tier tier)
{
    static const char *const words[] = {
        [MULL_TIER_RETRY] = "retry",
        [MULL_TIER_REDELIVER] = "redeliver",
    };
    return WORD(words, tier);
}

const char *mull_fallback_name(mull_fallback fallback)
{
    static const char *const words[] = {
        [MULL_NO_RETRY] = "no_retry",
        [MULL_NO_DELAY] = "no_delay",
    };
    return WORD(words, fallback);
}

const char *mull_health_name(mull_health health)
{
    static const char *const words[] = {MULL_HEALTHS(TEXT)};
    return WORD(words, health);
}

const char *mull_why_not_name(mull_why_not why)
{
    static const char *const words[] = {MULL_WHY_NOTS(TEXT)};
    return WORD(words, why);
}

const char *mull_event_name(mull_event_kind kind)
{
    static const char *const words[] = {MULL_EVENTS(TEXT)};
    return WORD(words, kind);
}
