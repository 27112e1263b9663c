/* pattern.c: see pattern.h. A pattern is a row of items without alternatives, so that the state of
 * its captures at any place in it is always the same, and a match is found by backtracking:
 *
 *   match_rest     walks along the items; what has to be tried in several ways calls it for the
 * rest step_item      a class with a suffix     most, fewest, optional step_escape    %b %f %1
 * balance, frontier, repeated
 *
 * Each gives where in the text it came to; NULL: no match. Why a search ended early is in `status`.
 * A check is the same walk without a text: each item is read, and none is tried.
 */
#include "pattern.h"

#include <string.h>

enum { DEPTH = 200, BYTES_A_STEP = 64 };

typedef struct search {
    const char *text, *text_end, *pattern_end;
    mull__pattern_match *match;
    mull__pattern_steps *steps;
    int is_check, depth, status;
} search;

static const char *match_rest(search *s, const char *text, const char *pattern);

/* ---- How a search ends early ----------------------------------------------------------------- */

static int ask_for_more(search *s)
{
    if (s->status)
        return 0;
    if (s->steps->more && s->steps->more(s->steps))
        return 1;
    s->status = MULL__PATTERN_OUT_OF_STEPS;
    return 0;
}

static int spend(search *s, size_t steps)
{
    s->steps->left -= (int64_t)steps;
    return s->steps->left >= 0 || ask_for_more(s);
}

static const char *stop(search *s, int status, const char *wrong)
{
    s->status = status;
    s->match->wrong = wrong;
    return NULL;
}

static const char *refuse(search *s, const char *wrong)
{
    return stop(s, MULL__PATTERN_MALFORMED, wrong);
}

static const char *refuse_index(search *s, char digit)
{
    static const char texts[][sizeof "invalid capture index %0"] = {
        "invalid capture index %0", "invalid capture index %1", "invalid capture index %2",
        "invalid capture index %3", "invalid capture index %4", "invalid capture index %5",
        "invalid capture index %6", "invalid capture index %7", "invalid capture index %8",
        "invalid capture index %9"};
    return refuse(s, texts[digit - '0']);
}

/* ---- Characters ------------------------------------------------------------------------------ */

static int within(int c, int first, int last)
{
    return c >= first && c <= last;
}

static int is_digit(int c)
{
    return within(c, '0', '9');
}

/* classes has the ranges of each class, by its small letter. */
static const struct class
{
    char letter, range_count;
    unsigned char ranges[4][2];
} classes[] = {
    {'a', 2, {{'A', 'Z'}, {'a', 'z'}}},
    {'c', 2, {{0, 0x1F}, {0x7F, 0x7F}}},
    {'d', 1, {{'0', '9'}}},
    {'g', 1, {{'!', '~'}}},
    {'l', 1, {{'a', 'z'}}},
    {'p', 4, {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {'s', 2, {{'\t', '\r'}, {' ', ' '}}},
    {'u', 1, {{'A', 'Z'}}},
    {'w', 3, {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {'x', 3, {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    {'z', 1, {{0, 0}}}, /* of Lua 5.1, and still there */
};

/* has_class says whether a character is of the class that a letter names, a capital the opposite;
 * others name themselves. */
static int has_class(int c, int name)
{
    const struct class *class = classes, *end = classes + sizeof classes / sizeof *classes;
    while (class < end && class->letter != (name | 0x20))
        class ++;
    if (class == end)
        return name == c;
    int holds = 0;
    for (int i = 0; i < class->range_count; i++)
        holds |= within(c, class->ranges[i][0], class->ranges[i][1]);
    return holds != within(name, 'A', 'Z');
}

/* class_end gives what follows the single character class at `p`; NULL: it is wrong. */
static const char *class_end(search *s, const char *p)
{
    const char *end = s->pattern_end;
    if (*p == '%')
        return p + 1 < end ? p + 2 : refuse(s, "malformed pattern (ends with '%')");
    if (*p++ != '[')
        return p;
    if (p < end && *p == '^')
        p++;
    do { /* a ']' that comes first is one of the set */
        if (p == end)
            return refuse(s, "malformed pattern (missing ']')");
        if (*p++ == '%' && p < end)
            p++;
    } while (p == end || *p != ']');
    return p + 1;
}

/* in_set says whether a character is in the set from '[' up to the ']' at `last`. */
static int in_set(search *s, unsigned char c, const char *p, const char *last)
{
    const char *first = p;
    int holds = 1, found = 0;
    if (p[1] == '^') {
        holds = 0;
        p++;
    }
    while (!found && ++p < last) {
        if (*p == '%') {
            p++;
            found = has_class(c, (unsigned char)*p);
        } else if (p[1] == '-' && p + 2 < last) {
            p += 2;
            found = within(c, (unsigned char)p[-2], (unsigned char)*p);
        } else {
            found = (unsigned char)*p == c;
        }
    }
    spend(s, (size_t)(p - first));
    return found ? holds : !holds;
}

/* is_one says whether the text's next character is of the class at `p`, which ends at `end`. */
static int is_one(search *s, const char *text, const char *p, const char *end)
{
    if (!spend(s, 1) || text >= s->text_end)
        return 0;
    unsigned char c = (unsigned char)*text;
    switch (*p) {
    case '.':
        return 1;
    case '%':
        return has_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(s, c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* ---- Repetition ------------------------------------------------------------------------------ */

/* most matches as many characters of the class as leave a match for the rest. */
static const char *most(search *s, const char *text, const char *p, const char *end,
                        ptrdiff_t least)
{
    ptrdiff_t count = 0;
    while (is_one(s, text + count, p, end))
        count++;
    for (; count >= least && !s->status; count--) {
        const char *rest = match_rest(s, text + count, end + 1);
        if (rest)
            return rest;
    }
    return NULL;
}

static const char *fewest(search *s, const char *text, const char *p, const char *end)
{
    while (!s->status) {
        const char *rest = match_rest(s, text, end + 1);
        if (rest || s->status)
            return rest;
        if (!is_one(s, text, p, end))
            return NULL;
        text++;
    }
    return NULL;
}

/* step_item takes a class with or without a suffix; what follows a repetition is matched with it.
 */
static const char *step_item(search *s, const char *text, const char *p, const char **pattern)
{
    const char *end = class_end(s, p);
    if (!end)
        return NULL;
    spend(s, (size_t)(end - p));
    char suffix = end < s->pattern_end && strchr("*+-?", *end) ? *end : '\0';
    *pattern = suffix ? end + 1 : end;
    if (s->is_check)
        return text;
    if (!suffix)
        return is_one(s, text, p, end) ? text + 1 : NULL;
    if (suffix == '?') {
        const char *rest = is_one(s, text, p, end) ? match_rest(s, text + 1, end + 1) : NULL;
        if (!rest && !s->status)
            return text;
        *pattern = s->pattern_end;
        return rest;
    }
    *pattern = s->pattern_end;
    return suffix == '-' ? fewest(s, text, p, end) : most(s, text, p, end, suffix == '+');
}

/* ---- %b %f %1 -------------------------------------------------------------------------------- */

static const char *balance(search *s, const char *text, char opens, char closes)
{
    if (text == s->text_end || *text != opens)
        return NULL;
    size_t depth = 1;
    while (++text < s->text_end && spend(s, 1)) {
        if (*text == closes) {
            if (--depth == 0)
                return text + 1;
        } else if (*text == opens) {
            depth++;
        }
    }
    return NULL;
}

/* frontier: beyond both ends of the text there is a character '\0'. */
static int frontier(search *s, const char *text, const char *set, const char *end)
{
    unsigned char before = text == s->text ? 0 : (unsigned char)text[-1];
    unsigned char after = text == s->text_end ? 0 : (unsigned char)*text;
    return !in_set(s, before, set, end - 1) && in_set(s, after, set, end - 1);
}

static const char *repeated(search *s, const char *text, char digit)
{
    int index = digit - '1';
    if (index < 0 || index >= s->match->capture_count ||
        s->match->captures[index].length == MULL__CAPTURE_OPEN)
        return refuse_index(s, digit);
    if (s->is_check)
        return text;
    const mull__capture *capture = &s->match->captures[index];
    if (capture->length < 0 || s->text_end - text < capture->length)
        return NULL;
    size_t length = (size_t)capture->length;
    spend(s, length / BYTES_A_STEP);
    return memcmp(capture->start, text, length) == 0 ? text + length : NULL;
}

/* step_escape takes an item that has no suffix: `p` is behind its '%', at b, f or a digit. */
static const char *step_escape(search *s, const char *text, const char *p, const char **pattern)
{
    *pattern = p + 1;
    if (is_digit(*p))
        return repeated(s, text, *p);
    if (*p == 'b') {
        if (s->pattern_end - p < 3)
            return refuse(s, "malformed pattern (missing arguments to '%b')");
        *pattern = p + 3;
        return s->is_check ? text : balance(s, text, p[1], p[2]);
    }
    const char *set = p + 1;
    if (set == s->pattern_end || *set != '[')
        return refuse(s, "missing '[' after '%f' in pattern");
    const char *end = *pattern = class_end(s, set);
    if (!end || !spend(s, (size_t)(end - set)))
        return NULL;
    return s->is_check || frontier(s, text, set, end) ? text : NULL;
}

/* ---- Captures -------------------------------------------------------------------------------- */

static const char *open_capture(search *s, const char *text, const char *p)
{
    mull__pattern_match *match = s->match;
    if (match->capture_count >= MULL__PATTERN_CAPTURES)
        return refuse(s, "too many captures");
    int is_position = p < s->pattern_end && *p == ')';
    match->captures[match->capture_count++] =
        (mull__capture){text, is_position ? MULL__CAPTURE_POSITION : MULL__CAPTURE_OPEN};
    const char *rest = match_rest(s, text, p + is_position);
    if (!rest)
        match->capture_count--;
    return rest;
}

static int last_open(const mull__capture *captures, int count)
{
    while (--count >= 0 && captures[count].length != MULL__CAPTURE_OPEN)
        ;
    return count;
}

static const char *close_capture(search *s, const char *text, const char *p)
{
    int index = last_open(s->match->captures, s->match->capture_count);
    if (index < 0)
        return refuse(s, "invalid pattern capture");
    mull__capture *capture = &s->match->captures[index];
    capture->length = text - capture->start;
    const char *rest = match_rest(s, text, p);
    if (!rest)
        capture->length = MULL__CAPTURE_OPEN;
    return rest;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static const char *match_rest(search *s, const char *text, const char *pattern)
{
    if (s->depth == DEPTH)
        return stop(s, MULL__PATTERN_COMPLEX, NULL);
    s->depth++;
    spend(s, 1);
    const char *end = s->pattern_end;
    while (text && pattern < end && !s->status) {
        const char *p = pattern;
        pattern = end; /* a bracket matches what follows it, too */
        if (*p == '(')
            text = open_capture(s, text, p + 1);
        else if (*p == ')')
            text = close_capture(s, text, p + 1);
        else if (*p == '$' && p + 1 == end)
            text = s->is_check || text == s->text_end ? text : NULL;
        else if (*p == '%' && p + 1 < end && (p[1] == 'b' || p[1] == 'f' || is_digit(p[1])))
            text = step_escape(s, text, p + 1, &pattern);
        else
            text = step_item(s, text, p, &pattern);
    }
    s->depth--;
    return s->status ? NULL : text;
}

static int look(search *s, const char *text, const char *pattern)
{
    s->match->capture_count = 0;
    s->match->start = text;
    s->match->end = match_rest(s, text, pattern);
    return s->status ? s->status : s->match->end != NULL;
}

int mull__pattern_at(mull__pattern_match *match, const char *text, size_t size, size_t at,
                     const char *pattern, size_t pattern_size, mull__pattern_steps *steps)
{
    search s = {text, text + size, pattern + pattern_size, match, steps, 0, 0, 0};
    return at <= size ? look(&s, text + at, pattern) : MULL__PATTERN_NONE;
}

int mull__pattern_find(mull__pattern_match *match, const char *text, size_t size, size_t init,
                       const char *pattern, size_t pattern_size, mull__pattern_steps *steps)
{
    if (pattern_size > 0 && *pattern == '^')
        return mull__pattern_at(match, text, size, init, pattern + 1, pattern_size - 1, steps);
    search s = {text, text + size, pattern + pattern_size, match, steps, 0, 0, 0};
    int found = MULL__PATTERN_NONE;
    for (size_t at = init; at <= size && found == MULL__PATTERN_NONE; at++)
        found = look(&s, text + at, pattern);
    return found;
}

const char *mull__pattern_check(const char *pattern, size_t size)
{
    mull__pattern_match match;
    mull__pattern_steps steps = {.left = INT64_MAX};
    search s = {"", "", pattern + size, &match, &steps, 1, 0, 0};
    if (look(&s, s.text, pattern + (size > 0 && *pattern == '^')) == MULL__PATTERN_MALFORMED)
        return match.wrong;
    return last_open(match.captures, match.capture_count) >= 0 ? "unfinished capture" : NULL;
}
