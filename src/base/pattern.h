/* pattern.h: the patterns of Lua 5.4 on bytes of C, without Lua, without a locale, and with an end:
 * each look at a character costs a step, and steps are bounded. */
#ifndef MULL__PATTERN_H
#define MULL__PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum { MULL__PATTERN_CAPTURES = 32 };

/* What a capture's length may be besides a number of bytes. */
enum { MULL__CAPTURE_OPEN = -1, MULL__CAPTURE_POSITION = -2 };

typedef struct mull__capture {
    const char *start;
    ptrdiff_t length; /* MULL__CAPTURE_OPEN only in a match of a pattern that wasn't checked */
} mull__capture;

typedef struct mull__pattern_match {
    const char *start, *end; /* in the text */
    mull__capture captures[MULL__PATTERN_CAPTURES];
    int capture_count;
    const char *wrong; /* for MULL__PATTERN_MALFORMED: what, in Lua's words; static */
} mull__pattern_match;

/* mull__pattern_steps is what searches may take. `left` counts down, and may end just below 0. */
typedef struct mull__pattern_steps {
    int64_t left;
    /* Where `left` fell below 0: puts more there and gives 1, or gives 0. NULL: there are no more.
     */
    int (*more)(struct mull__pattern_steps *steps);
} mull__pattern_steps;

/* What looking for a pattern comes to. */
enum {
    MULL__PATTERN_FOUND = 1,
    MULL__PATTERN_NONE = 0,
    MULL__PATTERN_OUT_OF_STEPS = -1, /* the steps are */
    MULL__PATTERN_COMPLEX = -2,      /* nested deeper than Lua takes it: 200 levels */
    MULL__PATTERN_MALFORMED = -3     /* malformed, at a place that the search came to */
};

/* mull__pattern_check gives NULL, or what is wrong with a pattern, in Lua's words (static). A
 * pattern that passes never comes to MULL__PATTERN_MALFORMED. It refuses all that Lua could raise
 * on; Lua itself raises only where a text leads it to the mistake. */
const char *mull__pattern_check(const char *pattern, size_t size);

/* mull__pattern_find looks for the pattern from `init` on (from 0), which may be an offset beyond
 * the text: nothing is there. */
int mull__pattern_find(mull__pattern_match *match, const char *text, size_t size, size_t init,
                       const char *pattern, size_t pattern_size, mull__pattern_steps *steps);

/* mull__pattern_at looks at one place of the text only, up to its end; '^' is a character there as
 * any other. */
int mull__pattern_at(mull__pattern_match *match, const char *text, size_t size, size_t at,
                     const char *pattern, size_t pattern_size, mull__pattern_steps *steps);

#endif
