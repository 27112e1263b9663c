/* url.c: whatever stands in a URL, net/url.c reads it or says what is wrong; what was read is what
 * a link takes; shown, it reads the same but for its password; and what follows a user's name is in
 * no message, be it a password or the rest of one. */
#include "net/url.h"
#include "base/alloc.h"
#include "fuzz.h"

#include <string.h>

#define SECRET "Zq7xKwJ"

static int read_url(mull__url *out, const char *text, char why[512])
{
    mull_allocator allocator = mull__allocator_or_default((mull_allocator){0});
    why[0] = 0;
    int status = mull__url_read(out, &allocator, text, "5672", why, 512);
    expect(status == 0 || status == MULL_EINVAL, "it answers something else");
    expect(status == 0 || (why[0] && !strchr(why, '\n')), "why isn't one line");
    return status;
}

static int same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_parts(const mull__url *url)
{
    expect(url->scheme[0] && url->address_count > 0, "it has no scheme, or no host");
    for (size_t i = 0; i < url->address_count; i++) {
        int port = atoi(url->addresses[i].port);
        expect(url->addresses[i].host[0] != 0, "a host is empty");
        expect(port >= 1 && port <= 65535, "a port is none");
    }
    for (size_t i = 0; i < url->option_count; i++)
        expect(mull__url_option_of(url, url->options[i].name) == url->options[i].value,
               "an option stands there twice");
}

/* check_shown reads what is shown instead of the URL. */
static void check_shown(const mull__url *url)
{
    char why[512];
    mull__url shown;
    expect(read_url(&shown, url->shown, why) == 0, "what is shown can't be read");
    expect(same(shown.scheme, url->scheme) && same(shown.user, url->user) &&
               same(shown.path, url->path) && shown.address_count == url->address_count &&
               shown.option_count == url->option_count,
           "what is shown is something else");
    expect(same(shown.password, url->password ? "***" : NULL), "a password is shown");
    mull__url_free(&shown);
}

/* check_secret puts the text behind a piece of a password. */
static void check_secret(const char *text, size_t size)
{
    char why[512], *url = malloc(size + 64);
    mull__url read;
    int length = sprintf(url, "amqp://user:" SECRET "%s", text);
    expect(length > 0, "no memory");
    if (read_url(&read, url, why) == 0) {
        expect(!strstr(read.shown, SECRET), "a password is shown");
        mull__url_free(&read);
    }
    expect(!strstr(why, SECRET), "a password is in the message");
    free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[512], *text = malloc(size + 1);
    mull__url url;
    expect(text != NULL, "no memory");
    memcpy(text, data, size);
    text[size] = 0;
    if (read_url(&url, text, why) == 0) {
        check_parts(&url);
        check_shown(&url);
        mull__url_free(&url);
    }
    if (!strstr(text, SECRET))
        check_secret(text, size);
    free(text);
    return 0;
}
