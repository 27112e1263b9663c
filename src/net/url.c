/* url.c: see url.h. A mistake in front of an '@' may be a piece of a password, so that nothing of
 * the text is shown before it is clear where user and password end. */
#include "url.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MOST = 64, PORT_DIGITS = 5, PORT_MOST = 65535 };

/* span is a piece of the text. */
typedef struct span {
    const char *begin, *end;
} span;

typedef struct reader {
    mull__url *url;
    mull__arena *arena;
    const char *default_port;
    char *why;
    size_t why_size;
} reader;

/* refuse says what is wrong. */
__attribute__((format(printf, 2, 3))) static int refuse(const reader *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->why, r->why_size, format, arguments);
    va_end(arguments);
    return MULL_EINVAL;
}

static int no_memory(const reader *r)
{
    refuse(r, "out of memory");
    return MULL_ENOMEM;
}

#define SHOW(piece) (int)((piece).end - (piece).begin), (piece).begin

static size_t size_of(span piece)
{
    return (size_t)(piece.end - piece.begin);
}

/* cut gives what stands before the first `at` in `rest`, which then begins behind it; without one,
 * all of it, and `rest` is empty. */
static span cut(span *rest, char at)
{
    const char *found = memchr(rest->begin, at, size_of(*rest));
    span before = {rest->begin, found ? found : rest->end};
    rest->begin = found ? found + 1 : rest->end;
    return before;
}

/* Whatever the locale: */
static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* is_word: a letter, a digit, or one of `more`. */
static int is_word(char c, const char *more)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || (c && strchr(more, c));
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static int hex(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = digit ? strchr(digits, lower(digit)) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* decode gives a piece without its %XX; `what` names it. */
static int decode(const reader *r, const char **out, span piece, const char *what)
{
    char *text = mull__arena_strndup(r->arena, piece.begin, size_of(piece)), *to = text;
    if (!text)
        return no_memory(r);
    for (const char *from = text; *from; from++, to++) {
        *to = *from;
        if (*from != '%')
            continue;
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0)
            return refuse(r, "the %s has a '%%' without two hex digits; write %%25 for a '%%'",
                          what);
        if (high == 0 && low == 0)
            return refuse(r, "the %s has %%00, which can't be in it", what);
        *to = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    *out = text;
    return 0;
}

static int read_scheme(const reader *r, span scheme)
{
    char *text = mull__arena_strndup(r->arena, scheme.begin, size_of(scheme));
    if (!text)
        return no_memory(r);
    for (char *at = text; *at; at++)
        *at = lower(*at);
    r->url->scheme = text;
    return 0;
}

/* read_login takes what stands before the '@'. */
static int read_login(const reader *r, span login)
{
    span password = login, user = cut(&password, ':');
    int has_password = user.end < login.end;
    int status = decode(r, &r->url->user, user, "user");
    return status || !has_password ? status : decode(r, &r->url->password, password, "password");
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

/* read_port shows no port that is none: in a URL that lacks its "@HOST" the password stands here.
 */
static int read_port(const reader *r, mull__link_address *out, span port)
{
    char *text = mull__arena_strndup(r->arena, port.begin, size_of(port));
    if (!text)
        return no_memory(r);
    size_t digits = strspn(text, "0123456789");
    long number = digits <= PORT_DIGITS ? strtol(text, NULL, 10) : 0;
    if (text[digits] || number < 1 || number > PORT_MOST)
        return refuse(r, "the port of the host '%s' isn't a number from 1 to %d%s", out->host,
                      PORT_MOST, strchr(text, ':') ? "; an IPv6 address stands in brackets" : "");
    out->port = text;
    return 0;
}

/* is_name: letters of other scripts have a form in these. */
static int is_name(const char *host)
{
    for (; *host; host++)
        if (!is_word(*host, "-._"))
            return 0;
    return 1;
}

static int check_host(const reader *r, const char *host, int in_brackets)
{
    struct in6_addr six;
    if (!host[0])
        return refuse(r, "a host is missing");
    if (in_brackets && inet_pton(AF_INET6, host, &six) != 1)
        return refuse(r, "[%s] is no IPv6 address", host);
    if (!in_brackets && !is_name(host))
        return refuse(r, "the host '%s' has a character that none can have", host);
    return 0;
}

/* read_host reads HOST[:PORT]. */
static int read_host(const reader *r, mull__link_address *out, span piece)
{
    int in_brackets = piece.begin < piece.end && *piece.begin == '[';
    span rest = piece, host = cut(&rest, in_brackets ? ']' : ':');
    int has_port = host.end < piece.end;
    host.begin += in_brackets;
    if (in_brackets && !has_port)
        return refuse(r, "the bracket of '%.*s' isn't closed", SHOW(piece));
    if (in_brackets) {
        has_port = rest.begin < rest.end;
        if (has_port && *rest.begin++ != ':')
            return refuse(r, "only :PORT may follow the bracket of '%.*s'", SHOW(piece));
    }
    out->host = mull__arena_strndup(r->arena, host.begin, size_of(host));
    if (!out->host)
        return no_memory(r);
    out->port = r->default_port;
    int status = check_host(r, out->host, in_brackets);
    return status || !has_port ? status : read_port(r, out, rest);
}

static size_t count_of(span piece, char wanted)
{
    size_t count = 0;
    for (const char *at = piece.begin; at < piece.end; at++)
        count += *at == wanted;
    return count;
}

static int read_hosts(const reader *r, span hosts)
{
    size_t count = count_of(hosts, ',') + 1;
    if (count > HOSTS_MOST)
        return refuse(r, "there are %zu hosts; %d are allowed", count, HOSTS_MOST);
    mull__link_address *addresses = mull__arena_zalloc(r->arena, count, sizeof *addresses);
    if (!addresses)
        return no_memory(r);
    for (size_t i = 0; i < count; i++) {
        int status = read_host(r, &addresses[i], cut(&hosts, ','));
        if (status)
            return status;
    }
    r->url->addresses = addresses;
    r->url->address_count = count;
    return 0;
}

/* ---- Options --------------------------------------------------------------------------------- */

static int read_option(const reader *r, mull__url_option *out, span piece)
{
    span value = piece, name = cut(&value, '=');
    if (name.begin == name.end)
        return refuse(r, "an option has no name; they are NAME=VALUE, with an '&' between them");
    if (name.end == piece.end)
        return refuse(r, "the option '%.*s' has no value; write %.*s=VALUE", SHOW(name),
                      SHOW(name));
    int status = decode(r, &out->name, name, "name of an option");
    if (status == 0 && mull__url_option_of(r->url, out->name))
        status = refuse(r, "the option '%.*s' stands there twice", SHOW(name));
    return status ? status : decode(r, &out->value, value, "value of an option");
}

static int read_options(const reader *r, span rest)
{
    if (rest.begin == rest.end)
        return 0;
    size_t count = count_of(rest, '&') + 1;
    mull__url_option *options = mull__arena_zalloc(r->arena, count, sizeof *options);
    if (!options)
        return no_memory(r);
    r->url->options = options;
    for (size_t i = 0; i < count; i++) {
        int status = read_option(r, &options[i], cut(&rest, '&'));
        if (status)
            return status;
        r->url->option_count++;
    }
    return 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* show hides what stands between the first ':' and the '@', the last one. */
static int show(const reader *r, const char *text, span login)
{
    const char *colon = login.begin ? memchr(login.begin, ':', size_of(login)) : NULL;
    size_t before = colon ? (size_t)(colon + 1 - text) : strlen(text);
    const char *behind = colon ? login.end : "";
    char *shown = mull__arena_zalloc(r->arena, before + strlen("***") + strlen(behind) + 1, 1);
    if (!shown)
        return no_memory(r);
    memcpy(shown, text, before);
    strcpy(shown + before, colon ? "***" : "");
    strcat(shown, behind);
    r->url->shown = shown;
    return 0;
}

/* check_bytes refuses what no part may have, and what may be a password that was taken apart: an
 * '@' behind the hosts. */
static int check_bytes(const reader *r, const char *text, const char *behind_hosts)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 127)
            return refuse(r, "a space or control character is written %%%02X",
                          (unsigned)(unsigned char)*at);
    if (strchr(behind_hosts, '@'))
        return refuse(r, "there is an '@' behind the hosts; in user and password '/', '?' and '#' "
                         "are written %%2F, %%3F and %%23, and elsewhere an '@' is written %%40");
    if (strchr(behind_hosts, '#'))
        return refuse(r, "a '#' is written %%23");
    return 0;
}

/* read_path takes what begins with a '/', or is empty. */
static int read_path(const reader *r, span path)
{
    if (path.begin == path.end)
        return 0;
    path.begin++;
    return decode(r, &r->url->path, path, "path");
}

static int read_all(const reader *r, const char *text)
{
    size_t scheme = 0;
    while (is_word(text[scheme], "+-."))
        scheme++;
    if (scheme == 0 || strncmp(text + scheme, "://", 3) != 0)
        return refuse(r, "a URL begins with its scheme and ://");
    const char *begin = text + scheme + 3, *end = begin + strcspn(begin, "/?#");
    span rest = {end, end + strlen(end)}, path = cut(&rest, '?');
    span hosts = {begin, end}, login = {NULL, NULL};
    for (const char *at = begin; at < end; at++)
        if (*at == '@') {
            login = (span){begin, at};
            hosts.begin = at + 1;
        }
    int status = check_bytes(r, text, end);
    if (status == 0)
        status = read_scheme(r, (span){text, text + scheme});
    if (status == 0 && login.begin)
        status = read_login(r, login);
    if (status == 0)
        status = read_hosts(r, hosts);
    if (status == 0)
        status = read_path(r, path);
    if (status == 0)
        status = read_options(r, rest);
    return status ? status : show(r, text, login);
}

int mull__url_read(mull__url *out, const mull_allocator *allocator, const char *text,
                   const char *default_port, char *why, size_t why_size)
{
    *out = (mull__url){.arena = {.allocator = *allocator}};
    reader r = {out, &out->arena, NULL, why, why_size};
    r.default_port = mull__arena_strndup(r.arena, default_port, strlen(default_port));
    int status = r.default_port ? read_all(&r, text) : no_memory(&r);
    if (status)
        mull__url_free(out);
    return status;
}

void mull__url_free(mull__url *url)
{
    mull__arena_free(&url->arena);
}

const char *mull__url_option_of(const mull__url *url, const char *name)
{
    for (size_t i = 0; i < url->option_count; i++)
        if (strcmp(url->options[i].name, name) == 0)
            return url->options[i].value;
    return NULL;
}
