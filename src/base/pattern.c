/* pattern.c: see pattern.h. A pattern is a row of items without alternatives, so that the state of
 * its captures at any place in it is always the same, and a match is found by backtracking:
 *
 *   match      walks along the items; what has to be tried in several ways calls it for the rest
 *   step_item  a class with a suffix     most, fewest, optional
 *   step_escape  %b %f %1                balance, frontier, repeated
 *
 * A text position of NULL means that there is no match; why the search ended early is in `status`.
 */
#include "pattern.h"

#include <string.h>

enum { DEPTH = 200, BYTES_A_STEP = 64 };

typedef struct search {
    const char *text, *text_end, *pattern_end;
    mull__pattern_match *match;
    mull__pattern_steps *steps;
    int64_t left; /* of the steps, while it searches */
    int depth, status;
} search;

/* place is how far a match has come. */
typedef struct place {
    const char *text; /* NULL: no further */
    const char *pattern;
} place;

static const char *match_rest(search *s, const char *text, const char *pattern);

/* ---- How a search ends early ----------------------------------------------------------------- */

static int ask_for_more(search *s)
{
    if (s->status)
        return 0;
    s->steps->left = s->left;
    if (s->steps->more && s->steps->more(s->steps)) {
        s->left = s->steps->left;
        return 1;
    }
    s->status = MULL__PATTERN_SPENT;
    return 0;
}

static int spend(search *s, size_t steps)
{
    s->left -= (int64_t)steps;
    return s->left >= 0 || ask_for_more(s);
}

static const char *stop(search *s, int status, const char *wrong)
{
    s->status = status;
    s->match->wrong = wrong;
    return NULL;
}

static const char ends_with_escape[] = "malformed pattern (ends with '%')";
static const char no_bracket[] = "malformed pattern (missing ']')";
static const char no_arguments[] = "malformed pattern (missing arguments to '%b')";
static const char no_set[] = "missing '[' after '%f' in pattern";
static const char no_capture[] = "invalid pattern capture";
static const char unfinished[] = "unfinished capture";
static const char too_many[] = "too many captures";

static const char *no_index(char digit)
{
    static const char texts[][sizeof "invalid capture index %0"] = {
        "invalid capture index %0", "invalid capture index %1", "invalid capture index %2",
        "invalid capture index %3", "invalid capture index %4", "invalid capture index %5",
        "invalid capture index %6", "invalid capture index %7", "invalid capture index %8",
        "invalid capture index %9"};
    return texts[digit - '0'];
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

static int is_letter(int c)
{
    return within(c | 0x20, 'a', 'z');
}

/* has_class says whether a character is of the class that a letter names; others name themselves.
 */
static int has_class(int c, int name)
{
    int holds;
    switch (name | 0x20) {
    case 'a':
        holds = is_letter(c);
        break;
    case 'c':
        holds = c < 0x20 || c == 0x7F;
        break;
    case 'd':
        holds = is_digit(c);
        break;
    case 'g':
        holds = within(c, 0x21, 0x7E);
        break;
    case 'l':
        holds = within(c, 'a', 'z');
        break;
    case 'p':
        holds = within(c, 0x21, 0x7E) && !is_letter(c) && !is_digit(c);
        break;
    case 's':
        holds = c == ' ' || within(c, '\t', '\r');
        break;
    case 'u':
        holds = within(c, 'A', 'Z');
        break;
    case 'w':
        holds = is_letter(c) || is_digit(c);
        break;
    case 'x':
        holds = is_digit(c) || within(c | 0x20, 'a', 'f');
        break;
    case 'z': /* of Lua 5.1, and still there */
        holds = c == 0;
        break;
    default:
        return name == c;
    }
    return within(name, 'A', 'Z') ? !holds : holds;
}

/* class_end gives what follows the single character class at `p`, or NULL and what is wrong. */
static const char *class_end(const char *p, const char *end, const char **wrong)
{
    if (*p == '%') {
        if (p + 1 < end)
            return p + 2;
        *wrong = ends_with_escape;
        return NULL;
    }
    if (*p++ != '[')
        return p;
    if (p < end && *p == '^')
        p++;
    do { /* a ']' that comes first is one of the set */
        if (p == end) {
            *wrong = no_bracket;
            return NULL;
        }
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

/* end_at ends the walk along the items: the rest was matched up to `text`, or not. */
static void end_at(const search *s, place *at, const char *text)
{
    *at = (place){text, s->pattern_end};
}

static void step_item(search *s, place *at)
{
    const char *p = at->pattern, *wrong, *end = class_end(p, s->pattern_end, &wrong);
    if (!end) {
        end_at(s, at, stop(s, MULL__PATTERN_WRONG, wrong));
        return;
    }
    spend(s, (size_t)(end - p));
    switch (end < s->pattern_end ? *end : '\0') {
    case '*':
        end_at(s, at, most(s, at->text, p, end, 0));
        return;
    case '+':
        end_at(s, at, most(s, at->text, p, end, 1));
        return;
    case '-':
        end_at(s, at, fewest(s, at->text, p, end));
        return;
    case '?':
        if (is_one(s, at->text, p, end)) {
            const char *rest = match_rest(s, at->text + 1, end + 1);
            if (rest || s->status) {
                end_at(s, at, rest);
                return;
            }
        }
        at->pattern = end + 1;
        return;
    default:
        at->text = is_one(s, at->text, p, end) ? at->text + 1 : NULL;
        at->pattern = end;
        return;
    }
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
        return stop(s, MULL__PATTERN_WRONG, no_index(digit));
    const mull__capture *capture = &s->match->captures[index];
    if (capture->length < 0 || s->text_end - text < capture->length)
        return NULL;
    size_t length = (size_t)capture->length;
    spend(s, length / BYTES_A_STEP);
    return memcmp(capture->start, text, length) == 0 ? text + length : NULL;
}

/* step_escape takes an item that begins with '%' and has no suffix; 0: it isn't such a one. */
static int step_escape(search *s, place *at)
{
    const char *p = at->pattern + 1;
    if (p == s->pattern_end)
        return 0;
    if (*p == 'b') {
        if (s->pattern_end - p < 3)
            end_at(s, at, stop(s, MULL__PATTERN_WRONG, no_arguments));
        else
            *at = (place){balance(s, at->text, p[1], p[2]), p + 3};
        return 1;
    }
    if (*p == 'f') {
        const char *wrong = no_set, *set = p + 1, *end = NULL;
        if (set < s->pattern_end && *set == '[')
            end = class_end(set, s->pattern_end, &wrong);
        if (!end)
            end_at(s, at, stop(s, MULL__PATTERN_WRONG, wrong));
        else if (spend(s, (size_t)(end - set)))
            *at = (place){frontier(s, at->text, set, end) ? at->text : NULL, end};
        return 1;
    }
    if (!is_digit(*p))
        return 0;
    *at = (place){repeated(s, at->text, *p), p + 1};
    return 1;
}

/* ---- Captures -------------------------------------------------------------------------------- */

static const char *open_capture(search *s, const char *text, const char *p)
{
    mull__pattern_match *match = s->match;
    if (match->capture_count >= MULL__PATTERN_CAPTURES)
        return stop(s, MULL__PATTERN_WRONG, too_many);
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
        return stop(s, MULL__PATTERN_WRONG, no_capture);
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
    place at = {text, pattern};
    while (at.text && at.pattern < s->pattern_end && !s->status) {
        const char *p = at.pattern;
        if (*p == '(')
            end_at(s, &at, open_capture(s, at.text, p + 1));
        else if (*p == ')')
            end_at(s, &at, close_capture(s, at.text, p + 1));
        else if (*p == '$' && p + 1 == s->pattern_end)
            end_at(s, &at, at.text == s->text_end ? at.text : NULL);
        else if (*p != '%' || !step_escape(s, &at))
            step_item(s, &at);
    }
    s->depth--;
    return s->status ? NULL : at.text;
}

static int look(mull__pattern_match *match, search *s, const char *text, const char *pattern)
{
    s->status = s->depth = 0;
    match->capture_count = 0;
    match->start = text;
    match->end = match_rest(s, text, pattern);
    return s->status ? s->status : match->end != NULL;
}

int mull__pattern_at(mull__pattern_match *match, const char *text, size_t size, size_t at,
                     const char *pattern, size_t pattern_size, mull__pattern_steps *steps)
{
    if (at > size)
        return MULL__PATTERN_NONE;
    search s = {text, text + size, pattern + pattern_size, match, steps, steps->left, 0, 0};
    int found = look(match, &s, text + at, pattern);
    steps->left = s.left;
    return found;
}

int mull__pattern_find(mull__pattern_match *match, const char *text, size_t size, size_t init,
                       const char *pattern, size_t pattern_size, mull__pattern_steps *steps)
{
    if (pattern_size > 0 && *pattern == '^')
        return mull__pattern_at(match, text, size, init, pattern + 1, pattern_size - 1, steps);
    search s = {text, text + size, pattern + pattern_size, match, steps, steps->left, 0, 0};
    int found = MULL__PATTERN_NONE;
    for (size_t at = init; at <= size && found == MULL__PATTERN_NONE; at++)
        found = look(match, &s, text + at, pattern);
    steps->left = s.left;
    return found;
}

/* ---- Checking -------------------------------------------------------------------------------- */

/* check_capture takes a bracket, or the digit of %1; `state` has the captures as they are there. It
 * gives what follows, or NULL and what is wrong. */
static const char *check_capture(mull__pattern_match *state, const char *p, const char *end,
                                 const char **wrong)
{
    int count = state->capture_count;
    if (*p == '(') {
        int is_position = p + 1 < end && p[1] == ')';
        *wrong = count == MULL__PATTERN_CAPTURES ? too_many : NULL;
        if (*wrong)
            return NULL;
        state->captures[state->capture_count++].length =
            is_position ? MULL__CAPTURE_POSITION : MULL__CAPTURE_OPEN;
        return p + 1 + is_position;
    }
    if (*p == ')') {
        int index = last_open(state->captures, count);
        *wrong = index < 0 ? no_capture : NULL;
        if (*wrong)
            return NULL;
        state->captures[index].length = 0;
        return p + 1;
    }
    if (*p == '0' || *p - '0' > count || state->captures[*p - '1'].length == MULL__CAPTURE_OPEN)
        *wrong = no_index(*p);
    return *wrong ? NULL : p + 1;
}

/* check_escape takes an item that begins with '%' and has no suffix; NULL: it isn't such a one, or
 * it is wrong. */
static const char *check_escape(mull__pattern_match *state, const char *p, const char *end,
                                const char **wrong)
{
    if (p + 1 == end)
        return NULL;
    if (is_digit(p[1]))
        return check_capture(state, p + 1, end, wrong);
    if (p[1] == 'b') {
        if (end - p < 4)
            *wrong = no_arguments;
        return *wrong ? NULL : p + 4;
    }
    if (p[1] != 'f')
        return NULL;
    if (p + 2 == end || p[2] != '[')
        *wrong = no_set;
    return *wrong ? NULL : class_end(p + 2, end, wrong);
}

const char *mull__pattern_check(const char *pattern, size_t size)
{
    mull__pattern_match state = {0};
    const char *p = pattern, *end = pattern + size, *wrong = NULL;
    if (size > 0 && *p == '^')
        p++;
    while (p < end) {
        const char *next = NULL;
        if (*p == '(' || *p == ')')
            next = check_capture(&state, p, end, &wrong);
        else if (*p == '%')
            next = check_escape(&state, p, end, &wrong);
        if (!next && !wrong) {
            next = class_end(p, end, &wrong);
            if (next && next < end && memchr("*+-?", *next, 4))
                next++;
        }
        if (wrong)
            return wrong;
        p = next;
    }
    return last_open(state.captures, state.capture_count) >= 0 ? unfinished : NULL;
}
