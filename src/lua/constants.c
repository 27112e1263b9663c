/* constants.c: see constants.h. It tells apart what Lua's own lexer does:
 *
 *   name | number | string, short or long | comment, short or long | operator | anything else
 *
 * What is no Lua may be taken for anything: the parser stops there. */
#include "constants.h"

#include <string.h>

enum {
    LONG = 5, /* characters of a number that may have been chosen; too few shorter ones collide */
    LOOKUPS = 2, /* for a name, a string or a number */
    JUMP = 8     /* steps for a jump in a list: each is read where the code is, far from the last */
};

typedef struct scan {
    const char *at, *end;
    uint64_t chosen; /* numbers that may have been chosen, so far */
    uint64_t jumps;  /* so far */
    uint64_t steps;
} scan;

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_of_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_operator(char c)
{
    switch (c) {
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '^':
    case '&':
    case '|':
    case '~':
    case '<':
    case '>':
        return 1;
    default:
        return 0;
    }
}

static char next_of(const scan *s)
{
    return s->end - s->at > 1 ? s->at[1] : '\0';
}

/* skip_long skips a long bracket, [[ ]] or [=[ ]=]; 0: there is none. */
static int skip_long(scan *s)
{
    const char *p = s->at + 1;
    while (p < s->end && *p == '=')
        p++;
    if (p >= s->end || *p != '[')
        return 0;
    size_t level = (size_t)(p - s->at) - 1;
    for (p++; (p = memchr(p, ']', (size_t)(s->end - p))); p++) {
        size_t equals = 0;
        while (equals < level && s->end - p > (ptrdiff_t)equals + 1 && p[equals + 1] == '=')
            equals++;
        if (equals == level && s->end - p > (ptrdiff_t)level + 1 && p[level + 1] == ']')
            break;
    }
    s->at = p ? p + level + 2 : s->end;
    return 1;
}

static void skip_comment(scan *s)
{
    s->at += 2;
    if (s->at < s->end && *s->at == '[' && skip_long(s))
        return;
    while (s->at < s->end && *s->at != '\n' && *s->at != '\r')
        s->at++;
}

static void skip_string(scan *s)
{
    char quote = *s->at++;
    while (s->at < s->end && *s->at != quote)
        s->at += *s->at == '\\' ? 2 : 1;
    s->at = s->at < s->end ? s->at + 1 : s->end;
}

/* skip_word skips a name or a number, and gives its size. */
static size_t skip_word(scan *s, int is_number)
{
    const char *first = s->at;
    while (s->at < s->end && (is_of_word(*s->at) || (is_number && *s->at == '.')))
        s->at++;
    return (size_t)(s->at - first);
}

static void look_up(scan *s)
{
    s->steps += LOOKUPS * s->chosen;
}

static int is_jump(const char *word, size_t size)
{
    static const char *const jumps[] = {"and", "or", "elseif", "goto", "break"};
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++)
        if (strlen(jumps[i]) == size && memcmp(word, jumps[i], size) == 0)
            return 1;
    return 0;
}

static void jump(scan *s)
{
    s->steps += JUMP * s->jumps++;
}

static void step(scan *s)
{
    char c = *s->at;
    const char *word = s->at;
    if (is_digit(c) || (c == '.' && is_digit(next_of(s)))) {
        s->chosen += skip_word(s, 1) >= LONG;
        look_up(s);
    } else if (is_of_word(c)) {
        if (is_jump(word, skip_word(s, 0)))
            jump(s);
        look_up(s);
    } else if (c == '"' || c == '\'') {
        skip_string(s);
        look_up(s);
    } else if (c == '-' && next_of(s) == '-') {
        skip_comment(s);
    } else if (c == '[' && skip_long(s)) {
        look_up(s);
    } else if (c == ':' && next_of(s) == ':') {
        s->at += 2;
        jump(s);
    } else {
        s->chosen += (uint64_t)is_operator(c); /* 1 << 40 becomes one number */
        s->at++;
    }
}

uint64_t mull__constants_steps(const char *text, size_t size)
{
    scan s = {.at = text, .end = text + size};
    while (s.at < s.end)
        step(&s);
    return s.steps;
}
